//! A supervisor such as systemd: it passes the socket, gets notifications, and watches the service.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::Command;
use std::time::Instant;

use socket2::{Domain, SockAddr, Socket, Type};

use support::client::{Connection, get};
use support::harness::{
    Folder, KEY, Process, Server, change, expect_refusal, output, passed, petstore,
};
use support::wait::PATIENCE;

/// The socket for notifications.
struct Notices(UnixDatagram);

impl Notices {
    fn bind(folder: &Folder) -> Self {
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    /// Waits for a notification with this line, and skips others.
    #[track_caller]
    fn expect(&self, line: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "no {line}");
            let mut bytes = [0; 4096];
            let count = self
                .0
                .recv(&mut bytes)
                .unwrap_or_else(|error| panic!("no {line}: {error}"));
            let notice = String::from_utf8(bytes[..count].to_vec()).unwrap();
            if notice.lines().any(|other| other == line) {
                return notice;
            }
        }
    }

    /// Waits for a watchdog notification that follows a health check made from now on.
    #[track_caller]
    fn expect_watchdog(&self) {
        // Waiting notifications are old; the next may have been on its way; the one after it is new.
        self.0.set_nonblocking(true).unwrap();
        while self.0.recv(&mut [0; 4096]).is_ok() {}
        self.0.set_nonblocking(false).unwrap();
        (0..2).for_each(|_| drop(self.expect("WATCHDOG=1")));
    }
}

/// A socket that the supervisor keeps open, and its address.
fn tcp() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn watched<'a>(command: &'a mut Command, folder: &Folder) -> &'a mut Command {
    command
        .env("NOTIFY_SOCKET", folder.path().join("notify"))
        .env("WATCHDOG_USEC", "200000")
}

#[test]
fn supervisor_is_notified_of_the_start_and_of_the_end() {
    let notices_folder = Folder::new();
    let notices = Notices::bind(&notices_folder);
    let mut server = Server::start_with(|command| watched(command, &notices_folder));
    let ready = notices.expect("READY=1");
    assert!(
        ready.contains(&format!("STATUS=listening on {}", server.place)),
        "{ready}"
    );
    let mut begun = server.connect();
    begun.send("GET /v1/pets HTTP/1.1\r\nHost: h\r\n");
    server.get("/v1/pets").expect(200);
    server.signal("TERM");
    notices.expect("STOPPING=1");
    begun.send(format!("Authorization: Bearer {KEY}\r\n\r\n"));
    begun.reply().expect(200);
    drop(begun);
    assert!(server.ended().0.success());
}

#[test]
fn supervisor_is_asked_for_more_time_while_a_start_takes_long() {
    let notices_folder = Folder::new();
    let notices = Notices::bind(&notices_folder);
    let folder = Server::start().kill();
    let lock = rusqlite::Connection::open(folder.database()).unwrap();
    lock.execute_batch("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE")
        .unwrap();
    let starting = std::thread::scope(|scope| {
        let starting =
            scope.spawn(|| Server::start_in(folder, |command| watched(command, &notices_folder)));
        // A supervisor that heard of it only once would end a start that takes longer.
        (0..2).for_each(|_| drop(notices.expect("EXTEND_TIMEOUT_USEC=30000000")));
        drop(lock);
        starting.join().unwrap()
    });
    notices.expect("READY=1");
    starting.get("/v1/pets").expect(200);
}

#[test]
fn watchdog_is_notified_even_if_all_connections_are_taken() {
    let notices_folder = Folder::new();
    let notices = Notices::bind(&notices_folder);
    let server = Server::start_with(|command| {
        watched(command, &notices_folder).args(["--max-connections", "1"])
    });
    notices.expect("READY=1");
    notices.expect_watchdog();
    let mut only = server.connect();
    only.get("/v1/pets", KEY).expect(200);
    notices.expect_watchdog();
    only.get("/v1/pets", KEY).expect(200);
    assert!(!server.stop().contains("watchdog"));
}

#[test]
fn watchdog_is_notified_while_the_database_fails() {
    let notices_folder = Folder::new();
    let notices = Notices::bind(&notices_folder);
    let server = Server::start_with(|command| watched(command, &notices_folder));
    change(&server.folder.database(), "DROP TABLE pets");
    server.get("/v1/pets").expect(503);
    notices.expect_watchdog();
}

#[test]
fn service_without_a_listener_to_its_notices_goes_on_and_says_so() {
    let folder = Folder::new();
    let server =
        Server::start_with(|command| command.env("NOTIFY_SOCKET", folder.path().join("nobody")));
    server.get("/v1/pets").expect(200);
    let logged = server.stop();
    assert!(
        logged.contains("cannot notify the supervisor (NOTIFY_SOCKET)"),
        "{logged}"
    );
}

