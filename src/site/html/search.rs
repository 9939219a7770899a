//! The index of the search, made from the sections of the pages and from the tables of the code. `search-rank.js` ranks
//! its entries.

use crate::app::endpoint::{Code, Operation};
use crate::config::Config;
use crate::site::components::{resolve, schema};
use crate::site::html::markup::{in_reference, plain, text};
use crate::site::html::navigation::{PAGES, PageEntry};
use crate::site::html::pages::Filled;
use crate::site::html::section::{PHRASE, Section};
use crate::site::openapi::{operations, own_codes};
use petstore_base::http::response::reason;
use petstore_base::json::{Json, object};
use std::collections::BTreeMap;

/// The most characters of a text that a result shows. Of the rest, the index has each word once.
const SHOWN: usize = 100;

/// The index omits words that one in this many of its entries has: they tell no entry from the others.
const COMMON: usize = 8;

/// The index as JSON: what can be found on pages, and each operation with its parts.
pub fn index(config: &Config, pages: &[Filled]) -> String {
    let found = pages.iter().flat_map(|(page, _, all)| {
        all.iter()
            .filter(|found| found.element != PHRASE)
            .map(|found| section(page, found, all))
    });
    let generated = PAGES.iter().filter(|page| page.text.is_empty());
    let generated = generated.map(|page| entry(page.name, page.name, page.path, page.about));
    let mut entries: Vec<Json> = found
        .chain(generated)
        .chain(operations(config).flat_map(operation))
        .collect();
    omit_common_words(&mut entries);
    Json::from_iter(entries).to_string()
}

/// Removes common words from the words that no result shows.
fn omit_common_words(entries: &mut [Json]) {
    let mut counts = BTreeMap::new();
    for entry in entries.iter() {
        for word in text(&entry["words"]).split(' ') {
            *counts.entry(word.to_owned()).or_insert(0) += 1;
        }
    }
    counts.retain(|_, count| *count >= entries.len() / COMMON);
    for entry in entries {
        let words = text(&entry["words"]).split(' ');
        let rare: Vec<&str> = words.filter(|word| !counts.contains_key(*word)).collect();
        entry["words"] = rare.join(" ").into();
    }
}

/// An entry such as `{"title":"overloaded","page":"503 Service Unavailable","path":"/docs/errors#overloaded",
/// "text":"Retry after …","words":"the rest"}`.
fn entry(title: &str, page: &str, path: &str, text: &str) -> Json {
    let text = plain(text);
    let cut = text
        .char_indices()
        .nth(SHOWN)
        .and_then(|(end, _)| text.get(..end)?.rfind(' '));
    let (shown, rest) = text.split_at(cut.unwrap_or(text.len()));
    // The search ignores case. Words of two letters are omitted, since hardly anybody searches for them.
    let (known, rest) = (shown.to_lowercase(), rest.to_lowercase());
    let mut rest: Vec<&str> = rest
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    rest.sort_unstable();
    rest.dedup();
    rest.retain(|word| word.len() > 2 && !known.contains(word));
    // The search takes a word with an ending for the one without it.
    let all = rest.clone();
    let is_there = |word: &str| known.contains(word) || all.binary_search(&word).is_ok();
    rest.retain(|word| {
        let mut endings = ["s", "ed", "ing"].into_iter();
        !endings.any(|ending| {
            word.strip_suffix(ending)
                .is_some_and(|one| one.len() > 2 && is_there(one))
        })
    });
    object! { "title": title, "page": page, "path": path, "text": shown, "words": rest.join(" ") }
}

/// The entry of a page, of the text under a heading, or of a row of a table. An error code is found by its status too.
fn section(page: &PageEntry, found: &Section<String>, all: &[Section<String>]) -> Json {
    let Section {
        id,
        element,
        title,
        text,
    } = found;
    let path = if element == "h1" {
        page.path.to_owned()
    } else {
        format!("{}#{id}", page.path)
    };
    let code = Code::ALL.iter().find(|code| code.as_str() == id);
    let status = code.map(|code| format!("{} {}", code.status(), reason(code.status())));
    // The flag without the placeholder of its value.
    let title = if title.starts_with("--") {
        title.split(' ').next().unwrap_or(title)
    } else {
        title
    };
    let mut entry = entry(title, status.as_deref().unwrap_or(page.name), &path, text);
    let phrases = all
        .iter()
        .filter(|other| other.element == PHRASE && other.id == *id);
    let phrases: Vec<&str> = phrases.map(|phrase| &*phrase.title).collect();
    if !phrases.is_empty() {
        entry["phrases"] = phrases.into();
    }
    entry
}

