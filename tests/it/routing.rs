//! Paths and methods: known ones, and the responses to unknown ones.

use support::client::Reply;
use support::harness::{Folder, KEY, Server, run};
use support::openapi;

fn ask(server: &Server, method: &str, target: &str, key: bool) -> Reply {
    let authorization = if key {
        format!("Authorization: Bearer {KEY}\r\n")
    } else {
        String::new()
    };
    server.ask(method, target, &authorization)
}

#[test]
fn unknown_paths_are_404() {
    let server = Server::start();
    for target in [
        "/index.html",
        "/doc",
        "/v1",
        "/v1/",
        "/v1/pets/",
        "/v1/pets/1/x",
        "/v1/dogs",
        "/v1%2Fpets",
        "//v1/pets",
        "/v2/pets",
        "/V1/pets",
    ] {
        ask(&server, "GET", target, true).expect_error(404, "not_found", "path");
        ask(&server, "POST", target, true).expect_error(404, "not_found", "path");
        ask(&server, "OPTIONS", target, false).expect_error(404, "not_found", "path");
    }
}

/// The paths of the OpenAPI description and one other, and the methods that each takes, in the order of their names.
fn known_paths() -> Vec<(String, Vec<String>)> {
    let described = openapi::document()["paths"].as_object().unwrap();
    let methods = |path: &serde_json::Value| -> Vec<String> {
        path.as_object()
            .unwrap()
            .keys()
            .map(|method| method.to_uppercase())
            .collect()
    };
    let mut known: Vec<_> = described
        .iter()
        .map(|(path, known)| {
            (
                format!("/v1{}", path.replace("{petId}", "1")),
                methods(known),
            )
        })
        .collect();
    known.push(("/healthz".to_owned(), vec!["GET".to_owned()]));
    for (_, methods) in &mut known {
        methods.retain(|method| method.chars().all(char::is_uppercase) && method != "PARAMETERS");
        let head = methods
            .iter()
            .any(|method| method == "GET")
            .then_some("HEAD");
        methods.extend(head.into_iter().chain(["OPTIONS"]).map(str::to_owned));
        methods.sort();
    }
    known
}

/// The methods in `Allow`, in the order of their names.
fn allowed(reply: &Reply) -> Vec<String> {
    let mut methods: Vec<_> = reply
        .header("Allow")
        .unwrap()
        .split(", ")
        .map(str::to_owned)
        .collect();
    methods.sort();
    methods
}

#[test]
fn known_paths_say_which_methods_they_take() {
    let server = Server::start_with(|command| command.arg("--experimental"));
    for (target, methods) in known_paths() {
        for method in ["DELETE", "PATCH", "POST", "PUT", "QUERY", "TRACE"] {
            if methods.iter().any(|known| known == method) {
                continue;
            }
            let reply = ask(&server, method, &target, true);
            reply.expect_error(405, "method_not_allowed", "method");
            assert_eq!(allowed(&reply), methods, "{method} {target}");
        }
    }
}

#[test]
fn options_lists_methods_without_a_key() {
    let server = Server::start_with(|command| command.arg("--experimental"));
    let paths = known_paths();
    let mut all: Vec<_> = paths
        .iter()
        .flat_map(|(_, methods)| methods.clone())
        .collect();
    all.sort();
    all.dedup();
    let whole = ["*", "http://example.org"].map(|target| (target.to_owned(), all.clone()));
    for (target, methods) in paths.into_iter().chain(whole) {
        let reply = ask(&server, "OPTIONS", &target, false);
        assert_eq!(allowed(reply.expect(204)), methods, "{target}");
    }
}

#[test]
fn unknown_methods_are_501() {
    let server = Server::start();
    for (method, target) in [
        ("BREW", "/v1/pets"),
        ("get", "/healthz"),
        ("PROPFIND", "/nowhere"),
        ("M-SEARCH", "/"),
    ] {
        ask(&server, method, target, true).expect_error(501, "not_implemented", "method");
    }
    ask(&server, "CONNECT", "example.org:443", true).expect_error(501, "not_implemented", "method");
    ask(&server, "patch", "/v1/pets/1", true).expect_error(501, "not_implemented", "in capitals");
}

#[test]
fn head_answers_like_get_without_the_body() {
    let server = Server::start();
    server.fill(["Rex"]);
    for target in [
        "/v1/pets",
        "/v1/pets/1",
        "/v1/pets/2",
        "/v1/store/orders",
        "/healthz",
        "/nowhere",
    ] {
        let (get, head) = (
            ask(&server, "GET", target, true),
            ask(&server, "HEAD", target, true),
        );
        assert_eq!(get.status, head.status, "{target}");
        let [get, head] = [get, head].map(|reply| {
            let others = |(name, _): &(String, String)| name != "X-Request-Id" && name != "Date";
            reply.headers.into_iter().filter(others).collect::<Vec<_>>()
        });
        assert_eq!(get, head, "{target}");
    }
}

#[test]
fn head_leaves_the_connection_in_step() {
    let server = Server::start();
    let mut connection = server.connect();
    let head = format!("HEAD /v1/pets HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {KEY}\r\n\r\n");
    connection.send(format!("{head}{head}"));
    connection.reply_to("HEAD").expect(200);
    connection.reply_to("HEAD").expect(200);
    connection.get("/v1/pets", KEY).expect(200);
}

