//! Small parts of HTML that all pages share.

use serde_json::Value;

use crate::app::endpoint::Operation;
use crate::site::html::section::Section;
use petstore_base::json::Json;

/// Plain text as HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Converts plain text to HTML, with code between backticks. Words with a hyphen are not broken.
pub fn inline(text: &str) -> String {
    let escaped = escape(text);
    let word = |word: &str| {
        if word.contains('-') {
            format!("<span class=\"whole\">{word}</span>")
        } else {
            word.to_owned()
        }
    };
    let part = |(number, part): (usize, &str)| match number % 2 {
        1 => format!("<code>{part}</code>"),
        _ => part.split_inclusive(' ').map(word).collect(),
    };
    escaped.split('`').enumerate().map(part).collect()
}

/// A heading that is a link to itself. `html` is its text.
pub fn anchored(element: &str, id: &str, html: &str) -> String {
    format!("<{element} id=\"{id}\"><a class=\"anchor\" href=\"#{id}\">{html}</a></{element}>\n")
}

/// A heading within the operation `id`.
pub fn heading(id: &str, words: &str) -> String {
    anchored(
        "h4",
        &format!("{id}-{}", words.to_lowercase().replace(' ', "-")),
        words,
    )
}

/// Prints JSON on several lines.
pub fn pretty(value: &Json) -> String {
    // Printing strings and numbers cannot fail.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns the text of a JSON string; empty for other values.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The method of an operation, with the class for its colour.
pub fn method(operation: &Operation) -> String {
    let method = operation.method();
    format!(
        "<span class=\"method {}\">{method}</span>",
        method.to_lowercase()
    )
}

/// The method and the path of an operation, as code.
pub fn title(operation: &Operation) -> String {
    format!("`{} {}`", operation.method(), operation.path)
}

/// The link to an operation in the reference.
pub fn in_reference(operation: &Operation) -> String {
    format!("/#{}", operation.id)
}

/// Removes backticks from text.
pub fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// The content of a gap in a page.
#[derive(Default)]
pub struct Filling {
    pub html: String,
    /// The text that belongs to the section around the gap.
    pub text: String,
    pub sections: Vec<Section<String>>,
}

impl Filling {
    /// Adds a heading.
    pub fn heading(&mut self, element: &str, id: &str, title: &str) {
        self.html += &anchored(element, id, &inline(title));
        self.section(element, id, title, "");
    }

    /// Adds a section that the search finds.
    pub fn section(&mut self, element: &str, id: &str, title: &str, text: &str) {
        let [id, element, title, text] = [id, element, &plain(title), text].map(str::to_owned);
        self.sections.push(Section {
            id,
            element,
            title,
            text,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            inline("a <b> & `c<d>`"),
            "a &lt;b&gt; &amp; <code>c&lt;d&gt;</code>"
        );
        assert_eq!(
            inline("in /.well-known/x"),
            "in <span class=\"whole\">/.well-known/x</span>"
        );
    }
}
