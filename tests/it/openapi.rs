//! The OpenAPI description: everybody can read it, and it is true.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use support::client::{Connection, Reply, with_body};
use support::harness::{FAILING_PETS, Folder, KEY, Server, add_key, change, run};
use support::openapi;

/// A service with every operation.
fn experimental() -> Server {
    Server::start_with(|command| command.arg("--experimental"))
}

/// A request for the description with further header fields.
fn ask(server: &Server, fields: &str) -> Reply {
    server.ask("GET", "/openapi.json", fields)
}

#[test]
fn description_is_for_everybody_and_the_same_as_the_command_prints() {
    let server = experimental();
    let reply = ask(&server, "");
    assert_eq!(reply.expect(200).json(), *openapi::document());
    assert!(!reply.body.contains(&b'\n'), "only the command indents it");
    assert_eq!(reply.header("Content-Type"), Some("application/json"));
    assert_eq!(reply.header("Cache-Control"), Some("no-cache"));
}

#[cfg(feature = "site")]
#[test]
fn description_is_sent_once_and_compressed_for_who_takes_it() {
    let server = Server::start();
    let plain = ask(&server, "");
    let tag = plain.header("ETag").unwrap().to_owned();
    let again = ask(&server, &format!("If-None-Match: {tag}\r\n"));
    assert_eq!(
        (again.expect(304).body.len(), again.header("ETag")),
        (0, Some(tag.as_str()))
    );
    let small = ask(&server, "Accept-Encoding: gzip, br\r\n");
    assert_eq!(small.expect(200).header("Content-Encoding"), Some("gzip"));
    assert!(small.body.len() < plain.body.len() / 4);
    assert_ne!(small.header("ETag"), Some(tag.as_str()));
}

/// Every value in a document, each with the name of its member.
fn values<'d>(name: &'d str, value: &'d Value, all: &mut Vec<(&'d str, &'d Value)>) {
    all.push((name, value));
    for (name, member) in value.as_object().into_iter().flatten() {
        values(name, member, all);
    }
    for item in value.as_array().into_iter().flatten() {
        values("", item, all);
    }
}

#[test]
fn description_suits_generators_and_importers() {
    let document = openapi::document();
    let mut all = Vec::new();
    values("", document, &mut all);
    for (name, value) in all {
        // OpenAPI 3.0 forbids the first, and converters to it fail at a type that is only null.
        assert!(!(name == "required" && *value == json!([])));
        assert!(!(name == "type" && value == "null"));
        let number = value.as_i64().unwrap_or(0).unsigned_abs();
        assert!(number < 1 << 53, "a double does not hold {name}: {value}");
    }
    assert_eq!(document["info"]["summary"], Value::Null);
    for name in ["Pet", "Error", "Inventory", "NewPet", "PetPatch"] {
        let is_open = document["components"]["schemas"][name]["additionalProperties"] == true;
        let is_sent = ["NewPet", "PetPatch"].contains(&name);
        assert_eq!(is_open, !is_sent, "{name} may get more members");
    }
    for operation in document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|item| item.as_object().unwrap().values())
    {
        let responses = operation["responses"].as_object().unwrap();
        let success = responses.iter().find(|(status, _)| status.starts_with('2'));
        let bodies = [
            &operation["requestBody"],
            success.map_or(&Value::Null, |it| it.1),
        ];
        for (kind, body) in bodies
            .into_iter()
            .flat_map(|body| body["content"].as_object().into_iter().flatten())
        {
            assert!(!body["example"].is_null(), "{operation}: {kind}");
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["in"] != "path" || parameter["example"] == 1);
        }
    }
}

/// Every operation and status that is described, such as `getPet 404`.
fn described_statuses() -> BTreeSet<String> {
    let mut statuses = BTreeSet::new();
    for item in openapi::document()["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            let shared = openapi::statuses(openapi::resolve(&operation["responses"]["default"]));
            let own = operation["responses"]
                .as_object()
                .unwrap()
                .keys()
                .filter(|status| *status != "default");
            let all = own.cloned().chain(shared.iter().map(u16::to_string));
            statuses.extend(all.map(|status| format!("{id} {status}")));
        }
    }
    statuses
}

/// An operation that is described, with a request to it.
struct Described {
    id: &'static str,
    method: String,
    /// With a value for each parameter.
    path: String,
    /// The example of its schema; empty if it takes none.
    body: String,
}

/// Every operation that is described.
fn operations() -> Vec<Described> {
    let mut operations = Vec::new();
    for (path, item) in openapi::document()["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            // The others still find the first pet.
            let id = if method == "delete" { "2" } else { "1" };
            let segments = path.split('/').map(|segment| {
                if segment.starts_with('{') {
                    id
                } else {
                    segment
                }
            });
            let path = format!("/v1{}", segments.collect::<Vec<_>>().join("/"));
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let example = openapi::resolve(schema)["examples"].get(0);
            operations.push(Described {
                id: operation["operationId"].as_str().unwrap(),
                method: method.to_uppercase(),
                path,
                body: example.map(ToString::to_string).unwrap_or_default(),
            });
        }
    }
    operations
}

const PET: &str = r#"{"name":"Rex","categoryId":3,"status":"available"}"#;

/// Provokes the statuses of the operations, and remembers which came.
struct Provocation {
    came: BTreeSet<String>,
}

impl Provocation {
    /// Sends a request to an operation, and reads the reply, which must be described.
    fn ask(&mut self, connection: &mut Connection, id: &str, request: String) {
        connection.try_send(&request);
        let mut words = request.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let reply = connection.reply_to(method);
        openapi::check(method, target, &reply);
        self.came.insert(format!("{id} {}", reply.status));
    }

