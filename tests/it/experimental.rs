//! `--experimental`: without it, a service behaves as if these operations did not exist.

use serde_json::Value;
use support::harness::{KEY, Server, output, petstore};

const OPERATIONS: [&str; 4] = ["updatePet", "deletePet", "getInventory", "listChanges"];

fn description(flags: &[&str]) -> Value {
    let output = output(petstore(&["openapi"]).args(flags));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn description_without_the_switch_has_nothing_of_it() {
    let (mut with, without) = (description(&["--experimental"]), description(&[]));
    let mut removed = Vec::new();
    for item in with["paths"].as_object_mut().unwrap().values_mut() {
        item.as_object_mut().unwrap().retain(|_, operation| {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let is_kept = !OPERATIONS.contains(&id.as_str());
            if !is_kept {
                assert!(
                    ["beta", "experimental"].contains(&operation["x-stability"].as_str().unwrap()),
                    "{id}"
                );
                removed.push(id);
            }
            is_kept
        });
    }
    let list = &mut with["paths"]["/pets"]["get"];
    list["description"] = without["paths"]["/pets"]["get"]["description"].clone();
    list["parameters"]
        .as_array_mut()
        .unwrap()
        .retain(|parameter| {
            let is_kept = parameter["x-stability"].is_null();
            assert!(is_kept || parameter["x-stability"] == "experimental");
            is_kept
        });
    // With the switch, there is one more word.
    list["parameters"][1] = without["paths"]["/pets"]["get"]["parameters"][1].clone();
    with["paths"]
        .as_object_mut()
        .unwrap()
        .retain(|_, item| !item.as_object().unwrap().is_empty());
    removed.sort_unstable();
    let mut all = OPERATIONS;
    all.sort_unstable();
    assert_eq!(removed, all);
    let schemas = with["components"]["schemas"].as_object_mut().unwrap();
    for schema in [
        "PetPatch",
        "Inventory",
        "StatusFilter",
        "Order",
        "ChangeKind",
        "Change",
        "Changes",
    ] {
        schemas.remove(schema).unwrap();
    }
    let codes = schemas["Error"]["properties"]["code"]["examples"]
        .as_array_mut()
        .unwrap();
    codes.retain(|code| code != "precondition_failed" && code != "changes_gone");
    assert_eq!(with, without);
}

/// The methods of each path of the contract.
const CONTRACT: &[(&str, &str)] = &[
    ("/v1/pets", "GET, HEAD, POST, OPTIONS"),
    ("/v1/pets/1", "GET, HEAD, OPTIONS"),
    ("/v1/store/orders", "GET, HEAD, OPTIONS"),
    ("/healthz", "GET, HEAD, OPTIONS"),
    ("/readyz", "GET, HEAD, OPTIONS"),
    ("/openapi.json", "GET, HEAD, OPTIONS"),
    ("/v1/store/inventory", ""),
    ("/v1/changes", ""),
    ("/v1/pets/1/2", ""),
];

#[test]
fn methods_without_the_switch_are_those_of_the_contract() {
    let server = Server::start();
    server.fill(["Rex"]);
    let before = server.get("/v1/pets/1").body;
    for (path, allow) in CONTRACT {
        let fields = format!(
            "Authorization: Bearer {KEY}\r\nIf-Match: \"x\"\r\nContent-Type: application/merge-patch+json\r\n"
        );
        for method in [
            "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "BREW",
        ] {
            let reply = server.ask(method, path, &fields);
            assert_eq!(reply.header("Accept-Patch"), None, "{method} {path}");
            match (method, allow.split(", ").any(|known| known == method)) {
                ("BREW", _) => assert_eq!(reply.status, 501, "{path}"),
                ("OPTIONS", true) => assert_eq!(reply.header("Allow"), Some(*allow), "{path}"),
                (_, true) => assert_ne!(reply.status, 405, "{method} {path}"),
                (_, false) if allow.is_empty() => assert_eq!(reply.status, 404, "{method} {path}"),
                (_, false) => {
                    assert_eq!(
                        (reply.status, reply.header("Allow")),
                        (405, Some(*allow)),
                        "{method} {path}"
                    );
                }
            }
        }
    }
    assert_eq!(server.get("/v1/pets/1").body, before);
}

#[test]
fn methods_with_the_switch_are_allowed_and_described() {
    let mut server = Server::start_with(|command| command.arg("--experimental"));
    let options = server.ask("OPTIONS", "/v1/pets/1", "");
    assert_eq!(
        options.expect(204).header("Allow"),
        Some("GET, HEAD, PATCH, DELETE, OPTIONS")
    );
    assert_eq!(
        options.header("Accept-Patch"),
        Some("application/merge-patch+json")
    );
    assert_eq!(
        server.ask("OPTIONS", "/v1/pets", "").header("Accept-Patch"),
        None
    );
    server.signal("TERM");
    let (_, printed, _) = server.ended();
    assert!(
        printed.contains("petstore has experimental operations, "),
        "{printed}"
    );
}

#[cfg(feature = "site")]
#[test]
fn pages_show_the_operations_with_the_switch_alone() {
    for (flags, is_shown) in [(&[][..], false), (&["--experimental"], true)] {
        let server = Server::start_with(|command| command.args(flags));
        for (path, part) in [
            ("/", "id=\"updatePet\""),
            ("/", "id=\"deletePet\""),
            ("/", ">beta<"),
            ("/docs/versions", "/#updatePet"),
            ("/docs/errors", "precondition_failed"),
        ] {
            let page = server.ask("GET", path, "").expect(200).body.clone();
            assert_eq!(
                String::from_utf8(page).unwrap().contains(part),
                is_shown,
                "{path}: {part}"
            );
        }
    }
}
