//! The style sheets, scripts and pictures of the pages, as they are in `files/`.

use crate::http::{Asset, Assets};

/// The names of files and their bytes.
type Files = &'static [(&'static str, &'static [u8])];

macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_bytes!(concat!("../files/", $name)))),*] };
}

/// What the reference and the pages load.
pub const SITE: Files = files!("code.js" "elements.js" "icon.svg" "reference.css" "reference.js" "search.js"
    "site.css" "theme.js");
/// What the settings page loads.
pub const SETTINGS: Files = files!("elements.js" "icon.svg" "settings.css" "settings-dialogs.js" "settings-domain.js"
    "settings-parts.js" "settings-redirects.js" "settings.js" "site.css" "theme.js");

/// Adds files below `/assets/`.
pub fn add(assets: &mut Assets, files: Files) {
    for (name, bytes) in files {
        let content_type = match name.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css",
            _ => "image/svg+xml",
        };
        assets.insert(format!("/assets/{name}"), Asset::new(content_type, bytes.to_vec()));
    }
}
