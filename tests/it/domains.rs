//! Custom domains: the commands, the names that are served, and the settings interface.

use std::process::Output;

use serde_json::Value;

use support::client::{Connection, Reply};
use support::dns_server::{ChangingZone, Record};
use support::harness::{Folder, KEY, Server, add_key, change, run};
use support::wait::wait_until;

pub const PLATFORM: &str = "sites.example.net";
pub const RIGHT: (&str, Record) = ("pets.example.com", Record::Cname(PLATFORM));

/// A service with a plan, a deploy and an admin address, and the DNS server that it asks.
pub struct Hosted {
    pub server: Server,
    pub dns: ChangingZone,
}

impl Hosted {
    pub fn start() -> Self {
        let dns = ChangingZone::start();
        let resolver = dns.address().to_string();
        let server = Server::start_with(|command| {
            command.args([
                "--admin",
                "0",
                "--platform-host",
                PLATFORM,
                "--resolver",
                &resolver,
            ])
        });
        let hosted = Self { server, dns };
        hosted.done(&["site", "plan", "pro"]);
        hosted.done(&["site", "deploy"]);
        hosted
    }

    /// Starts a service that has the verified domain `pets.example.com`.
    pub fn verified() -> Self {
        let hosted = Self::start();
        hosted.dns.set(&[RIGHT]);
        hosted.done(&["domain", "add", "pets.example.com"]);
        hosted.done(&["domain", "verify", "pets.example.com"]);
        hosted
    }

    /// Ends the service, changes its database as time would, and starts it again.
    pub fn restarted(self, sql: &str) -> Self {
        let Self { mut server, dns } = self;
        server.signal("TERM");
        server.ended();
        let Server { folder, .. } = server;
        change(&folder.database(), sql);
        let resolver = dns.address().to_string();
        let server = Server::start_in(folder, |command| {
            command.args([
                "--admin",
                "0",
                "--platform-host",
                PLATFORM,
                "--resolver",
                &resolver,
            ])
        });
        Self { server, dns }
    }

    pub fn run(&self, words: &[&str]) -> Output {
        let resolver = self.dns.address().to_string();
        let hosting = ["--platform-host", PLATFORM, "--resolver", &resolver];
        let words = if words[0] == "domain" {
            [words, &hosting].concat()
        } else {
            words.to_vec()
        };
        run(&words, &self.server.folder.database())
    }

