//! One operation of the reference as HTML: its description, a form to try it, its parameters, and its responses.

use crate::app::api::router;
use crate::app::endpoint::{HeaderField, Operation, Success};
use crate::site::components::{example, item_of, resolve, schema};
use crate::site::html::markup::{escape, heading, inline, method, pretty, text};
use crate::site::html::samples;
use crate::site::html::trial::form;
use crate::site::openapi::{own_codes, shared_codes};
use petstore_base::clock::day;
use petstore_base::http::response::reason;
use petstore_base::json::{Json, NULL};

/// Opens its parent element before the first paint, if the fragment of the URL names the parent or an element in it.
const OPEN: &str = "<at-once task=\"open\"></at-once>\n";

/// The whole operation, closed. `base` is the address that samples call.
pub fn html(operation: &Operation, base: &str) -> String {
    let (id, path) = (operation.id, operation.path);
    let described: Vec<Json> = operation.described().collect();
    let parameters = described.iter().map(|p| {
        let type_name = kind(&p["schema"]);
        let mut kind = vec![text(&p["in"]), &type_name, presence(*p["required"] == true)];
        kind.extend(p["x-stability"].as_str());
        value(
            text(&p["name"]),
            &kind,
            text(&p["description"]),
            &p["schema"],
        )
    });
    let success = operation.success.as_ref();
    let trial = success
        .map(|success| trial(operation, &described, success, base))
        .unwrap_or_default();
    format!(
        "<details class=\"operation\" id=\"{id}\">\n\
         <summary><h3>{} <code>{path}</code> <span>{}</span> <span class=\"marks\">{}</span></h3></summary>\n{OPEN}\
         <div class=\"parts\">\n<div class=\"about\">\n<p>{}</p>\n{}</div>\n{trial}\
         <div class=\"contract\">\n{}{}{}{}</div>\n</div>\n</details>\n",
        method(operation),
        escape(operation.title),
        marks(operation),
        inline(operation.about),
        deprecation(operation),
        body(operation),
        list(id, "Parameters", parameters),
        success
            .map(|success| response(id, success))
            .unwrap_or_default(),
        failures(operation),
    )
}

/// The form, and below it the request and an example of the response.
fn trial(operation: &Operation, parameters: &[Json], success: &Success, base: &str) -> String {
    let example = success.schema.map(|schema| {
        let (heading, json) = (
            heading(operation.id, "Example response"),
            escape(&pretty(&example(schema))),
        );
        format!("{heading}<pre tabindex=\"0\" class=\"wrap\"><code>{json}</code></pre>\n")
    });
    format!(
        "<div class=\"trial\">\n{}{}{}{}</div>\n",
        form(operation, parameters),
        heading(operation.id, "Example request"),
        samples::block(operation, base),
        example.unwrap_or_default()
    )
}

/// The stability of the operation, in a word.
fn marks(operation: &Operation) -> String {
    let stability = operation
        .label()
        .map(|label| format!("<span class=\"mark\">{label}</span>"));
    let deprecation = operation
        .deprecation
        .map(|_| "<span class=\"mark warn\">deprecated</span>".to_owned());
    stability.into_iter().chain(deprecation).collect()
}

/// The date of the removal, and the replacement.
fn deprecation(operation: &Operation) -> String {
    let text = operation.deprecation.map(|end| {
        let id: String = operation.path.chars().filter(char::is_ascii_alphanumeric).collect();
        format!(
            "<p class=\"deprecation\">{} <a href=\"/docs/versions#replacing-get-{}\">How to migrate</a></p>\n",
            inline(&format!("Deprecated: it will be removed on {}. The replacement is {}", day(end.sunset), end.replacement)),
            id.to_lowercase()
        )
    });
    text.unwrap_or_default()
}

/// The fields of the request body.
fn body(operation: &Operation) -> String {
    let fields = fields(
        &schema(operation.body.unwrap_or_default()),
        |_, is_required| presence(is_required),
    );
    list(operation.id, "Request body", fields.into_iter())
}

