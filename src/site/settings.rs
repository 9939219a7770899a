//! The settings page, which the admin address serves. It works by the interface below `/settings/api/`.

use crate::http::{Asset, Assets};
use crate::site::page::policy;

/// Where the page lies.
pub const PATH: &str = "/settings/domains";

/// The page, and what it loads.
pub fn assets() -> Assets {
    let script = "text/javascript; charset=utf-8";
    let own = |content_type, bytes: &[u8]| Asset::new(content_type, bytes.to_vec());
    let page = own("text/html; charset=utf-8", include_bytes!("files/settings.html"));
    let page = page.header("Content-Security-Policy", policy(&[])).header("Referrer-Policy", "no-referrer");
    let mut assets = Assets::default();
    assets.insert(PATH, page);
    assets.insert("/assets/settings.js", own(script, include_bytes!("files/settings.js")));
    assets.insert("/assets/settings.css", own("text/css", include_bytes!("files/settings.css")));
    assets.insert("/assets/site.css", own("text/css", include_bytes!("files/site.css")));
    assets.insert("/assets/icon.svg", own("image/svg+xml", include_bytes!("files/icon.svg")));
    assets
}