    #[track_caller]
    pub fn done(&self, words: &[&str]) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = self.run(words);
        assert!(
            status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&stderr)
        );
        String::from_utf8(stdout).unwrap()
    }

    /// The line that a failing command prints.
    #[track_caller]
    pub fn refused(&self, words: &[&str]) -> String {
        let Output { status, stderr, .. } = self.run(words);
        let said = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(1), "{words:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
        said
    }

    pub fn list(&self) -> Value {
        serde_json::from_str(&self.done(&["domain", "list", "--json"])).unwrap()
    }

    pub fn state(&self) -> Value {
        self.list()["domains"][0]["state"].take()
    }

    pub fn ask(&self, method: &str, target: &str, fields: &str, body: &str) -> Reply {
        let mut connection = Connection::open(self.server.admin.unwrap());
        let length = body.len();
        connection.send(format!(
            "{method} {target} HTTP/1.1\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ));
        connection.reply()
    }
}

/// Requests a page under a name, on an open connection.
pub fn ask_by(connection: &mut Connection, host: &str, more: &str) -> Reply {
    connection.send(format!(
        "GET /docs/keys?x=1 HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"
    ));
    connection.reply()
}

#[test]
fn domain_needs_a_plan_and_a_deploy() {
    let folder = Folder::new();
    let server = Server::start_in(folder, |command| {
        command.args(["--platform-host", PLATFORM])
    });
    let dns = ChangingZone::start();
    let hosted = Hosted { server, dns };
    let add = ["domain", "add", "pets.example.com"];
    assert!(hosted.refused(&add).contains("(plan_required)"));
    assert_eq!(hosted.done(&["site", "plan"]), "free\n");
    assert_eq!(hosted.done(&["site", "plan", "Enterprise"]), "enterprise\n");
    assert!(hosted.refused(&add).contains("(deploy_required)"));
    hosted.done(&["site", "deploy"]);
    let said = hosted.done(&add);
    for part in [
        "example.com:",
        "type   CNAME",
        "name   pets\n",
        "value  sites.example.net",
        "TTL    3600",
        "48 hours",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(hosted.refused(&add).contains("(domain_exists)"));
    let said = hosted.refused(&["site", "plan", "free"]);
    assert!(
        said.contains("pets.example.com") && said.contains("(domains_exist)"),
        "{said}"
    );
    let said = hosted.done(&["domain", "add", "Bücher.example."]);
    assert!(
        said.contains("ALIAS or ANAME") && said.contains("Not every DNS provider"),
        "{said}"
    );
    for name in [
        "*.example.com",
        "192.0.2.1",
        "localhost",
        "x.sites.example.net",
    ] {
        assert!(
            hosted
                .refused(&["domain", "add", name])
                .contains("(invalid_domain)"),
            "{name}"
        );
    }
    let without = run(
        &["domain", "add", "x.example.com"],
        &hosted.server.folder.database(),
    );
    assert!(String::from_utf8_lossy(&without.stderr).contains("(platform_host_required)"));
    let without = run(&["domain", "list"], &hosted.server.folder.database());
    let said = String::from_utf8_lossy(&without.stdout);
    assert!(
        said.contains("add --platform-host") && !said.contains("CNAME"),
        "{said}"
    );
}

#[test]
fn record_is_verified_only_when_it_is_right() {
    let hosted = Hosted::start();
    hosted.done(&["domain", "add", "pets.example.com"]);
    let verify = ["domain", "verify", "pets.example.com"];
    let address = ("pets.example.com", Record::A([192, 0, 2, 7]));
    for (records, code, named) in [
        (vec![], "not_found_yet", "48 hours"),
        (vec![address], "conflicting_record", "192.0.2.7"),
        (
            vec![("pets.example.com", Record::Cname("elsewhere.test"))],
            "wrong_target",
            "elsewhere.test",
        ),
    ] {
        hosted.dns.set(&records);
        let said = hosted.refused(&verify);
        assert!(said.contains(code) && said.contains(named), "{said}");
        let domain = hosted.list()["domains"][0].take();
        assert_eq!(
            (&domain["state"], &domain["reason"]),
            (&"pending_dns".into(), &code.into())
        );
    }
    hosted.dns.set(&[RIGHT]);
    assert!(hosted.done(&verify).contains("verified"));
    let list = hosted.list();
    assert_eq!(
        (&list["plan"], &list["platformHost"]),
        (&"pro".into(), &PLATFORM.into())
    );
    assert_eq!(
        (&list["primary"], &list["domains"][0]["reason"]),
        (&"pets.example.com".into(), &Value::Null)
    );
    hosted.dns.set(&[]);
    assert!(hosted.refused(&verify).contains("not_found_yet"));
    assert_eq!(hosted.state(), "dns_changed");
}

#[test]
fn name_is_served_from_verification_to_removal() {
    let hosted = Hosted::start();
    let mut connection = hosted.server.connect();
    hosted.dns.set(&[RIGHT]);
    hosted.done(&["domain", "add", "pets.example.com"]);
    ask_by(&mut connection, "pets.example.com", "").expect_error(
        421,
        "misdirected_request",
        "host",
    );
    hosted.done(&["domain", "verify", "pets.example.com"]);
    for host in [
        "pets.example.com",
        "PETS.example.com.:443",
        "petstore.sites.example.net",
        "localhost",
        "127.0.0.1:1",
    ] {
        ask_by(&mut connection, host, "").expect(200);
    }
    ask_by(&mut connection, PLATFORM, "").expect_error(421, "misdirected_request", "host");
    connection.send("GET http://x.example/ HTTP/1.1\r\nHost: pets.example.com\r\n\r\n");
    connection
        .reply()
        .expect_error(421, "misdirected_request", "host");
    connection.send(format!(
        "POST /v1/pets HTTP/1.1\r\nHost: x.example\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 2\r\n\r\n{{}}"
    ));
    connection
        .reply()
        .expect_error(421, "misdirected_request", "host");
    hosted.done(&["domain", "remove", "pets.example.com"]);
    ask_by(&mut connection, "pets.example.com", "").expect_error(
        421,
        "misdirected_request",
        "host",
    );
    assert!(
        hosted
            .refused(&["domain", "remove", "pets.example.com"])
            .contains("(unknown_domain)")
    );
}

#[test]
fn certificate_may_be_issued_for_verified_names_only() {
    let hosted = Hosted::verified();
    hosted.done(&["domain", "add", "new.example.com"]);
    let ask = |query: &str| {
        hosted.ask(
            "GET",
            &format!("/internal/tls-allowed{query}"),
            "Host: petstore:9090\r\n",
            "",
        )
    };
    ask("?domain=pets.example.com").expect(200);
    ask("?domain=PETS.example.com").expect(200);
    for name in [
        "new.example.com",
        "x.pets.example.com",
        "petstore.sites.example.net",
        "",
    ] {
        ask(&format!("?domain={name}")).expect_error(404, "not_found", "domain");
    }
    ask("").expect_error(400, "invalid_parameter", "domain");
    ask("?domain=a&domain=b").expect_error(400, "duplicate_parameter", "domain");
    hosted.done(&["domain", "remove", "pets.example.com"]);
    ask("?domain=pets.example.com").expect(404);
}

#[test]
fn redirect_keeps_path_and_query() {
    let hosted = Hosted::verified();
    hosted
        .dns
        .set(&[RIGHT, ("www.example.com", Record::Cname(PLATFORM))]);
    hosted.done(&["domain", "add", "www.example.com"]);
    hosted.done(&["domain", "verify", "www.example.com"]);
    hosted.done(&[
        "domain",
        "redirect",
        "add",
        "www.example.com",
        "pets.example.com",
    ]);
    let mut connection = hosted.server.connect();
    let reply = ask_by(&mut connection, "www.example.com", "");
    assert_eq!(
        reply.expect(301).header("Location"),
        Some("https://pets.example.com/docs/keys?x=1")
    );
    // The API is not redirected, and nobody is asked for a key.
    for line in [
        "GET /v1/pets?limit=1",
        "HEAD /v1",
        "POST /v1/pets",
        "OPTIONS /%761/pets",
        "DELETE /v1/nowhere",
    ] {
        connection.send(format!(
            "{line} HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 0\r\n\r\n"
        ));
        let reply = connection.reply_to(line.split(' ').next().unwrap());
        assert_eq!(
            (
                reply.expect(421).header("Location"),
                reply.header("WWW-Authenticate")
            ),
            (None, None)
        );
        if !line.starts_with("HEAD") {
            reply.expect_error(
                421,
                "misdirected_request",
                "It is at https://pets.example.com/v1.",
            );
        }
    }
    hosted.done(&[
        "domain",
        "redirect",
        "add",
        "www.example.com",
        "petstore.sites.example.net",
        "--status",
        "308",
    ]);
    let reply = ask_by(&mut connection, "www.example.com", "");
    assert_eq!(
        reply.expect(308).header("Location"),
        Some("https://petstore.sites.example.net/docs/keys?x=1")
    );
    assert_eq!(hosted.list()["redirects"][0]["status"], 308);
    for (from, to) in [
        ("pets.example.com", "www.example.com"),
        ("www.example.com", "www.example.com"),
        ("pets.example.com", "petstore.sites.example.net"),
    ] {
        let said = hosted.refused(&["domain", "redirect", "add", from, to]);
        assert!(said.contains("(invalid_redirect)"), "{said}");
    }
    assert!(
        hosted
            .refused(&["domain", "primary", "www.example.com"])
            .contains("(invalid_redirect)")
    );
    let said = hosted.refused(&["domain", "redirect", "add", "www.example.com", "x.example"]);
    assert!(said.contains("(unknown_domain)"), "{said}");
    hosted.done(&["domain", "redirect", "remove", "www.example.com"]);
    ask_by(&mut connection, "www.example.com", "").expect(200);
    hosted.done(&["domain", "primary", "www.example.com"]);
    assert_eq!(hosted.list()["primary"], "www.example.com");
}

#[test]
fn pair_of_names_is_added_at_once_and_redirects_when_both_are_verified() {
    let hosted = Hosted::start();
    hosted.done(&["domain", "add", "www.b.example"]);
    assert!(
        hosted
            .refused(&["domain", "add", "b.example", "--www"])
            .contains("already has the domain www.b.example")
    );
    assert_eq!(
        hosted.list()["domains"].as_array().unwrap().len(),
        1,
        "none of the pair is added"
    );
    let said = hosted.done(&["domain", "add", "pets.example.com", "--www"]);
    let record = "  name   www.pets\n  value  sites.example.net\n  TTL    3600\n\nDNS changes";
    for part in [
        "name   pets\n",
        record,
        "www.pets.example.com redirects to pets.example.com",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let www = ("www.pets.example.com", Record::Cname(PLATFORM));
    hosted.dns.set(std::slice::from_ref(&www));
    hosted.done(&["domain", "verify", "www.pets.example.com"]);
    let mut connection = hosted.server.connect();
    ask_by(&mut connection, "www.pets.example.com", "").expect(200);
    hosted.dns.set(&[www, RIGHT]);
    hosted.done(&["domain", "verify", "pets.example.com"]);
    let reply = ask_by(&mut connection, "www.pets.example.com", "");
    assert_eq!(
        reply.expect(301).header("Location"),
        Some("https://pets.example.com/docs/keys?x=1")
    );
    assert_eq!(hosted.list()["primary"], "pets.example.com");
}

#[test]
fn removal_says_what_goes_with_it_and_the_next_verified_domain_is_primary() {
    let hosted = Hosted::verified();
    hosted
        .dns
        .set(&[RIGHT, ("shop.example.com", Record::Cname(PLATFORM))]);
    hosted.done(&["domain", "add", "shop.example.com"]);
    hosted.done(&["domain", "verify", "shop.example.com"]);
    let said = hosted.done(&["domain", "primary", "pets.example.com"]);
    assert!(said.contains("canonical"), "{said}");
    let said = hosted.done(&["domain", "remove", "Pets.example.com."]);
    let record = "pets.example.com is removed and no longer served, unless it is the host of the service's --base-url";
    assert!(
        said.starts_with(record) && said.contains("no primary domain"),
        "{said}"
    );
    assert_eq!(hosted.list()["primary"], Value::Null);
    hosted.done(&["domain", "verify", "shop.example.com"]);
    assert_eq!(hosted.list()["primary"], "shop.example.com");
}

/// The text with a word in the place of each time.
fn without_times(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(end) = text.find('Z') {
        let begin = end - "2027-01-31T18:00:00".len();
        assert_eq!(text.as_bytes()[begin + 10], b'T', "{text}");
        text.replace_range(begin..=end, "TIME");
    }
    text
}

#[test]
fn list_shows_what_each_domain_waits_for() {
    let hosted = Hosted::verified();
    hosted
        .dns
        .set(&[RIGHT, ("www.pets.example.com", Record::Cname(PLATFORM))]);
    hosted.done(&["domain", "add", "www.pets.example.com"]);
    hosted.done(&["domain", "verify", "www.pets.example.com"]);
    hosted.done(&[
        "domain",
        "redirect",
        "add",
        "www.pets.example.com",
        "pets.example.com",
    ]);
    hosted.done(&["domain", "add", "shop.b\u{fc}cher.example"]);
    let expected = "\
plan     pro
platform petstore.sites.example.net
deploy   1 of TIME

pets.example.com, primary
  verified since TIME: verified; the certificate is created on the first HTTPS request, usually within a couple of minutes

shop.xn--bcher-kva.example (shop.b\u{fc}cher.example)
  pending_dns since TIME: waiting for DNS
  type   CNAME
  name   shop
  value  sites.example.net
  TTL    3600

www.pets.example.com
  verified since TIME: verified; the certificate is created on the first HTTPS request, usually within a couple of minutes
  redirects to pets.example.com with 301
";
    assert_eq!(without_times(&hosted.done(&["domain", "list"])), expected);
}

#[test]
fn caa_records_that_block_the_certificate_are_named_at_once() {
    let hosted = Hosted::start();
    let verify = ["domain", "verify", "pets.example.com"];
    let caa = |value| {
        hosted
            .dns
            .set(&[RIGHT, ("example.com", Record::Caa(0, "issue", value))]);
    };
    hosted.done(&["domain", "add", "pets.example.com"]);
    caa("ca.other.test");
    let said = hosted.refused(&verify);
    assert!(
        said.contains("(caa_blocks)") && said.contains("ca.other.test"),
        "{said}"
    );
    assert_eq!(hosted.state(), "certificate_delayed");
    caa("letsencrypt.org");
    assert_eq!(
        hosted
            .done(&["domain", "reverify", "pets.example.com"])
            .lines()
            .count(),
        1
    );
    assert_eq!(
        (hosted.state(), hosted.list()["primary"].take()),
        ("verified".into(), "pets.example.com".into())
    );
}

#[test]
#[cfg(feature = "site")]
fn reference_has_a_browser_keep_no_key_that_scripts_of_deployed_files_could_read() {
    let hosted = Hosted::start();
    let folder = Folder::new();
    std::fs::write(
        folder.path().join("mine.html"),
        "<script src=mine.js></script>",
    )
    .unwrap();
    let mut tags = Vec::new();
    let mut kept = || {
        let [reference, pets] = ["/", "/pets"].map(|path| {
            let page = hosted
                .server
                .send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            tags.push(page.expect(200).header("ETag").unwrap().to_owned());
            let text = String::from_utf8(page.body.clone()).unwrap();
            text.split("data-keep=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .to_owned()
        });
        assert_eq!(reference, pets);
        reference
    };
    assert_eq!(kept(), "tab", "this deploy has no files");
    hosted.done(&["site", "deploy", folder.path().to_str().unwrap()]);
    assert_eq!(kept(), "memory");
    hosted.done(&["site", "rollback"]);
    assert_eq!(kept(), "tab");
    let [before, among, after] = tags.as_chunks::<2>().0 else {
        panic!("{tags:?}")
    };
    assert!(
        before == after && before[0] != among[0] && before[1] != among[1],
        "{tags:?}"
    );
}

#[test]
fn no_script_becomes_a_service_worker() {
    let hosted = Hosted::start();
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("app")).unwrap();
    for name in ["sw.js", "app/sw.mjs"] {
        std::fs::write(folder.path().join(name), "self.onfetch = () => 0").unwrap();
    }
    hosted.done(&["site", "deploy", folder.path().to_str().unwrap()]);
    let ask = |path: &str, fields: &str| {
        hosted.server.send(format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"
        ))
    };
    let worker = |path: &str, more: &str| {
        let refused = ask(
            path,
            &format!("Service-Worker: script\r\nAccept: */*\r\n{more}"),
        );
        refused.expect_error(404, "not_found", "service workers");
        refused.header("Clear-Site-Data").map(str::to_owned)
    };
    let tag = ask("/sw.js", "")
        .expect(200)
        .header("ETag")
        .unwrap()
        .to_owned();
    let known = format!("If-None-Match: {tag}\r\n");
    for path in ["/sw.js", "/sw.js?1", "/%73w.js", "/app/sw.mjs"] {
        assert_eq!(
            worker(path, &known),
            None,
            "the pages of this deploy keep what they have stored"
        );
    }
    ask("/sw.js", &known).expect(304);
    // Neither do those of the site.
    let page = String::from_utf8(ask("/", "").body.clone()).unwrap();
    let own = page
        .split("src=\"")
        .nth(1)
        .map(|rest| rest.split('"').next().unwrap());
    if let Some(own) = own {
        ask(own, "").expect(200);
        worker(own, "");
    }
    hosted.done(&["site", "rollback"]);
    for path in ["/sw.js", "/app/sw.mjs", "/of-another-program.js"] {
        assert_eq!(
            worker(path, &known).as_deref(),
            Some("\"storage\""),
            "{path}"
        );
    }
    assert_eq!(
        ask("/sw.js", "").expect(404).header("Clear-Site-Data"),
        None
    );
}

#[test]
fn deployed_files_are_served_alongside_the_site() {
    let hosted = Hosted::start();
    let folder = Folder::new();
    let place = |path: &str| folder.path().join(path);
    std::fs::create_dir(place("guide")).unwrap();
    std::fs::write(place("guide/index.html"), "<h1>Guide</h1>".repeat(99)).unwrap();
    std::fs::write(place("a b.txt"), "text").unwrap();
    std::fs::create_dir(place(".well-known")).unwrap();
    std::fs::write(place(".well-known/security.txt"), "Contact: tel:1").unwrap();
    std::fs::write(place("robots.txt"), "User-agent: mine").unwrap();
    std::fs::write(place("404.html"), "<h1>Nothing</h1>").unwrap();
    std::fs::write(place("index.html"), "<h1>Mine</h1>").unwrap();
    std::fs::write(place(".hidden"), "nobody's business").unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    assert_eq!(
        hosted.done(&["site", "deploy", &path]),
        "deploy 2 is live, with 6 static files\n\
         / still shows the reference; your index.html is at /index.html\n"
    );
    let get = |target: &str| {
        hosted
            .server
            .send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    };
    let page = get("/guide/");
    assert_eq!(
        page.expect(200).header("Content-Type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.body.starts_with(b"<h1>Guide</h1>") && page.header("ETag").is_some());
    assert_eq!(
        get("/guide").expect(308).header("Location"),
        Some("./guide/")
    );
    assert_eq!(
        get("/guide?x=1").expect(308).header("Location"),
        Some("./guide/?x=1")
    );
    for path in ["/guide%2f", "/guide//", "//guide", "/guide%2findex.html"] {
        get(path).expect(404);
    }
    assert_eq!(get("/a%20b.txt").expect(200).body, b"text");
    let mut connection = hosted.server.connect();
    connection.send("HEAD /a%20b.txt HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = connection.reply_to("HEAD");
    assert_eq!(
        (head.expect(200).header("Content-Length"), &*head.body),
        (Some("4"), &b""[..])
    );
    for (method, status) in [("POST", 405), ("OPTIONS", 204)] {
        connection.send(format!(
            "{method} /a%20b.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        ));
        let methods = connection
            .reply()
            .expect(status)
            .header("Allow")
            .map(str::to_owned);
        assert_eq!(methods.as_deref(), Some("GET, HEAD, OPTIONS"), "{method}");
    }
    assert_eq!(
        get("/.well-known/security.txt").expect(200).body,
        b"Contact: tel:1"
    );
    get("/.well-known/api-catalog").expect(200);
    assert_eq!(get("/robots.txt").expect(200).body, b"User-agent: mine");
    get("/a.txt").expect_error(404, "not_found", "path");
    assert_eq!(get("/index.html").expect(200).body, b"<h1>Mine</h1>");
    assert!(!get("/").expect(200).body.starts_with(b"<h1>Mine"));
    let browse = |target: &str| {
        let mut connection = hosted.server.connect();
        let accept = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";
        connection.send(format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n"
        ));
        connection.reply()
    };
    let page = browse("/a.txt");
    assert_eq!(
        page.expect(404).header("Content-Type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.body, b"<h1>Nothing</h1>");
    browse("/v1/nowhere").expect(401);
    get("/docs/keys").expect(200);
    assert_eq!(hosted.done(&["site", "rollback"]), "deploy 1 is live\n");
    get("/guide/").expect(404);
    let page = browse("/guide/");
    assert_eq!(
        page.expect(404).body.starts_with(b"<!doctype html>"),
        cfg!(feature = "site")
    );
    assert!(
        hosted
            .refused(&["site", "rollback"])
            .contains("(unknown_deploy)")
    );
    assert_eq!(
        hosted.done(&["site", "rollback", "2"]),
        "deploy 2 is live\n"
    );
    std::fs::create_dir(place("docs")).unwrap();
    assert!(
        hosted
            .refused(&["site", "deploy", &path])
            .contains("/docs belongs to the built-in site")
    );
    get("/guide/").expect(200);
}

#[test]
fn settings_take_only_an_admin_key_from_their_own_page() {
    let hosted = Hosted::start();
    let key = |words: &[&str]| hosted.done(words).trim_end().to_owned();
    let admin = key(&["key", "add", "owner", "--admin"]);
    let other = key(&["key", "add", "ci"]);
    let home = hosted.server.admin.unwrap();
    let get = |fields: &str| hosted.ask("GET", "/settings/api/project", fields, "");
    get(&format!("Host: {home}\r\n")).expect_error(401, "unauthorized", "API key");
    // The key of the environment as well.
    for key in [&*other, KEY] {
        let fields = format!("Host: {home}\r\nAuthorization: Bearer {key}\r\n");
        get(&fields).expect_error(403, "insufficient_scope", "admin");
    }
    let bearer = format!("Authorization: Bearer {admin}\r\n");
    get(&format!("Host: {home}\r\n{bearer}")).expect(200);
    get(&format!(
        "Host: {home}\r\nOrigin: http://{home}\r\n{bearer}"
    ))
    .expect(200);
    get(&format!("Host: evil.example:9090\r\n{bearer}")).expect_error(
        421,
        "misdirected_request",
        "name",
    );
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        get(&format!("Host: {home}\r\nOrigin: {origin}\r\n{bearer}")).expect_error(
            403,
            "insufficient_scope",
            "origins",
        );
    }
    for (method, target) in [
        ("GET", "/settings/domains"),
        ("GET", "/internal/tls-allowed?domain=pets.example.com"),
        ("POST", "/internal/reset"),
        ("OPTIONS", "/internal/reset"),
        ("GET", "/nowhere"),
    ] {
        let refused = hosted.ask(method, target, "Host: evil.example\r\n", "");
        refused.expect_error(421, "misdirected_request", "names without a dot");
        let fields = format!("Host: {home}\r\nOrigin: http://evil.example\r\n");
        hosted.ask(method, target, &fields, "").expect_error(
            403,
            "insufficient_scope",
            "other origins",
        );
    }
    let page = hosted.ask("GET", "/settings/domains", &format!("Host: {home}\r\n"), "");
    assert!(
        page.expect(200)
            .header("Content-Security-Policy")
            .unwrap()
            .contains("default-src 'none'")
    );
    hosted
        .server
        .send(format!(
            "GET /v1/pets HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\n"
        ))
        .expect(200);
    hosted.done(&["key", "revoke", "owner"]);
    get(&format!("Host: {home}\r\n{bearer}")).expect(401);
}

#[test]
fn settings_are_there_without_a_platform() {
    let server = Server::start_with(|command| command.args(["--admin", "0"]));
    let home = server.admin.unwrap();
    let key = add_key(&server.folder.database(), &["owner", "--admin"]);
    let mut connection = Connection::open(home);
    let fields = format!("Host: {home}\r\nAuthorization: Bearer {key}\r\n");
    connection.send(format!(
        "GET /settings/api/project HTTP/1.1\r\n{fields}\r\n"
    ));
    assert_eq!(
        connection.reply().expect(200).json()["platformHost"],
        Value::Null
    );
}

/// The gate forwards only the header fields that the admin address names.
#[test]
fn settings_get_the_header_fields_of_bodies_and_files() {
    let hosted = Hosted::start();
    let key = hosted.done(&["key", "add", "owner", "--admin"]);
    let own = format!("Host: h\r\nAuthorization: Bearer {}\r\n", key.trim_end());
    let ask = |method: &str, path: &str, fields: &str, body: &str| {
        hosted.ask(method, path, &format!("{own}{fields}\r\n"), body)
    };
    let add = |fields: &str| ask("POST", "/settings/api/domains", fields, "{}");
    let refused = add("Content-Type: text/plain");
    refused.expect_error(415, "unsupported_media_type", "application/json");
    assert_eq!(refused.header("Accept"), Some("application/json"));
    let refused = add("Content-Encoding: gzip");
    refused.expect_error(415, "unsupported_content_encoding", "Content-Encoding");
    let get = |fields: &str| ask("GET", "/settings/domains", fields, "");
    let page = get("Accept-Encoding: gzip");
    assert_eq!(page.expect(200).header("Content-Encoding"), Some("gzip"));
    let tag = page.header("ETag").unwrap();
    get(&format!("Accept-Encoding: gzip\r\nIf-None-Match: {tag}")).expect(304);
}

#[test]
fn settings_list_their_methods() {
    let hosted = Hosted::start();
    let key = hosted.done(&["key", "add", "owner", "--admin"]);
    let own = format!("Host: h\r\nAuthorization: Bearer {}\r\n", key.trim_end());
    for (method, path, status, allow) in [
        ("OPTIONS", "*", 204, "GET, HEAD, POST, DELETE, OPTIONS"),
        ("OPTIONS", "/settings/domains", 204, "GET, HEAD, OPTIONS"),
        ("OPTIONS", "/settings/api/pairs", 204, "POST, OPTIONS"),
        ("PUT", "/settings/api/domains/a", 405, "DELETE, OPTIONS"),
        (
            "GET",
            "/settings/api/domains/a/verify",
            405,
            "POST, OPTIONS",
        ),
        ("DELETE", "/metrics", 405, "GET, HEAD, OPTIONS"),
    ] {
        let reply = hosted.ask(method, path, &own, "");
        assert_eq!(reply.expect(status).header("Allow"), Some(allow), "{path}");
    }
}

#[test]
fn settings_do_what_the_commands_do() {
    let hosted = Hosted::start();
    let key = hosted.done(&["key", "add", "owner", "--admin"]);
    let home = hosted.server.admin.unwrap();
    let fields = format!(
        "Host: {home}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
        key.trim_end()
    );
    let ask = |method: &str, path: &str, body: &str| {
        hosted.ask(method, &format!("/settings/api/{path}"), &fields, body)
    };
    let name = r#"{"name":"pets.example.com"}"#;
    assert_eq!(
        ask("POST", "domains", name).expect(201).json()["record"]["type"],
        "CNAME"
    );
    ask("POST", "domains", name).expect_error(409, "domain_exists", "already");
    ask("POST", "domains", r#"{"name":"*.a.example"}"#).expect_error(
        400,
        "invalid_domain",
        "wildcard",
    );
    ask("POST", "domains", "{}").expect_error(400, "missing_member", "name");
    hosted
        .dns
        .set(&[RIGHT, (PLATFORM, Record::A([192, 0, 2, 10]))]);
    ask("POST", "domains/pets.example.com/verify", "").expect(202);
    let first = || ask("GET", "project", "").expect(200).json()["domains"][0].take();
    wait_until("the result", || {
        first()["isChecking"] == false && first()["state"] == "verified"
    });
    ask("POST", "domains/x.example/verify", "").expect_error(404, "unknown_domain", "x.example");
    ask("POST", "domains", r#"{"name":"www.example.com"}"#).expect(201);
    ask("POST", "domains/www.example.com/primary", "").expect_error(
        409,
        "not_verified",
        "www.example.com",
    );
    let redirect = r#"{"from":"www.example.com","to":"pets.example.com","status":302}"#;
    assert_eq!(
        ask("POST", "redirects", redirect).expect(201).json()["status"],
        302
    );
    ask(
        "POST",
        "redirects",
        r#"{"from":"www.example.com","to":"a","status":303}"#,
    )
    .expect(400);
    let pair = ask("POST", "pairs", r#"{"name":"b.example"}"#)
        .expect(201)
        .json();
    assert_eq!(
        (&pair[0]["name"], &pair[1]["name"]),
        (&"b.example".into(), &"www.b.example".into())
    );
    ask("POST", "pairs", r#"{"name":"b.example"}"#).expect_error(409, "domain_exists", "already");
    ask("DELETE", "domains/b.example", "").expect(200);
    ask("DELETE", "domains/www.b.example", "").expect(200);
    ask("DELETE", "redirects/www.example.com", "").expect(204);
    ask("DELETE", "redirects/www.example.com", "").expect_error(
        404,
        "unknown_redirect",
        "www.example.com",
    );
    let removed = ask("DELETE", "domains/pets.example.com", "")
        .expect(200)
        .json();
    assert_eq!(removed["wasPrimary"], true);
    ask("GET", "domains", "").expect_error(405, "method_not_allowed", "method");
    ask("GET", "nothing", "").expect_error(404, "not_found", "path");
    assert_eq!(hosted.list()["domains"].as_array().unwrap().len(), 1);
}

#[test]
fn apex_may_have_the_addresses_of_the_platform() {
    let hosted = Hosted::start();
    let platform = [
        (PLATFORM, Record::A([192, 0, 2, 10])),
        (PLATFORM, Record::Aaaa("2001:db8::10")),
    ];
    hosted.dns.set(&platform);
    let said = hosted.done(&["domain", "add", "example.com", "--www"]);
    let record = "  type   ALIAS or ANAME\n  name   @\n  value  sites.example.net\n  TTL    3600\n\nNot every DNS";
    assert!(
        said.contains(record) && said.contains("a leftover AAAA"),
        "{said}"
    );
    let verify = ["domain", "verify", "example.com"];
    let said = hosted.refused(&verify);
    assert!(
        said.contains("(not_found_yet)")
            && said.contains("or these records: A 192.0.2.10, AAAA 2001:db8::10"),
        "{said}"
    );
    let own = [
        ("example.com", Record::A([192, 0, 2, 10])),
        ("example.com", Record::Aaaa("2001:db8::99")),
    ];
    hosted.dns.set(&[platform.clone(), own].concat());
    let said = hosted.refused(&verify);
    assert!(
        said.contains("(wrong_target)")
            && said
                .contains("AAAA 2001:db8::99. The platform has no such address, and IPv6 clients"),
        "{said}"
    );
    let right = ("example.com", Record::A([192, 0, 2, 10]));
    hosted.dns.set(&[&platform[..], &[right]].concat());
    assert!(hosted.done(&verify).contains("verified"));
}
