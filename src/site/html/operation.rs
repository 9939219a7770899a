//! One operation of the reference as HTML: what a caller needs first, then what comes back, and a form to try it.

use serde_json::Value;

use crate::api::Operation;
use crate::clock::day;
use crate::endpoint::{HeaderField, Success};
use crate::http::response::reason;
use crate::site::document::{own_codes, shared_codes};
use crate::site::html::components::{example, resolve, schema};
use crate::site::html::markup::{escape, heading, inline, pretty, text};
use crate::site::html::samples;
use crate::site::html::trial::form;

/// The whole operation, closed. `base` is the address that samples call.
pub fn html(operation: &Operation, base: &str) -> String {
    let (id, method, path) = (operation.id, operation.method(), operation.path);
    let described: Vec<Value> = operation.parameters.iter().map(|parameter| parameter.describe()).collect();
    let parameters = described.iter().map(|p| {
        let place = format!("{}, ", text(&p["in"]));
        value(text(&p["name"]), &place, p["required"] == true, text(&p["description"]), &p["schema"])
    });
    let (trial, answers) = match &operation.success {
        Some(success) => {
            let (request, response) = (samples::block(operation, base), pretty(&example(success.schema)));
            let trial = format!(
                "<div class=\"trial\">\n{}{request}{}<pre tabindex=\"0\" class=\"wrap\"><code>{response}</code></pre>\n{}</div>\n",
                heading(id, "Example request"),
                heading(id, "Example response"),
                form(operation, &described)
            );
            (trial, answers(id, success))
        }
        None => {
            let note = "<p>You cannot try this operation yet.</p>\n";
            (String::new(), note.to_owned())
        }
    };
    format!(
        "<details class=\"operation\" id=\"{id}\">\n\
         <summary><h3><span class=\"method {0}\">{method}</span> <code>{path}</code> <span>{1}</span> \
         <span class=\"marks\">{2}</span></h3></summary>\n\
         <div class=\"parts\">\n<div class=\"asks\">\n<p>{3}</p>\n{4}{5}</div>\n{trial}\
         <div class=\"answers\">\n{answers}{6}</div>\n</div>\n</details>\n",
        method.to_lowercase(),
        escape(operation.summary),
        marks(operation),
        inline(&about(operation)),
        list(id, "Parameters", parameters),
        body(operation),
        failures(operation),
    )
}

/// The stability of the operation, in words.
fn marks(operation: &Operation) -> String {
    let stability = operation.is_experimental.then(|| "experimental".to_owned());
    let deprecation = operation.deprecation.map(|deprecation| {
        let sunset = day(deprecation.sunset);
        format!("deprecated; to be removed on {sunset}; call GET {} instead", deprecation.successor)
    });
    let planned = operation.success.is_none().then(|| "planned".to_owned());
    let marks = stability.into_iter().chain(deprecation).chain(planned);
    marks.map(|mark| format!("<span class=\"mark\">{}</span> ", inline(&mark))).collect()
}

fn about(operation: &Operation) -> String {
    let Some(deprecation) = operation.deprecation else { return operation.about.to_owned() };
    format!("{} Call `GET {}` instead, {}.", operation.about, deprecation.successor, deprecation.how)
}

/// The members of the body, and its example.
fn body(operation: &Operation) -> String {
    let Some(name) = operation.body else { return String::new() };
    let schema = schema(name);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let members = schema["properties"].as_object().into_iter().flatten().map(|(name, member)| {
        let is_required = required.iter().any(|required| required == name);
        value(name, "", is_required, text(&member["description"]), member)
    });
    list(operation.id, "Request body", members)
}

/// What a caller gets if all goes well.
fn answers(id: &str, success: &Success) -> String {
    let field = |field: &HeaderField| entry(field.name, "header", field.about);
    let line = entry(&success.status.to_string(), reason(success.status), success.about);
    list(id, "Success", std::iter::once(line).chain(success.headers.iter().map(field)))
}

/// The failures that the operation itself causes, and where the others are.
fn failures(operation: &Operation) -> String {
    let own = own_codes(operation).into_iter().flat_map(|(status, codes)| {
        codes.into_iter().map(move |code| {
            let link = format!("<a href=\"/docs/errors#{0}\"><code>{0}</code></a>", code.as_str());
            format!(
                "<div><dt><code>{status}</code> {link}</dt><dd>{}</dd></div>\n",
                inline(&operation.message(code))
            )
        })
    });
    let mut others: Vec<String> = shared_codes().map(|code| code.status().to_string()).collect();
    others.dedup();
    format!(
        "{}<p>Any operation can also return {}: see <a href=\"/docs/errors\">errors</a>.</p>\n",
        list(operation.id, "Errors", own),
        others.join(", ")
    )
}

/// A list under a heading; nothing if it is empty.
fn list(id: &str, words: &str, entries: impl Iterator<Item = String>) -> String {
    let entries: String = entries.collect();
    if entries.is_empty() { entries } else { format!("{}<dl>\n{entries}</dl>\n", heading(id, words)) }
}

fn entry(name: &str, kind: &str, about: &str) -> String {
    format!("<div><dt><code>{name}</code> <span>{kind}</span></dt><dd>{}</dd></div>\n", inline(about))
}

