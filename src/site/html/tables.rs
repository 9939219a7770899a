//! The tables of the pages, generated from the tables of the code.

use petstore_base::clock::day;
use std::time::Duration;

use crate::app::endpoint::Code;
use crate::config::{Config, SETTINGS, VARIABLES};
use crate::site::html::markup::{Filling, escape, in_reference, inline, plain, title};
use crate::site::html::navigation::{PageText, index};
use crate::site::html::section::Section;
use crate::site::openapi::{VERSION, operations};
use petstore_base::http::limits::{
    MAX_BODY_BYTES, MAX_DROPPED_BYTES, MAX_HEAD_BYTES, MAX_HEADER_FIELDS, MAX_TARGET_BYTES,
};
use petstore_base::http::response::reason;
use petstore_gate::Deadlines;

/// The name of a gap, and the function that fills it.
type Gap = (&'static str, fn(&Config) -> Filling);

const ALL: [Gap; 8] = [
    ("pages", |_| index("/docs")),
    ("labels", labels),
    ("deprecations", deprecations),
    ("codes", codes),
    ("limits", |_| limits()),
    ("deadlines", deadlines),
    ("settings", |_| settings()),
    ("variables", |_| variables()),
];

/// The HTML of a page and its sections, with gaps such as `{{codes}}` filled.
pub fn fill(page: &PageText<'_>, config: &Config, base: &str) -> (String, Vec<Section<String>>) {
    let (mut html, mut sections) = (page.html.replace("{{base}}", &escape(base)), Vec::new());
    for Section {
        id,
        element,
        title,
        text,
    } in page.sections
    {
        let text = text
            .replace("{{base}}", base)
            .replace("{{interface}}", VERSION);
        let [id, element, title] = [id, element, title].map(|part| (*part).to_owned());
        let mut parts = vec![Section {
            id,
            element,
            title,
            text: text.clone(),
        }];
        for (name, filling) in ALL {
            let place = format!("{{{{{name}}}}}");
            if let Some((before, after)) = text.split_once(&place) {
                let filling = filling(config);
                html = html.replace(&place, &filling.html);
                parts[0].text = format!("{before}{}", filling.text);
                parts.extend(filling.sections);
                parts
                    .last_mut()
                    .into_iter()
                    .for_each(|part| part.text.push_str(after));
            }
        }
        sections.extend(parts);
    }
    (html, sections)
}

fn labels(config: &Config) -> Filling {
    let rows = operations(config).filter_map(|operation| {
        Some((
            in_reference(operation),
            [title(operation), format!("`{}`", operation.label()?)],
        ))
    });
    table(["Operation", "Label"], rows)
}

fn deprecations(config: &Config) -> Filling {
    let rows = operations(config).filter_map(|operation| {
        let deprecation = operation.deprecation?;
        let replacement = deprecation.replacement.to_owned();
        Some((
            in_reference(operation),
            [title(operation), day(deprecation.sunset), replacement],
        ))
    });
    table(["Operation", "Will be removed on", "Replacement"], rows)
}

/// The cause and the advice for clients, for each code, with code between backticks.
const ADVICE: &str = include_str!("../advice.txt");

/// The codes in the order of their statuses.
fn codes(config: &Config) -> Filling {
    let rows = Code::all(config.experimental).map(|code| {
        let (name, status) = (code.as_str(), code.status());
        let first = format!("`{name}`\n{status} {}", reason(status));
        let advice = ADVICE
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        (
            format!("#{name}"),
            [first, advice.unwrap_or_default().to_owned()],
        )
    });
    table(["Code and status", "What happened, and what to do"], rows)
}

/// Every bound on the size of a request, for people: the bounded part, its maximum, the unit of that, and the status if it
/// is exceeded.
const LIMITS: [(&str, usize, &str, u16); 5] = [
    ("request target", MAX_TARGET_BYTES, "bytes", 414),
    ("request head", MAX_HEAD_BYTES, "bytes", 431),
    ("header fields", MAX_HEADER_FIELDS, "fields", 431),
    (
        "chunk extensions and trailers",
        MAX_DROPPED_BYTES,
        "bytes",
        431,
    ),
    ("request body", MAX_BODY_BYTES, "bytes", 413),
];

fn limits() -> Filling {
    let rows = LIMITS.iter().map(|(what, most, unit, status)| {
        let cells = [
            what.to_string(),
            format!("{most} {unit}"),
            status.to_string(),
        ];
        (format!("#{}", what.replace(' ', "-")), cells)
    });
    table(["Limit", "Maximum", "Status if exceeded"], rows)
}

fn deadlines(config: &Config) -> Filling {
    let rows = phases(&config.deadlines).map(|(name, most, span, then)| {
        let most = format!("{} s", most.as_secs_f64());
        (
            format!("#timeout-{name}"),
            [span.to_owned(), most, then.to_owned()],
        )
    });
    table(["Phase", "Timeout", "On timeout"], rows)
}

/// Every deadline: its field, the longest time, the phase that it bounds, and the effect when it passes.
fn phases(deadlines: &Deadlines) -> [(&'static str, Duration, &'static str, &'static str); 8] {
    const CLOSED: &str = "the connection is closed";
    [
        (
            "head",
            deadlines.head,
            "reading the head of a request, from its first byte",
            "408",
        ),
        (
            "body",
            deadlines.body,
            "reading the body, from the end of the head",
            "408",
        ),
        (
            "lane",
            deadlines.lane,
            "waiting for a free thread, once complete",
            "503; not carried out",
        ),
        (
            "answer",
            deadlines.answer,
            "handling the request",
            "503; for a POST, `outcome_unknown`",
        ),
        (
            "response",
            deadlines.response,
            "sending the response",
            CLOSED,
        ),
        ("idle", deadlines.idle, "idle between requests", CLOSED),
        (
            "linger",
            deadlines.linger,
            "silent after the last response, without closing",
            CLOSED,
        ),
        (
            "drain",
            deadlines.drain,
            "finishing the requests, after SIGTERM",
            "the service exits",
        ),
    ]
}

fn settings() -> Filling {
    let rows = SETTINGS.iter().map(|setting| {
        let names = format!("`{}`\n`{}`", setting.usage(), setting.variable());
        (
            format!("#{}", setting.flag),
            [names, setting.help.to_owned(), setting.default.to_owned()],
        )
    });
    table(["Flag and variable", "Meaning", "Default"], rows)
}

fn variables() -> Filling {
    let rows = VARIABLES.iter().map(|variable| {
        let id = variable.name.to_lowercase().replace('_', "-");
        let name = format!("`{}`", variable.name);
        (
            format!("#{id}"),
            [name, variable.help.to_owned(), variable.default.to_owned()],
        )
    });
    table(["Variable", "Meaning", "Default"], rows)
}

/// Makes a table. The first line of each row's first cell is the link of the row. A row that links to a fragment has
/// that id.
fn table<const N: usize>(
    heads: [&str; N],
    rows: impl IntoIterator<Item = (String, [String; N])>,
) -> Filling {
    let mut table = Filling {
        text: heads.join(" "),
        ..Filling::default()
    };
    let names = heads.map(|head| format!("<th>{head}</th>")).concat();
    table.html = format!("<div class=\"table\"><table><thead><tr>{names}</tr></thead><tbody>\n");
    for (link, cells) in rows {
        let (title, more) = cells[0].split_once('\n').unwrap_or((&cells[0], ""));
        let text = plain(&[&[more.to_owned()], &cells[1..]].concat().join(" · "));
        let text = text.trim_matches([' ', '·']);
        let (row, class) = match link.strip_prefix('#') {
            Some(id) => {
                table.section("tr", id, title, text);
                (format!("<tr id=\"{id}\">"), "class=\"anchor\" ")
            }
            None => {
                table.text += &format!(" {} · {text}", plain(title));
                ("<tr>".to_owned(), "")
            }
        };
        table.html += &row;
        for (number, (head, cell)) in heads.iter().zip(&cells).enumerate() {
            let linked = format!("<a {class}href=\"{link}\">{}</a>", inline(title));
            let cell = match (number, more) {
                (0, "") => linked,
                (0, _) => format!("{linked}<br>{}", inline(more)),
                _ => inline(cell),
            };
            table.html += &format!("<td data-head=\"{head}\">{cell}</td>");
        }
        table.html += "</tr>\n";
    }
    table.html += "</tbody></table>\n</div>\n";
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_advice() {
        let advised = ADVICE.lines().filter_map(|line| line.split(' ').next());
        let codes = Code::ALL.iter().map(|code| code.as_str());
        assert_eq!(advised.collect::<Vec<_>>(), codes.collect::<Vec<_>>());
    }

    #[test]
    fn tables_say_what_the_code_says() {
        let filled = |gap| {
            let sections = &[Section {
                id: "a",
                element: "h1",
                title: "A",
                text: gap,
            }];
            fill(
                &PageText {
                    html: gap,
                    sections,
                },
                &Config::default(),
                "http://a",
            )
        };
        let (codes, sections) = filled("{{codes}}");
        assert!(
            codes.contains("</a><br>503 Service Unavailable</td>"),
            "{codes}"
        );
        assert!(
            codes.contains("<tr id=\"not_found\"><td data-head=\"Code and status\">"),
            "{codes}"
        );
        assert!(
            sections
                .iter()
                .any(|row| row.id == "not_found" && row.element == "tr")
        );
        let labels = filled("{{labels}}").0;
        assert!(
            labels.contains("<a href=\"/#listOrders\"><code>GET /v1/store/orders</code></a>"),
            "{labels}"
        );
        assert!(
            labels.contains(">experimental<") && !labels.contains("/v1/pets"),
            "{labels}"
        );
        let deprecations = filled("{{deprecations}}").0;
        assert!(
            deprecations.contains("2030-12-05")
                && deprecations
                    .contains("><code>GET /v1/pets</code> with the <code>status</code> filter.")
        );
        assert!(filled("{{limits}}").0.contains("65536 bytes"));
        assert!(filled("{{deadlines}}").0.contains("10 s"));
        let (variables, sections) = filled("{{variables}}");
        assert!(
            variables.contains("<tr id=\"petstore-api-key\">"),
            "{variables}"
        );
        let key = sections
            .iter()
            .find(|row| row.id == "petstore-api-key")
            .unwrap();
        let told = (&*key.element, &*key.title, &*key.text);
        assert_eq!(
            told,
            (
                "tr",
                "PETSTORE_API_KEY",
                "a full API key besides those in the database"
            )
        );
        assert!(
            filled("{{settings}}")
                .0
                .contains("</a><br><code>PETSTORE_ALLOW_ORIGIN</code>")
        );
        assert_eq!(filled("{{else}}").0, "{{else}}");
    }

    #[test]
    fn guide_and_proxies_have_the_time_that_connections_live() {
        let idle = format!("after {} s.", Deadlines::default().idle.as_secs());
        assert!(include_str!("../pages/proxy.md").contains(&idle), "{idle}");
        for proxy in [
            include_str!("../../../scripts/deploy/nginx.conf"),
            include_str!("../../../scripts/deploy/Caddyfile-domains"),
        ] {
            assert!(
                proxy.contains(&format!("({} s)", Deadlines::default().idle.as_secs())),
                "{proxy}"
            );
        }
    }

    #[test]
    fn table_has_every_deadline() {
        let deadlines = Deadlines::default();
        let rows = phases(&deadlines)
            .map(|(name, most, ..)| format!("{name}: {most:?}"))
            .join(", ");
        // Such as "Deadlines { head: 10s, body: 30s }".
        assert_eq!(format!("{deadlines:?}"), format!("Deadlines {{ {rows} }}"));
    }
}
