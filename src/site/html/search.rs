//! The search: a script, and its index of pages, headings, error codes, limits, settings and operations.

use serde_json::{Value, json};

use crate::api::ROUTER;
use crate::http::Asset;
use crate::site::document::BASE;
use crate::site::html::tables::{Section, in_reference};

/// What can be found on a page, such as
/// `{"title":"not_found","page":"Errors","path":"/docs/errors#not_found","text":"404 Not Found …"}`.
pub fn entries(path: &str, name: &str, sections: &[Section]) -> Vec<Value> {
    let entry = |[id, element, title, text]: &Section| {
        let path = if element == "h1" { path.to_owned() } else { format!("{path}#{id}") };
        json!({ "title": title, "page": name, "path": path, "text": text })
    };
    sections.iter().map(entry).collect()
}

/// The index, of what can be found on pages and of the operations.
pub fn asset(mut index: Vec<Value>) -> Asset {
    for operation in ROUTER.operations().filter(|operation| operation.path.starts_with(BASE)) {
        let title = format!("{} {}", operation.method(), operation.path);
        let text = format!("{} ({})", operation.summary, operation.id);
        let path = in_reference(operation);
        index.push(json!({ "title": title, "page": "Operations", "path": path, "text": text }));
    }
    Asset::new("application/json", Value::Array(index).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_has_operations_and_what_pages_have() {
        let sections = [["x", "h1", "X", ""].map(str::to_owned)];
        let asset = asset(entries("/docs/a", "A", &sections));
        let response = asset.respond([None, None].map(Option::into_iter));
        let found: Vec<Value> = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(found[0], json!({ "title": "X", "page": "A", "path": "/docs/a", "text": "" }));
        let is_there =
            |title, path| found.iter().any(|entry| entry["title"] == title && entry["path"] == path);
        assert!(is_there("POST /v1/pets", "/#createPet"), "{found:?}");
    }
}
