//! The OpenAPI description (version 3.1). It is generated from the table of operations and the schemas that also
//! route and parse requests, so it cannot differ from the service.

use std::collections::BTreeMap;

use crate::app::api::{self, router};
use crate::app::endpoint::{
    Code, Deprecation, ETAG, HeaderField, Operation, Success, Tag, error_schema,
};
use crate::app::pipeline::KEY_SCOPE;
use crate::config::Config;
use crate::site::components::example;
use petstore_base::clock::day;
use petstore_base::json::{Json, object, reference};

/// The version of the interface (specification, section 9); its first number is in the path.
pub const VERSION: &str = "1.0.0";
/// The prefix of the paths that are described.
pub const BASE: &str = "/v1";
/// The path of an operation, as it follows the base address of a server.
pub fn below_base(path: &str) -> &str {
    path.strip_prefix(BASE).unwrap_or(path)
}

/// The path of the guide, if this build has the pages.
const GUIDE: Option<&str> = if cfg!(feature = "site") {
    Some("/docs")
} else {
    None
};

const REQUEST_ID: HeaderField = HeaderField {
    name: "X-Request-Id",
    about: "Identifies the request in the service's log: the value that the client sent, or one that the service chose.",
    example: "5bd1e3f2-0000002a",
};
const WWW_AUTHENTICATE: HeaderField = HeaderField {
    name: "WWW-Authenticate",
    about: "The authentication scheme, and what is wrong with the key (RFC 6750, section 3).",
    example: "Bearer realm=\"petstore\"",
};
const INSUFFICIENT_SCOPE: HeaderField = HeaderField {
    example: "Bearer realm=\"petstore\", error=\"insufficient_scope\"",
    ..WWW_AUTHENTICATE
};
const GO_ON: HeaderField = HeaderField {
    name: "Link",
    about: "The URL at which a reader can go on.",
    example: "</v1/changes?limit=20&after=41>; rel=\"next\"",
};
const RETRY_AFTER: HeaderField = HeaderField {
    name: "Retry-After",
    about: "The number of seconds to wait before you retry (RFC 9110, section 10.2.3).",
    example: "1",
};
const ACCEPT: HeaderField = HeaderField {
    name: "Accept",
    about: "The media type that the operation accepts.",
    example: "application/json",
};
const ACCEPT_ENCODING: HeaderField = HeaderField {
    name: "Accept-Encoding",
    about: "The content coding that the operation accepts.",
    example: "identity",
};

/// Prints the OpenAPI description (version 3.1, JSON) with the base URL and the staging URL of a configuration.
///
/// ```
/// let mut config = petstore::Config::new();
/// config.base_url = Some("https://pets.example/v1".to_owned());
/// assert!(petstore::openapi(&config).contains("https://pets.example/v1"));
/// ```
pub fn print(config: &Config) -> String {
    // Printing strings and numbers cannot fail.
    let text = serde_json::to_string_pretty(&description(config)).unwrap_or_default();
    with_whole_links(text, config) + "\n"
}

/// The description as the service serves it, on one line.
pub fn served(config: &Config) -> String {
    with_whole_links(description(config).to_string(), config)
}

/// Makes the links to the guide whole, if the public address is known: a tool elsewhere could not follow them.
fn with_whole_links(text: String, config: &Config) -> String {
    match (GUIDE, config.root()) {
        (Some(guide), Some(root)) => {
            text.replace(&format!("]({guide}/"), &format!("]({root}{guide}/"))
        }
        _ => text,
    }
}

/// Lists the described operations of a service. The others are for operators.
pub fn operations(config: &Config) -> impl Iterator<Item = &'static Operation> + use<> {
    router(config.experimental)
        .operations()
        .filter(|row| row.tag.is_some())
}

/// The whole document.
pub fn description(config: &Config) -> Json {
    let mut paths = object! {};
    for operation in operations(config) {
        let path = below_base(operation.path);
        paths[path][&*operation.method().to_lowercase()] = describe(operation);
    }
    let responses = share_responses(&mut paths);
    let servers = named_servers(config).into_iter();
    let servers = servers.map(|(name, url)| object! { "url": url, "description": name });
    let schemas = api::schemas(config.experimental).into_iter();
    let schemas = schemas.chain([("Error", error_schema(config.experimental))]);
    let mut document = object! {
        "openapi": "3.1.0",
        "info": object! {
            "title": &*config.title,
            "version": VERSION,
            "description": "List pets, add a pet, and get a pet by its id. Every operation needs an API key as a bearer token. Every error response has the \
                Error body, with a stable `code`. Ignore members and headers that you do not know. HEAD works \
                wherever GET does, so it is not listed.",
            "license": object! { "name": "MIT", "identifier": "MIT" },
        },
        "servers": servers.collect::<Json>(),
        "tags": describe_tags(config),
        "security": security(),
        "paths": paths,
        "components": object! {
            "securitySchemes": object! {
                "apiKey": object! {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, sent as `Authorization: Bearer <API_KEY>`.",
                },
            },
            "schemas": schemas.collect::<Json>(),
            "responses": responses,
        },
    };
    if let Some(contact) = &config.contact {
        let email = contact
            .strip_prefix("mailto:")
            .map(|email| object! { "email": email });
        document["info"]["contact"] = email.unwrap_or_else(|| object! { "url": &**contact });
    }
    // Linters reject a relative URL here, so the guide is named only if the public address is known.
    if let (Some(path), Some(root)) = (GUIDE, config.root()) {
        document["externalDocs"] =
            object! { "url": format!("{root}{path}"), "description": "The guide" };
    }
    document
}

