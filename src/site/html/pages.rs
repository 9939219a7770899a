//! The pages for people. Their text is in `pages/*.md`; their tables come from the code.

use crate::config::Config;
use crate::http::{Asset, Assets};
use crate::site::html::page::{Frame, Page};
use crate::site::html::tables;

/// One page.
pub struct Source {
    /// Its file in `pages/`, and the last segment of its path.
    file: &'static str,
    /// Its name in the navigation.
    pub name: &'static str,
    /// The HTML that the build script rendered.
    html: &'static str,
}

macro_rules! sources {
    ($($file:literal $name:literal;)*) => {
        &[$(Source {
            file: $file,
            name: $name,
            html: include_str!(concat!(env!("OUT_DIR"), "/pages/", $file, ".html")),
        }),*]
    };
}

/// Every page, in the order of the navigation.
pub const PAGES: &[Source] = sources! {
    "first-call" "First call";
    "keys" "Keys";
    "errors" "Errors";
    "retries" "Retries";
    "limits" "Limits";
    "pages" "Lists";
    "versions" "Versions";
    "deprecations" "Deprecations";
    "running" "Running it";
    "domains" "Domains";
    "changes" "Changes";
};

impl Source {
    /// Its path.
    pub fn path(&self) -> String {
        format!("/docs/{}", self.file)
    }

    /// Its heading.
    fn title(&self) -> &'static str {
        let heading = self.html.split_once("<h1>").and_then(|(_, rest)| rest.split_once("</h1>"));
        heading.map_or(self.name, |(heading, _)| heading)
    }

    /// Its first paragraph.
    fn about(&self) -> &'static str {
        let paragraph = self.html.split_once("<p>").and_then(|(_, rest)| rest.split_once("</p>"));
        paragraph.map_or(self.name, |(paragraph, _)| paragraph)
    }
}

/// Adds the pages, and the style sheet and the script of every page. `base` is the address that examples call.
pub fn add(assets: &mut Assets, config: &Config, base: &str, frame: &Frame) {
    for source in PAGES {
        let path = source.path();
        let page = Page {
            path: &path,
            title: source.title(),
            about: source.about(),
            head: "",
            class: "page",
            main: tables::fill(source.html, config).replace("{{base}}", &tables::inline(base)),
            asks: &[],
        };
        assets.insert(path.clone(), page.into_asset(frame));
    }
    let script = include_bytes!("../files/code.js").to_vec();
    assets.insert("/assets/code.js", Asset::new("text/javascript; charset=utf-8", script));
    assets.insert("/assets/site.css", Asset::new("text/css", include_bytes!("../files/site.css").to_vec()));
    assets.insert(
        "/assets/icon.svg",
        Asset::new("image/svg+xml", include_bytes!("../files/icon.svg").to_vec()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Address;

    fn page(path: &str) -> String {
        let mut assets = Assets::default();
        let config = Config { base_url: Some("https://pets.example/v1".to_owned()), ..Config::default() };
        crate::site::html::add(&mut assets, &config, &Address::Tcp(([127, 0, 0, 1], 1).into()));
        let response = assets.find(path).unwrap().respond([None, None].map(Option::into_iter));
        String::from_utf8(response.body().to_vec()).unwrap()
    }

    #[test]
    fn every_page_is_whole() {
        for source in PAGES {
            let page = page(&source.path());
            assert!(!page.contains("{{"), "{} has a gap: {page}", source.file);
            assert_eq!(page.matches("<h1>").count(), 1, "{}", source.file);
            assert_eq!(page.matches("aria-current").count(), 1, "{}", source.file);
            assert!(page.contains(&format!("<title>{} · ", source.title())), "{}", source.file);
            let is_inline = page.contains("style=") || page.contains("<script>");
            assert!(!is_inline, "{}", source.file);
            let about =
                page.split_once("name=\"description\" content=\"").unwrap().1.split('"').next().unwrap();
            assert!(
                (40..400).contains(&about.len()) && !about.contains(['<', '\n']),
                "{}: {about}",
                source.file
            );
            let address =
                format!("<meta property=\"og:url\" content=\"https://pets.example{}\">", source.path());
            assert!(page.contains(&address), "{}", source.file);
        }
    }

    #[test]
    fn every_file_is_a_page() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/site/pages");
        let files = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(files, PAGES.len());
    }

    #[test]
    fn examples_call_the_production_address() {
        assert!(page("/docs/first-call").contains("curl -i https://pets.example/v1/pets"));
    }

    #[test]
    fn links_lead_somewhere() {
        for source in PAGES {
            let text = page(&source.path());
            for link in text.split("href=\"/").skip(1) {
                let path = format!("/{}", link.split(['"', '#']).next().unwrap());
                let is_known = ["/", "/openapi.json", crate::site::html::reference::LICENSES]
                    .contains(&path.as_str())
                    || ["/assets/site.css", "/assets/icon.svg", "/favicon.ico"].contains(&path.as_str())
                    || PAGES.iter().any(|page| page.path() == path);
                assert!(is_known, "{} links to {path}", source.file);
            }
        }
    }
}
