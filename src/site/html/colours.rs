//! Code in colours: JSON, HTTP, shells, Python, JavaScript and configuration files by the same few rules. The build script
//! uses this file too, so it knows nothing else.

/// Words that a language keeps for itself.
const KEYWORDS: &str = " and as async await case const def do done elif else esac except export fi for from function if \
    import in let new not of or raise return then throw try while with ";
/// Words that stand for a value.
const LITERALS: &str = " true false null True False None ";

/// Plain text as HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Code as HTML. Its classes are `s` for strings, `n` for numbers and literals, `k` for keywords, keys and flags, `c` for
/// comments, and `v` for variables.
pub fn coloured(code: &str) -> String {
    let (mut html, mut rest, mut before, mut is_first) = (String::new(), code, '\n', true);
    while let Some(first) = rest.chars().next() {
        let (class, length) = token(rest, before, is_first).unwrap_or(("", first.len_utf8()));
        let (token, after) = rest.split_at(length);
        html += &match class {
            "" => escape(token),
            "s" if first != '\'' => span("s", &with_variables(token)),
            _ => span(class, &escape(token)),
        };
        // Whether there are only spaces before the next token in its line.
        is_first = first == '\n' || (is_first && first == ' ');
        (before, rest) = (token.chars().next_back().unwrap_or(first), after);
    }
    html
}

fn span(class: &str, html: &str) -> String {
    format!("<span class=\"{class}\">{html}</span>")
}

/// A string into which a shell or JavaScript puts variables.
fn with_variables(string: &str) -> String {
    let (mut html, mut rest) = (String::new(), string);
    while let Some(at) = rest.find('$') {
        let (text, from) = rest.split_at(at);
        let name = variable(from);
        let (token, after) = from.split_at(name.unwrap_or(1));
        html += &(escape(text) + &name.map_or(token.to_owned(), |_| span("v", &escape(token))));
        rest = after;
    }
    html + &escape(rest)
}

/// The length of the variable at the start of a text.
fn variable(text: &str) -> Option<usize> {
    let name = text.get(1..)?;
    let end = if name.starts_with('{') {
        name.find('}')? + 1
    } else {
        name.find(|c| !is_word(c)).unwrap_or(name.len())
    };
    (end > 0).then_some(end + 1)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The class and the length of the token at the start of a text; `None` if it is nothing special.
fn token(text: &str, before: char, is_first: bool) -> Option<(&'static str, usize)> {
    let first = text.chars().next()?;
    let until = |is_end: &dyn Fn(char) -> bool| text.find(is_end).unwrap_or(text.len());
    let line = until(&|c| c == '\n');
    let word = until(&|c| !is_word(c) && c != '-');
    match first {
        '#' if before.is_whitespace() => Some(("c", line)),
        '/' if before.is_whitespace() && text.starts_with("//") => Some(("c", line)),
        '-' if before.is_whitespace() => text[..word].contains(char::is_alphabetic).then_some(("k", word)),
        '$' => Some(("v", variable(text)?)),
        // A shell takes what follows as it is.
        '\\' => Some(("", 1 + text.chars().nth(1)?.len_utf8())),
        // Between letters it is an apostrophe.
        '"' | '\'' | '`' if !is_word(before) || before == 'f' => {
            let length = string(text, first)?;
            let is_key = first != '`' && text[length..].trim_start().starts_with(':');
            Some((if is_key { "k" } else { "s" }, length))
        }
        '0'..='9' => {
            let number =
                text[..until(&|c| !is_word(c) && !".:-".contains(c))].trim_end_matches(['.', ':', '-']);
            // Not the end of a name, of a version or of a path.
            Some((if is_word(before) || "./-".contains(before) { "" } else { "n" }, number.len()))
        }
        _ if is_word(first) => {
            let (name, after) = text.split_at(word);
            let is_key = is_first && after.starts_with([':', '=']) && !after.starts_with("://");
            let is_alone = !"/.-".contains(before) && !after.starts_with(['/', '.']);
            let is_among = |words: &str| is_alone && words.contains(&format!(" {name} "));
            let class = if is_key || is_among(KEYWORDS) {
                "k"
            } else if is_among(LITERALS) {
                "n"
            } else {
                ""
            };
            Some((class, word))
        }
        _ => None,
    }
}

/// The length of the string at the start of a text; `None` if it has no end.
fn string(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return Some(at + 1);
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_classes_and_text_stays_as_it_is() {
        for (code, html) in [
            ("{\"id\": 7, \"ok\": true}", "{<k>\"id\"</k>: <n>7</n>, <k>\"ok\"</k>: <n>true</n>}"),
            ("curl -H \"Bearer $KEY\" # a", "curl <k>-H</k> <s>\"Bearer <v>$KEY</v>\"</s> <c># a</c>"),
            ("-d '{\"a\":\"it'\\''s\"}' /for/7", "<k>-d</k> <s>'{\"a\":\"it'</s>\\'<s>'s\"}'</s> /for/7"),
            ("Location: /v1/pets/7\nDate: 9", "<k>Location</k>: /v1/pets/7\n<k>Date</k>: <n>9</n>"),
            ("const a = `${b}$`; // c", "<k>const</k> a = <s>`<v>${b}</v>$`</s>; <c>// c</c>"),
            ("it doesn't $ \"end", "it doesn't $ \"end"),
            ("http://10.0.0.1:80 2026-11-25T10:00Z.", "http://10.0.0.1:80 <n>2026-11-25T10:00Z</n>."),
        ] {
            let found = coloured(code).replace("&quot;", "\"").replace("</span>", "</>");
            let classes = ["s", "n", "k", "c", "v"];
            let tag = |html: String, class: &&str| {
                html.replace(&format!("<{class}>"), &format!("<span class=\"{class}\">"))
            };
            let ends = classes
                .iter()
                .fold(html.to_owned(), |html, class| html.replace(&format!("</{class}>"), "</>"));
            assert_eq!(found, classes.iter().fold(ends, tag), "{code}");
        }
        assert_eq!(coloured("<b> & '<i>'"), "&lt;b&gt; &amp; <span class=\"s\">'&lt;i&gt;'</span>");
    }
}