/// Lists each tag once, in the order of the tables, where rows of one tag are adjacent.
fn describe_tags(config: &Config) -> Json {
    let mut tags: Vec<&Tag> = operations(config)
        .filter_map(|operation| operation.tag)
        .collect();
    tags.dedup_by_key(|tag| tag.name);
    let describe = |tag: &&Tag| object! { "name": tag.name, "x-displayName": tag.title, "description": tag.about };
    tags.iter().map(describe).collect()
}

/// The names and the base addresses of the servers.
pub fn named_servers(config: &Config) -> Vec<(&'static str, &str)> {
    let named = [
        ("Production", &config.base_url),
        ("Staging", &config.staging_url),
    ];
    let listed: Vec<_> = named
        .into_iter()
        .filter_map(|(name, url)| Some((name, url.as_deref()?)))
        .collect();
    // Relative to the address of the document (OpenAPI 3.1, section 4.8.5).
    if listed.is_empty() {
        vec![("This service", BASE)]
    } else {
        listed
    }
}

/// An API key is needed.
fn security() -> Json {
    Json::Array(vec![object! { "apiKey": [""; 0] }])
}

fn describe(operation: &Operation) -> Json {
    let mut described = object! {
        "operationId": operation.id,
        "tags": operation.tag.iter().map(|tag| tag.name).collect::<Vec<_>>(),
        "summary": operation.summary,
        "description": operation.about,
        "security": security(),
        "responses": responses(operation),
    };
    if !operation.parameters.is_empty() {
        described["parameters"] = operation.described().collect();
    }
    if let Some(schema) = operation.body {
        let of_type = |media_type: &&'static str| (*media_type, content(schema));
        let content: Json = operation.media_types.iter().map(of_type).collect();
        described["requestBody"] = object! { "required": true, "content": content };
    }
    if let Some(label) = operation.label() {
        described["x-stability"] = label.into();
        // An operation that never succeeds cannot be tried.
        described["x-hideTryItPanel"] = operation.success.is_none().into();
    }
    if let Some(deprecation) = operation.deprecation {
        let successor = below_base(deprecation.successor);
        described["deprecated"] = true.into();
        described["x-sunset"] = day(deprecation.sunset).into();
        described["x-successor"] = format!("GET {successor}").into();
        described["description"] = format!(
            "{} Deprecated: will be removed on {}. The replacement is {}",
            operation.about,
            day(deprecation.sunset),
            deprecation.replacement
        )
        .into();
    }
    described
}

/// A body, with an example where programs that import the description look for it.
fn content(schema: &str) -> Json {
    object! { "schema": reference(schema), "example": example(schema) }
}

/// Moves the responses that almost all operations share to the components, and replaces them by references.
fn share_responses(paths: &mut Json) -> Json {
    let mut shared = object! {};
    let operations = paths
        .members_mut()
        .iter_mut()
        .flat_map(|(_, item)| item.members_mut());
    for responses in operations.map(|(_, operation)| &mut operation["responses"]) {
        for (status, name) in [("401", "Unauthorized"), ("default", "Failure")] {
            if shared[name].members().is_empty() {
                shared[name] = responses[status].clone();
            }
            if responses[status] == shared[name] {
                responses[status] = object! { "$ref": format!("#/components/responses/{name}") };
            }
        }
    }
    shared
}

