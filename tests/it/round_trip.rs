//! A pet with every member comes out as it went in, whichever way it takes. The members are those of the interface
//! description, so that none can be left out.

use std::path::Path;

use serde_json::{Map, Value};

use crate::backup::succeed;
use crate::idempotency::send;
use support::harness::{Folder, KEY, Server};

/// Values of a member, from its schema.
fn values(description: &Value, schema: &Value) -> Vec<Value> {
    if let Some(path) = schema["$ref"].as_str() {
        return values(description, description.pointer(&path[1..]).unwrap());
    }
    match (schema["enum"].as_array(), schema["type"].as_str()) {
        (Some(words), _) => words.clone(),
        (None, Some("integer")) => {
            // A bound at the end of int64 is left out.
            let bounds = [("minimum", i64::MIN), ("maximum", i64::MAX)]
                .map(|(bound, end)| schema[bound].as_i64().unwrap_or(end));
            let within = |number: &i64| (bounds[0]..=bounds[1]).contains(number);
            [i64::MIN, -1, 0, i64::MAX]
                .into_iter()
                .chain(bounds)
                .filter(within)
                .map(Value::from)
                .collect()
        }
        (None, Some("string")) => [
            "",
            " ",
            "a, \"b\"\r\n",
            "c\\d/\u{8}\t\0",
            "\u{7f}\u{85}\u{2028}\u{feff}",
            "\0",
            "\0x",
            "e\u{301}\u{1f436}",
            "</script>",
        ]
        .map(Value::from)
        .to_vec(),
        other => panic!("this test has no value for {other:?}"),
    }
}

/// Pets that have every member: together they have each value of each.
fn pets(server: &Server) -> Vec<Map<String, Value>> {
    let description = server.ask("GET", "/openapi.json", "").json();
    let members = description["components"]["schemas"]["NewPet"]["properties"]
        .as_object()
        .unwrap();
    let members: Vec<_> = members
        .iter()
        .map(|(name, of)| (name, values(&description, of)))
        .collect();
    let count = members
        .iter()
        .map(|(_, values)| values.len())
        .max()
        .unwrap();
    let pet = |i: usize| {
        members
            .iter()
            .map(|(name, values)| ((*name).clone(), values[i % values.len()].clone()))
            .collect()
    };
    (0..count).map(pet).collect()
}

fn listed(server: &Server) -> Vec<Value> {
    server.connect().get_all("/v1/pets?limit=100", KEY)
}

/// Fails with the first lines that differ, since a whole export is more than one can compare by eye.
#[track_caller]
fn assert_same_lines(found: &str, expected: &str, way: &str) {
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "after {way}");
    }
    assert_eq!(found.len(), expected.len(), "after {way}");
}

#[test]
fn every_member_comes_out_as_it_went_in() {
    let server = Server::start();
    let (database, folder) = (server.folder.database(), Folder::new());
    let mut expected = Vec::new();
    let pets = pets(&server);
    for (i, pet) in pets.iter().enumerate() {
        let body = Value::from(pet.clone()).to_string();
        let key = format!("key{i}");
        for reply in [server.create(&body), send(&server, &key, &body)] {
            let mut created = pet.clone();
            created.insert("id".to_owned(), (expected.len() + 1).into());
            assert_eq!(reply.expect(201).json(), Value::from(created.clone()));
            expected.push(Value::from(created));
        }
        assert_eq!(
            send(&server, &key, &body).expect(201).json(),
            expected[expected.len() - 1]
        );
        for (name, _) in pet {
            // Another pet, so another create.
            let mut other = pet.clone();
            other[name] = pets
                .iter()
                .map(|pet| &pet[name])
                .find(|value| **value != pet[name])
                .unwrap()
                .clone();
            send(&server, &key, &Value::from(other).to_string()).expect(422);
        }
    }
    assert_eq!(listed(&server), expected);
    for pet in &expected {
        assert_eq!(server.get(&format!("/v1/pets/{}", pet["id"])).json(), *pet);
    }
    let export = |format: &str, database: &Path| succeed(&["export", "--format", format], database);
    let exported = export("ndjson", &database);
    let lines: Vec<Value> = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, expected);
    for format in ["ndjson", "csv"] {
        let file = folder.path().join(format);
        std::fs::write(&file, export(format, &database)).unwrap();
        let words = [
            "import",
            "--create",
            "--format",
            format,
            file.to_str().unwrap(),
        ];
        for flags in [&[][..], &["--keep-ids"]] {
            let other = Folder::new();
            succeed(&[&words[..], flags].concat(), &other.database());
            let way = format!("export and import as {format} {flags:?}");
            assert_same_lines(&export("ndjson", &other.database()), &exported, &way);
        }
    }
    let backup = folder.path().join("backup.db");
    succeed(&["backup", backup.to_str().unwrap()], &database);
    let other = Folder::new();
    succeed(&["restore", backup.to_str().unwrap()], &other.database());
    assert_same_lines(
        &export("ndjson", &other.database()),
        &exported,
        "backup and restore",
    );
    let copy =
        Server::start_with(|command| command.arg("--read-only").env("PETSTORE_DATABASE", &backup));
    assert_eq!(listed(&copy), expected);
}
