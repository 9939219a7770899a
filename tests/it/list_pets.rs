//! `GET /v1/pets`.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use serde_json::json;

use support::client::{Connection, get};
use support::harness::{Folder, KEY, Server, output};

fn ids(body: &serde_json::Value) -> Vec<i64> {
    body.as_array()
        .unwrap()
        .iter()
        .map(|pet| pet["id"].as_i64().unwrap())
        .collect()
}

#[test]
fn empty_inventory_is_an_empty_array() {
    let server = Server::start();
    let reply = server.get("/v1/pets");
    assert_eq!(reply.expect(200).body, b"[]");
    assert_eq!(reply.header("Link"), None);
}

#[test]
fn twenty_are_listed_where_no_limit_is_given() {
    let server = Server::start();
    server.fill(["x"; 21]);
    let reply = server.get("/v1/pets");
    assert_eq!(ids(&reply.expect(200).json()), (1..=20).collect::<Vec<_>>());
    assert_eq!(
        reply.header("Link"),
        Some("</v1/pets?limit=20&after=20>; rel=\"next\"")
    );
    assert_eq!(ids(&server.get("/v1/pets?limit=100").json()).len(), 21);
    assert_eq!(ids(&server.get("/v1/pets?limit=1").json()), [1]);
    assert_eq!(
        server.get("/v1/pets?limit=21").header("Link"),
        None,
        "nothing follows"
    );
}

#[test]
fn following_the_links_visits_every_pet_once() {
    let server = Server::start();
    let mut connection = server.connect();
    for i in 0..50 {
        let status = ["available", "sold"][i % 2];
        let body = format!(r#"{{"name":"x","categoryId":1,"status":"{status}"}}"#);
        connection.post("/v1/pets", KEY, &body).expect(201);
    }
    for (query, expected) in [
        ("limit=7", (1..=50).collect::<Vec<i64>>()),
        (
            "limit=7&status=sold",
            (1..=50).filter(|id| id % 2 == 0).collect(),
        ),
        ("limit=7&status=pending", vec![]),
    ] {
        let seen = json!(connection.get_all(&format!("/v1/pets?{query}"), KEY));
        assert_eq!(ids(&seen), expected, "{query}");
    }
}

/// A service that knows its public URL, with these pets. Its port is known before it starts.
fn public(path: &str, pets: usize) -> (Server, String) {
    let socket = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let base = format!("http://{}{path}/v1", socket.local_addr().unwrap());
    let server = Server::start_on(socket, Folder::new(), |command| {
        command.env("PETSTORE_BASE_URL", &base)
    });
    server.fill(vec!["x"; pets]);
    (server, base)
}

#[test]
fn links_are_whole_urls_where_the_public_one_is_known() {
    for path in ["", "/a/shop"] {
        let (server, base) = public(path, 2);
        let root = base.strip_suffix("/v1").unwrap();
        // The second time from the cache.
        for _ in 0..2 {
            let reply = server.get("/v1/pets?limit=1&status=");
            reply.expect(400);
            let reply = server.get("/v1/pets?limit=1");
            let next = format!("<{base}/pets?limit=1&after=1>; rel=\"next\"");
            assert_eq!(reply.header("Link"), Some(next.as_str()));
        }
        let reply = server.get("/v1/pets/1");
        let link = format!(
            "<{base}/pets>; rel=\"successor-version\", </docs/deprecations>; rel=\"deprecation\"; type=\"text/html\""
        );
        assert_eq!(reply.expect(200).header("Link"), Some(link.as_str()));
        let catalog = format!("<{root}/.well-known/api-catalog>; rel=\"api-catalog\"");
        assert_eq!(
            server.get("/.well-known/api-catalog").header("Link"),
            Some(catalog.as_str())
        );
    }
}

/// Passes GETs on, and adds links of its own before those of the service.
fn proxy(server: &Server) -> SocketAddr {
    let (socket, behind) = (TcpListener::bind(("127.0.0.1", 0)).unwrap(), server.address);
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in socket.incoming().map(Result::unwrap) {
            let mut lines = BufReader::new(&client).lines().map(Result::unwrap);
            let target = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
            lines.find(String::is_empty).unwrap();
            let reply = Connection::open(behind).get(&target, KEY);
            let link = reply
                .header("Link")
                .map(|link| format!("Link: {link}\r\n"))
                .unwrap_or_default();
            let own = "Link: </style.css>; rel=preload, <https://cdn.example/next>; rel=\"preconnect\"\r\n";
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{own}{link}\r\n");
            client
                .write_all(&[head.as_bytes(), &reply.body].concat())
                .unwrap();
        }
    });
    address
}

#[test]
fn lines_of_the_page_read_all_pages() {
    let page = include_str!("../../src/site/pages/pagination.md");
    let lines = page
        .split_once("```python\n")
        .unwrap()
        .1
        .split("```")
        .next()
        .unwrap();
    let (relative, (whole, base)) = (Server::start(), public("", 250));
    relative.fill(["x"; 250]);
    for base in [
        format!("http://{}/v1", relative.address),
        format!("http://{}/v1", proxy(&relative)),
        format!("http://{}/v1", proxy(&whole)),
        base,
    ] {
        let lines = lines.replace("{{base}}", &base);
        let done = output(Command::new("python3").args(["-c", &lines]).env("KEY", KEY));
        assert_eq!(
            String::from_utf8_lossy(&done.stdout).lines().count(),
            250,
            "{base} {done:?}"
        );
    }
}

