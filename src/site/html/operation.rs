//! One operation of the reference as HTML: what a caller needs first, then what comes back, and a form to try it.

use serde_json::Value;

use crate::api::{self, Operation};
use crate::clock::day;
use crate::endpoint::{HeaderField, Success};
use crate::http::Code;
use crate::http::response::reason;
use crate::site::document::{BASE, own_codes, shared_codes};
use crate::site::html::samples;
use crate::site::html::tables::{escape, inline};

/// The whole operation, closed. `base` is the address that samples call.
pub fn html(operation: &Operation, base: &str) -> String {
    let (id, method, path) = (operation.id, operation.method(), operation.path);
    let marks: String =
        marks(operation).iter().map(|mark| format!("<span class=\"mark\">{mark}</span>")).collect();
    let described: Vec<Value> = operation.parameters.iter().map(|parameter| parameter.describe()).collect();
    let parameters = list(
        "Parameters",
        described.iter().map(|p| {
            let place = format!("{}, {}", text(&p["in"]), presence(p["required"] == true));
            entry(text(&p["name"]), &place, &sentence(text(&p["description"]), &p["schema"]))
        }),
    );
    let answers = match &operation.success {
        Some(success) => answers(success),
        None => "<p>You cannot try this operation yet.</p>\n".to_owned(),
    };
    let trial = match &operation.success {
        Some(_) => samples::block(operation, base) + &form(operation, &described),
        None => String::new(),
    };
    format!(
        "<details class=\"operation\" id=\"{id}\">\n\
         <summary><h3><span class=\"method {0}\">{method}</span> <code>{path}</code> <span>{1}</span> {marks}</h3>\
         </summary>\n<div class=\"parts\">\n<div class=\"asks\">\n<p>{2}</p>\n{parameters}{3}</div>\n\
         <div class=\"trial\">\n{trial}</div>\n<div class=\"answers\">\n{answers}{4}</div>\n</div>\n</details>\n",
        method.to_lowercase(),
        escape(operation.summary),
        inline(&about(operation)),
        body(operation),
        failures(operation),
    )
}

/// The stability of the operation, in words.
fn marks(operation: &Operation) -> Vec<String> {
    let stability = operation.is_experimental.then(|| "experimental".to_owned());
    let deprecation = operation.deprecation.map(|deprecation| {
        let successor = deprecation.successor.strip_prefix(BASE).unwrap_or(deprecation.successor);
        let sunset = day(deprecation.sunset);
        format!("deprecated; to be removed on {sunset}; call GET {successor} instead")
    });
    let planned = operation.success.is_none().then(|| "planned".to_owned());
    stability.into_iter().chain(deprecation).chain(planned).collect()
}

fn about(operation: &Operation) -> String {
    let Some(deprecation) = operation.deprecation else { return operation.about.to_owned() };
    format!("{} Call `GET {}` instead, {}.", operation.about, deprecation.successor, deprecation.how)
}

fn presence(is_required: bool) -> &'static str {
    if is_required { "required" } else { "optional" }
}

/// The members of the body, and its example.
fn body(operation: &Operation) -> String {
    let Some(name) = operation.body else { return String::new() };
    let schema = schema(name);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let members = schema["properties"].as_object().into_iter().flatten();
    let members = members.map(|(name, member)| {
        let place = presence(required.iter().any(|required| required == name));
        entry(name, place, &sentence(text(&member["description"]), member))
    });
    list("Body", members)
}

/// What a caller gets if all goes well.
fn answers(success: &Success) -> String {
    let field = |field: &HeaderField| entry(field.name, "header", field.about);
    let line = entry(&success.status.to_string(), reason(success.status), success.about);
    format!(
        "{}<pre tabindex=\"0\"><code>{}</code></pre>\n",
        list("Success", std::iter::once(line).chain(success.headers.iter().map(field))),
        pretty(&example(success.schema))
    )
}

/// The failures that the operation itself causes, and where the others are.
fn failures(operation: &Operation) -> String {
    let own = own_codes(operation).into_iter().flat_map(|(status, codes)| {
        codes.into_iter().map(move |code| {
            let link = format!("<a href=\"/docs/errors#{0}\"><code>{0}</code></a>", code.as_str());
            format!("<div><dt>{status} {link}</dt><dd>{}</dd></div>\n", inline(&message(code)))
        })
    });
    let mut others: Vec<String> = shared_codes().map(|code| code.status().to_string()).collect();
    others.dedup();
    format!(
        "{}<p>Any operation can also return {}: see <a href=\"/docs/errors\">errors</a>.</p>\n",
        list("Errors", own),
        others.join(", ")
    )
}

fn message(code: Code) -> String {
    code.usual_message().into_owned()
}

