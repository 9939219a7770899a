//! The catalogue of interfaces, at a well-known path (RFC 8615, RFC 9727).

use super::openapi::BASE;
use crate::app::api::API_CATALOG;
use crate::config::Config;
use petstore_base::http::{Asset, Assets};
use petstore_base::json::{Json, object};

/// The media type of a set of links, with the profile of catalogues (RFC 9264, RFC 9727).
const LINK_SET: &str =
    "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"";

/// Adds the catalogue.
pub fn add(assets: &mut Assets, config: &Config) {
    // Relative, unless the public address is known.
    let root = config.root().unwrap_or_default();
    let describes = object! { "href": format!("{root}/openapi.json"), "type": "application/json" };
    let mut links = object! {
        "anchor": format!("{root}{BASE}"),
        "service-desc": Json::Array(vec![describes]),
    };
    if assets.get("/").is_some() {
        links["service-doc"] = Json::Array(vec![
            object! { "href": format!("{root}/"), "type": "text/html" },
        ]);
    }
    let catalog = object! { "linkset": Json::Array(vec![links]) }.to_string() + "\n";
    let link = format!("<{root}{API_CATALOG}>; rel=\"api-catalog\"");
    assets.insert(
        API_CATALOG.into(),
        Asset::new(LINK_SET, catalog.into_bytes()).header("Link", link),
    );
}