    /// Asks every operation, each on a connection of its own: `change` makes the request.
    fn ask_all(&mut self, server: &Server, request: impl Fn(&Described) -> String) {
        for operation in operations() {
            self.ask(&mut server.connect(), operation.id, request(&operation));
        }
    }
}

fn keep_changes(server: &Server) {
    let words = ["changes", "keep", "90d"];
    assert!(run(&words, &server.folder.database()).status.success());
}

fn authorized(method: &str, path: &str, fields: &str, body: &str) -> String {
    with_body(method, path, KEY, fields, body)
}

#[expect(clippy::too_many_lines, reason = "each status needs what provokes it")]
#[test]
fn every_status_that_is_described_is_answered() {
    let mut all = Provocation {
        came: BTreeSet::new(),
    };
    let server = experimental();
    keep_changes(&server);
    server.fill(["Rex", "Tom"]);
    let plain = |o: &Described| authorized(&o.method, &o.path, "", &o.body);
    all.ask_all(&server, |o| {
        authorized(&o.method, &o.path, "If-Match: \"x\"\r\n", &o.body)
    });
    all.ask_all(&server, plain);
    for fields in [
        "If-None-Match: *\r\n".to_owned(),
        "Expect: tea\r\n".to_owned(),
        format!("X: {}\r\n", "x".repeat(17_000)),
    ] {
        all.ask_all(&server, |o| {
            authorized(&o.method, &o.path, &fields, &o.body)
        });
    }
    let long = "x".repeat(9000);
    all.ask_all(&server, |o| {
        authorized(&o.method, &format!("{}?{long}", o.path), "", &o.body)
    });
    for rest in [
        "HTTP/1.1\r\n\r\n",
        "HTTP/1.1\r\nHost: h\r\n\r\n",
        "HTTP/2.0\r\nHost: h\r\n\r\n",
        "HTTP/1.1\r\nHost: h\r\nContent-Length: 70000\r\n\r\n",
        "HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
    ] {
        all.ask_all(&server, |o| format!("{} {} {rest}", o.method, o.path));
    }
    all.ask_all(&server, |o| {
        authorized(&o.method, &format!("{}?limit=0", o.path), "", &o.body)
    });
    all.ask(
        &mut server.connect(),
        "listChanges",
        authorized("GET", "/v1/changes?after=999", "", ""),
    );
    all.ask(
        &mut server.connect(),
        "getPet",
        authorized("GET", "/v1/pets/999", "", ""),
    );
    all.ask(
        &mut server.connect(),
        "updatePet",
        authorized("PATCH", "/v1/pets/999", "", "{}"),
    );
    for (id, method, target) in [
        ("createPet", "POST", "/v1/pets"),
        ("updatePet", "PATCH", "/v1/pets/1"),
    ] {
        let text = authorized(method, target, "Content-Type: text/plain\r\n", PET);
        all.ask(&mut server.connect(), id, text);
        all.ask(
            &mut server.connect(),
            id,
            authorized(method, target, "", "["),
        );
    }
    for name in ["Rex", "Tom"] {
        let body = PET.replace("Rex", name);
        let again = authorized("POST", "/v1/pets", "Idempotency-Key: 1\r\n", &body);
        all.ask(&mut server.connect(), "createPet", again);
    }
    let reader = add_key(&server.folder.database(), &["reader", "--read-only"]);
    all.ask_all(&server, |o| {
        with_body(&o.method, &o.path, &reader, "", &o.body)
    });

    // A lock of another process makes writes fail with 503; a full service makes everything fail with 503.
    let full =
        Server::start_with(|command| command.args(["--experimental", "--max-connections", "1"]));
    let lock = rusqlite::Connection::open(full.folder.database()).unwrap();
    let mut first = full.connect();
    first.get("/v1/pets", KEY).expect(200);
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    first.send(authorized("POST", "/v1/pets", "", PET));
    all.ask_all(&full, plain);
    lock.execute_batch("COMMIT").unwrap();

    // A rule of another program.
    let rules = ["INSERT", "UPDATE", "DELETE"].map(|what| {
        format!(
            "CREATE TRIGGER rule_{what} BEFORE {what} ON pets BEGIN SELECT RAISE(ABORT, 'no'); END;"
        )
    });
    let ruled = experimental();
    ruled.fill(["Rex", "Tom"]);
    change(&ruled.folder.database(), &rules.concat());
    all.ask_all(&ruled, plain);

    // A view of another program that fails is a fault that only the log explains.
    change(&server.folder.database(), FAILING_PETS);
    all.ask_all(&server, plain);

    // Without the site, only an embedding program can set a platform.
    let has_platform = cfg!(feature = "site");
    if has_platform {
        let hosted = Server::start_with(|command| {
            command.args(["--experimental", "--platform-host", "sites.example.net"])
        });
        all.ask_all(&hosted, plain);
    }

    let folder = Folder::new();
    let mut config = crate::config(&folder);
    config.experimental = true;
    config.deadlines.head = Duration::from_millis(100);
    let impatient = petstore::Server::start(config).unwrap();
    for Described {
        id, method, path, ..
    } in operations()
    {
        let mut connection = Connection::open(impatient.address().tcp().unwrap());
        all.ask(
            &mut connection,
            id,
            format!("{method} {path} HTTP/1.1\r\nHost:"),
        );
    }

    let mut described = described_statuses();
    // One place handles the faults of all operations, and few can be provoked from outside.
    assert!(all.came.contains("listPets 500"));
    described
        .retain(|status| !status.ends_with(" 500") && (has_platform || !status.ends_with(" 421")));
    assert_eq!(
        described.difference(&all.came).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "never answered"
    );
}
