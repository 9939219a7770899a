//! The pages for people. Their text is in `pages/*.md`; their tables come from the code.

use crate::config::Config;
use crate::http::Assets;
use crate::site::html::markup::escape;
use crate::site::html::page::{Entry, Frame, Page};
use crate::site::html::search::Index;
use crate::site::html::sections::{contents, sections};
use crate::site::html::tables;

/// One page.
pub struct Source {
    /// Its file in `pages/`, and the last segment of its path.
    file: &'static str,
    /// Its group in the navigation.
    group: &'static str,
    /// Its name in the navigation.
    name: &'static str,
    /// What a reader finds there, in one sentence.
    about: &'static str,
    /// The HTML that the build script rendered.
    html: &'static str,
}

macro_rules! sources {
    ($($group:ident: $($file:literal $name:literal $about:literal;)*)*) => {
        &[$($(Source {
            file: $file,
            group: stringify!($group),
            name: $name,
            about: $about,
            html: include_str!(concat!(env!("OUT_DIR"), "/pages/", $file, ".html")),
        }),*),*]
    };
}

/// Every page, in the order of the navigation.
pub const PAGES: &[Source] = sources! {
    Guide:
    "index" "Overview" "What this API is for, and where to begin.";
    "first-call" "Quickstart" "List pets, add one, and see an error, with curl.";
    "keys" "API keys" "Create, rotate and revoke API keys, and choose what they can do.";
    "pages" "Pagination" "Read long lists page by page, and poll them for changes.";
    "retries" "Retries" "Retry a create without adding a second pet.";
    Reference:
    "errors" "Errors" "Every error code, with an example and what to do about it.";
    "limits" "Limits" "How large a request can be, and how long it can take.";
    "versions" "Versions" "What can change within a version, and what the stability marks mean.";
    "deprecations" "Deprecations" "Operations that will be removed, and what to call instead.";
    "changes" "Changelog" "What each release changes for clients, newest first.";
    Operate:
    "running" "Running" "Settings, backup and restore, and health checks.";
    "domains" "Domains" "Serve your site from your own domain, over HTTPS.";
};

/// Every page and the reference, in the order of the navigation.
pub fn navigation() -> Vec<Entry> {
    let entry = |source: &Source| {
        let Source { name, group, about, .. } = *source;
        Entry { path: source.path(), name, group, about }
    };
    let mut entries: Vec<Entry> = PAGES.iter().map(entry).collect();
    let about = "Every operation with its parameters and responses. Try them in your browser.";
    let reference = Entry { path: "/".to_owned(), name: "Operations", group: "Reference", about };
    let place = PAGES.iter().position(|source| source.group == reference.group).unwrap_or(0);
    entries.insert(place, reference);
    entries
}

/// The path of the page that leads to all others.
const INDEX: &str = "/docs";

impl Source {
    /// Its path.
    pub fn path(&self) -> String {
        if self.file == "index" { INDEX.to_owned() } else { format!("/docs/{}", self.file) }
    }

    /// Its heading.
    fn title(&self) -> String {
        sections(self.html).into_iter().next().map_or(self.name.to_owned(), |section| escape(&section.title))
    }

    /// Its HTML with every gap filled.
    fn filled(&self, config: &Config, base: &str, frame: &Frame) -> String {
        let html = tables::fill(self.html, config).replace("{{base}}", &escape(base));
        html.replace("<p>{{pages}}</p>", &index(frame))
    }
}

/// The groups of the navigation, with a sentence on each page.
fn index(frame: &Frame) -> String {
    let page = |Entry { path, name, about, .. }: &Entry| {
        format!("<dt><a href=\"{path}\">{name}</a></dt>\n<dd>{about}</dd>\n")
    };
    let group = |entries: &[Entry]| {
        let others = entries.iter().filter(|entry| entry.path != INDEX);
        let (name, pages) = (entries[0].group, others.map(page).collect::<String>());
        let id = name.to_lowercase();
        format!("<h2 id=\"{id}\"><a class=\"anchor\" href=\"#{id}\">{name}</a></h2>\n<dl>\n{pages}</dl>\n")
    };
    frame.groups().map(group).collect()
}

