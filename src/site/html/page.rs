//! The frame of every page, and its security header fields.

use crate::http::Asset;
use crate::site::document::VERSION;

/// The beginning of the element with the address of a page (ogp.me).
const META: &str = "<meta property=\"og:url\" content=\"";
const FRAME: &str = include_str!("../files/page.html");

/// What surrounds the content of every page.
pub struct Frame {
    /// Every page, in the order of the navigation.
    pub navigation: Vec<Entry>,
    /// The public address of the site, if it is known.
    pub root: Option<String>,
}

/// A page in the navigation.
pub struct Entry {
    pub path: String,
    pub name: &'static str,
    /// The heading above it. Pages of a group come after each other.
    pub group: &'static str,
    /// What a reader finds there, in one sentence.
    pub about: &'static str,
}

/// The content of a page.
pub struct Page<'a> {
    /// Its path.
    pub path: &'a str,
    pub title: &'a str,
    /// What it is about, in one sentence: for search engines and previews of links.
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
        let is_listed = frame.navigation.iter().any(|entry| entry.path == self.path);
        let root = frame.root.as_ref().filter(|_| is_listed);
        let address = root.map(|root| format!("{META}{root}{}\">\n", self.path));
        let html = FRAME
            .replace("{{title}}", self.title)
            .replace("{{about}}", self.about)
            .replace("{{address}}", &address.unwrap_or_default())
            .replace("{{head}}", self.head)
            .replace("{{here}}", &frame.here(self.path))
            .replace("{{nav}}", &frame.entries(self.path))
            .replace("{{turn}}", &frame.neighbours(self.path))
            .replace("<main id=\"main\">", &format!("<main id=\"main\" class=\"{}\">", self.class))
            .replace("{{version}}", env!("CARGO_PKG_VERSION"))
            .replace("{{main}}", &self.main)
            .replace("{{interface}}", VERSION);
        Asset::new("text/html; charset=utf-8", html.into_bytes())
            .header("Content-Security-Policy", policy(self.asks))
            .header("Referrer-Policy", "no-referrer")
    }
}

/// What the page may load and call (Content Security Policy Level 3): nothing from elsewhere, nothing inline.
pub fn policy(asks: &[String]) -> String {
    let asks: String = asks.iter().map(|origin| format!(" {origin}")).collect();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'{asks}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

impl Frame {
    /// The group and the name of the page at a path.
    fn here(&self, here: &str) -> String {
        let entry = self.navigation.iter().find(|entry| entry.path == here);
        entry.map(|entry| format!("{}: {}", entry.group, entry.name)).unwrap_or_default()
    }

    /// The groups of the navigation, and their entries, on the page at a path.
    fn entries(&self, here: &str) -> String {
        let entry = |Entry { path, name, .. }: &Entry| {
            let current = if path == here { " aria-current=\"page\"" } else { "" };
            format!("<li><a href=\"{path}\"{current}>{name}</a></li>\n")
        };
        let group = |entries: &[Entry]| {
            let (name, entries) = (entries[0].group, entries.iter().map(entry).collect::<String>());
            format!("<li>{name}\n<ul>\n{entries}</ul>\n</li>\n")
        };
        self.groups().map(group).collect()
    }

    /// The entries of each group.
    pub fn groups(&self) -> impl Iterator<Item = &[Entry]> {
        self.navigation.chunk_by(|one, next| one.group == next.group)
    }

    /// Links to the page before and the page after the one at a path.
    fn neighbours(&self, here: &str) -> String {
        let Some(place) = self.navigation.iter().position(|entry| entry.path == here) else {
            return String::new();
        };
        let link = |place: Option<usize>, rel, word| {
            let entry = place.and_then(|place| self.navigation.get(place));
            entry.map(|Entry { path, name, .. }| {
                format!("<a href=\"{path}\" rel=\"{rel}\"><span>{word}</span> {name}</a>\n")
            })
        };
        let links = [link(place.checked_sub(1), "prev", "Previous"), link(Some(place + 1), "next", "Next")];
        let links: String = links.into_iter().flatten().collect();
        format!("<nav class=\"turn\" aria-label=\"Previous and next page\">\n{links}</nav>\n")
    }
}
