//! Renders the Markdown of a page, and finds its headings.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::section::{PHRASE, Section};

/// Renders a page: returns its HTML, and its sections in order.
pub fn render(markdown: &str) -> (String, Vec<Section<String>>) {
    let mut page = Renderer::default();
    Parser::new_ext(markdown, Options::ENABLE_TABLES).for_each(|event| page.add(event));
    page.sections.append(&mut page.phrases);
    for section in &mut page.sections {
        let text = section
            .text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        section.text = text.trim_matches([' ', '·']).to_owned();
        section
            .title
            .truncate(section.title.trim_end_matches([' ', ':', ',', '.']).len());
    }
    let mut html = String::new();
    html::push_html(&mut html, page.events.into_iter());
    // A gap for generated content is a block of its own, not a paragraph.
    (
        html.replace("<p>{{", "{{").replace("}}</p>\n", "}}"),
        page.sections,
    )
}

/// The state of rendering: the events so far.
#[derive(Default)]
struct Renderer<'e> {
    events: Vec<Event<'e>>,
    sections: Vec<Section<String>>,
    /// The first cells of rows, and bold phrases at the beginning of items and paragraphs, as sections with a title alone
    /// and the id of the heading above them. The search finds that heading by them.
    phrases: Vec<Section<String>>,
    /// True within the last phrase.
    is_phrase: bool,
    /// The index of the event at which the current heading starts.
    start: usize,
    /// True within a heading, whose text is the title of the last section.
    is_title: bool,
    /// True within a block of code that the search index omits; it includes blocks with responses.
    is_code: bool,
    /// The column headings of the current table.
    heads: Vec<String>,
    /// The number of cells of the current row so far; `None` outside the body of a table.
    cells: Option<usize>,
}

impl<'e> Renderer<'e> {
    fn add(&mut self, event: Event<'e>) {
        self.find_phrase(&event);
        match (&event, self.cells) {
            (Event::Start(Tag::Heading { level, .. }), _) => {
                self.is_title = true;
                self.sections.push(Section {
                    element: level.to_string(),
                    ..Section::default()
                });
                self.start = self.events.len();
            }
            (Event::End(TagEnd::Heading(_)), _) => {
                self.is_title = false;
                self.link_heading();
            }
            // Wide blocks can be scrolled with the keyboard. The lines of a response and of a terminal's output wrap.
            (Event::Start(Tag::CodeBlock(kind)), _) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => &**language,
                    CodeBlockKind::Indented => "",
                };
                let class = match language {
                    "http" => " class=\"wrap\"",
                    "text" => " class=\"wrap plain\"",
                    _ => "",
                };
                self.is_code = class.is_empty();
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
                let head = self
                    .heads
                    .get(number)
                    .map(String::as_str)
                    .unwrap_or_default();
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

    /// Begins or ends a phrase.
    fn find_phrase(&mut self, event: &Event<'e>) {
        let is_first = matches!(
            self.events.last(),
            Some(Event::Start(Tag::Item | Tag::Paragraph))
        );
        match event {
            Event::Start(Tag::TableRow) => {}
            Event::Start(Tag::Strong) if is_first => {}
            Event::End(TagEnd::Strong | TagEnd::TableCell) => return self.is_phrase = false,
            _ => return,
        }
        self.is_phrase = true;
        let id = self
            .sections
            .last()
            .map(|section| section.id.clone())
            .unwrap_or_default();
        self.phrases.push(Section {
            id,
            element: PHRASE.to_owned(),
            ..Section::default()
        });
    }

    fn html(&mut self, html: impl Into<CowStr<'e>>) {
        self.events.push(Event::InlineHtml(html.into()));
    }

    /// Gives the heading that has just ended an id, and makes it a link to itself.
    fn link_heading(&mut self) {
        let Some(Section { id, title, .. }) = self.sections.last_mut() else {
            return;
        };
        *id = slug(title);
        let link = format!("<a class=\"anchor\" href=\"#{id}\">");
        if let Event::Start(Tag::Heading { id: place, .. }) = &mut self.events[self.start] {
            *place = Some(id.clone().into());
        }
        self.events
            .insert(self.start + 1, Event::InlineHtml(link.into()));
        self.html("</a>");
    }

    /// Adds text. In a table, words with a hyphen are not broken.
    fn text(&mut self, text: &str) {
        self.note(text);
        if self.cells.is_none() {
            self.heads
                .last_mut()
                .into_iter()
                .for_each(|head| head.push_str(text));
        }
        for word in text.split_inclusive(' ') {
            let is_whole = self.cells.is_some() && word.contains('-');
            self.events
                .extend(is_whole.then_some(Event::InlineHtml("<span class=\"whole\">".into())));
            self.events.push(Event::Text(word.to_owned().into()));
            self.events
                .extend(is_whole.then_some(Event::InlineHtml("</span>".into())));
        }
    }

    /// Adds text to the search index.
    fn note(&mut self, text: &str) {
        if let Some(phrase) = self.phrases.last_mut().filter(|_| self.is_phrase) {
            phrase.title.push_str(text);
        }
        if let Some(section) = self.sections.last_mut().filter(|_| !self.is_code) {
            if self.is_title {
                &mut section.title
            } else {
                &mut section.text
            }
            .push_str(text);
        }
    }
}

/// Returns the anchor of a heading in the form of GitHub: lower-case letters, digits, hyphens and underscores.
fn slug(text: &str) -> String {
    let text = text.to_lowercase().replace(' ', "-");
    text.chars()
        .filter(|c| c.is_alphanumeric() || "-_".contains(*c))
        .collect()
}
