//! The frame of every page, and its security header fields.

use crate::config::Config;
use petstore_base::http::Asset;

use crate::site::html::markup::escape;
use crate::site::html::navigation::{PAGES, PETS, entries, here, neighbours};
use crate::site::openapi::VERSION;

/// The beginning of the element with the URL of a page (ogp.me).
const META: &str = "<meta property=\"og:url\" content=\"";
const FRAME: &str = include_str!("../files/page.html");
/// What surrounds a page, by the gaps of the frame: for the guide its search, menu and side bar, and for the pets page, whose
/// readers need no guide, a link.
const AROUND: [(&str, &str, &str); 5] = [
    (
        "{{search}}",
        "<script src=\"/assets/search.js\" type=\"module\"></script>\n",
        "",
    ),
    (
        "{{before}}",
        "<button id=\"search-open\" type=\"button\" aria-keyshortcuts=\"/ Control+K Meta+K\">\
         Search <kbd aria-hidden=\"true\">/</kbd></button>\n",
        "<a class=\"guide\" href=\"/\">API and guide</a>\n",
    ),
    (
        "{{after}}",
        "<details class=\"menu\"><summary>Menu <span>{{here}}</span></summary></details>\n",
        "",
    ),
    (
        "{{side}}",
        "<nav class=\"side\" aria-label=\"Pages\">\n{{nav}}<at-once task=\"keepPlace\"></at-once>\n</nav>\n",
        "",
    ),
    ("{{dialog}}", include_str!("../files/search.html"), ""),
];
/// The content of a page.
pub struct HtmlPage<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its title; none for the first page, which has the title of the service.
    pub title: Option<&'a str>,
    /// Its content, in one sentence: for search engines and previews of links.
    pub about: &'a str,
    pub main: String,
    /// The class of its content, for style sheets.
    pub class: &'a str,
    /// The elements of the head that other pages do not have.
    pub head: &'a str,
    /// Other origins that its scripts may send requests to.
    pub asks: &'a [String],
}

impl HtmlPage<'_> {
    /// Puts the page into its frame. `files` is the folder of the files that it loads.
    pub fn into_asset(self, config: &Config, files: &str) -> Asset {
        let is_listed = PAGES.iter().any(|entry| entry.path == self.path);
        let root = config.root().filter(|_| is_listed);
        let address = root.map(|root| format!("{META}{root}{}\">\n", self.path));
        let title = self
            .title
            .map(|title| format!("{title} · "))
            .unwrap_or_default();
        let mut frame = FRAME.to_owned();
        for (gap, guide, tool) in AROUND {
            frame = frame.replace(gap, if self.path == PETS { tool } else { guide });
        }
        let html = frame
            .replace("{{title}}", self.title.unwrap_or("{{site}}"))
            .replace("{{titles}}", &title)
            .replace("{{about}}", self.about)
            .replace("{{address}}", &address.unwrap_or_default())
            .replace("{{head}}", self.head)
            .replace("{{here}}", &here(self.path))
            .replace("{{nav}}", &entries(self.path, config))
            .replace("{{turn}}", &neighbours(self.path))
            .replace(
                "<main id=\"main\">",
                &format!("<main id=\"main\" class=\"page {}\">", self.class),
            )
            .replace("{{version}}", env!("CARGO_PKG_VERSION"))
            .replace("{{main}}", &self.main)
            .replace("{{interface}}", VERSION)
            .replace("\"/assets/", &format!("\"{files}"))
            // Last, so that gaps in the operator's texts are not filled.
            .replace("{{description}}", &escape(&config.description))
            .replace("{{site}}", &escape(&config.title));
        secured(html, self.asks)
    }
}

/// Creates a page with a content security policy (CSP Level 3): it may load only its own files, have no inline scripts
/// and styles, and send requests only to its own origin and those in `asks`.
pub fn secured(html: String, asks: &[String]) -> Asset {
    let asks: String = asks.iter().map(|origin| format!(" {origin}")).collect();
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'{asks}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Asset::new("text/html; charset=utf-8", html.into_bytes())
        .header("Content-Security-Policy", policy)
        .header("Referrer-Policy", "no-referrer")
}
