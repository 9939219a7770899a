//! The form that sends a request of one operation. `reference.js` brings it to life.

use serde_json::Value;

use crate::api::Operation;
use crate::site::document::BASE;
use crate::site::html::components::{example, resolve};
use crate::site::html::markup::{heading, pretty, text};

/// The form, hidden until the script has run.
pub fn form(operation: &Operation, parameters: &[Value]) -> String {
    let id = operation.id;
    let fields: String = parameters.iter().map(|parameter| field(id, parameter)).collect();
    let body = operation.body.map(|name| {
        let example = pretty(&example(name));
        let rows = example.lines().count();
        format!(
            "<label for=\"{id}-body\">Request body</label><textarea id=\"{id}-body\" data-in=\"body\" rows=\"{rows}\" \
             spellcheck=\"false\" autocapitalize=\"off\">{example}</textarea>\n"
        )
    });
    format!(
        "<form class=\"try\" data-method=\"{}\" data-path=\"{}\" aria-label=\"Try {id}\">\n{}\
         <div class=\"inputs\">\n{fields}{}</div>\n\
         <p class=\"send\"><button aria-describedby=\"{id}-note\">Execute</button> <span id=\"{id}-note\" class=\"note\">\
         </span></p>\n\
         <div class=\"result\" hidden>\n<h4>Response</h4>\n<p class=\"status\"></p>\n\
         <div class=\"returned\"><pre class=\"content wrap\" tabindex=\"0\" role=\"region\" aria-label=\"Body of the \
         response\"></pre></div>\n\
         <details><summary>Response headers</summary><pre class=\"fields\" tabindex=\"0\"></pre></details>\n\
         <h4>As a curl command</h4>\n<pre class=\"curl\" tabindex=\"0\"></pre>\n</div>\n</form>\n",
        operation.method(),
        operation.path.strip_prefix(BASE).unwrap_or(operation.path),
        heading(id, "Try it"),
        body.unwrap_or_default()
    )
}

/// The field of a parameter of the operation `id`.
fn field(id: &str, parameter: &Value) -> String {
    let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
    let required = if parameter["required"] == true { " required" } else { "" };
    let attributes =
        format!("id=\"{id}-{name}\" name=\"{name}\" data-in=\"{place}\" autocomplete=\"off\"{required}");
    let schema = resolve(&parameter["schema"]);
    let input = match schema["enum"].as_array() {
        Some(words) => {
            let option = |word: &Value| format!("<option>{}</option>", text(word));
            let options: String = words.iter().map(option).collect();
            format!("<select {attributes}><option value=\"\">any</option>{options}</select>")
        }
        None => {
            let kind = if schema["type"] == "integer" { " inputmode=\"numeric\"" } else { "" };
            let default = &schema["default"];
            let hint = if default.is_null() { String::new() } else { format!(" placeholder=\"{default}\"") };
            format!("<input {attributes} spellcheck=\"false\"{kind}{hint}>")
        }
    };
    format!("<label for=\"{id}-{name}\">{name}</label>{input}\n")
}
