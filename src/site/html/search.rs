//! The search: a script, and its index of pages, headings, error codes, limits, settings and operations.

use serde_json::{Value, json};

use crate::api::ROUTER;
use crate::site::document::BASE;
use crate::site::html::pages::Filled;
use crate::site::html::tables::{Section, in_reference};

/// The index as JSON: what can be found on pages, such as
/// `{"title":"not_found","page":"Errors","path":"/docs/errors#not_found","text":"404 Not Found …"}`, and the operations.
pub fn index(pages: &[Filled]) -> String {
    let mut index = Vec::new();
    for (page, _, sections) in pages {
        index.extend(sections.iter().map(|[id, element, title, text]: &Section| {
            let path = if element == "h1" { page.path.to_owned() } else { format!("{}#{id}", page.path) };
            json!({ "title": title, "page": page.name, "path": path, "text": text })
        }));
    }
    for operation in ROUTER.operations().filter(|operation| operation.path.starts_with(BASE)) {
        let title = format!("{} {}", operation.method(), operation.path);
        let text = format!("{} ({})", operation.summary, operation.id);
        let path = in_reference(operation);
        index.push(json!({ "title": title, "page": "Operations", "path": path, "text": text }));
    }
    Value::Array(index).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::html::navigation::PAGES;

    #[test]
    fn index_has_operations_and_what_pages_have() {
        let sections =
            [["x", "h1", "X", ""], ["y", "h2", "Y", "z"]].map(|section| section.map(str::to_owned));
        let json = index(&[(&PAGES[0], String::new(), sections.into())]);
        let found: Vec<Value> = serde_json::from_str(&json).unwrap();
        let page =
            |title, path, text| json!({ "title": title, "page": "Overview", "path": path, "text": text });
        assert_eq!(found[..2], [page("X", "/docs", ""), page("Y", "/docs#y", "z")]);
        let is_there =
            |title, path| found.iter().any(|entry| entry["title"] == title && entry["path"] == path);
        assert!(is_there("POST /v1/pets", "/#createPet"), "{found:?}");
    }
}
