//! Checks replies against the OpenAPI description.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::Value;

use crate::client::Reply;

/// Header fields that every response may have; they frame it, and no operation describes them.
const FRAMING: &[&str] = &[
    "Cache-Control",
    "Connection",
    "Content-Length",
    "Content-Type",
    "Date",
    "Server",
    "X-Content-Type-Options",
];

/// The description as the executable prints it, with the experimental operations.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let output = crate::harness::petstore(&["openapi", "--experimental"])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    })
}

/// A value, or the target of its reference.
pub fn resolve(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => document()
            .pointer(reference.trim_start_matches('#'))
            .unwrap(),
        None => value,
    }
}

/// The operation of a request; `None` if it is not described.
fn operation(method: &str, target: &str) -> Option<&'static Value> {
    let method = if method == "HEAD" { "GET" } else { method };
    let path = target.split('?').next()?.strip_prefix("/v1")?;
    let fits = |template: &str| {
        let (template, path) = (template.split('/'), path.split('/'));
        template.clone().count() == path.clone().count()
            && template
                .zip(path)
                .all(|(t, p)| t == p || t.starts_with('{') && !p.is_empty())
    };
    let (_, item) = document()["paths"]
        .as_object()?
        .iter()
        .find(|(template, _)| fits(template))?;
    item.get(method.to_lowercase())
}

/// The statuses of a response's examples, which are those that `default` stands for.
pub fn statuses(response: &'static Value) -> BTreeSet<u16> {
    let examples = response["content"]["application/json"]["examples"].as_object();
    let statuses = examples.into_iter().flat_map(|examples| examples.values());
    statuses
        .map(|example| {
            example["value"]["status"]
                .as_u64()
                .unwrap()
                .try_into()
                .unwrap()
        })
        .collect()
}

/// Checks that this reply to this request is described: its status, its header fields, its body.
#[track_caller]
pub fn check(method: &str, target: &str, reply: &Reply) {
    let Some(operation) = operation(method, target) else {
        return;
    };
    let response = &operation["responses"][reply.status.to_string()];
    let is_shared = response.is_null();
    let response = resolve(if is_shared {
        &operation["responses"]["default"]
    } else {
        response
    });
    assert!(
        !is_shared || statuses(response).contains(&reply.status),
        "{method} {target}: the status is not described: {reply:?}"
    );
    let described: Vec<&String> = response["headers"].as_object().unwrap().keys().collect();
    for (name, _) in &reply.headers {
        let is_described = described.iter().any(|d| d.eq_ignore_ascii_case(name));
        assert!(
            is_described || FRAMING.contains(&name.as_str()),
            "{method} {target}: {name}: {reply:?}"
        );
    }
    if response["content"].is_null() {
        assert!(
            reply.body.is_empty(),
            "{method} {target}: a body is not described: {reply:?}"
        );
    } else if method != "HEAD" {
        let media_type = reply.header("Content-Type").unwrap_or("no Content-Type");
        let schema = &response["content"][media_type]["schema"];
        assert!(
            schema.is_object(),
            "{method} {target}: {media_type} is not described: {reply:?}"
        );
        if let Err(flaw) = fits(&reply.json(), schema) {
            panic!("{method} {target}: {flaw}: {reply:?}");
        }
    }
}

/// Checks that a value fits a schema, and has no members that the schema does not describe.
fn fits(value: &Value, schema: &'static Value) -> Result<(), String> {
    let schema = resolve(schema);
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if schema["type"] != kind {
        return Err(format!("{value} is no {}", schema["type"]));
    }
    if schema["enum"]
        .as_array()
        .is_some_and(|words| !words.contains(value))
    {
        return Err(format!("{value} is none of {}", schema["enum"]));
    }
    let number = value.as_i64();
    if schema["minimum"].as_i64() > number && number.is_some()
        || schema["maximum"]
            .as_i64()
            .is_some_and(|most| number > Some(most))
    {
        return Err(format!("{value} is out of bounds"));
    }
    for item in value.as_array().into_iter().flatten() {
        fits(item, &schema["items"])?;
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap();
        value
            .get(name)
            .ok_or_else(|| format!("{name} is missing"))?;
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let described = schema["properties"]
            .get(name)
            .ok_or_else(|| format!("{name} is not described"))?;
        fits(member, described)?;
    }
    Ok(())
}
