//! Where the service listens: addresses, hosts and Unix sockets.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use support::client::{Connection, get};
use support::harness::{Folder, KEY, Server, as_nobody, expect_refusal, output, run};

/// A server on a Unix socket in its folder, and the path.
fn unix(folder: Folder) -> (Server, PathBuf) {
    let path = folder.path().join("http.sock");
    let server = Server::start_in(folder, |command| {
        command
            .args(["--listen", &place(&path)])
            .env("RUST_LOG", "info")
    });
    assert_eq!(server.place, place(&path));
    (server, path)
}

fn place(path: &Path) -> String {
    format!("unix:{}", path.display())
}

#[track_caller]
fn refused(listen: &str, said: &str) {
    let folder = Folder::new();
    expect_refusal(run(&["--listen", listen], &folder.database()), 1, said);
}

#[test]
fn unix_socket_is_served_and_removed_at_the_end() {
    let (server, path) = unix(Folder::new());
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o660
    );
    let mut client = Connection::open_unix(&path);
    client
        .post("/v1/pets", KEY, r#"{"name":"Rex","categoryId":1}"#)
        .expect(201);
    client.get("/v1/pets", KEY).expect(200);
    let logged = server.stop();
    assert!(
        logged.contains(" unix ") && logged.contains(" GET /v1/pets 200 "),
        "{logged}"
    );
    assert!(!path.exists());
}

#[test]
fn proxy_at_a_unix_socket_names_the_client_whatever_other_proxies_are_trusted() {
    let folder = Folder::new();
    let path = folder.path().join("http.sock");
    let server = Server::start_in(folder, |command| {
        command
            .args(["--listen", &place(&path), "--trusted-proxy", "10.0.0.1"])
            .env("RUST_LOG", "info")
    });
    let mut client = Connection::open_unix(&path);
    client.send(get("/v1/pets", KEY).replace("Host: h", "Host: h\r\nX-Forwarded-For: 1.2.3.4"));
    client.reply().expect(200);
    let logged = server.stop();
    assert!(logged.contains(" 1.2.3.4 "), "{logged}");
}

#[test]
fn socket_of_a_killed_service_is_replaced() {
    let (server, path) = unix(Folder::new());
    let folder = server.kill();
    assert!(path.exists());
    let (_server, path) = unix(folder);
    Connection::open_unix(&path)
        .get("/v1/pets", KEY)
        .expect(200);
}

#[test]
fn paths_that_cannot_be_had_are_refused_and_left_alone() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let _listener = UnixListener::bind(at("live")).unwrap();
    refused(&place(&at("live")), "another service listens there");
    std::fs::write(at("file"), "mine").unwrap();
    refused(&place(&at("file")), "is not a socket");
    assert_eq!(std::fs::read(at("file")).unwrap(), b"mine");
    refused(
        &place(&at("missing/socket")),
        "missing/socket: No such file or directory",
    );
    refused(
        &place(&at(&"x".repeat(200))),
        "path must be shorter than SUN_LEN",
    );
}

#[test]
fn socket_of_another_user_is_left_alone() {
    let folder = Folder::new();
    let path = folder.path().join("theirs");
    let _listener = UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = as_nobody(&["--listen", &place(&path)]);
    let refused = output(command.env("PETSTORE_DATABASE", folder.database()));
    expect_refusal(refused, 1, "the socket there belongs to another user");
    assert!(path.exists());
}

#[test]
fn addresses_that_cannot_be_had_are_refused_with_the_reason() {
    // An address and a name that are reserved (RFC 5737 and RFC 6761).
    refused(
        "192.0.2.1:80",
        "192.0.2.1:80: Cannot assign requested address",
    );
    refused(
        "nowhere.invalid:80",
        "the host nowhere.invalid has no address",
    );
}

#[test]
fn host_is_looked_up() {
    let server = Server::start_with(|command| command.args(["--listen", "localhost:0"]));
    assert!(server.address.ip().is_loopback());
    server.get("/v1/pets").expect(200);
}
