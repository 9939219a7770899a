//! The pages for people. Their text is in `pages/*.md`; their tables are generated from the code.

use crate::config::Config;
use crate::site::html::markup::escape;
use crate::site::html::navigation::{PAGES, PageEntry};
use crate::site::html::page::HtmlPage;
use crate::site::html::section::Section;
use crate::site::html::tables::fill;
use petstore_base::http::Assets;

/// A page, its HTML and its sections.
pub type Filled = (&'static PageEntry, String, Vec<Section<String>>);

/// Every page with a text. `base` is the address that examples call.
pub fn filled(config: &Config, base: &str) -> Vec<Filled> {
    let fill = |entry: &'static PageEntry| {
        let (html, sections) = fill(entry.text.first()?, config, base);
        Some((entry, html, sections))
    };
    PAGES.iter().filter_map(fill).collect()
}

/// Adds the pages. `files` is the folder of the files that they load.
pub fn add(assets: &mut Assets, config: &Config, pages: Vec<Filled>, files: &str) {
    for (entry, html, sections) in pages {
        let page = HtmlPage {
            path: entry.path,
            title: Some(entry.name),
            about: entry.about,
            main: format!("{}<article>\n{html}</article>\n", contents(&sections)),
            class: "doc",
            head: "",
            asks: &[],
        };
        assets.insert(entry.path.into(), page.into_asset(config, files));
    }
}

