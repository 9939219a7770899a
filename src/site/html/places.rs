//! Documents that browsers and search engines request on their own: the page for a 404, the icon, robots.txt and the
//! sitemap.

use crate::app::api::{FAVICON, NOT_FOUND, ROBOTS, SITEMAP};
use crate::config::Config;
use crate::site::html::navigation::{DESCRIPTION, PAGES, PageEntry};
use crate::site::html::page::HtmlPage;
use petstore_base::http::{Asset, Assets};

/// Adds the page, the icon, robots.txt and, if the public address is known, the sitemap. `files` is the folder of the
/// files that the page loads.
pub fn add(assets: &mut Assets, config: &Config, files: &str) {
    let page = HtmlPage {
        path: NOT_FOUND,
        title: Some("Page not found"),
        about: "This page doesn't exist.",
        main: format!(
            "<article>\n{}</article>\n",
            include_str!("../files/not-found.html")
        ),
        class: "doc",
        head: "",
        asks: &[],
    };
    assets.insert(NOT_FOUND.into(), page.into_asset(config, files));
    assets.insert(
        FAVICON.into(),
        Asset::new(
            "image/x-icon",
            include_bytes!("../files/favicon.ico").to_vec(),
        ),
    );
    // Crawlers have no key for these paths (RFC 9309).
    let mut robots = "User-agent: *\nDisallow: /v1/\n".to_owned();
    if let Some(root) = config.root() {
        robots += &format!("Sitemap: {root}{SITEMAP}\n");
        assets.insert(
            SITEMAP.into(),
            Asset::new("application/xml", sitemap(root).into_bytes()),
        );
    }
    assets.insert(
        ROBOTS.into(),
        Asset::new("text/plain; charset=utf-8", robots.into_bytes()),
    );
}

/// Every page in the navigation, as sitemaps.org specifies.
fn sitemap(root: &str) -> String {
    let url = |entry: &PageEntry| format!("<url><loc>{root}{}</loc></url>\n", entry.path);
    let urls: String = PAGES
        .iter()
        .filter(|entry| entry.path != DESCRIPTION)
        .map(url)
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{urls}</urlset>\n"
    )
}
