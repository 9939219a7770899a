//! The frame of every page, and its security header fields.

use crate::http::Asset;
use crate::site::document::VERSION;

const FRAME: &str = include_str!("../files/page.html");

/// What surrounds the content of every page.
pub struct Frame {
    /// The path and the name of every page, in the order of the navigation.
    pub navigation: Vec<(String, &'static str)>,
    /// The path of the licences.
    pub licenses: &'static str,
}

/// The content of a page.
pub struct Page<'a> {
    /// Its path.
    pub path: &'a str,
    pub title: &'a str,
    /// More elements for the head, one per line.
    pub head: &'a str,
    /// The class of the element `main`.
    pub class: &'a str,
    pub main: String,
    /// Other origins that its scripts may send requests to.
    pub asks: &'a [String],
}

impl Page<'_> {
    /// Puts the page into its frame.
    pub fn into_asset(self, frame: &Frame) -> Asset {
        let html = FRAME
            .replace("{{title}}", self.title)
            .replace("{{head}}", self.head)
            .replace("{{nav}}", &frame.entries(self.path))
            .replace("<main id=\"main\">", &format!("<main id=\"main\" class=\"{}\">", self.class))
            .replace("{{version}}", env!("CARGO_PKG_VERSION"))
            .replace("{{licenses}}", frame.licenses)
            .replace("{{main}}", &self.main)
            .replace("{{interface}}", VERSION);
        Asset::new("text/html; charset=utf-8", html.into_bytes())
            .header("Content-Security-Policy", policy(self.asks))
            .header("Referrer-Policy", "no-referrer")
    }
}

/// What the page may load and call (Content Security Policy Level 3): nothing from elsewhere, nothing inline.
/// Swagger UI's style sheet draws its arrows with `data:` URLs.
pub fn policy(asks: &[String]) -> String {
    let asks: String = asks.iter().map(|origin| format!(" {origin}")).collect();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'{asks}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

impl Frame {
    /// The entries of the navigation on the page at a path.
    fn entries(&self, here: &str) -> String {
        let entry = |(path, name): &(String, &str)| {
            let current = if path == here { " aria-current=\"page\"" } else { "" };
            format!("<li><a href=\"{path}\"{current}>{name}</a></li>\n")
        };
        self.navigation.iter().map(entry).collect()
    }
}