#[test]
fn orders_are_not_implemented_yet() {
    let server = Server::start();
    server
        .get("/v1/store/orders")
        .expect_error(501, "not_implemented", "orders");
    ask(&server, "GET", "/v1/store/orders", false).expect(401);
}

#[test]
fn health_needs_no_key() {
    let server = Server::start();
    let reply = ask(&server, "GET", "/healthz", false);
    assert_eq!(reply.expect(200).body, br#"{"status":"ok"}"#);
}

#[test]
fn absolute_form_and_old_versions_are_served() {
    let server = Server::start();
    ask(
        &server,
        "GET",
        "http://example.org:80/v1/pets?limit=1",
        true,
    )
    .expect(200);
    ask(&server, "GET", "HTTPS://example.org/healthz", false).expect(200);
    let mut connection = server.connect();
    connection.send("GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!(
        connection.reply().expect(200).header("Connection"),
        Some("close")
    );
    connection.expect_end();
    let mut connection = server.connect();
    for _ in 0..2 {
        connection.send("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(
            connection.reply().expect(200).header("Connection"),
            Some("keep-alive")
        );
    }
}

#[test]
fn request_identifiers_are_the_clients_where_usable() {
    let server = Server::start();
    let mut connection = server.connect();
    for (given, taken) in [
        ("a-B_9.x", true),
        ("Root=1-67891233-abcdef012345678912345678", true),
        ("7F000001:E2C4_7F000001:1F90_0001:4C5E", true),
        ("!#$%&'()*+,-./:;<=>?@[]^_`{|}~", true),
        (&"x".repeat(128), true),
        (&"x".repeat(129), false),
        ("a b", false),
        ("a\"b", false),
        ("a\\b", false),
        ("", false),
    ] {
        connection.send(format!(
            "GET /healthz HTTP/1.1\r\nHost: h\r\nX-Request-Id: {given}\r\n\r\n"
        ));
        let reply = connection.reply();
        assert_eq!(
            reply.header("X-Request-Id") == Some(given),
            taken,
            "{given}"
        );
    }
    assert_eq!(
        server
            .send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\nX-Request-Id: mine\r\n\r\n")
            .expect(400)
            .header("X-Request-Id"),
        Some("mine")
    );
}

#[test]
fn failure_of_head_has_no_body() {
    let server = Server::start();
    let long = "x".repeat(20_000);
    for (request, status) in [
        (format!("HEAD /{long}"), 414),
        (format!("HEAD /{long} HTTP/1.1\r\nHost: h\r\n\r\n"), 414),
        (format!("\r\nHEAD /{long}"), 414),
        (format!("HEAD / HTTP/1.1\r\nHost: h\r\nX: {long}"), 431),
        ("HEAD / HTTP/9.1\r\nHost: h\r\n\r\n".to_owned(), 505),
        ("HEAD / HTTP/1.1\nHost: h\r\n\r\n".to_owned(), 400),
        ("HEAD / HTTP/1.1\r\nHost h\r\n\r\n".to_owned(), 400),
        ("HEAD / HTTP/1.1\r\n\r\n".to_owned(), 400),
    ] {
        let mut connection = server.connect();
        connection.try_send(&request);
        connection.reply_to("HEAD").expect(status);
        connection.expect_end();
    }
    let mut connection = server.connect();
    connection.send("HEAD / HTTP/1.1\r\n");
    connection.end_sending();
    connection.reply_to("HEAD").expect(400);
    connection.expect_end();
}

/// The bytes that a process has read so far, from files and sockets.
fn bytes_read(server: &Server) -> u64 {
    let counted = std::fs::read_to_string(format!("/proc/{}/io", server.pid())).unwrap();
    counted
        .lines()
        .find_map(|line| line.strip_prefix("rchar: "))
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn head_costs_what_its_head_costs() {
    let server = Server::start();
    server.fill(["x".repeat(60_000).as_str(); 15]);
    let site = Folder::new();
    let bytes: Vec<u8> = (0..2_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    std::fs::write(site.path().join("film.bin"), &bytes).unwrap();
    let mut targets = vec!["/v1/pets"];
    if cfg!(feature = "site") {
        let words = ["site", "deploy", site.path().to_str().unwrap()];
        assert!(run(&words, &server.folder.database()).status.success());
        targets.push("/film.bin");
    }
    for target in targets {
        let (get, head) = (
            ask(&server, "GET", target, true),
            ask(&server, "HEAD", target, true),
        );
        let length = get.expect(200).body.len();
        assert_eq!(get.header("Content-Length"), Some(&*length.to_string()));
        // A list is made for its tag; and the writer may move its log meanwhile.
        let cost = |_| {
            let before = bytes_read(&server);
            ask(&server, "HEAD", target, true).expect(200);
            bytes_read(&server) - before
        };
        let cost = (0..10).map(cost).min().unwrap();
        assert!(
            length > 800_000 && (target != "/film.bin" || cost < 50_000),
            "{target}: {cost} bytes were read"
        );
        for field in [
            "Content-Length",
            "ETag",
            "Content-Type",
            "Link",
            "Cache-Control",
        ] {
            assert_eq!(
                head.expect(200).header(field),
                get.header(field),
                "{target}"
            );
        }
    }
}