/// The list of a page's headings, for its side. Empty if there are none.
fn contents(sections: &[Section<String>]) -> String {
    let listed = sections
        .iter()
        .filter(|section| ["h2", "h3"].contains(&&*section.element));
    let item = |Section {
                    id, element, title, ..
                }: &Section<String>| {
        format!(
            "<li class=\"{element}\"><a href=\"#{id}\">{}</a></li>\n",
            escape(title)
        )
    };
    let items: Vec<String> = listed.map(item).collect();
    if items.is_empty() {
        return String::new();
    }
    format!(
        "<nav class=\"contents\" aria-labelledby=\"on-this-page\">\n<p id=\"on-this-page\">On this page</p>\n\
         <ul>\n{}</ul>\n</nav>\n",
        items.concat()
    )
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use petstore_base::http::AssetFields;
    use petstore_gate::Address;

    /// Every page with a text.
    fn entries() -> impl Iterator<Item = &'static PageEntry> {
        PAGES.iter().filter(|entry| !entry.text.is_empty())
    }

    fn page(path: &str) -> String {
        // They take a while to compress.
        static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
            let mut assets = Assets::default();
            let config = Config {
                base_url: Some("https://pets.example/v1".to_owned()),
                ..Config::default()
            };
            crate::site::html::add(
                &mut assets,
                &config,
                &Address::Tcp(([127, 0, 0, 1], 1).into()),
            );
            assets
        });
        let response = ASSETS.get(path).unwrap().respond(&AssetFields::default());
        String::from_utf8(response.body().to_vec()).unwrap()
    }

    #[test]
    fn every_page_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/site/pages");
        let files = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(entries().count(), files);
    }

    #[test]
    fn every_page_is_whole() {
        for entry in entries() {
            let page = page(entry.path);
            assert!(!page.contains("{{"), "{} has a gap: {page}", entry.path);
            assert_eq!(page.matches("<h1 id=").count(), 1, "{}", entry.path);
            assert!(
                page.contains(&format!("<title>{} · ", entry.name)),
                "{}",
                entry.path
            );
            assert!(
                page.contains(&format!(">{}</a></h1>", entry.name)),
                "{}",
                entry.path
            );
            assert_eq!(page.matches("aria-current").count(), 1, "{}", entry.path);
            assert!(!page.contains("<title> · "), "{}", entry.path);
            let is_inline = page.contains("style=") || page.contains("<script>");
            assert!(!is_inline, "{}", entry.path);
            let about = page
                .split_once("name=\"description\" content=\"")
                .unwrap()
                .1
                .split('"')
                .next()
                .unwrap();
            assert!(
                (40..400).contains(&about.len()) && !about.contains(['<', '\n']),
                "{}: {about}",
                entry.path
            );
            let address = format!(
                "<meta property=\"og:url\" content=\"https://pets.example{}\">",
                entry.path
            );
            assert!(page.contains(&address), "{}", entry.path);
        }
    }

    #[test]
    fn markdown_is_rendered() {
        let (versions, domains) = (page("/docs/versions"), page("/docs/domains"));
        for part in [
            "<h3 id=\"replacing-get-v1petspetid\"><a class=\"anchor\" href=\"#replacing-get-v1petspetid\">\
             Replacing <code>GET /v1/pets/{petId}</code></a></h3>",
            "<td data-head=\"Header\"><code>Deprecation</code></td><td data-head=\"Value\">When it was",
        ] {
            assert!(versions.contains(part), "{part}: {versions}");
        }
        assert!(domains.contains("<span class=\"whole\">"), "{domains}");
        let found = page("/assets/latest/search.json");
        assert!(
            found.contains("\"title\":\"Replacing GET /v1/pets/{petId}\",\"page\""),
            "{found}"
        );
        assert!(!found.contains("{{"), "{found}");
    }

    #[test]
    fn pictures_are_small_and_have_a_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/site/pictures");
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let picture = std::fs::read_to_string(&path).unwrap();
            let name = picture
                .split("role=\"img\" aria-label=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap();
            assert!(
                picture.len() <= 1536 && name.len() > 40,
                "{path:?}: {}",
                picture.len()
            );
            // The policy of the pages allows no styles, and an id could be on a page twice.
            assert!(
                !["style", " id=", "\n\n"]
                    .iter()
                    .any(|part| picture.contains(part)),
                "{path:?}"
            );
            let pages = entries()
                .filter(|entry| page(entry.path).contains(&picture))
                .count();
            assert!(pages > 0, "no page shows {path:?}");
        }
    }

    #[test]
    fn every_file_is_a_page() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/site/pages");
        let files = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(files, entries().count());
    }

    #[test]
    fn page_shows_where_it_stands_among_the_others() {
        let guide = page("/docs");
        for part in [
            "<title>Overview · Pet store inventory</title>",
            "<summary>Menu <span>Guide: Overview</span></summary>",
            "<h2 id=\"guide\"><a class=\"anchor\" href=\"#guide\">Guide</a></h2>\n<dl>\n\
             <dt><a href=\"/docs/quickstart\">Quickstart</a></dt>\n\
             <dd>Start the service, list pets, add one, and see an error, with curl.</dd>\n",
            "<nav class=\"turn\" aria-label=\"Previous and next page\">\n\
             <a href=\"/docs/quickstart\" rel=\"next\"><span>Next</span> Quickstart</a>\n</nav>\n",
        ] {
            assert!(guide.contains(part), "{part}: {guide}");
        }
        let keys = page("/docs/keys");
        let turn = "<a href=\"/docs/quickstart\" rel=\"prev\"><span>Previous</span> Quickstart</a>\n\
            <a href=\"/docs/pagination\" rel=\"next\"><span>Next</span> Pagination</a>\n</nav>\n";
        assert!(keys.contains(turn), "{keys}");
    }

    #[test]
    fn page_for_what_is_not_there_has_no_place_and_no_address() {
        let page = page(crate::app::api::NOT_FOUND);
        for part in ["og:url", "rel=\"next\"", "aria-current", "Guide: "] {
            assert!(!page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn codes_of_the_description_lead_to_their_headings() {
        let description = crate::site::openapi::print(&crate::config::Config::default());
        assert!(description.contains("[`not_found`](/docs/errors#not_found): There is no pet"));
        let errors = page("/docs/errors");
        for link in description
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let id = link.strip_prefix("/docs/errors#").unwrap();
            assert!(ids(&errors).contains(&id), "{link}");
        }
    }

    #[test]
    fn examples_call_the_production_address() {
        assert!(page("/docs/quickstart").contains("curl -i https://pets.example/v1/pets"));
    }

    /// The ids of a page.
    fn ids(page: &str) -> Vec<&str> {
        page.split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect()
    }

    #[test]
    fn headings_rows_and_codes_can_be_linked_to() {
        for entry in entries() {
            let page = page(entry.path);
            let mut ids = ids(&page);
            let headings = ["<h1", "<h2", "<h3"]
                .iter()
                .flat_map(|tag| page.split(tag).skip(1));
            for heading in headings {
                let id = heading.split('"').nth(1).unwrap();
                assert!(
                    heading.starts_with(" id=") && ids.contains(&id),
                    "{}: {id}",
                    entry.path
                );
                assert!(
                    heading.contains(&format!("<a class=\"anchor\" href=\"#{id}\">")),
                    "{}: {id}",
                    entry.path
                );
            }
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), all, "{} has an id twice: {ids:?}", entry.path);
        }
        for (path, id) in [
            ("/docs/errors", "invalid_json"),
            ("/docs/configuration", "listen"),
            ("/docs/limits", "request-body"),
            ("/docs/limits", "timeout-idle"),
            ("/docs/keys", "the-first-key"),
        ] {
            assert!(ids(&page(path)).contains(&id), "{path}#{id}");
        }
    }

    #[test]
    fn inline_code_fits_a_phone_without_a_break() {
        for entry in entries() {
            let page = page(entry.path).replace("\"><code>", "\">");
            for code in page
                .split("<code>")
                .skip(1)
                .filter_map(|rest| rest.split("</code>").next())
            {
                assert!(code.chars().count() <= 36, "{}: {code}", entry.path);
            }
        }
    }

    #[test]
    fn links_lead_somewhere() {
        for entry in entries() {
            let text = page(entry.path);
            for link in text
                .split("href=\"")
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
            {
                let (path, id) = link.split_once('#').unwrap_or((link, ""));
                let path = if path.is_empty() { entry.path } else { path };
                let is_known = match path {
                    "/" => id.is_empty() || ids(&page("/")).contains(&id),
                    "/pets" | "/openapi.json" | "/.well-known/api-catalog" | "/favicon.ico" => true,
                    "https://litestream.io" | "https://rqlite.io" => true,
                    _ if path.starts_with("/assets/") => !page(path).is_empty(),
                    _ => {
                        entries().any(|page| page.path == path)
                            && (id.is_empty() || ids(&page(path)).contains(&id))
                    }
                };
                assert!(is_known, "{} links to {link}", entry.path);
            }
        }
    }
}