#[test]
fn passed_socket_is_served_in_place_of_the_setting() {
    let (listener, address) = tcp();
    let server = Server::start_on(listener, Folder::new(), |command| command);
    assert_eq!(server.address, address);
    server.get("/v1/pets").expect(200);
    server.stop();
    let (listener, address) = tcp();
    let server = Server::start_on(listener, Folder::new(), |command| {
        command.env("PETSTORE_LISTEN", "127.0.0.1:1")
    });
    assert_eq!(server.address, address);
    server.stop();
}

#[test]
fn passed_unix_socket_is_served_and_its_file_stays() {
    let folder = Folder::new();
    let path = folder.path().join("http.sock");
    let mut server = Server::start_on(UnixListener::bind(&path).unwrap(), folder, |command| {
        command
    });
    assert_eq!(server.place, format!("unix:{}", path.display()));
    Connection::open_unix(&path)
        .get("/v1/pets", KEY)
        .expect(200);
    server.signal("TERM");
    assert!(server.ended().0.success());
    assert!(path.exists(), "it is the supervisor's");
}

#[test]
fn restart_refuses_nobody() {
    let (listener, address) = tcp();
    let mut server = Server::start_on(listener.try_clone().unwrap(), Folder::new(), |command| {
        command
    });
    let mut begun = server.connect();
    begun.send("GET /v1/pets HTTP/1.1\r\nHost: h\r\n");
    server.get("/v1/pets").expect(200);
    let mut idle = server.connect();
    idle.get("/v1/pets", KEY).expect(200);
    server.signal("TERM");
    idle.expect_end();
    // One client comes while the service stops, and one when there is none.
    let mut early = Connection::open(address);
    early.send(get("/v1/pets", KEY));
    begun.send(format!("Authorization: Bearer {KEY}\r\n\r\n"));
    begun.reply().expect(200);
    drop(begun);
    assert!(server.ended().0.success());
    let mut late = Connection::open(address);
    late.send(get("/v1/pets", KEY));
    let _next = Server::start_on(listener, server.folder, |command| command);
    early.reply().expect(200);
    late.reply().expect(200);
}

#[test]
fn sockets_that_cannot_be_served_are_refused() {
    let folder = Folder::new();
    let passed = |change: &dyn Fn(&mut Command)| {
        let mut command = passed();
        command.env("PETSTORE_DATABASE", folder.database());
        change(&mut command);
        // Its standard input, which becomes the socket, is /dev/null.
        output(&mut command)
    };
    expect_refusal(passed(&|_| {}), 1, "it is not a stream socket");
    let deaf = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    deaf.bind(&SockAddr::unix(folder.path().join("deaf")).unwrap())
        .unwrap();
    let mut command = support::harness::passed();
    command.env("PETSTORE_DATABASE", folder.database());
    let refused = Process::start_with_input(&mut command, OwnedFd::from(deaf).into()).output();
    expect_refusal(refused, 1, "it is not a stream socket that listens");
    let other = |count: &str| {
        let script = format!(r#"exec 3</dev/null; LISTEN_FDS={count} LISTEN_PID=$$ exec "$0""#);
        let mut command = Command::new("sh");
        command
            .args(["-c", &script, env!("CARGO_BIN_EXE_petstore")])
            .env("PETSTORE_DATABASE", folder.database());
        output(&mut command)
    };
    expect_refusal(other("2"), 1, "2 sockets");
    expect_refusal(other("x"), 1, "number of sockets");
}

#[test]
fn socket_for_another_process_is_not_taken() {
    let server =
        Server::start_with(|command| command.env("LISTEN_FDS", "1").env("LISTEN_PID", "1"));
    server.get("/v1/pets").expect(200);
    assert!(
        output(petstore(&["--help"]).env("LISTEN_FDS", "1"))
            .status
            .success()
    );
}

#[test]
fn address_that_a_passed_socket_replaces_is_reported() {
    for (listen, lines) in [("127.0.0.1:1", 1), ("127.0.0.1:8080", 0)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::start_on(listener, Folder::new(), |command| {
            command.env("PETSTORE_LISTEN", listen)
        });
        server.get("/v1/pets").expect(200);
        let logged = server.stop();
        assert_eq!(
            logged
                .matches("--listen (PETSTORE_LISTEN) is ignored")
                .count(),
            lines,
            "{logged}"
        );
    }
}
