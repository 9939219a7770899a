//! The settings page on the admin address. It uses the interface below `/settings/api/`.

use crate::http::{Asset, Assets};
use crate::site::html::page::policy;
use crate::site::html::tables::inline;

/// The path of the page.
pub const PATH: &str = "/settings/domains";

/// Its scripts, by the names under which they import each other.
const SCRIPTS: &[(&str, &[u8])] = &[
    ("elements.js", include_bytes!("../files/elements.js")),
    ("settings.js", include_bytes!("../files/settings.js")),
    ("settings-parts.js", include_bytes!("../files/settings-parts.js")),
    ("settings-dialogs.js", include_bytes!("../files/settings-dialogs.js")),
    ("settings-domain.js", include_bytes!("../files/settings-domain.js")),
    ("settings-redirects.js", include_bytes!("../files/settings-redirects.js")),
];

/// The page and what it loads. `site` is the address of the site, for links.
pub fn assets(site: &str) -> Assets {
    let script = "text/javascript; charset=utf-8";
    let own = |content_type, bytes: &[u8]| Asset::new(content_type, bytes.to_vec());
    let page = include_str!("../files/settings.html")
        .replace("{{site}}", &inline(site))
        .replace("{{version}}", env!("CARGO_PKG_VERSION"));
    let page = own("text/html; charset=utf-8", page.as_bytes());
    let page = page.header("Content-Security-Policy", policy(&[])).header("Referrer-Policy", "no-referrer");
    let mut assets = Assets::default();
    assets.insert(PATH, page);
    for (name, bytes) in SCRIPTS {
        assets.insert(format!("/assets/{name}"), own(script, bytes));
    }
    assets.insert("/assets/settings.css", own("text/css", include_bytes!("../files/settings.css")));
    assets.insert("/assets/site.css", own("text/css", include_bytes!("../files/site.css")));
    assets.insert("/assets/theme.js", own(script, include_bytes!("../files/theme.js")));
    assets.insert("/assets/icon.svg", own("image/svg+xml", include_bytes!("../files/icon.svg")));
    assets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts between each pair of two other texts.
    fn between<'t>(text: &'t str, start: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
        text.split(start).skip(1).filter_map(move |rest| rest.split(end).next())
    }

    #[test]
    fn page_names_only_what_is_served_with_it() {
        let page = include_str!("../files/settings.html");
        let mut named: Vec<String> = ["src=\"", "href=\""]
            .iter()
            .flat_map(|start| between(page, start, "\""))
            .map(str::to_owned)
            .collect();
        for (_, bytes) in SCRIPTS {
            let script = std::str::from_utf8(bytes).unwrap();
            named.extend(between(script, " from './", "'").map(|name| format!("/assets/{name}")));
        }
        let assets = assets("https://pets.example");
        assert!(named.len() > SCRIPTS.len(), "{named:?}");
        for path in named.iter().filter(|path| !path.starts_with(['#', '{'])) {
            assert!(assets.find(path).is_some(), "{path}");
        }
    }

    #[test]
    fn text_never_becomes_markup() {
        for (name, bytes) in SCRIPTS {
            let script = std::str::from_utf8(bytes).unwrap();
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser"] {
                assert!(!script.contains(way), "{name}: {way}");
            }
        }
    }
}
