//! SIGTERM and SIGINT: requests that have begun are finished. Other signals change nothing.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::messages;
use support::client::{Connection, get, post};
use support::harness::{Folder, KEY, Process, Server, change, is_root, program};
use support::wait::wait_until;

#[test]
fn begun_requests_are_answered_under_load() {
    for signal in ["TERM", "INT"] {
        let answered = AtomicUsize::new(0);
        let ending = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Moved in here, so that a failed assertion ends the server and the threads.
            let mut server = Server::start();
            let address = server.address;
            for i in 0..16 {
                let (answered, ending) = (&answered, &ending);
                scope.spawn(move || {
                    let mut connection = Connection::open(address);
                    let request = match i % 2 {
                        0 => post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#),
                        _ => get("/v1/pets", KEY),
                    };
                    loop {
                        // A request that comes after the idle connection was closed fails.
                        let taken = connection.is_taken(&request);
                        let Some(reply) = taken.then(|| connection.reply_unless_ended()).flatten()
                        else {
                            assert!(ending.load(Ordering::SeqCst), "closed before the signal");
                            return;
                        };
                        answered.fetch_add(1, Ordering::SeqCst);
                        assert!([200, 201].contains(&reply.status), "{reply:?}");
                        if reply.header("Connection") == Some("close") {
                            assert!(ending.load(Ordering::SeqCst), "closed before the signal");
                            return;
                        }
                    }
                });
            }
            wait_until("500 replies", || answered.load(Ordering::SeqCst) >= 500);
            ending.store(true, Ordering::SeqCst);
            server.signal(signal);
            assert!(server.ended().0.success());
        });
    }
}

/// A server that got SIGTERM during a request, and has closed its idle clients.
fn end_within_a_request() -> (Server, Connection) {
    end_within_a_request_by(|server| server.signal("TERM"))
}

fn end_within_a_request_by(end: impl FnOnce(&Server)) -> (Server, Connection) {
    let server = Server::start();
    let mut begun = server.connect();
    begun.send("POST /v1/pets HTTP/1.1\r\nHost: h\r\n");
    // Answered after the bytes above have arrived, so that request is known to have begun.
    server.get("/v1/pets").expect(200);
    let mut idle = server.connect();
    idle.get("/v1/pets", KEY).expect(200);
    end(&server);
    idle.expect_end();
    (server, begun)
}

#[test]
fn begun_request_may_be_finished_after_the_signal() {
    let (mut server, mut begun) = end_within_a_request();
    begun.send(format!(
        "Authorization: Bearer {KEY}\r\nContent-Length: 27\r\n\r\n"
    ));
    begun.send(r#"{"name":"x","categoryId":1}"#);
    assert_eq!(
        begun.reply().expect(201).header("Connection"),
        Some("close")
    );
    drop(begun);
    assert!(server.ended().0.success());
    assert!(
        !server.folder.path().join("pets.db-wal").exists(),
        "the log was moved into the database"
    );
}

#[test]
fn signals_in_the_same_instant_are_one() {
    // Like timeout(1).
    let (mut server, mut begun) = end_within_a_request_by(|server| {
        let pid = server.pid().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid, &pid])
                .status()
                .unwrap()
                .success()
        );
    });
    begun.send(format!(
        "Authorization: Bearer {KEY}\r\nContent-Length: 27\r\n\r\n"
    ));
    begun.send(r#"{"name":"x","categoryId":1}"#);
    begun.reply().expect(201);
    drop(begun);
    let (status, _, logged) = server.ended();
    assert!(
        status.success() && logged.contains(messages::ENDED_BY_SIGTERM),
        "{logged}"
    );
}

#[test]
fn second_signal_ends_at_once_and_both_are_in_the_log() {
    for (name, number) in [("TERM", 15), ("INT", 2)] {
        let (mut server, begun) = end_within_a_request_by(|server| server.signal(name));
        // Until one comes late enough to count as the second signal.
        wait_until("the end", || {
            let _ = Command::new("kill")
                .args([&format!("-{name}"), &server.pid().to_string()])
                .status();
            server.has_ended()
        });
        let (status, _, logged) = server.ended();
        assert_eq!(status.signal(), Some(number), "{status}");
        assert!(
            logged.contains(&format!(
                "SIG{name}: finishing the requests in progress; a second"
            )),
            "{logged}"
        );
        let end = format!(" s: a second signal, SIG{name}; unfinished requests: 1");
        assert!(logged.contains(&end), "{logged}");
        drop(begun);
    }
}

#[test]
fn signals_of_other_programs_end_nothing() {
    let server = Server::start();
    for name in ["HUP", "USR1", "USR2"] {
        server.signal(name);
    }
    server.get("/v1/pets").expect(200);
    server.stop();
}

/// A command as process 1 of a container, and its process.
fn as_first(words: &[&str], folder: &Folder, input: Stdio) -> (Process, String) {
    let mut command = Command::new("unshare");
    // Whoever is not root becomes it in a namespace of users.
    command
        .args(if is_root() { &["-pf"][..] } else { &["-rpf"] })
        .arg("--mount-proc")
        .arg(program());
    command
        .args(words)
        .env("PETSTORE_DATABASE", folder.database())
        .env("TMPDIR", std::env::temp_dir());
    let process = Process::start_with_input(&mut command, input);
    let id = process.child.id();
    let mut first = String::new();
    wait_until("the command to run", || {
        first = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let name = std::fs::read_to_string(format!("/proc/{}/comm", first.trim()));
        name.is_ok_and(|name| name == "petstore\n")
    });
    (process, first.trim().to_owned())
}

#[test]
fn process_1_ends_on_a_signal_too() {
    let folder = Server::start().kill();
    change(
        &folder.database(),
        "INSERT INTO pets (name, category_id) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000)
         SELECT printf('%0100d', i), 1 FROM n",
    );
    for (signal, status) in [("TERM", 143), ("INT", 130)] {
        // Nobody reads what `export` prints, and nobody writes what `import` reads.
        for words in [&["export"], &["import"]] {
            let (reader, writer) = std::io::pipe().unwrap();
            let (mut process, first) = as_first(words, &folder, reader.into());
            // It reads or writes, and waits.
            wait_until("it to wait", || {
                let state = std::fs::read_to_string(format!("/proc/{first}/wchan")).unwrap();
                state.contains("pipe")
            });
            assert!(
                Command::new("kill")
                    .args([&format!("-{signal}"), &first])
                    .status()
                    .unwrap()
                    .success()
            );
            assert_eq!(process.ended().code(), Some(status), "{words:?} {signal}");
            drop(writer);
        }
    }
}
