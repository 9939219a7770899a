//! Renders the pages of the project site from Markdown, if the feature `site` is on.

fn main() {
    pages::render();
}

#[cfg(not(feature = "site"))]
mod pages {
    pub fn render() {}
}

#[cfg(feature = "site")]
mod pages {
    #![expect(clippy::expect_used, reason = "a build that cannot go on ends with the reason")]

    use std::path::Path;
    use std::{env, fs};

    use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

    const FOLDER: &str = "src/site/pages";

    /// Writes `OUT_DIR/pages/NAME.html` for every `NAME.md`.
    pub fn render() {
        println!("cargo::rerun-if-changed={FOLDER}");
        let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("pages");
        fs::create_dir_all(&out).expect("OUT_DIR can be written");
        for entry in fs::read_dir(FOLDER).expect("the pages are there") {
            let path = entry.expect("the pages can be listed").path();
            let markdown = fs::read_to_string(&path).expect("a page can be read");
            let name = path.with_extension("html");
            let name = name.file_name().expect("a page has a name");
            fs::write(out.join(name), to_html(&markdown)).expect("OUT_DIR can be written");
        }
    }

    fn to_html(markdown: &str) -> String {
        let mut html = String::new();
        html::push_html(&mut html, Parser::new_ext(markdown, Options::ENABLE_TABLES).map(reachable));
        html.replace("<table>", "<div class=\"table\"><table>").replace("</table>", "</table></div>")
    }

    /// Makes code blocks focusable, so that wide ones can be scrolled with the keyboard.
    fn reachable(event: Event) -> Event {
        match event {
            Event::Start(Tag::CodeBlock(_)) => Event::Html(CowStr::Borrowed("<pre tabindex=\"0\"><code>")),
            Event::End(TagEnd::CodeBlock) => Event::Html(CowStr::Borrowed("</code></pre>\n")),
            other => other,
        }
    }
}
