//! What can be linked to on a page, found in its HTML: headings, and rows of tables.

use std::fmt::Write as _;

use crate::site::html::markup::escape;

/// The start of a link of a heading or row to itself. The build script and `tables` write it.
const LINK: &str = "<a class=\"anchor\" href=\"#";

/// A heading or a row with an id, and what follows it up to the next one.
#[derive(Debug)]
pub struct Section<'h> {
    pub id: &'h str,
    /// The element with the link, such as `h2`; `td` in a row.
    pub element: &'h str,
    pub title: String,
    pub text: String,
}

/// The sections of a page, in their order.
pub fn sections(html: &str) -> Vec<Section<'_>> {
    let mut before = "";
    let mut all = Vec::new();
    for part in html.split(LINK) {
        if let Some((id, rest)) = part.split_once("\">")
            && let Some((title, text)) = rest.split_once("</a>")
            && let Some((_, tag)) = before.rsplit_once('<')
        {
            all.push(Section { id, element: &tag[..2], title: plain(title), text: plain(text) });
        }
        before = part;
    }
    all
}

/// The list of a page's headings, for its side. Empty if there are hardly any.
pub fn contents(html: &str) -> String {
    let mut items = String::new();
    for Section { id, element, title, .. } in &sections(html) {
        if ["h2", "h3"].contains(element) {
            let title = escape(title);
            let _ = writeln!(items, "<li class=\"{element}\"><a href=\"#{id}\">{title}</a></li>");
        }
    }
    if items.lines().count() < 2 {
        return String::new();
    }
    format!(
        "<nav class=\"contents\" aria-labelledby=\"on-this-page\">\n<p id=\"on-this-page\">On this page</p>\n\
         <ul>\n{items}</ul>\n</nav>\n"
    )
}

/// The text of HTML, on one line.
fn plain(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        match part.split_once('>') {
            Some((tag, rest)) => {
                // Words of different blocks and cells stay apart.
                let is_within_words = ["a", "code", "em", "span", "strong"]
                    .iter()
                    .any(|name| tag.trim_start_matches('/').split(' ').next() == Some(name));
                text.push_str(match tag {
                    "/td" | "/th" => " · ",
                    _ if is_within_words => "",
                    _ => " ",
                });
                text.push_str(rest);
            }
            None => text.push_str(part),
        }
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_matches([' ', '·']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<h1 id=\"a\"><a class=\"anchor\" href=\"#a\">A &amp; B</a></h1>\n<p>One.</p><p>Two <code>x</code>.</p>\n\
        <table><tr id=\"b\"><td data-head=\"c\"><a class=\"anchor\" href=\"#b\"><code>--b</code></a> V</td><td>one</td><td>two</td></tr></table>";

    #[test]
    fn headings_and_rows_are_found() {
        let found = sections(PAGE);
        let found: Vec<_> =
            found.iter().map(|s| (s.id, s.element, s.title.as_str(), s.text.as_str())).collect();
        assert_eq!(found, [("a", "h1", "A & B", "One. Two x."), ("b", "td", "--b", "V · one · two")]);
    }

    #[test]
    fn contents_are_the_headings_below_the_first() {
        assert_eq!(contents(PAGE), "");
        let two = PAGE.replace("h1", "h2").repeat(2);
        assert_eq!(contents(&two).matches("<li class=\"h2\"><a href=\"#a\">A &amp; B</a></li>").count(), 2);
    }
}
