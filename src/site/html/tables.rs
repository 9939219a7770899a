//! The tables of the pages, generated from the tables of the code.

use crate::api::{Operation, ROUTER};
use crate::clock::day;
use crate::config::{Config, SETTINGS, VARIABLES};
use crate::http::Code;
use crate::http::limits::LIMITS;
use crate::http::response::reason;
use crate::site::document::BASE;

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
            filled = filled.replace(&place, &table(config));
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
        [link(operation), operation.summary.to_owned(), mark]
    });
    table(["operation", "what it does", "stability"], rows)
}

fn link(operation: &Operation) -> String {
    format!("[`{} {}`]({})", operation.method(), operation.path, in_reference(operation))
}

/// Where the reference has an operation.
pub fn in_reference(operation: &Operation) -> String {
    format!("/#{}", operation.id)
}

fn deprecations() -> String {
    let rows = ROUTER.operations().filter_map(|operation| {
        let deprecation = operation.deprecation?;
        let instead = format!("`GET {}` with the `status` filter", deprecation.successor);
        Some([link(operation), day(deprecation.sunset), instead])
    });
    table(["operation", "to be removed on", "call instead"], rows)
}

/// Each code under a heading: its status, what to do, and the response.
fn codes() -> String {
    let entry = |code: &Code| {
        let (name, status, advice) = (code.as_str(), code.status(), code.advice());
        let example = serde_json::to_string_pretty(&code.example()).unwrap_or_default();
        format!("### `{name}`\n\n{status} {}. {advice}\n\n```http\n{example}\n```\n\n", reason(status))
    };
    Code::ALL.iter().map(entry).collect()
}

fn limits() -> String {
    let rows = LIMITS.iter().map(|limit| {
        let name = format!("[{}](#{})", limit.what, limit.what.replace(' ', "-"));
        [name, format!("{} {}", limit.most, limit.unit), limit.status.to_string()]
    });
    table(["limit", "maximum", "status if exceeded"], rows)
}

fn deadlines(config: &Config) -> String {
    let rows = config.deadlines.table().map(|deadline| {
        let name = format!("[{}](#timeout-{})", deadline.span, deadline.name);
        [name, format!("{} s", deadline.most.as_secs_f64()), deadline.then.to_owned()]
    });
    table(["phase", "timeout", "on timeout"], rows)
}

fn settings() -> String {
    let rows = SETTINGS.iter().map(|setting| {
        let name = format!("[`{}`](#{})<br>`{}`", setting.usage(), setting.flag, setting.variable());
        [name, setting.help.to_owned(), setting.default.to_owned()]
    });
    table(["flag and variable", "meaning", "default"], rows)
}

fn variables() -> String {
    let rows = VARIABLES.iter().map(|[name, help, default]| {
        let id = name.to_lowercase().replace('_', "-");
        [format!("[`{name}`](#{id})"), (*help).to_owned(), (*default).to_owned()]
    });
    table(["variable", "meaning", "default"], rows)
}

/// A table in Markdown. A row whose first cell begins with a link to a fragment has that id.
fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let row =
        |cells: [String; N]| format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    let rows: String = rows.into_iter().map(row).collect();
    format!("{}| {} |\n{rows}", row(heads.map(str::to_owned)), ["---"; N].join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_say_what_the_code_says() {
        let filled = |text| fill(text, &Config::default());
        let codes = filled("{{codes}}");
        assert!(codes.contains("### `outcome_unknown`\n\n503 Service Unavailable. "), "{codes}");
        assert!(codes.contains("\"code\": \"not_found\",\n"), "{codes}");
        let operations = filled("{{operations}}");
        assert!(operations.contains("| [`GET /v1/pets/{petId}`](/#getPet) | "), "{operations}");
        assert!(operations.contains(" | stable |\n") && operations.contains(" | experimental |\n"));
        let marks = filled("{{marks}}");
        assert!(marks.contains("/v1/store/orders") && !marks.contains("/v1/pets"));
        let deprecations = filled("{{deprecations}}");
        assert!(deprecations.contains("2030-12-05") && deprecations.contains("`GET /v1/pets`"));
        assert!(filled("{{limits}}").contains("65536 bytes"));
        assert!(filled("{{deadlines}}").contains("10 s"));
        assert!(filled("{{settings}}").contains("PETSTORE_ALLOW_ORIGIN"));
        assert!(filled("{{variables}}").contains("(#petstore-api-key)"));
        assert_eq!(filled("{{else}}"), "{{else}}");
        assert_eq!(table(["a"], [["b|c".to_owned()]]), "| a |\n| --- |\n| b\\|c |\n");
    }
}
