//! The documents at well-known places, for programs and researchers (RFC 8615).

use serde_json::json;

use super::document::BASE;
use crate::app::api::API_CATALOG;
use crate::base::config::Config;
use crate::base::http::{Asset, Assets};

/// The media type of a set of links, with the profile of catalogues (RFC 9264, RFC 9727).
const LINK_SET: &str = "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"";

/// Adds the catalogue.
pub fn add(assets: &mut Assets, config: &Config) {
    // Relative if nobody has set the public address.
    let root = config.root().unwrap_or_default();
    let mut links = json!({
        "anchor": format!("{root}{BASE}"),
        "service-desc": [{ "href": format!("{root}/openapi.json"), "type": "application/json" }],
    });
    if assets.get("/").is_some() {
        links["service-doc"] = json!([{ "href": format!("{root}/"), "type": "text/html" }]);
    }
    let catalog = json!({ "linkset": [links] }).to_string() + "\n";
    let link = format!("<{root}{API_CATALOG}>; rel=\"api-catalog\"");
    assets.insert(API_CATALOG.into(), Asset::new(LINK_SET, catalog.into_bytes()).header("Link", link));
}