/// The fields of an object that responses have, closed.
pub fn object(name: &str) -> String {
    let note = |name: &str, is_required: bool| match is_sent(name) {
        true if is_required => "",
        true => "optional",
        false => "in responses only",
    };
    format!(
        "<details class=\"operation\" id=\"{name}\">\n\
         <summary><h3><span class=\"method\">JSON</span> <code>{name}</code> <span>The fields in responses</span></h3></summary>\n\
         {OPEN}<div class=\"parts\">\n<dl>\n{}</dl>\n</div>\n</details>\n",
        fields(&schema(name), note).concat()
    )
}

/// The response to a success: its body, if it has one, then its header fields.
fn response(id: &str, success: &Success) -> String {
    let header = |field: &HeaderField| entry(field.name, &[], field.about);
    let body = success.schema.map(|name| {
        let item = item_of(name);
        let shape = if item == name {
            "A JSON object"
        } else {
            "A JSON array of objects"
        };
        format!("<p class=\"shape\">{shape}: <a href=\"#{item}\">{item}</a></p>\n")
    });
    format!(
        "{}<p><code class=\"ok\">{} {}</code> {}</p>\n{}{}",
        heading(id, "Response"),
        success.status,
        reason(success.status),
        inline(success.about),
        body.unwrap_or_default(),
        list(id, "Response headers", success.headers.iter().map(header))
    )
}

/// Returns true if the body of some request has a field of this name.
fn is_sent(name: &str) -> bool {
    router(true)
        .operations()
        .filter_map(|row| row.body)
        .any(|body| schema(body)["properties"][name] != NULL)
}

/// The failures that are specific to the operation, folded, and a link to the others.
fn failures(operation: &Operation) -> String {
    let own = own_codes(operation).into_values().flatten().map(|code| {
        let link = format!(
            "<a href=\"/docs/errors#{0}\"><code>{0}</code></a>",
            code.as_str()
        );
        format!(
            "<div><dt><code class=\"bad\">{}</code> {link}</dt><dd>{}</dd></div>\n",
            code.status(),
            inline(&operation.message(code))
        )
    });
    let own: Vec<String> = own.collect();
    let mut others: Vec<String> = shared_codes()
        .map(|code| code.status().to_string())
        .collect();
    others.dedup();
    let (id, number, entries) = (operation.id, own.len(), own.concat());
    format!(
        "<details class=\"errors\" id=\"{id}-errors\">\n<summary><h4>{number} {}</h4></summary>\n{OPEN}<dl>\n{entries}</dl>\n\
         <p>Any operation can also return {}: see <a href=\"/docs/errors\">Errors</a>.</p>\n</details>\n",
        if number == 1 { "error" } else { "errors" },
        others.join(", ")
    )
}

/// A list under a heading; nothing if it is empty.
fn list(id: &str, words: &str, entries: impl Iterator<Item = String>) -> String {
    let entries: String = entries.collect();
    if entries.is_empty() {
        entries
    } else {
        format!("{}<dl>\n{entries}</dl>\n", heading(id, words))
    }
}

/// An entry of a list: a name, its kind in a few words, and its meaning.
fn entry(name: &str, kind: &[&str], about: &str) -> String {
    let kind: Vec<&str> = kind
        .iter()
        .copied()
        .filter(|word| !word.is_empty())
        .collect();
    let kind = if kind.is_empty() {
        String::new()
    } else {
        format!(" <span>{}</span>", kind.join(", "))
    };
    format!(
        "<div><dt><code>{name}</code>{kind}</dt><dd>{}</dd></div>\n",
        inline(about)
    )
}

/// The fields of an object. `note` returns a word for each, by its name and true if it is required.
fn fields(object: &Json, note: impl Fn(&str, bool) -> &'static str) -> Vec<String> {
    let required = object["required"].as_array().map_or(&[][..], Vec::as_slice);
    let field = |(name, field): &(String, Json)| {
        let is_required = required.iter().any(|required| required == name);
        value(
            name,
            &[&kind(field), note(name, is_required)],
            text(&field["description"]),
            field,
        )
    };
    object["properties"].members().iter().map(field).collect()
}

fn presence(is_required: bool) -> &'static str {
    if is_required { "required" } else { "optional" }
}

