//! The frame of every page, and its security header fields.

use crate::http::Asset;
use crate::site::document::VERSION;

/// As many bytes of a description are shown, unless its first sentence is longer.
const MAX_ABOUT: usize = 200;

/// The beginning of the element with the address of a page (ogp.me).
const META: &str = "<meta property=\"og:url\" content=\"";
const FRAME: &str = include_str!("../files/page.html");

/// What surrounds the content of every page.
pub struct Frame {
    /// The path and the name of every page, in the order of the navigation.
    pub navigation: Vec<(String, &'static str)>,
    /// The path of the licences.
    pub licenses: &'static str,
    /// The public address of the site, if it is known.
    pub root: Option<String>,
}

/// The content of a page.
pub struct Page<'a> {
    /// Its path.
    pub path: &'a str,
    pub title: &'a str,
    /// What it is about, in HTML: for search engines and previews of links.
    pub about: &'a str,
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
        let is_listed = frame.navigation.iter().any(|(path, _)| path == self.path);
        let root = frame.root.as_ref().filter(|_| is_listed);
        let address = root.map(|root| format!("{META}{root}{}\">\n", self.path));
        let html = FRAME
            .replace("{{title}}", self.title)
            .replace("{{about}}", &plain(self.about))
            .replace("{{address}}", &address.unwrap_or_default())
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

/// HTML as the text of an attribute: without elements, in one line, and only as many sentences as a search engine shows.
fn plain(html: &str) -> String {
    let text: String =
        html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let ends = text.match_indices(". ").map(|(at, _)| at + 1).chain([text.len()]);
    let end = ends.clone().take_while(|end| *end <= MAX_ABOUT).last().or_else(|| ends.min());
    text[..end.unwrap_or_default()].replace('"', "&quot;")
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