/// Describes every response of an operation: its own statuses, and `default` for the errors that every operation can
/// return.
pub fn responses(operation: &Operation) -> Json {
    let announced = operation.deprecation.map(Deprecation::fields);
    let announced = announced.as_slice().as_flattened();
    let success = operation.success.iter().map(|success| {
        let mut described = object! {
            "description": success.about,
            "headers": headers(&[success.headers, announced]),
        };
        if let Some(schema) = success.schema {
            described["content"] = object! { "application/json": content(schema) };
        }
        (success.status.to_string(), described)
    });
    let has_tag = |success: &&Success| success.headers.iter().any(|field| field.name == ETAG.name);
    let known = operation.success.as_ref().filter(|_| !operation.writes()).filter(has_tag).map(|success| {
        let about =
            "Nothing has changed: `If-None-Match` names the current `ETag`. The response has no body.";
        let described = object! { "description": about, "headers": headers(&[success.headers, announced]) };
        ("304".to_owned(), described)
    });
    let (name, example) = operation.accept();
    let accept = HeaderField {
        name,
        example,
        ..ACCEPT
    };
    let failures = own_codes(operation).into_iter().map(|(status, own)| {
        let codes: Vec<Code> = shared_codes()
            .filter(|code| code.status() == status)
            .chain(own)
            .collect();
        let own: &[HeaderField] = match status {
            401 => &[WWW_AUTHENTICATE],
            410 => &[GO_ON],
            403 => &[INSUFFICIENT_SCOPE],
            415 => &[accept, ACCEPT_ENCODING],
            503 => &[RETRY_AFTER],
            _ => &[],
        };
        // The response to a request that is rejected before routing cannot announce a deprecation.
        let is_past_authentication = [500, 501, 503].contains(&status)
            || codes.iter().any(|code| operation.codes.contains(code));
        let announced = if is_past_authentication {
            announced
        } else {
            &[]
        };
        (
            status.to_string(),
            describe_failure(operation, &codes, headers(&[own, announced])),
        )
    });
    let shared: Vec<Code> = shared_codes().collect();
    let default = describe_failure(operation, &shared, headers(&[&[RETRY_AFTER], announced]));
    success
        .chain(known)
        .chain(failures)
        .chain([("default".to_owned(), default)])
        .collect()
}

/// Lists the codes that every operation can return for the same reasons, in the order of their statuses. They are
/// described once, as the response `default`.
pub fn shared_codes() -> impl Iterator<Item = Code> {
    // The specification lists 401 for each operation.
    Code::general(false).filter(|code| *code != Code::Unauthorized)
}

/// Lists the codes that an operation describes itself, by status: those that are specific to it, and the code for a
/// missing key.
pub fn own_codes(operation: &Operation) -> BTreeMap<u16, Vec<Code>> {
    let mut causes: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    let all = Code::general(operation.writes()).chain(operation.codes.iter().copied());
    for code in all.filter(|code| !shared_codes().any(|shared| shared == *code)) {
        causes.entry(code.status()).or_default().push(code);
    }
    causes
}

fn describe_failure(operation: &Operation, codes: &[Code], headers: Json) -> Json {
    let line = |code: &Code| {
        let (name, message) = (code.as_str(), operation.message(*code));
        GUIDE.map_or_else(
            || format!("`{name}`: {message}"),
            |guide| format!("[`{name}`]({guide}/errors#{name}): {message}"),
        )
    };
    let about: Vec<String> = codes.iter().map(line).collect();
    let example = |code: &Code| {
        (
            code.as_str(),
            object! { "value": code.body(&operation.message(*code)) },
        )
    };
    let examples: Json = codes.iter().map(example).collect();
    object! {
        "description": about.join("\n\n"),
        "headers": headers,
        "content": object! { "application/json": object! { "schema": reference("Error"), "examples": examples } },
    }
}

