//! The form that sends a request to one operation, with `trial.js`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::app::endpoint::Operation;
use crate::site::components::{example, resolve};
use crate::site::html::markup::{escape, heading, pretty, text};
use crate::site::openapi::{below_base, responses};
use petstore_base::json::Json;

/// The form, hidden until the script has run. Rarely used parameters are folded.
pub fn form(operation: &Operation, parameters: &[Json]) -> String {
    let id = operation.id;
    let fields = |is_header: bool| -> String {
        let chosen = parameters
            .iter()
            .filter(|parameter| (*parameter["in"] == "header") == is_header);
        chosen
            .map(|parameter| field(operation, parameter))
            .collect()
    };
    let media_type = operation.media_types[0];
    let body = operation.body.map(|name| {
        let example = escape(&pretty(&example(name)));
        let rows = example.lines().count();
        format!(
            "<label for=\"{id}-body\">Request body</label><textarea id=\"{id}-body\" data-in=\"body\" data-type=\"{media_type}\" rows=\"{rows}\" \
             spellcheck=\"false\" autocapitalize=\"off\">{example}</textarea>\n"
        )
    });
    let seldom = match fields(true) {
        none if none.is_empty() => none,
        fields => format!(
            "<details class=\"seldom\"><summary>Header fields</summary>\n<div class=\"inputs\">\n{fields}</div>\n</details>\n"
        ),
    };
    let answers = responses(operation);
    let documented = answers
        .members()
        .iter()
        .flat_map(|(_, answer)| answer["headers"].members());
    let documented: BTreeSet<&str> = documented.map(|(name, _)| &**name).collect();
    format!(
        "<form class=\"try\" data-operation=\"{id}\" data-method=\"{}\" data-path=\"{}\" data-fields=\"{}\"{} \
         aria-label=\"Try it: {}\">\n{}<div class=\"inputs\">\n{}{}</div>\n{seldom}\
         <p class=\"send\"><button aria-describedby=\"{id}-note\">Send</button> <span id=\"{id}-note\" class=\"note\">No API key: \
         <a href=\"#key\">enter one above</a>, or this returns 401.</span></p>\n<div class=\"result\" hidden></div>\n</form>\n",
        operation.method(),
        below_base(operation.path),
        documented.into_iter().collect::<Vec<_>>().join(" "),
        if has_result(operation) {
            ""
        } else {
            " data-empty"
        },
        escape(operation.title),
        heading(id, "Try it"),
        fields(false),
        body.unwrap_or_default()
    )
}

/// Returns whether the response of a success has a body.
pub fn has_result(operation: &Operation) -> bool {
    operation
        .success
        .is_some_and(|success| success.schema.is_some())
}

/// An example of a path parameter: the id of the resource that the operation returns in its example, or else 1.
pub fn example_id(operation: &Operation) -> String {
    let returned = operation
        .success
        .and_then(|success| example(success.schema?)["id"].as_i64());
    returned.unwrap_or(1).to_string()
}

/// The field of a parameter of the operation.
fn field(operation: &Operation, parameter: &Json) -> String {
    let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
    let id = format!("{}-{name}", operation.id);
    let mut attributes =
        format!("id=\"{id}\" name=\"{name}\" data-in=\"{place}\" autocomplete=\"off\"");
    if *parameter["required"] == true {
        attributes += &format!(" data-example=\"{}\" required", example_id(operation));
    }
    let schema = resolve(&parameter["schema"]);
    let mut hint = String::new();
    if let Some(default) = schema["default"].as_i64() {
        attributes += &format!(" aria-describedby=\"{id}-hint\"");
        hint = format!(" <small id=\"{id}-hint\">default {default}</small>");
    }
    let input = match schema["enum"].as_array() {
        Some(words) => {
            let option = |word: &Value| format!("<option>{}</option>", text(word));
            let options: String = words.iter().map(option).collect();
            format!("<select {attributes}><option value=\"\">any</option>{options}</select>")
        }
        None => {
            let kind = if *schema["type"] == "integer" {
                " inputmode=\"numeric\""
            } else {
                ""
            };
            format!("<input {attributes} spellcheck=\"false\"{kind}>")
        }
    };
    format!("<div><label for=\"{id}\">{name}</label>{hint}</div><div>{input}</div>\n")
}
