//! `GET /v1/pets` with `--experimental`: by name, by category, without a status, the newest first.

use serde_json::Value;

use support::harness::{KEY, Server, add_key, change};

/// Pets in groups of 12, of which each has another name, category or status than the others.
const FILL: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 240)
    INSERT INTO pets (name, category_id, status)
    SELECT iif(i % 3 = 0, 'Old ZORA ' || i, iif(i % 3 = 1, 'Bär', '')), i % 4, iif(i % 2 = 0, NULL, 'sold') FROM n";

fn experimental() -> Server {
    Server::start_with(|command| command.arg("--experimental"))
}

fn filled(sql: &str) -> Server {
    let server = experimental();
    change(&server.folder.database(), sql);
    server
}

/// The ids that following the links gives, and the number of requests.
fn followed(server: &Server, query: &str) -> (Vec<i64>, usize) {
    let (mut target, mut ids, mut requests) = (format!("/v1/pets?{query}"), Vec::new(), 0);
    let mut connection = server.connect();
    loop {
        let reply = connection.get(&target, KEY);
        requests += 1;
        ids.extend(
            reply
                .expect(200)
                .json()
                .as_array()
                .unwrap()
                .iter()
                .map(|pet| pet["id"].as_i64().unwrap()),
        );
        match reply.header("Link") {
            Some(link) => target = link.split(['<', '>']).nth(1).unwrap().to_owned(),
            None => return (ids, requests),
        }
    }
}

/// Returns whether a search should find a pet.
type Wanted<'a> = &'a dyn Fn(&Value) -> bool;

#[test]
fn pets_are_found_by_all_that_is_asked_for_in_either_order() {
    let server = filled(FILL);
    let all = server.connect().get_all("/v1/pets?limit=100", KEY);
    let has_name =
        |pet: &Value, part: &str| pet["name"].as_str().unwrap().to_lowercase().contains(part);
    let wanted: [(&str, Wanted); 9] = [
        ("name=zora", &|pet| has_name(pet, "zora")),
        ("name=B%C3%84R", &|pet| has_name(pet, "b\u{e4}r")),
        ("name=nobody", &|_| false),
        ("categoryId=3", &|pet| pet["categoryId"] == 3),
        ("status=unset", &|pet| pet["status"].is_null()),
        ("status=sold", &|pet| pet["status"] == "sold"),
        ("status=available", &|_| false),
        ("status=sold&categoryId=1&name=Zora", &|pet| {
            pet["status"] == "sold" && pet["categoryId"] == 1 && has_name(pet, "zora")
        }),
        ("status=unset&name=1&categoryId=2", &|pet| {
            pet["status"].is_null() && pet["categoryId"] == 2 && has_name(pet, "1")
        }),
    ];
    for (query, is_wanted) in wanted {
        let mut ids: Vec<i64> = all
            .iter()
            .filter(|pet| is_wanted(pet))
            .map(|pet| pet["id"].as_i64().unwrap())
            .collect();
        for limit in [1, 7, 100] {
            assert_eq!(
                followed(&server, &format!("{query}&limit={limit}")).0,
                ids,
                "{query} {limit}"
            );
        }
        ids.reverse();
        for limit in [3, 20] {
            let query = format!("order=desc&{query}&limit={limit}");
            assert_eq!(followed(&server, &query).0, ids, "{query}");
        }
    }
    assert_eq!(
        followed(&server, "order=desc&limit=50").0,
        (1..=240).rev().collect::<Vec<_>>()
    );
    assert_eq!(followed(&server, "order=desc&before=4").0, [3, 2, 1]);
    assert_eq!(followed(&server, "order=asc&after=237").0, [238, 239, 240]);
    assert_eq!(
        followed(&server, "order=desc&before=-9223372036854775808").0,
        [0; 0]
    );
}

#[test]
fn request_looks_at_no_more_than_its_budget() {
    let server = filled(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
            INSERT INTO pets (name, category_id) SELECT iif(i = 50000, 'Zora', 'Rex'), 1 FROM n",
    );
    let first = server.get("/v1/pets?name=zora");
    assert_eq!(first.expect(200).body, b"[]");
    let link = "</v1/pets?limit=20&name=zora&after=20000>; rel=\"next\"";
    assert_eq!(first.header("Link"), Some(link));
    assert_eq!(followed(&server, "name=zora"), (vec![50_000], 3));
    assert_eq!(followed(&server, "name=zora&order=desc"), (vec![50_000], 3));
    let tag = format!(
        "Authorization: Bearer {KEY}\r\nIf-None-Match: {}\r\n",
        first.header("ETag").unwrap()
    );
    let known = server.ask("GET", "/v1/pets?name=zora", &tag);
    assert_eq!(known.expect(304).header("Link"), Some(link));
    let large = filled(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
            INSERT INTO pets (name, category_id) SELECT printf('%.*c', 65536, 'x'), 1 FROM n",
    );
    assert_eq!(
        followed(&large, "categoryId=2"),
        (vec![], 10),
        "16 names of 64 KiB at a time"
    );
}