/// The type of a value: `int64` if it may be any 64-bit integer.
fn kind(schema: &Json) -> String {
    let schema = resolve(schema);
    let has_bounds = schema["minimum"].as_i64().is_some();
    let name = if *schema["format"] == "int64" && !has_bounds {
        "int64"
    } else {
        text(&schema["type"])
    };
    name.to_owned()
}

/// A parameter or a field of a body. Its allowed words, bounds and default follow the first clause of its meaning.
fn value(name: &str, kind: &[&str], about: &str, schema: &Json) -> String {
    let schema = resolve(schema);
    let mut words = String::new();
    if let Some(allowed) = schema["enum"].as_array() {
        let allowed: Vec<String> = allowed
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap_or("null")))
            .collect();
        words += &format!(": {}", allowed.join(", "));
    }
    let bounds = (schema["minimum"].as_i64(), schema["maximum"].as_i64());
    if let (Some(minimum), Some(maximum)) = bounds {
        words += &format!(", {minimum} to {maximum}");
    }
    let lengths = (schema["minLength"].as_i64(), schema["maxLength"].as_i64());
    if let (Some(least), Some(most)) = lengths {
        words += &format!(", {least} to {most} characters");
    }
    if let Some(default) = schema["default"].as_i64() {
        words += &format!(", default {default}");
    }
    let (first, rest) = about.split_at(about.find(['.', ';']).unwrap_or(about.len()));
    entry(name, kind, &format!("{first}{words}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::endpoint::Handler;

    fn of(id: &str) -> String {
        html(
            router(true)
                .operations()
                .find(|operation| operation.id == id)
                .unwrap(),
            "https://pets.example/v1",
        )
    }

    #[test]
    fn operation_may_return_no_body_and_take_another_media_type() {
        let operation = Operation {
            body: Some("NewPet"),
            media_types: &["application/merge-patch+json"],
            success: Some(Success {
                status: 204,
                about: "Done.",
                schema: None,
                headers: &[],
            }),
            ..Operation::new(
                "/v1/pets/{petId}",
                "changePet",
                Handler::Get(|_, _| unreachable!()),
            )
        };
        let html = html(&operation, "https://pets.example/v1");
        assert!(
            html.contains("<code class=\"ok\">204 No Content</code> Done.</p>\n"),
            "{html}"
        );
        assert!(
            html.contains("data-type=\"application/merge-patch+json\"")
                && html.contains(" data-empty ")
        );
        assert!(html.contains("'https://pets.example/v1/pets/"), "{html}");
        for part in ["Example response", "class=\"shape\"", "null</code>"] {
            assert!(!html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn bounds_and_defaults_are_words() {
        let list = of("listPets");
        assert!(list.contains(", 1 to 100, default 20.</dd>"), "{list}");
        assert!(
            list.contains("<code>after</code> <span>query, int64, optional</span></dt>"),
            "{list}"
        );
        assert!(
            list.contains(
                ": <code>available</code>, <code>pending</code>, <code>sold</code>, <code>unset</code>. <code>unset</code>, which"
            ),
            "{list}"
        );
        assert!(
            list.contains(
                "<code>name</code> <span>query, string, optional, experimental</span></dt>"
            ),
            "{list}"
        );
        assert!(
            list.contains("contains this text, 1 to 100 characters. "),
            "{list}"
        );
    }

    #[test]
    fn operation_is_shown_with_what_it_takes_and_returns() {
        let one = of("getPet");
        for part in [
            "<p>Returns one pet by its id.</p>\n<p class=\"deprecation\">Deprecated: it will be removed on",
            "The replacement is <code>GET /v1/pets</code> with the <code>status</code> filter. To get one pet, such as pet 7, call <code>GET /v1/pets?after=6&amp;limit=1</code> and check its <code>id</code>. <a href=\"/docs/versions#replacing-get-v1petspetid\">",
        ] {
            assert!(one.contains(part), "{part}: {one}");
        }
        let create = of("createPet");
        for (name, kind) in [
            ("name", "string, required"),
            ("categoryId", "int64, required"),
            ("status", "string, optional"),
        ] {
            let member = format!("<dt><code>{name}</code> <span>{kind}</span></dt>");
            assert!(create.contains(&member), "{create}");
        }
        assert!(
            object("Pet")
                .contains("<dt><code>id</code> <span>int64, in responses only</span></dt>")
        );
        let [body, parameters] =
            ["createPet-request-body", "createPet-parameters"].map(|id| create.find(id).unwrap());
        assert!(body < parameters, "{create}");
        let success =
            "Response</a></h4>\n<p><code class=\"ok\">201 Created</code> The pet was added.</p>\n";
        assert!(create.contains(success), "{create}");
        assert!(
            create.contains("<summary><h4>13 errors</h4></summary>"),
            "{create}"
        );
        assert!(create.contains("A JSON object: <a href=\"#Pet\">Pet</a>"));
        assert!(of("listPets").contains("A JSON array of objects: <a href=\"#Pet\">Pet</a>"));
    }

    #[test]
    fn form_has_a_field_for_each_parameter() {
        for (id, field) in [
            (
                "getPet",
                "data-fields=\"Deprecation ETag Key-Scope Link Retry-After Sunset WWW-Authenticate X-Request-Id\"",
            ),
            (
                "listPets",
                "<div><label for=\"listPets-limit\">limit</label> <small id=\"listPets-limit-hint\">default 20</small></div>\
                 <div><input id=\"listPets-limit\" name=\"limit\" data-in=\"query\" autocomplete=\"off\" \
                 aria-describedby=\"listPets-limit-hint\" spellcheck=\"false\" inputmode=\"numeric\"></div>\n",
            ),
            (
                "listPets",
                "<select id=\"listPets-status\" name=\"status\" data-in=\"query\" autocomplete=\"off\">\
                 <option value=\"\">any</option><option>available</option>",
            ),
            (
                "getPet",
                "<input id=\"getPet-petId\" name=\"petId\" data-in=\"path\" autocomplete=\"off\" data-example=\"1\" \
                 required spellcheck=\"false\" inputmode=\"numeric\"></div>\n",
            ),
            (
                "createPet",
                "<details class=\"seldom\"><summary>Header fields</summary>\n<div class=\"inputs\">\n\
                 <div><label for=\"createPet-Idempotency-Key\">Idempotency-Key</label></div>",
            ),
        ] {
            let operation = of(id);
            assert!(operation.contains(field), "{field}: {operation}");
        }
    }

    #[test]
    fn failures_are_those_of_the_operation() {
        let list = of("listPets");
        assert!(
            list.contains(
                "<code class=\"bad\">400</code> <a href=\"/docs/errors#invalid_parameter\">"
            ),
            "{list}"
        );
        assert!(
            list.contains("also return 400, 408, 413, 414, 417, 421, 431, 500, 501, 503, 505:"),
            "{list}"
        );
        assert!(
            !list.contains("#overloaded") && !list.contains("#insufficient_scope"),
            "{list}"
        );
        let create = of("createPet");
        assert!(
            create.contains("#outcome_unknown") && create.contains("#insufficient_scope"),
            "{create}"
        );
    }

    #[test]
    fn missing_pet_is_described_as_it_is_returned() {
        let one = of("getPet");
        assert!(
            one.contains("<dd>There is no pet with this id.</dd>"),
            "{one}"
        );
        assert!(!one.contains("at this path"), "{one}");
    }

    #[test]
    fn what_is_planned_has_no_form() {
        let orders = of("listOrders");
        assert!(
            !orders.contains("<form")
                && orders.contains("<span class=\"mark\">experimental</span>"),
            "{orders}"
        );
        let one = of("getPet");
        assert!(
            one.contains("<span class=\"mark warn\">deprecated</span>"),
            "{one}"
        );
        assert!(one.contains("<form") && one.contains(" required"), "{one}");
    }

    #[test]
    fn examples_are_those_of_the_description() {
        assert!(of("createPet").contains("<code>{\n  &quot;id&quot;: 1,\n"));
        assert!(of("listPets").contains("<code>[\n  {\n"));
        assert!(of("createPet").contains("&quot;name&quot;: &quot;Rex&quot;,\n"));
    }
}