/// The form that the script brings to life.
fn form(operation: &Operation, parameters: &[Value]) -> String {
    let id = operation.id;
    let fields = parameters.iter().map(|parameter| {
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
                let hint =
                    if default.is_null() { String::new() } else { format!(" placeholder=\"{default}\"") };
                format!("<input {attributes} spellcheck=\"false\"{kind}{hint}>")
            }
        };
        format!("<label for=\"{id}-{name}\">{name}</label>{input}\n")
    });
    let fields: String = fields.collect();
    let body = operation.body.map(|name| {
        let example = pretty(&example(name));
        let rows = example.lines().count();
        format!(
            "<label for=\"{id}-body\">Request body</label><textarea id=\"{id}-body\" data-in=\"body\" rows=\"{rows}\" \
             spellcheck=\"false\" autocapitalize=\"off\">{example}</textarea>\n"
        )
    });
    format!(
        "<form class=\"try\" data-method=\"{}\" data-path=\"{}\" aria-label=\"Try {id}\" hidden>\n<h4>Try it</h4>\n\
         <div class=\"inputs\">\n{fields}{}</div>\n\
         <p class=\"send\"><button aria-describedby=\"{id}-note\">Execute</button> <span id=\"{id}-note\" class=\"note\">\
         </span></p>\n\
         <div class=\"result\" hidden>\n<h4>Response</h4>\n<p class=\"status\"></p>\n\
         <div class=\"returned\"><pre class=\"content\" tabindex=\"0\" role=\"region\" aria-label=\"Body of the \
         response\"></pre></div>\n\
         <details><summary>Headers</summary><pre class=\"fields\" tabindex=\"0\"></pre></details>\n\
         <h4>The request as a curl command</h4>\n<pre class=\"curl\" tabindex=\"0\"></pre>\n</div>\n</form>\n",
        operation.method(),
        operation.path.strip_prefix(BASE).unwrap_or(operation.path),
        body.unwrap_or_default()
    )
}

/// A list under a heading; nothing if it is empty.
fn list(heading: &str, entries: impl Iterator<Item = String>) -> String {
    let entries: String = entries.collect();
    if entries.is_empty() { entries } else { format!("<h4>{heading}</h4>\n<dl>\n{entries}</dl>\n") }
}

fn entry(name: &str, place: &str, about: &str) -> String {
    format!("<div><dt><code>{name}</code> <span>{place}</span></dt><dd>{}</dd></div>\n", inline(about))
}

/// What a value means, with its type, bounds and default at the end of the first sentence.
fn sentence(about: &str, schema: &Value) -> String {
    let (first, rest) = about.split_once('.').unwrap_or((about, ""));
    let schema = resolve(schema);
    let mut words = String::new();
    if let Some(allowed) = schema["enum"].as_array() {
        let allowed: Vec<String> = allowed.iter().map(|word| format!("`{}`", text(word))).collect();
        words += &format!(": {}", allowed.join(", "));
    }
    match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(i64::MIN), Some(i64::MAX)) => words += ", a 64-bit integer",
        (Some(minimum), Some(maximum)) => words += &format!(", {minimum} to {maximum}"),
        _ => {}
    }
    if let Some(default) = schema.get("default") {
        words += &format!(", default {default}");
    }
    format!("{first}{words}.{rest}")
}

/// A component of the interface description.
fn schema(name: &str) -> Value {
    api::schemas().into_iter().find(|(known, _)| *known == name).map_or(Value::Null, |(_, schema)| schema)
}

/// A schema, or the component that it refers to.
fn resolve(value: &Value) -> Value {
    let name = value["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    name.map_or_else(|| value.clone(), schema)
}

/// An example of a component.
fn example(name: &str) -> Value {
    let schema = schema(name);
    let item = schema["items"]["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    item.map_or_else(|| schema["examples"][0].clone(), |item| Value::Array(vec![example(item)]))
}

/// JSON in lines, as HTML.
fn pretty(value: &Value) -> String {
    // Printing strings and numbers cannot fail.
    escape(&serde_json::to_string_pretty(value).unwrap_or_default())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ROUTER;

    fn of(id: &str) -> String {
        html(ROUTER.operations().find(|operation| operation.id == id).unwrap(), "https://pets.example/v1")
    }

    #[test]
    fn bounds_and_defaults_are_words() {
        let list = of("listPets");
        assert!(list.contains(", 1 to 100, default 20.</dd>"), "{list}");
        assert!(
            list.contains(": <code>available</code>, <code>pending</code>, <code>sold</code>.</dd>"),
            "{list}"
        );
    }

    #[test]
    fn failures_are_those_of_the_operation() {
        let list = of("listPets");
        assert!(list.contains("400 <a href=\"/docs/errors#invalid_parameter\">"), "{list}");
        assert!(
            list.contains("also return 400, 408, 413, 414, 417, 421, 431, 500, 501, 503, 505:"),
            "{list}"
        );
        assert!(!list.contains("#overloaded") && !list.contains("#insufficient_scope"), "{list}");
        let create = of("createPet");
        assert!(create.contains("#outcome_unknown") && create.contains("#insufficient_scope"), "{create}");
    }

    #[test]
    fn what_is_planned_has_no_form() {
        let orders = of("listOrders");
        assert!(
            !orders.contains("<form") && orders.contains("<span class=\"mark\">experimental</span>"),
            "{orders}"
        );
        let one = of("getPet");
        assert!(one.contains("deprecated; to be removed on 2030-12-05; call GET /pets instead"), "{one}");
        assert!(one.contains("<form") && one.contains(" required"), "{one}");
    }

    #[test]
    fn examples_are_those_of_the_description() {
        assert!(of("createPet").contains("&quot;name&quot;: &quot;Rex&quot;"));
        assert!(of("listPets").contains("<code>[\n  {\n"));
    }
}
