//! Deadlines are totals, even if bytes trickle. Tested with the library, where they can be short.

use std::time::{Duration, Instant};

use support::client::{Connection, get};
use support::harness::Folder;
use support::wait::wait_until;

struct Service {
    server: petstore::Server,
    _folder: Folder,
}

fn start(change: impl FnOnce(&mut petstore::Deadlines)) -> Service {
    let folder = Folder::new();
    let mut config = crate::config(&folder);
    config.api_key = Some("k".into());
    change(&mut config.deadlines);
    Service {
        server: petstore::Server::start(config).unwrap(),
        _folder: folder,
    }
}

const SHORT: Duration = Duration::from_millis(300);

#[test]
fn late_head_is_408() {
    let service = start(|deadlines| deadlines.head = SHORT);
    let mut connection = Connection::open(service.server.address().tcp().unwrap());
    connection.send("GET / HTTP/1.1\r\nHo");
    connection
        .reply()
        .expect_error(408, "request_timeout", "in time");
    connection.end_sending();
    connection.expect_end();
}

#[test]
fn late_body_is_408() {
    let service = start(|deadlines| deadlines.body = SHORT);
    let mut connection = Connection::open(service.server.address().tcp().unwrap());
    connection.send("POST /v1/pets HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
    connection
        .reply()
        .expect_error(408, "request_timeout", "in time");
}

#[test]
fn dripping_client_gains_nothing() {
    let service = start(|deadlines| (deadlines.head, deadlines.linger) = (SHORT, SHORT));
    let mut dripping = Connection::open(service.server.address().tcp().unwrap());
    dripping.send("GET /");
    // Each byte comes well within the deadline.
    wait_until("the server to close on a dripping client", || {
        !dripping.is_taken("x")
    });
}

#[test]
fn slow_upload_still_gets_its_refusal() {
    let linger = 4 * SHORT;
    let service = start(|deadlines| deadlines.linger = linger);
    let mut slow = Connection::open(service.server.address().tcp().unwrap());
    slow.send("POST /v1/pets HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n");
    let begun = Instant::now();
    // For longer than one silence, at the pace of a slow network.
    while begun.elapsed() < 2 * linger {
        slow.send("x".repeat(100));
        std::thread::sleep(linger / 40);
    }
    slow.reply().expect_error(413, "content_too_large", "65536");
}

#[test]
fn flood_after_the_last_response_is_cut_off() {
    let service = start(|deadlines| deadlines.linger = Duration::from_secs(3600));
    let mut flood = Connection::open(service.server.address().tcp().unwrap());
    flood.send("POST /v1/pets HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n");
    let piece = "x".repeat(64 * 1024);
    wait_until("the server to close on a flood", || !flood.is_taken(&piece));
}

#[test]
fn silence_is_closed_without_a_word() {
    let service = start(|deadlines| deadlines.idle = SHORT);
    let mut silent = Connection::open(service.server.address().tcp().unwrap());
    silent.expect_end();
    let mut used = Connection::open(service.server.address().tcp().unwrap());
    used.get("/v1/pets", "k").expect(200);
    used.expect_end();
}

#[test]
fn client_that_takes_no_reply_is_given_up_and_holds_up_nobody() {
    let service = start(|deadlines| deadlines.response = SHORT);
    let mut filler = Connection::open(service.server.address().tcp().unwrap());
    let name = "x".repeat(60_000);
    for _ in 0..20 {
        filler
            .post(
                "/v1/pets",
                "k",
                &format!(r#"{{"name":"{name}","categoryId":1}}"#),
            )
            .expect(201);
    }
    // More than the sockets' buffers hold; nothing is read.
    let mut deaf = Connection::open(service.server.address().tcp().unwrap());
    for _ in 0..20 {
        deaf.send(get("/v1/pets", "k"));
    }
    for _ in 0..50 {
        filler.get("/v1/pets/1", "k").expect(200);
    }
    // When the server gives up, the unread bytes cause a reset.
    wait_until("the server to give up a deaf client", || {
        !deaf.is_taken("x")
    });
}
