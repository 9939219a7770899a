//! The frame of every page, and the header fields that keep a page to itself.

use crate::http::Asset;
use crate::site::document::VERSION;
use crate::site::pages::PAGES;
use crate::site::reference::LICENSES;

const FRAME: &str = include_str!("files/page.html");

/// One page on its way to become an asset.
pub struct Page<'a> {
    /// Where it lies.
    pub path: &'a str,
    pub title: &'a str,
    /// More elements for the head, one a line.
    pub head: &'a str,
    /// The class of the element `main`.
    pub class: &'a str,
    pub main: String,
    /// Origins beside its own that its scripts may ask.
    pub asks: &'a [String],
}

impl Page<'_> {
    /// The page in its frame.
    pub fn into_asset(self) -> Asset {
        let html = FRAME
            .replace("{{title}}", self.title)
            .replace("{{head}}", self.head)
            .replace("{{nav}}", &navigation(self.path))
            .replace("<main id=\"main\">", &format!("<main id=\"main\" class=\"{}\">", self.class))
            .replace("{{version}}", env!("CARGO_PKG_VERSION"))
            .replace("{{licenses}}", LICENSES)
            .replace("{{main}}", &self.main)
            .replace("{{interface}}", VERSION);
        Asset::new("text/html; charset=utf-8", html.into_bytes())
            .header("Content-Security-Policy", policy(self.asks))
            .header("Referrer-Policy", "no-referrer")
    }
}

/// What the page may load and ask (Content Security Policy Level 3): nothing from elsewhere, nothing inline.
/// Swagger UI's style sheet draws its arrows by `data:` addresses.
pub fn policy(asks: &[String]) -> String {
    let asks: String = asks.iter().map(|origin| format!(" {origin}")).collect();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'{asks}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

fn navigation(here: &str) -> String {
    let pages = PAGES.iter().map(|page| (page.path(), page.name));
    let entry = |(path, name): (String, &str)| {
        let current = if path == here { " aria-current=\"page\"" } else { "" };
        format!("<li><a href=\"{path}\"{current}>{name}</a></li>\n")
    };
    std::iter::once(("/".to_owned(), "Reference")).chain(pages).map(entry).collect()
}
