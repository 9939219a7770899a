//! The search: a script, and its index of pages, headings, error codes, limits, settings and operations.

use serde_json::{Value, json};

use crate::api::ROUTER;
use crate::http::{Asset, Assets};
use crate::site::document::BASE;
use crate::site::html::markdown::Section;
use crate::site::html::tables::in_reference;

/// What can be found, such as
/// `{"title":"not_found","page":"Errors","path":"/docs/errors#not_found","text":"404 Not Found …"}`.
#[derive(Default)]
pub struct Index(Vec<Value>);

impl Index {
    /// Adds what can be linked to on a page.
    pub fn add_page(&mut self, path: &str, name: &str, sections: Vec<Section>) {
        for Section { id, element, title, text } in sections {
            let path = if element == "h1" { path.to_owned() } else { format!("{path}#{id}") };
            self.0.push(json!({ "title": title, "page": name, "path": path, "text": text }));
        }
    }

    /// Adds the operations, and puts the index among the assets.
    pub fn insert_into(mut self, assets: &mut Assets) {
        for operation in ROUTER.operations().filter(|operation| operation.path.starts_with(BASE)) {
            let title = format!("{} {}", operation.method(), operation.path);
            let text = format!("{} ({})", operation.summary, operation.id);
            let path = in_reference(operation);
            self.0.push(json!({ "title": title, "page": "Operations", "path": path, "text": text }));
        }
        let index = Value::Array(self.0).to_string();
        assets.insert("/assets/search.json", Asset::new("application/json", index.into_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_has_operations_and_what_pages_have() {
        let mut index = Index::default();
        index.add_page("/docs/a", "A", crate::site::html::markdown::render("# X").1);
        let mut assets = Assets::default();
        index.insert_into(&mut assets);
        let response =
            assets.find("/assets/search.json").unwrap().respond([None, None].map(Option::into_iter));
        let found: Vec<Value> = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(found[0], json!({ "title": "X", "page": "A", "path": "/docs/a", "text": "" }));
        let is_there =
            |title, path| found.iter().any(|entry| entry["title"] == title && entry["path"] == path);
        assert!(is_there("POST /v1/pets", "/#createPet"), "{found:?}");
    }
}
