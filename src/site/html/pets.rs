//! The pets page. Its script calls the API.

use crate::config::Config;
use crate::site::html::keyed;
use crate::site::html::markup::escape;
use crate::site::html::navigation::{PAGES, PETS};
use crate::site::html::page::HtmlPage;
use crate::site::openapi;
use petstore_base::http::Assets;

/// The elements of the head that load its style sheets and its script.
const HEAD: &str = "<link rel=\"stylesheet\" href=\"/assets/reference.css\">
<link rel=\"stylesheet\" href=\"/assets/pets.css\">
<script src=\"/assets/pets.js\" type=\"module\"></script>
";

/// Adds the page. `base` is the address that its example calls, and `files` the folder of the files that it loads. The
/// script offers only the operations that are described.
pub fn add(assets: &mut Assets, config: &Config, base: &str, files: &str) {
    let operations: Vec<&str> = openapi::operations(config)
        .map(|operation| operation.id)
        .collect();
    let page = HtmlPage {
        path: PETS,
        title: Some("Pets"),
        about: PAGES
            .iter()
            .find(|entry| entry.path == PETS)
            .map_or("", |entry| entry.about),
        main: include_str!("../files/pets.html")
            .replace("{{base}}", &escape(base))
            .replace("{{operations}}", &operations.join(" "))
            .replace(
                "{{find}}",
                if config.experimental { "true" } else { "false" },
            ),
        class: "reference inventory",
        head: HEAD,
        asks: &[],
    };
    keyed::add(assets, config, page, files);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::api::among_files;
    use petstore_base::http::AssetFields;
    use petstore_gate::Address;

    #[test]
    fn page_names_the_operations_that_are_described_and_loads_only_its_own_files() {
        let config = Config {
            experimental: true,
            ..Config::default()
        };
        let assets = crate::site::assets(&config, &Address::Tcp(([127, 0, 0, 1], 1).into()));
        for path in [PETS.to_owned(), among_files(PETS)] {
            let page = assets.get(&path).unwrap().respond(&AssetFields::default());
            assert!(
                page.field("Content-Security-Policy")
                    .unwrap()
                    .contains("script-src 'self';")
            );
            let html = String::from_utf8(page.body().to_vec()).unwrap();
            for part in [
                "data-operations=\"listPets createPet getPet updatePet deletePet listOrders getInventory listChanges\"",
                "curl 'http://127.0.0.1:1/v1/pets?limit=100'",
            ] {
                assert!(html.contains(part), "{path} lacks {part}");
            }
            for part in [
                "{{",
                "style=",
                "<script>",
                "rel=\"next\"",
                "\"/assets/latest",
            ] {
                assert!(!html.contains(part), "{path} has {part}");
            }
        }
    }
}
