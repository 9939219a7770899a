//! `petstore healthcheck`, as a container runs it.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::durability::limit_file_size;
use support::client::post;
use support::harness::{Folder, KEY, Server, expect_refusal, output, petstore};

fn check(listen: &str) -> Output {
    output(petstore(&["healthcheck"]).env("PETSTORE_LISTEN", listen))
}

#[track_caller]
fn expect_ready(listen: &str) {
    let output = check(listen);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{listen} is ready\n")
    );
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn service_is_found_at_every_form_of_its_address() {
    let server = Server::start_with(|command| command.args(["--listen", "0.0.0.0:0"]));
    let port = server.address.port();
    for host in ["127.0.0.1", "0.0.0.0", "localhost"] {
        expect_ready(&format!("{host}:{port}"));
    }
    // Not every machine has IPv6.
    if TcpListener::bind("[::1]:0").is_ok() {
        let server = Server::start_with(|command| command.args(["--listen", "[::]:0"]));
        expect_ready(&format!("[::]:{}", server.address.port()));
    }
    // Nobody may listen at the IPv6 address, where there is no IPv6.
    let server = Server::start_with(|command| command.args(["--listen", "127.0.0.1:0"]));
    expect_ready(&format!("[::]:{}", server.address.port()));
    let folder = Folder::new();
    let place = format!("unix:{}", folder.path().join("http.sock").display());
    let _server = Server::start_in(folder, |command| command.args(["--listen", &place]));
    expect_ready(&place);
    let flag = output(
        petstore(&["healthcheck", "--listen", &place]).env("PETSTORE_LISTEN", "127.0.0.1:1"),
    );
    assert!(flag.status.success(), "{flag:?}");
}

#[test]
fn service_that_cannot_write_is_not_ready_and_reports_the_cause() {
    let server = Server::start();
    let address = server.address.to_string();
    limit_file_size(server.pid(), "4096");
    server
        .send(post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#))
        .expect(503);
    let output = check(&address);
    let said = format!("{address} is not ready: HTTP/1.1 503 Service Unavailable {{\"code\":");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("storage_unavailable"),
        "{output:?}"
    );
    expect_refusal(output, 1, &said);
}

#[test]
fn address_where_nobody_answers_is_reported() {
    let folder = Folder::new();
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    expect_refusal(check(&free), 1, &format!("cannot ask {free}: "));
    let socket = format!("unix:{}/none", folder.path().display());
    expect_refusal(check(&socket), 1, &socket);
}

#[test]
fn server_that_drips_bytes_does_not_hold_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let began = Instant::now();
    let drip = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut one = [0];
        // Each byte comes in time, and the end never does.
        stream
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        while stream.write_all(b"H").is_ok() {
            let _ = stream.read(&mut one);
        }
    });
    expect_refusal(check(&address), 1, "no response within 5 s");
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
    drip.join().unwrap();
}

#[test]
fn other_server_is_not_ready_and_cannot_write_to_the_terminal() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1000]);
        stream
            .write_all(b"HTTP/1.1 404 Not Found\r\n\r\n\x1b]0;owned\x07\nmore")
            .unwrap();
    });
    let output = check(&address);
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!shown.trim_end().contains(char::is_control), "{shown:?}");
    expect_refusal(output, 1, "is not ready: HTTP/1.1 404 Not Found");
    other.join().unwrap();
}
