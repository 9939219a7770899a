//! A running service checks the records of its domains by itself, and notes HTTPS requests.

use crate::admin::metric;
use crate::domains::{Hosted, PLATFORM, RIGHT, ask_by};
use support::harness::Server;
use support::wait::wait_until;

#[test]
fn first_https_request_through_a_trusted_proxy_shows_the_certificate() {
    let hosted = Hosted::verified();
    let mut connection = hosted.server.connect();
    ask_by(
        &mut connection,
        "pets.example.com",
        "X-Forwarded-Proto: http\r\n",
    )
    .expect(200);
    assert_eq!(hosted.state(), "verified");
    ask_by(
        &mut connection,
        "pets.example.com",
        "X-Forwarded-Proto: https\r\n",
    )
    .expect(200);
    wait_until("the domain to be active", || hosted.state() == "active");
}

/// Ten minutes at a time, with the check and the restart that belong to them.
#[test]
fn certificate_that_does_not_come_is_delayed_after_half_an_hour_of_checks_and_restarts() {
    let mut hosted = Hosted::verified();
    let gauge = |hosted: &Hosted, state: &str| {
        metric(&hosted.server, &format!("domains{{state=\"{state}\"}}"))
    };
    let mut states = Vec::new();
    for _ in 0..4 {
        let checked_at = |hosted: &Hosted| hosted.list()["domains"][0]["checkedAt"].to_string();
        let before = checked_at(&hosted);
        hosted = hosted
            .restarted("UPDATE domains SET since = since - 600, checked_at = checked_at - 600");
        wait_until("the check by the service", || checked_at(&hosted) >= before);
        states.push(hosted.state());
    }
    assert_eq!(
        states,
        [
            "verified",
            "verified",
            "certificate_delayed",
            "certificate_delayed"
        ]
    );
    assert_eq!(
        (
            gauge(&hosted, "verified"),
            gauge(&hosted, "certificate_delayed")
        ),
        (Some(0), Some(1))
    );
    let said = hosted.done(&["domain", "list"]);
    for part in [
        "the DNS record is still correct",
        "no CAA record blocks",
        "re-verify",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    hosted.done(&["domain", "reverify", "pets.example.com"]);
    assert_eq!(hosted.state(), "verified");
}

#[test]
fn domain_that_loses_its_record_is_one_warning_and_a_number_in_the_metrics() {
    let hosted = Hosted::verified();
    let key = hosted.done(&["key", "add", "owner", "--admin"]);
    let fields = format!(
        "Host: localhost\r\nAuthorization: Bearer {}\r\n",
        key.trim_end()
    );
    let gauge = |state: &str| metric(&hosted.server, &format!("domains{{state=\"{state}\"}}"));
    assert_eq!(
        (gauge("verified"), gauge("dns_changed")),
        (Some(1), Some(0))
    );
    hosted.dns.set(&[]);
    for _ in 0..2 {
        hosted
            .ask(
                "POST",
                "/settings/api/domains/pets.example.com/verify",
                &fields,
                "",
            )
            .expect(202);
        let project = || {
            hosted
                .ask("GET", "/settings/api/project", &fields, "")
                .json()
        };
        wait_until("the check to end", || {
            project()["domains"][0]["isChecking"] == false
        });
    }
    assert_eq!(
        (gauge("verified"), gauge("dns_changed")),
        (Some(0), Some(1))
    );
    let logged = hosted.server.stop();
    let lines: Vec<&str> = logged
        .lines()
        .filter(|line| line.contains("the domain "))
        .collect();
    assert_eq!(lines.len(), 1, "{logged}");
    let said = "WARN  petstore_hosting::project::background] the domain pets.example.com is dns_changed: wrong DNS record";
    assert!(lines[0].contains(said), "{logged}");
}

#[test]
fn awaited_record_is_found_by_the_service_itself() {
    let hosted = Hosted::start();
    hosted.done(&["domain", "add", "pets.example.com"]);
    hosted.dns.set(&[RIGHT]);
    let hosted = hosted.restarted("");
    wait_until("the check", || hosted.state() == "verified");
}

#[test]
fn silent_name_server_delays_neither_requests_nor_the_end() {
    let hosted = Hosted::start();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let resolver = silent.local_addr().unwrap().to_string();
    let Hosted { mut server, dns } = hosted;
    server.signal("TERM");
    server.ended();
    let Server { folder, .. } = server;
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
    let hosted = Hosted { server, dns };
    let key = hosted.done(&["key", "add", "owner", "--admin"]);
    let fields = format!(
        "Host: localhost\r\nAuthorization: Bearer {}\r\n",
        key.trim_end()
    );
    hosted.done(&["domain", "add", "pets.example.com"]);
    let ask = |method: &str, path: &str| {
        hosted.ask(method, &format!("/settings/api/{path}"), &fields, "")
    };
    ask("POST", "domains/pets.example.com/verify").expect(202);
    assert_eq!(
        ask("GET", "project").json()["domains"][0]["isChecking"],
        true
    );
    ask_by(&mut hosted.server.connect(), "localhost", "").expect(200);
    let mut server = hosted.server;
    server.signal("TERM");
    assert_eq!(
        server.ended().0.code(),
        Some(0),
        "the end does not wait for DNS"
    );
}