/// Adds the pages and the index of the search. `base` is the address that examples call.
pub fn add(assets: &mut Assets, config: &Config, base: &str, frame: &Frame) {
    let mut index = Index::default();
    for source in PAGES {
        let path = source.path();
        let html = source.filled(config, base, frame);
        index.add_page(&path, source.name, &html);
        let main = format!("{}<article>\n{html}</article>\n", contents(&html));
        let page = Page {
            path: &path,
            title: &source.title(),
            about: source.about,
            head: "",
            class: "page doc",
            main,
            asks: &[],
        };
        assets.insert(path.clone(), page.into_asset(frame));
    }
    index.insert_into(assets);
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::config::Address;

    fn page(path: &str) -> String {
        // They take a while to compress.
        static ASSETS: LazyLock<Assets> = LazyLock::new(|| {
            let mut assets = Assets::default();
            let config = Config { base_url: Some("https://pets.example/v1".to_owned()), ..Config::default() };
            crate::site::html::add(&mut assets, &config, &Address::Tcp(([127, 0, 0, 1], 1).into()));
            assets
        });
        let response = ASSETS.find(path).unwrap().respond([None, None].map(Option::into_iter));
        String::from_utf8(response.body().to_vec()).unwrap()
    }

    #[test]
    fn every_page_is_whole() {
        for source in PAGES {
            let page = page(&source.path());
            assert!(!page.contains("{{"), "{} has a gap: {page}", source.file);
            assert_eq!(page.matches("<h1 id=").count(), 1, "{}", source.file);
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
    fn page_shows_where_it_stands_among_the_others() {
        let guide = page("/docs");
        for part in [
            "<title>Documentation · Pet store inventory</title>",
            "<summary>Menu <span>Guide: Overview</span></summary>",
            "<h2 id=\"guide\"><a class=\"anchor\" href=\"#guide\">Guide</a></h2>\n<dl>\n\
             <dt><a href=\"/docs/first-call\">Quickstart</a></dt>\n\
             <dd>List pets, add one, and see an error, with curl.</dd>\n",
            "<nav class=\"turn\" aria-label=\"Previous and next page\">\n\
             <a href=\"/docs/first-call\" rel=\"next\"><span>Next</span> Quickstart</a>\n</nav>\n",
        ] {
            assert!(guide.contains(part), "{part}: {guide}");
        }
        let keys = page("/docs/keys");
        let turn = "<a href=\"/docs/first-call\" rel=\"prev\"><span>Previous</span> Quickstart</a>\n\
            <a href=\"/docs/pages\" rel=\"next\"><span>Next</span> Pagination</a>\n</nav>\n";
        assert!(keys.contains(turn), "{keys}");
    }

    #[test]
    fn page_for_what_is_not_there_has_no_place_and_no_address() {
        let page = page(crate::api::NOT_FOUND);
        for part in ["og:url", "rel=\"next\"", "aria-current", "Guide: "] {
            assert!(!page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn codes_of_the_description_lead_to_their_headings() {
        let description = crate::site::document::print(&crate::config::Config::default());
        assert!(description.contains("[`not_found`](/docs/errors#not_found): There is no pet"));
        let errors = page("/docs/errors");
        for link in description.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let id = link.strip_prefix("/docs/errors#").unwrap();
            assert!(ids(&errors).contains(&id), "{link}");
        }
    }

    #[test]
    fn examples_call_the_production_address() {
        assert!(page("/docs/first-call").contains("curl -i https://pets.example/v1/pets"));
    }

    /// The ids of a page.
    fn ids(page: &str) -> Vec<&str> {
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn headings_rows_and_codes_can_be_linked_to() {
        for source in PAGES {
            let page = page(&source.path());
            let mut ids = ids(&page);
            let headings = ["<h1", "<h2", "<h3"].iter().flat_map(|tag| page.split(tag).skip(1));
            for heading in headings {
                let id = heading.split('"').nth(1).unwrap();
                assert!(heading.starts_with(" id=") && ids.contains(&id), "{}: {id}", source.file);
                assert!(
                    heading.contains(&format!("<a class=\"anchor\" href=\"#{id}\">")),
                    "{}: {id}",
                    source.file
                );
            }
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), all, "{} has an id twice: {ids:?}", source.file);
        }
        for (path, id) in [
            ("/docs/errors", "invalid_json"),
            ("/docs/running", "listen"),
            ("/docs/limits", "request-body"),
            ("/docs/limits", "timeout-idle"),
            ("/docs/keys", "the-first-key"),
        ] {
            assert!(ids(&page(path)).contains(&id), "{path}#{id}");
        }
    }

    #[test]
    fn inline_code_fits_a_phone_without_a_break() {
        for source in PAGES {
            let page = page(&source.path()).replace("\"><code>", "\">");
            for code in page.split("<code>").skip(1).filter_map(|rest| rest.split("</code>").next()) {
                assert!(code.chars().count() <= 36, "{}: {code}", source.file);
            }
        }
    }

    #[test]
    fn links_lead_somewhere() {
        for source in PAGES {
            let text = page(&source.path());
            for link in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let (path, id) = link.split_once('#').unwrap_or((link, ""));
                let path = if path.is_empty() { source.path() } else { path.to_owned() };
                let is_known = match path.as_str() {
                    "/" => id.is_empty() || crate::api::ROUTER.operations().any(|row| row.id == id),
                    "/openapi.json"
                    | "/favicon.ico"
                    | "/assets/site.css"
                    | "/assets/icon.svg"
                    | "/assets/elements.js" => true,
                    _ => {
                        PAGES.iter().any(|page| page.path() == path)
                            && (id.is_empty() || ids(&page(&path)).contains(&id))
                    }
                };
                assert!(is_known, "{} links to {link}", source.file);
            }
        }
    }
}
