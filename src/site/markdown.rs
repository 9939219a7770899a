//! Renders the Markdown of a page, and finds its headings.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::section::Section;

/// The HTML of a page, and its sections in their order.
pub fn render(markdown: &str) -> (String, Vec<Section<String>>) {
    let mut page = Renderer::default();
    Parser::new_ext(markdown, Options::ENABLE_TABLES).for_each(|event| page.add(event));
    for section in &mut page.sections {
        section.text =
            section.text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches(" ·").to_owned();
    }
    let mut html = String::new();
    html::push_html(&mut html, page.events.into_iter());
    // A gap that the code fills is a block of its own.
    (html.replace("<p>{{", "{{").replace("}}</p>\n", "}}"), page.sections)
}

/// A page up to some event.
#[derive(Default)]
struct Renderer<'e> {
    events: Vec<Event<'e>>,
    sections: Vec<Section<String>>,
    /// Where the heading under way starts among the events.
    start: usize,
    /// Set within a heading: text belongs to the title of the last section.
    is_title: bool,
    /// Set within a block of code, which the search leaves out, unless it shows a response.
    is_code: bool,
    /// The headings of the columns of the table under way.
    heads: Vec<String>,
    /// How many cells the row under way has so far; `None` outside the body of a table.
    cells: Option<usize>,
}

impl<'e> Renderer<'e> {
    fn add(&mut self, event: Event<'e>) {
        match (&event, self.cells) {
            (Event::Start(Tag::Heading { level, .. }), _) => {
                self.is_title = true;
                self.sections.push(Section { element: level.to_string(), ..Section::default() });
                self.start = self.events.len();
            }
            (Event::End(TagEnd::Heading(_)), _) => {
                self.is_title = false;
                self.link_heading();
            }
            // Wide blocks can be scrolled with the keyboard. The lines of a response wrap.
            (Event::Start(Tag::CodeBlock(kind)), _) => {
                let is_http = matches!(kind, CodeBlockKind::Fenced(language) if &**language == "http");
                self.is_code = !is_http;
                let class = if is_http { " class=\"wrap\"" } else { "" };
                return self.html(format!("<pre tabindex=\"0\"{class}><code>"));
            }
            (Event::End(TagEnd::CodeBlock), _) => {
                self.is_code = false;
                return self.html("</code></pre>\n");
            }
            (Event::Start(Tag::Table(_)), _) => self.html("<div class=\"table\">"),
            (Event::End(TagEnd::Table), _) => {
                self.cells = None;
                self.events.push(event);
                return self.html("</div>");
            }
            (Event::Start(Tag::TableHead), _) => self.heads.clear(),
            (Event::Start(Tag::TableRow), _) => self.cells = Some(0),
            // On a phone, each cell shows the heading of its column.
            (Event::Start(Tag::TableCell), Some(number)) => {
                self.cells = Some(number + 1);
                let head = self.heads.get(number).map(String::as_str).unwrap_or_default();
                return self.html(format!("<td data-head=\"{head}\">"));
            }
            (Event::End(TagEnd::TableCell), Some(_)) => {
                self.note(" · ");
                return self.html("</td>");
            }
            (Event::Start(Tag::TableCell), None) => self.heads.push(String::new()),
            (Event::Text(text), _) => return self.text(text),
            (Event::Code(code), _) => self.note(code),
            (Event::SoftBreak | Event::End(_), None) => self.note(" "),
            _ => {}
        }
        self.events.push(event);
    }

    fn html(&mut self, html: impl Into<CowStr<'e>>) {
        self.events.push(Event::InlineHtml(html.into()));
    }

    /// Gives the heading that ends an id, and makes it a link to itself.
    fn link_heading(&mut self) {
        let Some(Section { id, title, .. }) = self.sections.last_mut() else { return };
        *id = slug(title);
        let link = format!("<a class=\"anchor\" href=\"#{id}\">");
        if let Event::Start(Tag::Heading { id: place, .. }) = &mut self.events[self.start] {
            *place = Some(id.clone().into());
        }
        self.events.insert(self.start + 1, Event::InlineHtml(link.into()));
        self.html("</a>");
    }

    /// Adds text. In a table, words with a hyphen stay in one line.
    fn text(&mut self, text: &str) {
        self.note(text);
        if self.cells.is_none() {
            self.heads.last_mut().into_iter().for_each(|head| head.push_str(text));
        }
        for word in text.split_inclusive(' ') {
            let is_whole = self.cells.is_some() && word.contains('-');
            self.events.extend(is_whole.then_some(Event::InlineHtml("<span class=\"whole\">".into())));
            self.events.push(Event::Text(word.to_owned().into()));
            self.events.extend(is_whole.then_some(Event::InlineHtml("</span>".into())));
        }
    }

    /// Keeps text for the search.
    fn note(&mut self, text: &str) {
        if let Some(section) = self.sections.last_mut().filter(|_| !self.is_code) {
            if self.is_title { &mut section.title } else { &mut section.text }.push_str(text);
        }
    }
}

/// The text of a heading as GitHub writes it in an anchor: small letters, digits, dashes and underscores.
fn slug(text: &str) -> String {
    let text = text.to_lowercase().replace(' ', "-");
    text.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}
