//! The tables of the pages, generated from the tables of the code.

use crate::api::{Operation, ROUTER};
use crate::clock::day;
use crate::config::{Config, SETTINGS, VARIABLES};
use crate::http::Code;
use crate::http::limits::LIMITS;
use crate::http::response::reason;
use crate::site::document::BASE;
use crate::site::html::markup::{escape, inline};

/// The name of a placeholder, and the function that makes its table.
type Table = (&'static str, fn(&Config) -> String);

const ALL: [Table; 8] = [
    ("operations", |_| operations(|operation| operation.path.starts_with(BASE))),
    ("marks", |_| operations(|operation| operation.is_experimental)),
    ("deprecations", |_| deprecations()),
    ("codes", |_| codes()),
    ("limits", |_| limits()),
    ("deadlines", deadlines),
    ("settings", |_| settings()),
    ("variables", |_| variables()),
];

/// Replaces the placeholders of a page, such as `{{codes}}`, with tables.
pub fn fill(page: &str, config: &Config) -> String {
    let mut filled = page.to_owned();
    for (name, table) in ALL {
        let place = format!("{{{{{name}}}}}");
        if page.contains(&place) {
            let table = table(config);
            // Markdown puts a placeholder that stands alone into a paragraph.
            filled = filled.replace(&format!("<p>{place}</p>"), &table).replace(&place, &table);
        }
    }
    filled
}

/// A table of the operations that a page wants.
fn operations(is_wanted: fn(&Operation) -> bool) -> String {
    let rows = ROUTER.operations().filter(|operation| is_wanted(operation)).map(|operation| {
        let mark = match operation.deprecation {
            Some(deprecation) => format!("deprecated; to be removed on {}", day(deprecation.sunset)),
            None if operation.is_experimental => "experimental".to_owned(),
            None => "stable".to_owned(),
        };
        let name = format!("`{} {}`", operation.method(), operation.path);
        (in_reference(operation), [name, operation.summary.to_owned(), mark])
    });
    table(["operation", "what it does", "stability"], rows)
}

/// Where the reference has an operation.
pub fn in_reference(operation: &Operation) -> String {
    format!("/#{}", operation.id)
}

fn deprecations() -> String {
    let rows = ROUTER.operations().filter_map(|operation| {
        let deprecation = operation.deprecation?;
        let cells = [
            format!("`{} {}`", operation.method(), operation.path),
            day(deprecation.sunset),
            format!("`GET {}` with the `status` filter", deprecation.successor),
        ];
        Some((in_reference(operation), cells))
    });
    table(["operation", "to be removed on", "call instead"], rows)
}

/// Each code under a heading that can be linked to: what to do, and the response.
fn codes() -> String {
    let entry = |code: &Code| {
        let (name, status) = (code.as_str(), code.status());
        let (phrase, advice) = (reason(status), inline(code.advice()));
        let example = escape(&serde_json::to_string_pretty(&code.example()).unwrap_or_default());
        format!(
            "<h3 id=\"{name}\"><a class=\"anchor\" href=\"#{name}\"><code>{name}</code></a> \
             <small>{status} {phrase}</small></h3>\n<p>{advice}</p>\n\
             <pre tabindex=\"0\" class=\"wrap\"><code>{example}</code></pre>\n"
        )
    };
    Code::ALL.iter().map(entry).collect()
}

fn limits() -> String {
    let rows = LIMITS.iter().map(|limit| {
        let cells =
            [limit.what.to_owned(), format!("{} {}", limit.most, limit.unit), limit.status.to_string()];
        (format!("#{}", limit.what.replace(' ', "-")), cells)
    });
    table(["limit", "maximum", "status if exceeded"], rows)
}

fn deadlines(config: &Config) -> String {
    let rows = config.deadlines.table().map(|deadline| {
        let most = format!("{} s", deadline.most.as_secs_f64());
        (format!("#timeout-{}", deadline.name), [deadline.span.to_owned(), most, deadline.then.to_owned()])
    });
    table(["phase", "timeout", "on timeout"], rows)
}

fn settings() -> String {
    let rows = SETTINGS.iter().map(|setting| {
        let name = format!("`{}`\n`{}`", setting.usage(), setting.variable());
        (format!("#{}", setting.flag), [name, setting.help.to_owned(), setting.default.to_owned()])
    });
    table(["flag and variable", "meaning", "default"], rows)
}

fn variables() -> String {
    let rows = VARIABLES.iter().map(|[name, help, default]| {
        let id = format!("#{}", name.to_lowercase().replace('_', "-"));
        (id, [format!("`{name}`"), (*help).to_owned(), (*default).to_owned()])
    });
    table(["variable", "meaning", "default"], rows)
}

/// A table that also fits a phone, where each cell shows its heading. The first line of the first cell of each row is a
/// link to the address that comes with the row. If that is a fragment, it is the row's own.
fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = (String, [String; N])>) -> String {
    let head: String = heads.iter().map(|head| format!("<th scope=\"col\">{head}</th>")).collect();
    let row = |(address, mut cells): (String, [String; N])| {
        cells = cells.map(|cell| inline(&cell));
        let (first, rest) = cells[0].split_at(cells[0].find('\n').unwrap_or(cells[0].len()));
        let rest = rest.replace('\n', "<br>");
        let (start, class) = match address.strip_prefix('#') {
            Some(id) => (format!("<tr id=\"{id}\">"), " class=\"anchor\""),
            None => ("<tr>".to_owned(), ""),
        };
        cells[0] = format!("<a{class} href=\"{address}\">{first}</a>{rest}");
        let cell = |(head, cell)| format!("<td data-head=\"{head}\">{cell}</td>");
        format!("{start}{}</tr>\n", heads.iter().zip(cells).map(cell).collect::<String>())
    };
    let rows: String = rows.into_iter().map(row).collect();
    format!(
        "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n\
         <thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>",
        heads[0]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(inline("a <b> & `c<d>`"), "a &lt;b&gt; &amp; <code>c&lt;d&gt;</code>");
        assert_eq!(inline("in /.well-known/x"), "in <span class=\"whole\">/.well-known/x</span>");
    }

    #[test]
    fn tables_say_what_the_code_says() {
        let filled = |text| fill(text, &Config::default());
        let codes = filled("<p>{{codes}}</p>");
        assert!(codes.contains("<h3 id=\"outcome_unknown\">") && codes.contains("503 Service Unavailable"));
        assert!(codes.contains("&quot;code&quot;: &quot;not_found&quot;,\n"), "{codes}");
        assert!(filled("{{operations}}").contains("<code>GET /v1/pets/{petId}</code>"));
        for word in ["stable", "experimental"] {
            let cell = format!("<td data-head=\"stability\">{word}</td>");
            assert!(filled("{{operations}}").contains(&cell), "{word}");
        }
        let marks = filled("{{marks}}");
        assert!(marks.contains("/v1/store/orders") && !marks.contains("/v1/pets"));
        let deprecations = filled("{{deprecations}}");
        assert!(deprecations.contains("2030-12-05") && deprecations.contains("<code>GET /v1/pets</code>"));
        assert!(filled("{{limits}}").contains("65536 bytes"));
        assert!(filled("{{deadlines}}").contains("10 s"));
        assert!(filled("{{settings}}").contains("PETSTORE_ALLOW_ORIGIN"));
        assert!(filled("{{variables}}").contains("<tr id=\"petstore-api-key\">"));
        assert_eq!(filled("{{else}}"), "{{else}}");
    }
}
