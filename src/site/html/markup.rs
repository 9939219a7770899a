//! Small parts of HTML that all pages share.

use serde_json::Value;

pub use crate::site::html::colours::escape;

/// Plain text as HTML, with code between backticks. A word with a hyphen stays in one line.
pub fn inline(text: &str) -> String {
    let escaped = escape(text);
    let word = |word: &str| match word.contains('-') {
        true => format!("<span class=\"whole\">{word}</span>"),
        false => word.to_owned(),
    };
    let part = |(number, part): (usize, &str)| match number % 2 {
        1 => format!("<code>{part}</code>"),
        _ => part.split_inclusive(' ').map(word).collect(),
    };
    escaped.split('`').enumerate().map(part).collect()
}

/// A heading within the operation `id`, which can be linked to.
pub fn heading(id: &str, words: &str) -> String {
    let id = format!("{id}-{}", words.to_lowercase().replace(' ', "-"));
    format!("<h4 id=\"{id}\"><a class=\"anchor\" href=\"#{id}\">{words}</a></h4>\n")
}

/// JSON in lines.
pub fn pretty(value: &Value) -> String {
    // Printing strings and numbers cannot fail.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The text of a string; empty if it is none.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(inline("a <b> & `c<d>`"), "a &lt;b&gt; &amp; <code>c&lt;d&gt;</code>");
        assert_eq!(inline("in /.well-known/x"), "in <span class=\"whole\">/.well-known/x</span>");
    }
}