/// A parameter or a member of a body: its type after its place, and its allowed words, bounds and default at the end of
/// the first clause of what it means.
fn value(name: &str, place: &str, is_required: bool, about: &str, schema: &Value) -> String {
    let schema = resolve(schema);
    let mut words = String::new();
    if let Some(allowed) = schema["enum"].as_array() {
        let allowed: Vec<String> = allowed.iter().map(|word| format!("`{}`", text(word))).collect();
        words += &format!(": {}", allowed.join(", "));
    }
    let bounds = (schema["minimum"].as_i64(), schema["maximum"].as_i64());
    let is_any = bounds == (Some(i64::MIN), Some(i64::MAX));
    if let (Some(minimum), Some(maximum), false) = (bounds.0, bounds.1, is_any) {
        words += &format!(", {minimum} to {maximum}");
    }
    if let Some(default) = schema.get("default") {
        words += &format!(", default {default}");
    }
    let (first, rest) = about.split_at(about.find(['.', ';']).unwrap_or(about.len()));
    let size = if is_any { "64-bit " } else { "" };
    let presence = if is_required { "required" } else { "optional" };
    let kind = format!("{place}{size}{}, {presence}", text(&schema["type"]));
    entry(name, &kind, &format!("{first}{words}{rest}"))
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
            list.contains("<code>after</code> <span>query, 64-bit integer, optional</span></dt>"),
            "{list}"
        );
        assert!(
            list.contains(": <code>available</code>, <code>pending</code>, <code>sold</code>.</dd>"),
            "{list}"
        );
    }

    #[test]
    fn operation_is_shown_with_what_it_takes_and_returns() {
        let one = of("getPet");
        let about = "<p>Returns one pet by its identifier. Call <code>GET /v1/pets</code> instead, \
            with the <code>status</code> filter.</p>";
        assert!(one.contains(about), "{one}");
        let create = of("createPet");
        for (name, kind) in [
            ("name", "string, required"),
            ("categoryId", "64-bit integer, required"),
            ("status", "string, optional"),
        ] {
            let member = format!("<dt><code>{name}</code> <span>{kind}</span></dt>");
            assert!(create.contains(&member), "{create}");
        }
        let success = "Success</a></h4>\n<dl>\n<div><dt><code>201</code> <span>Created</span></dt><dd>The pet was added.</dd></div>\n\
             <div><dt><code>Location</code> <span>header</span></dt><dd>The path of the new pet.</dd></div>\n";
        assert!(create.contains(success), "{create}");
    }

    #[test]
    fn form_has_a_field_for_each_parameter() {
        for (id, field) in [
            (
                "listPets",
                "<label for=\"listPets-limit\">limit</label><input id=\"listPets-limit\" name=\"limit\" data-in=\"query\" \
                 autocomplete=\"off\" spellcheck=\"false\" inputmode=\"numeric\" placeholder=\"20\">\n",
            ),
            (
                "listPets",
                "<select id=\"listPets-status\" name=\"status\" data-in=\"query\" autocomplete=\"off\">\
                 <option value=\"\">any</option><option>available</option>",
            ),
            (
                "getPet",
                "<input id=\"getPet-petId\" name=\"petId\" data-in=\"path\" autocomplete=\"off\" required \
                 spellcheck=\"false\" inputmode=\"numeric\">\n",
            ),
            (
                "createPet",
                "<input id=\"createPet-Idempotency-Key\" name=\"Idempotency-Key\" data-in=\"header\" autocomplete=\"off\" \
                 spellcheck=\"false\">\n",
            ),
        ] {
            let operation = of(id);
            assert!(operation.contains(field), "{field}: {operation}");
        }
    }

    #[test]
    fn failures_are_those_of_the_operation() {
        let list = of("listPets");
        assert!(list.contains("<code>400</code> <a href=\"/docs/errors#invalid_parameter\">"), "{list}");
        assert!(
            list.contains("also return 400, 408, 413, 414, 417, 421, 431, 500, 501, 503, 505:"),
            "{list}"
        );
        assert!(!list.contains("#overloaded") && !list.contains("#insufficient_scope"), "{list}");
        let create = of("createPet");
        assert!(create.contains("#outcome_unknown") && create.contains("#insufficient_scope"), "{create}");
    }

    #[test]
    fn missing_pet_is_described_as_it_is_returned() {
        let one = of("getPet");
        assert!(one.contains("<dd>There is no pet with this id.</dd>"), "{one}");
        assert!(!one.contains("at this path"), "{one}");
    }

    #[test]
    fn what_is_planned_has_no_form() {
        let orders = of("listOrders");
        assert!(
            !orders.contains("<form") && orders.contains("<span class=\"mark\">experimental</span>"),
            "{orders}"
        );
        let one = of("getPet");
        assert!(
            one.contains("deprecated; to be removed on <span class=\"whole\">2030-12-05; </span>call GET"),
            "{one}"
        );
        assert!(one.contains("<form") && one.contains(" required"), "{one}");
    }

    #[test]
    fn examples_are_those_of_the_description() {
        assert!(of("createPet").contains("&quot;name&quot;: &quot;Rex&quot;"));
        assert!(of("listPets").contains("<code>[\n  {\n"));
    }
}