/// The header fields of a response, except the framing ones.
fn headers(own: &[&[HeaderField]]) -> Json {
    let describe = |field: &HeaderField| {
        let schema = object! { "type": "string", "examples": [field.example] };
        (
            field.name,
            object! { "description": field.about, "schema": schema },
        )
    };
    [REQUEST_ID, KEY_SCOPE]
        .iter()
        .chain(own.iter().copied().flatten())
        .map(describe)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(config: &Config) -> Value {
        serde_json::to_value(description(config)).unwrap()
    }

    fn of(operation: &str) -> Value {
        let document = parsed(&Config::default());
        let path = operation.split_once(' ').unwrap();
        document["paths"][path.1][path.0].clone()
    }

    #[test]
    fn every_schema_is_referred_to() {
        let document = parsed(&Config::default());
        for name in document["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
        {
            let reference = reference(name).to_string();
            let uses = [&document["paths"], &document["components"]].map(|part| part.to_string());
            assert!(
                uses.iter()
                    .any(|part| part.contains(&reference[1..reference.len() - 1])),
                "{name}"
            );
        }
    }

    #[test]
    fn specification_is_described() {
        for (operation, id) in [
            ("get /pets", "listPets"),
            ("post /pets", "createPet"),
            ("get /pets/{petId}", "getPet"),
            ("get /store/orders", "listOrders"),
        ] {
            let described = of(operation);
            assert_eq!(described["operationId"], id);
            assert_eq!(described["tags"], json!(["animals"]));
            assert_eq!(described["security"], json!([{ "apiKey": [] }]));
        }
        let document = parsed(&Config::default());
        assert_eq!(document["info"]["version"], "1.0.0");
        let tag = json!({ "name": "animals", "x-displayName": "Pets", "description": "The pets in the inventory." });
        assert!(document["tags"].as_array().unwrap().contains(&tag));
        for schema in ["PetStatus", "NewPet", "Pet", "Pets", "Error"] {
            assert!(
                document["components"]["schemas"][schema].is_object(),
                "{schema}"
            );
        }
    }

    #[test]
    fn marks_are_described() {
        let deprecated = of("get /pets/{petId}");
        assert_eq!(
            (&deprecated["deprecated"], &deprecated["x-sunset"]),
            (&json!(true), &json!("2030-12-05"))
        );
        let said = deprecated["description"].as_str().unwrap();
        assert!(
            said.contains(
                "2030-12-05. The replacement is `GET /v1/pets` with the `status` filter."
            ),
            "{said}"
        );
        let sunset = &deprecated["responses"]["404"]["headers"]["Sunset"]["schema"]["examples"][0];
        assert_eq!(sunset, "Thu, 05 Dec 2030 00:00:00 GMT");
        assert_eq!(
            deprecated["responses"]["401"]["headers"]["Sunset"],
            Value::Null
        );
        let orders = of("get /store/orders");
        assert_eq!(
            (&orders["x-stability"], &orders["x-hideTryItPanel"]),
            (&json!("experimental"), &json!(true))
        );
        assert_eq!(of("get /pets")["deprecated"], Value::Null);
    }

    #[test]
    fn bounds_are_described() {
        let limit = &of("get /pets")["parameters"][0];
        assert_eq!(limit["name"], "limit");
        assert_eq!(
            (&limit["schema"]["minimum"], &limit["schema"]["maximum"]),
            (&json!(1), &json!(100))
        );
        assert_eq!(limit["schema"]["default"], 20);
        assert_eq!(
            parsed(&Config::default())["components"]["schemas"]["Pets"]["maxItems"],
            100
        );
    }

    #[test]
    fn servers_are_those_of_the_settings_or_this_one() {
        let urls = |production: Option<&str>, staging: Option<&str>| -> Vec<String> {
            let owned = |url: Option<&str>| url.map(str::to_owned);
            let config = Config {
                base_url: owned(production),
                staging_url: owned(staging),
                ..Config::default()
            };
            let listed = &parsed(&config)["servers"];
            listed
                .as_array()
                .unwrap()
                .iter()
                .map(|s| format!("{} {}", s["description"], s["url"]))
                .collect()
        };
        assert_eq!(urls(None, None), ["\"This service\" \"/v1\""]);
        assert_eq!(
            urls(Some("https://a/v1"), Some("https://b/v1")),
            [
                "\"Production\" \"https://a/v1\"",
                "\"Staging\" \"https://b/v1\""
            ]
        );
    }

    #[test]
    fn contact_is_an_address_for_mail_or_a_link() {
        let contact = |uri: Option<&str>| {
            let config = Config {
                contact: uri.map(str::to_owned),
                ..Config::default()
            };
            parsed(&config)["info"]["contact"].take()
        };
        assert_eq!(contact(None), Value::Null);
        assert_eq!(
            contact(Some("mailto:a@example.com")),
            json!({ "email": "a@example.com" })
        );
        assert_eq!(
            contact(Some("https://example.com/help")),
            json!({ "url": "https://example.com/help" })
        );
    }

    /// Returns one line for a response: the component that it refers to, or its header fields and its codes.
    fn outline(response: &Json) -> String {
        let names = |map: &Json| {
            map.members()
                .iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        };
        match response["$ref"].as_str() {
            Some(component) => component.to_owned(),
            None => {
                let codes = names(&response["content"]["application/json"]["examples"]);
                format!("{}: {codes}", names(&response["headers"]))
                    .trim_end()
                    .to_owned()
            }
        }
    }

    #[test]
    fn responses_have_their_header_fields_and_codes_and_shared_ones_stand_once() {
        let document = description(&Config::default());
        let mut lines = Vec::new();
        for (name, response) in document["components"]["responses"].members() {
            lines.push(format!("{name} {}", outline(response)));
        }
        for (path, item) in document["paths"].members() {
            for (method, operation) in item.members() {
                lines.push(format!("{method} {path}"));
                for (status, response) in operation["responses"].members() {
                    lines.push(format!("{status} {}", outline(response)));
                }
            }
        }
        let (text, file) = (lines.join("\n") + "\n", "src/site/responses.txt");
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let is_as_written = std::fs::read_to_string(&path).unwrap() == text;
        assert!(
            is_as_written,
            "{file} differs: run BLESS=1 cargo test --lib site::, and read git diff"
        );
    }

    #[test]
    fn references_lead_somewhere() {
        let document = parsed(&Config::default());
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