#[test]
fn pets_are_shown_as_created() {
    let server = Server::start();
    server
        .create(r#"{"name":"Rex","categoryId":3,"status":"pending"}"#)
        .expect(201);
    server.create(r#"{"name":"","categoryId":-1}"#).expect(201);
    assert_eq!(
        server.get("/v1/pets").json(),
        json!([
            {"id": 1, "name": "Rex", "categoryId": 3, "status": "pending"},
            {"id": 2, "name": "", "categoryId": -1},
        ])
    );
    assert_eq!(ids(&server.get("/v1/pets?status=pending").json()), [1]);
    assert_eq!(ids(&server.get("/v1/pets?status=sold").json()), [0i64; 0]);
}

#[test]
fn wrong_parameters_are_400_and_named() {
    let server = Server::start();
    let mut connection = server.connect();
    for (query, code, named) in [
        ("limit=0", "invalid_parameter", "'limit'"),
        ("limit=101", "invalid_parameter", "'limit'"),
        ("limit=-5", "invalid_parameter", "'limit'"),
        ("limit=", "invalid_parameter", "'limit'"),
        ("limit=1.5", "invalid_parameter", "'limit'"),
        ("limit", "invalid_parameter", "'limit'"),
        ("limit=-0", "invalid_parameter", "'limit'"),
        ("limit=%2B5", "invalid_parameter", "'limit'"),
        ("limit=4294967297", "invalid_parameter", "'limit'"),
        ("limit=+5", "invalid_parameter", "'limit'"),
        ("limit=ten", "invalid_parameter", "'limit'"),
        ("limit=5&limit=5", "duplicate_parameter", "'limit'"),
        ("status=", "invalid_parameter", "'status'"),
        ("status=AVAILABLE", "invalid_parameter", "'status'"),
        ("status=sold,pending", "invalid_parameter", "'status'"),
        (
            "status=sold&status=pending",
            "duplicate_parameter",
            "'status'",
        ),
        ("after=x", "invalid_parameter", "'after'"),
        ("after=9223372036854775808", "invalid_parameter", "'after'"),
        ("after=1&after=1", "duplicate_parameter", "'after'"),
    ] {
        connection
            .get(&format!("/v1/pets?{query}"), KEY)
            .expect_error(400, code, named);
    }
}

#[test]
fn unknown_parameters_are_ignored() {
    let server = Server::start();
    server.fill(["x"]);
    for query in [
        "unknown=red",
        "limit=5&x=1&x=2",
        "&&",
        "=",
        "Limit=0",
        "%6cimit=5",
        "after=-9223372036854775808",
    ] {
        assert_eq!(
            ids(&server.get(&format!("/v1/pets?{query}")).json()),
            [1],
            "{query}"
        );
    }
}

#[test]
fn link_to_the_next_page_repeats_every_filter() {
    let server = Server::start_with(|command| command.arg("--experimental"));
    for _ in 0..2 {
        server
            .create(r#"{"name":"a > b","categoryId":1,"status":"available"}"#)
            .expect(201);
    }
    server
        .create(r#"{"name":"other","categoryId":2,"status":"sold"}"#)
        .expect(201);
    let mut filters = 0;
    for (path, item) in support::openapi::document()["paths"].as_object().unwrap() {
        // changes.rs has its filters, as the record is of a file.
        if path == "/changes" {
            continue;
        }
        for parameter in item["get"]["parameters"].as_array().into_iter().flatten() {
            let (name, place) = (parameter["name"].as_str().unwrap(), &parameter["in"]);
            if place != "query" || ["limit", "after", "before", "order"].contains(&name) {
                continue;
            }
            let schema = support::openapi::resolve(&parameter["schema"]);
            let value = match schema["enum"].get(0) {
                Some(word) => word.as_str().unwrap(),
                None if schema["type"] == "integer" => "1",
                None => "a%20%3E%20b",
            };
            let first = server.get(&format!("/v1{path}?limit=1&{name}={value}"));
            let link = first.expect(200).header("Link").unwrap();
            assert!(
                link.contains(&format!("&{name}={value}&")),
                "{name}: {link}"
            );
            let all = server.get(&format!("/v1{path}?{name}={value}"));
            assert_eq!(
                all.json().as_array().unwrap().len(),
                2,
                "{name} filters nothing"
            );
            filters += 1;
        }
    }
    assert!(filters > 0);
}

#[test]
fn page_of_very_long_names_ends_early_and_leads_on() {
    let server = Server::start();
    let name = "\u{e9}".repeat(30_000);
    let mut connection = server.connect();
    for _ in 0..25 {
        connection
            .post(
                "/v1/pets",
                KEY,
                &format!(r#"{{"name":"{name}","categoryId":1}}"#),
            )
            .expect(201);
    }
    let reply = connection.get("/v1/pets?limit=100", KEY);
    let first = ids(&reply.expect(200).json());
    assert!(first.len() < 25, "{}", first.len());
    assert!(
        reply
            .header("Link")
            .unwrap()
            .contains(&format!("after={}>", first.len()))
    );
    assert_eq!(reply.json()[0]["name"], name);
    let rest = connection.get(&format!("/v1/pets?limit=100&after={}", first.len()), KEY);
    assert_eq!(first.len() + ids(&rest.json()).len(), 25);
}

#[test]
fn list_shows_every_acknowledged_pet_at_once() {
    let server = Server::start_with(|command| command.args(["--workers", "3"]));
    let mut writer = server.connect();
    // At the same time, so that they are spread over all workers and their caches.
    let mut readers: Vec<_> = (0..6).map(|_| server.connect()).collect();
    for count in 1..=100 {
        writer
            .post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#)
            .expect(201);
        let ask = get("/v1/pets?limit=100", KEY);
        readers.iter_mut().for_each(|reader| reader.send(&ask));
        for reader in &mut readers {
            assert_eq!(ids(&reader.reply().expect(200).json()).len(), count);
        }
    }
}