/// An entry that is also found by the values of a schema that has a few, such as `available`.
fn with_values(mut entry: Json, schema: &Json) -> Json {
    if let Some(values) = resolve(schema)["enum"].as_array() {
        // Without null.
        let words: Vec<&str> = values.iter().filter_map(|value| value.as_str()).collect();
        entry["phrases"] = words.into();
    }
    entry
}

/// An operation, then its parameters, the fields of its body, and the header fields of its response.
fn operation(operation: &Operation) -> Vec<Json> {
    let (title, path) = (operation.title, in_reference(operation));
    let part = |name: &str, heading: &str, about: &str| {
        entry(name, title, &format!("{path}{heading}"), about)
    };
    let mut parts = Vec::new();
    for parameter in operation.described() {
        let part = part(
            text(&parameter["name"]),
            "-parameters",
            text(&parameter["description"]),
        );
        parts.push(with_values(part, &parameter["schema"]));
    }
    for (name, field) in schema(operation.body.unwrap_or_default())["properties"].members() {
        parts.push(with_values(
            part(name, "-request-body", text(&field["description"])),
            field,
        ));
    }
    for field in operation.success.iter().flat_map(|success| success.headers) {
        parts.push(part(field.name, "-response-headers", field.about));
    }
    let names = parts.iter().map(|part| text(&part["title"]).to_owned());
    let statuses = own_codes(operation)
        .into_values()
        .flatten()
        .map(|code| format!("{} {}", code.status(), code.as_str()));
    let success = operation.success.map(|success| success.status.to_string());
    let words: Vec<String> = names.chain(statuses).chain(success).collect();
    let page = format!("{} {}", operation.method(), operation.path);
    let mut whole = entry(title, &page, &path, operation.about);
    whole["words"] = format!(
        "{} {} {}",
        text(&whole["words"]),
        operation.id,
        words.join(" ")
    )
    .into();
    parts.insert(0, whole);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::html::navigation::DESCRIPTION;
    use petstore_base::http::AssetFields;
    use petstore_gate::Address;
    use serde_json::Value;

    #[test]
    fn index_is_small_and_each_entry_leads_to_its_place() {
        let assets = crate::site::assets(
            &Config::default(),
            &Address::Tcp(([127, 0, 0, 1], 1).into()),
        );
        let body = |path: &str, encoding: Option<&str>| {
            let asset = assets.get(path).unwrap_or_else(|| panic!("{path}"));
            asset
                .respond(&AssetFields {
                    accept_encoding: encoding.into_iter().collect(),
                    ..AssetFields::default()
                })
                .body()
                .to_vec()
        };
        let compressed = body("/assets/latest/search.json", Some("gzip")).len();
        assert!(
            compressed < 32 * 1024,
            "the search index has {compressed} bytes compressed, and may have 32768: shorten a page"
        );
        let index: Vec<Value> =
            serde_json::from_slice(&body("/assets/latest/search.json", None)).unwrap();
        for path in index.iter().map(|entry| text(&entry["path"])) {
            let (page, id) = path.split_once('#').unwrap_or((path, "main"));
            if page == DESCRIPTION {
                continue;
            }
            let html = String::from_utf8(body(page, None)).unwrap();
            assert!(html.contains(&format!(" id=\"{id}\"")), "{path}");
        }
        let has = |title, page| {
            index
                .iter()
                .any(|entry| entry["title"] == title && entry["page"] == page)
        };
        for (title, page) in [
            ("List pets", "GET /v1/pets"),
            ("limit", "List pets"),
            ("categoryId", "Add a pet"),
            ("Location", "Add a pet"),
            ("overloaded", "503 Service Unavailable"),
            ("--allow-origin", "Configuration"),
        ] {
            assert!(has(title, page), "{title}: {page}");
        }
    }

    #[test]
    fn long_text_is_shown_in_part_and_found_as_a_whole() {
        let text = "one ".repeat(25) + "two, three; four Four four";
        let entry = entry("", "", "/", &text);
        assert_eq!(entry["text"].as_str().unwrap().len(), 99, "{entry}");
        assert_eq!(*entry["words"], "four three two");
    }
}