#[test]
fn wrong_parameter_is_named() {
    let server = experimental();
    let long = format!("name={}", "%C3%A4".repeat(101));
    for (query, named) in [
        ("name=", "'name' must be a string of 1 to 100 characters"),
        (&*long, "'name' must be"),
        ("name=a&name=b", "'name' is given more than once"),
        ("categoryId=cats", "'categoryId' must be a 64-bit integer"),
        ("categoryId=9223372036854775808", "'categoryId'"),
        (
            "status=none",
            "'status' must be 'available', 'pending', 'sold' or 'unset'",
        ),
        ("order=up", "'order' must be 'asc' or 'desc'"),
        ("before=3", "'before' needs 'order=desc'"),
        (
            "order=desc&after=3",
            "'after' cannot be used with 'order=desc'",
        ),
        ("order=desc&before=x", "'before'"),
    ] {
        let reply = server.get(&format!("/v1/pets?{query}"));
        let code = if named.contains("more than once") {
            "duplicate_parameter"
        } else {
            "invalid_parameter"
        };
        reply.expect_error(400, code, named);
    }
    server
        .get(&format!("/v1/pets?name={}", "%C3%A4".repeat(100)))
        .expect(200);
}

#[test]
fn list_names_the_parameters_that_it_ignores() {
    let server = Server::start();
    server.fill(["Rex"]);
    for (query, ignored) in [
        ("limit=5&status=sold&after=1", None),
        ("name=Zora&q=1&limit=5", Some("name, q")),
        (
            "categoryId=x&order=up&before=1&a%20b=1&%0d%0ax=1&name",
            Some("categoryId, order, before, name"),
        ),
        ("utm_source=x&utm_source=y", Some("utm_source")),
    ] {
        let target = format!("/v1/pets?{query}");
        let reply = server.get(&target);
        assert_eq!(
            reply.expect(200).header("Ignored-Parameters"),
            ignored,
            "{query}"
        );
        let tag = format!(
            "Authorization: Bearer {KEY}\r\nIf-None-Match: {}\r\n",
            reply.header("ETag").unwrap()
        );
        let known = server.ask("GET", &target, &tag);
        assert_eq!(
            known.expect(304).header("Ignored-Parameters"),
            ignored,
            "{query}"
        );
        assert_eq!(
            server
                .ask("HEAD", &target, &tag)
                .header("Ignored-Parameters"),
            ignored,
            "{query}"
        );
    }
    server
        .get("/v1/pets?status=unset")
        .expect_error(400, "invalid_parameter", "'status'");
    let with = experimental();
    let reply = with.get("/v1/pets?name=Zora&page=2");
    assert_eq!(reply.header("Ignored-Parameters"), Some("page"));
}

#[test]
fn response_to_a_known_key_has_its_scope() {
    let server = experimental();
    server.fill(["Rex"]);
    let database = server.folder.database();
    let keys = [
        ("read", &["reader", "--read-only"][..]),
        ("full", &["writer"]),
        ("admin", &["boss", "--admin"]),
    ];
    for (scope, words) in keys {
        let key = add_key(&database, words);
        let fields = format!("Authorization: Bearer {key}\r\n");
        let ask = |method: &str, path: &str, more: &str| {
            server.ask(method, path, &format!("{fields}{more}"))
        };
        for (method, path) in [
            ("GET", "/v1/pets"),
            ("HEAD", "/v1/pets/1"),
            ("GET", "/v1/pets/2"),
            ("GET", "/v1/nothing"),
            ("POST", "/v1/pets"),
            ("PUT", "/v1/pets"),
            ("GET", "/v1/store/orders"),
        ] {
            let reply = ask(method, path, "");
            assert_eq!(
                reply.header("Key-Scope"),
                Some(scope),
                "{method} {path}: {}",
                reply.status
            );
        }
        let tag = ask("GET", "/v1/pets", "")
            .header("ETag")
            .unwrap()
            .to_owned();
        let known = ask("GET", "/v1/pets", &format!("If-None-Match: {tag}\r\n"));
        assert_eq!(known.expect(304).header("Key-Scope"), Some(scope));
        assert_eq!(ask("GET", "/healthz", "").header("Key-Scope"), None);
    }
    for reply in [
        server.connect().get("/v1/pets", "wrong"),
        server.ask("GET", "/v1/pets", ""),
    ] {
        assert_eq!(reply.expect(401).header("Key-Scope"), None);
    }
    let deleted = server.ask(
        "DELETE",
        "/v1/pets/1",
        &format!("Authorization: Bearer {KEY}\r\n"),
    );
    assert_eq!(deleted.expect(204).header("Key-Scope"), Some("full"));
}
