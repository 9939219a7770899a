//! The project site as bytes on the wire; `tests/site` has it in a browser.

use support::client::Reply;
use support::harness::{KEY, Server};

#[test]
fn site_needs_no_key_and_knows_who_has_it_already() {
    let server = Server::start();
    let folder = folder_of_files(&server);
    let (styles, script) = (format!("{folder}site.css"), format!("{folder}trial.js"));
    for (target, kind, kept) in [
        ("/", "text/html; charset=utf-8", "no-cache"),
        ("/docs/errors", "text/html; charset=utf-8", "no-cache"),
        (&styles, "text/css", IMMUTABLE),
        (&script, "text/javascript; charset=utf-8", IMMUTABLE),
    ] {
        let mut connection = server.connect();
        let mut ask = |fields: &str| {
            connection.send(format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
            connection.reply()
        };
        let plain = ask("");
        assert_eq!(
            (plain.status, plain.header("Content-Type")),
            (200, Some(kind)),
            "{target}"
        );
        assert_eq!(plain.header("Cache-Control"), Some(kept), "{target}");
        assert_eq!(plain.header("Content-Encoding"), None);
        let compressed = ask("Accept-Encoding: gzip, br\r\n");
        assert_eq!(
            compressed.header("Content-Encoding"),
            Some("gzip"),
            "{target}"
        );
        assert!(compressed.body.len() < plain.body.len(), "{target}");
        let tag = plain.header("ETag").unwrap();
        assert_ne!(
            compressed.header("ETag"),
            Some(tag),
            "{target}: each form has its own"
        );
        assert_eq!(
            ask(&format!("If-None-Match: {tag}\r\n")).status,
            304,
            "{target}"
        );
    }
}

#[test]
fn files_are_kept_for_good_under_their_digest_and_not_under_another() {
    let server = Server::start();
    let folder = folder_of_files(&server);
    let now = server.ask("GET", &format!("{folder}search.json"), "");
    assert_eq!(now.expect(200).header("Cache-Control"), Some(IMMUTABLE));
    // As an open page does that an earlier version or another instance made.
    let before = server.ask(
        "GET",
        "/assets/0123456789abcdef0123456789abcdef/search.json",
        "",
    );
    assert_eq!(before.expect(200).header("Cache-Control"), Some("no-cache"));
    assert_eq!(before.body, now.body);
    // So that instances behind one address have the same files: a file that names the address, as the search index does
    // if a page has `{{base}}` outside a block of code, would have another digest.
    let other =
        Server::start_with(|command| command.args(["--base-url", "https://pets.example/v1"]));
    assert_eq!(
        folder_of_files(&other),
        folder,
        "a file depends on --base-url"
    );
}

#[test]
fn program_at_the_pets_page_is_sent_to_the_api() {
    let url = "https://pets.example/shop/v1";
    let server = Server::start_with(|command| command.args(["--base-url", url]));
    let browser = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    for (fields, is_page) in [
        ("", true),
        (browser, true),
        ("Accept: */*\r\n", true),
        ("Accept: application/json, TEXT/HTML; q=0.1\r\n", true),
        ("Authorization: Basic eDp5\r\n", true),
        ("Accept: application/json\r\n", false),
        ("Accept: image/*\r\nAccept-Encoding: gzip\r\n", false),
        ("authorization: bearer  x\r\nAccept: text/html\r\n", false),
    ] {
        for (method, target) in [("GET", "/pets?limit=1"), ("HEAD", "/pets")] {
            let reply = server.ask(method, target, fields);
            assert_eq!(reply.status == 200, is_page, "{fields}: {reply:?}");
            let vary = reply.header("Vary").unwrap();
            assert!(vary.ends_with("Accept, Authorization"), "{vary}");
            if !is_page && method == "GET" {
                reply.expect_error(404, "not_found", &format!("The API has {url}/pets."));
            }
        }
    }
}

/// The cache control of what never changes.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// Where the pages of a server have their files.
fn folder_of_files(server: &Server) -> String {
    let page = String::from_utf8(server.ask("GET", "/", "").expect(200).body.clone()).unwrap();
    page.split('"')
        .find_map(|path| path.strip_suffix("site.css"))
        .unwrap()
        .to_owned()
}

#[test]
fn page_that_is_not_there_is_a_page_for_browsers_and_a_failure_for_programs() {
    let server = Server::start();
    for target in [
        "/docs/nowhere",
        "/assets/nowhere.js",
        "/assets/x/nowhere.js",
        "/assets/x/..%2Fsite.css",
        "/nowhere/at/all",
        "/sitemap.xml",
    ] {
        let reply = browse(&server, target, "application/json");
        reply.expect_error(404, "not_found", "path");
        let page = browse(&server, target, BROWSER);
        let kind = page.expect(404).header("Content-Type");
        assert_eq!(kind, Some("text/html; charset=utf-8"), "{target}");
        assert!(
            page.header("Content-Security-Policy")
                .is_some_and(|policy| !policy.contains("unsafe"))
        );
        let vary: Vec<_> = page
            .headers
            .iter()
            .filter(|(name, _)| name == "Vary")
            .collect();
        assert!(
            vary.iter()
                .any(|(_, value)| value == "Accept-Encoding, Accept"),
            "{target}: {vary:?}"
        );
        let text = String::from_utf8(page.body.clone()).unwrap();
        assert!(
            text.contains("<h1>Page not found</h1>") && text.contains("href=\"/\""),
            "{text}"
        );
    }
}

#[test]
fn page_is_found_at_its_other_address() {
    let server = Server::start();
    let reply = browse(&server, "/docs/deprecations", BROWSER);
    let location = reply.expect(308).header("Location").unwrap();
    assert_eq!(location, "/docs/versions#deprecations");
    let page = browse(&server, "/docs/versions", BROWSER);
    let page = String::from_utf8(page.expect(200).body.clone()).unwrap();
    assert!(page.contains("deprecations"));
}

#[test]
fn documents_are_found_at_usual_addresses_and_with_a_slash() {
    let server = Server::start();
    for (asked, right) in [
        ("/openapi.yaml", "/openapi.json"),
        ("/swagger.json", "/openapi.json"),
        ("/openapi.json/", "/openapi.json"),
        ("/docs/", "/docs"),
        ("/docs/quickstart/", "/docs/quickstart"),
        ("/pets/?status=sold", "/pets?status=sold"),
    ] {
        let reply = browse(&server, asked, "*/*");
        assert_eq!(reply.expect(308).header("Location"), Some(right), "{asked}");
        browse(&server, right, "*/*").expect(200);
    }
    for asked in ["/docs/nowhere/", "/docs//quickstart", "/v1/pets/"] {
        assert_ne!(browse(&server, asked, BROWSER).status, 308, "{asked}");
    }
}

#[test]
fn interface_answers_browsers_in_json_too() {
    let server = Server::start();
    let mut connection = server.connect();
    let fields = format!("Accept: {BROWSER}\r\nAuthorization: Bearer {}\r\n", KEY);
    connection.send(format!(
        "GET /v1/nowhere HTTP/1.1\r\nHost: h\r\n{fields}\r\n"
    ));
    connection.reply().expect_error(404, "not_found", "path");
    browse(&server, "/v1/nowhere", BROWSER).expect(401);
}

#[test]
fn page_that_is_not_there_is_sent_whole_whoever_claims_to_have_it() {
    let server = Server::start();
    let mut connection = server.connect();
    let fields = format!("Accept: {BROWSER}\r\nIf-None-Match: *\r\n");
    connection.send(format!("GET /nowhere HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
    assert!(!connection.reply().expect(404).body.is_empty());
}

#[test]
fn robots_and_icon_are_there_and_the_map_if_the_address_is_known() {
    let text = |server: &Server, path: &str| {
        String::from_utf8(server.ask("GET", path, "").expect(200).body.clone()).unwrap()
    };
    let server = Server::start();
    assert_eq!(
        text(&server, "/robots.txt"),
        "User-agent: *\nDisallow: /v1/\n"
    );
    server
        .ask("GET", "/sitemap.xml", "")
        .expect_error(404, "not_found", "path");
    let icon = server.ask("GET", "/favicon.ico", "");
    assert_eq!(
        icon.expect(200).header("Content-Type"),
        Some("image/x-icon")
    );
    assert!(icon.body.starts_with(&[0, 0, 1, 0]));
    let server =
        Server::start_with(|command| command.args(["--base-url", "https://pets.example/v1"]));
    assert!(
        text(&server, "/robots.txt").ends_with("\nSitemap: https://pets.example/sitemap.xml\n")
    );
    let map = text(&server, "/sitemap.xml");
    let listed: Vec<&str> = map.split("<loc>https://pets.example").skip(1).collect();
    assert!(listed.len() > 10, "{map}");
    for path in listed.iter().map(|rest| rest.split('<').next().unwrap()) {
        let page = text(&server, path);
        let about = "<meta name=\"description\" content=\"";
        assert_eq!(page.matches(about).count(), 1, "{path}");
        let address = format!("<meta property=\"og:url\" content=\"https://pets.example{path}\">");
        assert!(page.contains(&address), "{path}");
        // A gap may be in a heading or in a sentence.
        assert!(
            !page.split("</head>").next().unwrap().contains("{{"),
            "{path}"
        );
    }
}

#[test]
fn description_names_the_guide_and_whom_to_ask() {
    let words = [
        "--contact",
        "mailto:support@example.com",
        "--base-url",
        "https://pets.example/v1",
    ];
    let server = Server::start_with(|command| command.args(words));
    let document = server.ask("GET", "/openapi.json", "").json();
    assert_eq!(document["info"]["contact"]["email"], "support@example.com");
    assert_eq!(document["externalDocs"]["url"], "https://pets.example/docs");
    let failure = document["components"]["responses"]["Failure"]["description"].to_string();
    assert!(
        failure.contains("(https://pets.example/docs/errors#overloaded)"),
        "{failure}"
    );
    browse(&server, "/docs", BROWSER).expect(200);
    // Linters reject a relative URL.
    assert!(
        Server::start()
            .ask("GET", "/openapi.json", "")
            .json()
            .get("externalDocs")
            .is_none()
    );
}

/// The `Accept` of browsers.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn browse(server: &Server, target: &str, accept: &str) -> Reply {
    server.send(format!(
        "GET {target} HTTP/1.1\r\nHost: h\r\nAccept: {accept}\r\n\r\n"
    ))
}
