//! The style sheets, scripts and pictures of the pages, as they are in `files/`.

use crate::app::api::LATEST;
use petstore_base::http::{Asset, Assets, tag_of};

/// The names of files and their bytes.
type Files<'f> = &'f [(&'f str, &'f [u8])];

macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_bytes!(concat!("../files/", $name)))),*] };
}

/// The files that the reference and the pages load.
pub const SITE: Files<'static> = files!("answer.js" "code.js" "colours.js" "elements.js" "frame.js" "icon.svg" "key.js"
    "pets.css" "pets.js" "pets-acts.js" "pets-add.js" "pets-api.js" "pets-counts.js" "pets-drafts.js" "pets-edit.js" "pets-find.js" "pets-history.js" "pets-key.js"
    "pets-list.js" "pets-live.js" "pets-load.js" "pets-pages.js" "pets-parts.js" "pets-rows.js" "pets-save.js" "pets-search.js" "pets-select.js" "pets-sold.js"
    "pets-undo.js" "pets-view.js" "reference.css" "request.js" "sample.js" "search.js" "search-rank.js" "site.css" "table.js" "theme.js" "trial.js");
/// The files that the settings page loads.
pub const SETTINGS: Files<'static> = files!("elements.js" "icon.svg" "settings.css" "settings-dialogs.js" "settings-domain.js"
    "settings-parts.js" "settings-redirects.js" "settings.js" "site.css" "theme.js");

/// Adds files that refer to each other by name, and returns the path of their folder. The path has a digest of all
/// files, so browsers can cache them without revalidation.
pub fn add(assets: &mut Assets, files: Files<'_>) -> String {
    let all: Vec<&[u8]> = files
        .iter()
        .flat_map(|(name, bytes)| [name.as_bytes(), bytes])
        .collect();
    let folder = format!("/assets/{}/", tag_of(&all.concat()));
    for (name, bytes) in files {
        let content_type = match name.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css",
            Some("json") => "application/json",
            _ => "image/svg+xml",
        };
        let asset = Asset::new(content_type, bytes.to_vec());
        assets.insert(format!("{LATEST}{name}"), asset.clone());
        assets.insert(format!("{folder}{name}"), asset.immutable());
    }
    folder
}
