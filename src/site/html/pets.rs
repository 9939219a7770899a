//! The page of pets. Its script calls the API.

use crate::base::config::Config;
use crate::base::http::Assets;
use crate::site::document;
use crate::site::html::keyed;
use crate::site::html::markup::escape;
use crate::site::html::navigation::PAGES;
use crate::site::html::page::HtmlPage;

const PATH: &str = "/pets";
/// The elements of the head that load its style sheets and its script.
const HEAD: &str = "<link rel=\"stylesheet\" href=\"/assets/reference.css\">
<link rel=\"stylesheet\" href=\"/assets/pets.css\">
<script src=\"/assets/pets.js\" type=\"module\"></script>
";

/// Adds the page. `base` is the address that its example calls, and `files` the folder of the files that it loads. The
/// script offers only the operations that are described.
pub fn add(assets: &mut Assets, config: &Config, base: &str, files: &str) {
    let operations: Vec<&str> = document::operations().map(|operation| operation.id).collect();
    let page = HtmlPage {
        path: PATH,
        title: Some("Pets"),
        about: PAGES.iter().find(|entry| entry.path == PATH).map_or("", |entry| entry.about),
        main: include_str!("../files/pets.html")
            .replace("{{base}}", &escape(base))
            .replace("{{operations}}", &operations.join(" ")),
        class: "reference inventory",
        head: HEAD,
        asks: &[],
    };
    keyed::add(assets, config, page, files);
}
