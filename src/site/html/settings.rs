//! The settings page on the admin address. It uses the interface under `/settings/api/`.

use crate::config::Config;
use crate::site::html::files;
use crate::site::html::markup::{escape, inline};
use crate::site::html::navigation::SETTINGS_PAGE;
use crate::site::html::page::secured;
use petstore_base::http::Assets;

/// Returns the page and the files that it loads. `site` is the URL of the site, for links.
pub fn assets(config: &Config, site: &str) -> Assets {
    let mut assets = Assets::default();
    let folder = files::add(&mut assets, files::SETTINGS);
    let page = include_str!("../files/settings.html")
        .replace("\"/assets/", &format!("\"{folder}"))
        .replace("{{site}}", &inline(site))
        .replace("{{name}}", &escape(&config.title))
        .replace("{{version}}", env!("CARGO_PKG_VERSION"));
    assets.insert(SETTINGS_PAGE.into(), secured(page, &[]));
    assets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts between each pair of two other texts.
    fn between<'t>(text: &'t str, start: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
        text.split(start)
            .skip(1)
            .filter_map(move |rest| rest.split(end).next())
    }

    fn scripts() -> impl Iterator<Item = (&'static str, &'static str)> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        files::SETTINGS
            .iter()
            .filter(|(name, _)| name.ends_with(".js"))
            .map(move |(name, bytes)| (*name, text(bytes)))
    }

    #[test]
    fn page_names_only_what_is_served_with_it() {
        let page = include_str!("../files/settings.html");
        let mut named: Vec<String> = ["src=\"", "href=\""]
            .iter()
            .flat_map(|start| between(page, start, "\""))
            .map(str::to_owned)
            .collect();
        for (_, script) in scripts() {
            named.extend(between(script, " from './", "'").map(|name| format!("/assets/{name}")));
        }
        let assets = assets(&Config::default(), "https://pets.example");
        assert!(named.len() > scripts().count(), "{named:?}");
        for path in named.iter().filter(|path| !path.starts_with(['#', '{'])) {
            assert!(
                assets.contains_key(&path.replace("/assets/", crate::app::api::LATEST)),
                "{path}"
            );
        }
    }

    #[test]
    fn text_never_becomes_markup() {
        let scripts = files::SITE
            .iter()
            .chain(files::SETTINGS)
            .filter(|(name, _)| name.ends_with(".js"));
        for (name, script) in scripts.map(|(name, bytes)| (name, String::from_utf8_lossy(bytes))) {
            for way in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "DOMParser",
            ] {
                assert!(!script.contains(way), "{name}: {way}");
            }
        }
    }
}
