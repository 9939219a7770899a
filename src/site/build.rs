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

    use std::collections::BTreeSet;
    use std::path::Path;
    use std::{env, fs};

    use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

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
        let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(reachable);
        html::push_html(&mut html, cells(linked(events)).into_iter());
        html.replace("<table>", "<div class=\"table\"><table>").replace("</table>", "</table></div>")
    }

    /// Makes code blocks focusable, so that wide ones can be scrolled with the keyboard. The lines of a response wrap.
    fn reachable(event: Event) -> Event {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) if &*language == "http" => {
                Event::Html(CowStr::Borrowed("<pre tabindex=\"0\" class=\"wrap\"><code>"))
            }
            Event::Start(Tag::CodeBlock(_)) => Event::Html(CowStr::Borrowed("<pre tabindex=\"0\"><code>")),
            Event::End(TagEnd::CodeBlock) => Event::Html(CowStr::Borrowed("</code></pre>\n")),
            other => other,
        }
    }

    /// Gives each heading an id that is unique on its page, and makes the heading a link to itself.
    fn linked<'e>(events: impl Iterator<Item = Event<'e>>) -> Vec<Event<'e>> {
        let (mut ids, mut start, mut text, mut all) = (BTreeSet::new(), None, String::new(), Vec::new());
        for mut event in events {
            match &mut event {
                Event::Start(Tag::Heading { .. }) => start = Some(all.len()),
                Event::Text(part) | Event::Code(part) if start.is_some() => text.push_str(part),
                Event::End(TagEnd::Heading(_)) => {
                    let id = unique(&mut ids, &slug(&std::mem::take(&mut text)));
                    let start = start.take().expect("a heading begins before it ends");
                    let link = format!("<a class=\"anchor\" href=\"#{id}\">");
                    all.insert(start + 1, Event::InlineHtml(link.into()));
                    if let Event::Start(Tag::Heading { id: place, .. }) = &mut all[start] {
                        *place = Some(id.into());
                    }
                    all.push(Event::InlineHtml(CowStr::Borrowed("</a>")));
                }
                _ => {}
            }
            all.push(event);
        }
        all
    }

    /// Names the column of each cell, for a phone, and keeps words with a hyphen in one line.
    fn cells(events: Vec<Event>) -> Vec<Event> {
        let (mut heads, mut column, mut is_head, mut all) = (Vec::new(), None, false, Vec::new());
        for event in events {
            match (event, column) {
                (Event::Start(Tag::TableHead), _) => {
                    heads.clear();
                    is_head = true;
                    all.push(Event::Start(Tag::TableHead));
                }
                (Event::Start(Tag::TableRow), _) => {
                    column = Some(0);
                    is_head = false;
                    all.push(Event::Start(Tag::TableRow));
                }
                (Event::Text(text), _) if is_head => {
                    heads.push(text.clone());
                    all.push(Event::Text(text));
                }
                (Event::Start(Tag::TableCell), Some(number)) => {
                    let start = format!(
                        "<td data-head=\"{}\">",
                        heads.get(number).expect("each column has a heading")
                    );
                    all.push(Event::InlineHtml(start.into()));
                    column = Some(number + 1);
                }
                (Event::End(TagEnd::TableCell), Some(_)) => all.push(Event::InlineHtml("</td>".into())),
                (Event::End(TagEnd::Table), _) => {
                    column = None;
                    is_head = false;
                    all.push(Event::End(TagEnd::Table));
                }
                (Event::Text(text), Some(_)) => {
                    for word in text.split_inclusive(' ') {
                        let is_whole = word.contains('-');
                        all.extend(is_whole.then_some(Event::InlineHtml("<span class=\"whole\">".into())));
                        all.push(Event::Text(word.to_owned().into()));
                        all.extend(is_whole.then_some(Event::InlineHtml("</span>".into())));
                    }
                }
                (event, _) => all.push(event),
            }
        }
        all
    }

    /// The text of a heading as GitHub writes it in an anchor: small letters, digits, dashes and underscores.
    fn slug(text: &str) -> String {
        let text = text.to_lowercase().replace(' ', "-");
        text.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    }

    /// Adds a number to an id that is taken already.
    fn unique(ids: &mut BTreeSet<String>, id: &str) -> String {
        let numbered = (1..).map(|number| format!("{id}-{number}"));
        let mut free = std::iter::once(id.to_owned()).chain(numbered).skip_while(|id| ids.contains(id));
        let id = free.next().expect("there are numbers enough");
        ids.insert(id.clone());
        id
    }
}
