//! The library in a program that starts and stops servers: a stopped server leaves no thread, descriptor or file
//! behind. Counts what Linux shows in `/proc`.
#![cfg(target_os = "linux")]

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use petstore::{Config, ErrorKind, KeyRing, KeyScope, Listen, Server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use support::client::{Connection, with_body};
use support::harness::{Folder, after, is_root};
use support::wait::{PATIENCE, wait_until};

const KEY: &str = "test-key";
const SERVERS: usize = 3;
const ROUNDS: usize = 4;
/// If this variable is set, the test runs in this process, with its databases in the folder that it names.
const FOLDER: &str = "PETSTORE_TEST_FOLDER";

#[test]
fn stopped_servers_leave_nothing_behind() {
    match std::env::var_os(FOLDER) {
        Some(folder) => start_and_stop(Path::new(&folder)),
        None => in_a_process_of_its_own("stopped_servers_leave_nothing_behind"),
    }
}

/// Runs a test in a process of its own: no other test shares its threads, descriptors, current folder and TMPDIR.
fn in_a_process_of_its_own(test: &str) {
    let folder = Folder::new();
    expect_pass(&mut alone(test, &folder));
}

/// The command of a test in a process of its own, where the test finds the folder.
fn alone(test: &str, folder: &Folder) -> Command {
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("embedding::{test}"), "--nocapture"]);
    command.env(FOLDER, folder.path()).env("TMPDIR", &temporary);
    command
}

fn expect_pass(command: &mut Command) {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr]
        .map(|text| String::from_utf8(text).unwrap())
        .concat();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn relative_database_is_the_same_in_another_folder() {
    if std::env::var_os(FOLDER).is_none() {
        return in_a_process_of_its_own("relative_database_is_the_same_in_another_folder");
    }
    std::env::set_current_dir(std::env::var_os(FOLDER).unwrap()).unwrap();
    let server = start("pets.db".into());
    let mut ring = KeyRing::open("pets.db".as_ref()).unwrap();
    std::env::set_current_dir("/").unwrap();
    ring.add("ci", None, KeyScope::Full, |_| Ok(())).unwrap();
    // The writer looks for the file at least once a second.
    ask(
        &server,
        "POST",
        "/v1/pets",
        r#"{"name":"Rex","categoryId":3}"#,
        201,
    );
    assert!(server.is_running());
    server.stopper().stop();
    server.wait().unwrap();
}

/// What people copy.
#[expect(dead_code, reason = "the test has its own main")]
#[path = "../../examples/own_routes.rs"]
mod own_routes;

#[test]
fn front_outlives_a_client_that_fails_and_bounds_its_memory() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return in_a_process_of_its_own("front_outlives_a_client_that_fails_and_bounds_its_memory");
    };
    let socket = Path::new(&folder).join("pets.sock");
    let mut config = crate::config(&Folder::new());
    config.listen = Listen::Unix(socket.clone());
    config.database = Path::new(&folder).join("pets.db");
    let server = Server::start(config).unwrap();
    let front = Arc::new(tiny_http::Server::http("127.0.0.1:0").unwrap());
    let address = front.server_addr().to_ip().unwrap();
    let serving = Arc::clone(&front);
    std::thread::spawn(move || own_routes::serve(&serving, &socket));
    let send = |request: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let post = "POST /v1/pets HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let _failing = send(&format!("{post}no length\r\n"));
    let mut flood = send(post);
    let chunk = [b"10000\r\n", &[b' '; 0x10000][..], b"\r\n"].concat();
    // The front stops reading, and then the connection breaks or stalls.
    let stalls = Some(Duration::from_secs(1));
    flood.set_write_timeout(stalls).unwrap();
    let sent = (0..4000)
        .take_while(|_| flood.write_all(&chunk).is_ok())
        .count();
    assert!(peak_kilobytes() < 150_000, "{sent} chunks were read");
    let mut other = send("GET /hello HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let mut response = String::new();
    other.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("Hello\n"), "{response}");
    front.unblock();
    server.stopper().stop();
    server.wait().unwrap();
}

/// The most memory that this process has had.
fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let words = line.unwrap().split_whitespace().next();
    words.unwrap().parse().unwrap()
}

#[test]
fn endless_deadlines_are_kept_and_the_end_is_seen() {
    let folder = Folder::new();
    let mut config = crate::config(&folder);
    config.api_key = Some(KEY.into());
    let all = Duration::MAX;
    let deadlines = &mut config.deadlines;
    (
        deadlines.head,
        deadlines.body,
        deadlines.lane,
        deadlines.answer,
    ) = (all, all, all, all);
    (
        deadlines.response,
        deadlines.idle,
        deadlines.linger,
        deadlines.drain,
    ) = (all, all, all, all);
    let server = Server::start(config).unwrap();
    ask(
        &server,
        "POST",
        "/v1/pets",
        r#"{"name":"Rex","categoryId":3}"#,
        201,
    );
    assert!(server.health_check().is_answered(all));
    assert!(
        server.is_running()
            && format!("{server:?}").contains(&server.address().tcp().unwrap().to_string())
    );
    server.stopper().stop();
    wait_until("the end of the server", || !server.is_running());
    server.wait().unwrap();
}

#[test]
fn requests_that_were_cut_off_are_counted() {
    let folder = Folder::new();
    let mut config = crate::config(&folder);
    config.deadlines.drain = Duration::from_millis(100);
    let server = Server::start(config).unwrap();
    let mut begun = Connection::open(server.address().tcp().unwrap());
    begun.send("POST /v1/pets HTTP/1.1\r\nHost: h\r\nContent-Length: 27\r\n\r\n");
    // Answered after the bytes above have arrived.
    ask(&server, "GET", "/healthz", "", 200);
    let stopper = server.stopper();
    stopper.stop();
    server.wait().unwrap();
    assert_eq!(stopper.cut_off(), 1);
}

#[test]
fn threads_that_are_missing_are_an_error_of_the_start() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let enough = (1..1000).find(|limit| serves_with_threads(*limit, Path::new(&folder)));
        assert!(enough.is_some_and(|limit| limit > 10), "{enough:?}");
    } else if is_root() {
        let folder = Folder::new();
        let mut command = alone(
            "threads_that_are_missing_are_an_error_of_the_start",
            &folder,
        );
        for path in [folder.path().to_owned(), folder.path().join("tmp")] {
            std::fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        // Root has no such limit.
        let nobody = "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\" \"$@\"";
        expect_pass(after(&mut command, nobody));
    }
}

/// Starts a server with this limit of threads. Returns whether it serves, or else is refused.
fn serves_with_threads(limit: u64, folder: &Path) -> bool {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nproc);
    let set = |current| setrlimit(Resource::Nproc, Rlimit { current, maximum }).unwrap();
    set(Some(limit));
    let served = match Server::start(config(folder.join("pets.db"))) {
        Ok(server) => {
            let connect = |_| Connection::open(server.address().tcp().unwrap());
            for mut connection in (0..16).map(connect).collect::<Vec<_>>() {
                connection.send(with_body(
                    "POST",
                    "/v1/pets",
                    KEY,
                    "",
                    r#"{"name":"Rex","categoryId":3}"#,
                ));
                connection.reply().expect(201);
            }
            assert!(server.is_running(), "{limit}");
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Resources, "{limit}: {error}");
            false
        }
    };
    set(maximum);
    served
}

#[test]
fn idle_clients_leave_descriptors_to_others() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let mut config = config(Path::new(&folder).join("pets.db"));
        (config.deadlines.head, config.deadlines.idle) = (Duration::MAX, Duration::MAX);
        let server = Server::start(config).unwrap();
        writeln!(
            std::io::stdout(),
            "\naddress {}",
            server.address().tcp().unwrap()
        )
        .unwrap();
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        assert!(server.is_running());
        return;
    }
    let folder = Folder::new();
    let mut command = alone("idle_clients_leave_descriptors_to_others", &folder);
    let command = after(&mut command, "ulimit -n 128")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let address = lines
        .find_map(|line| line.strip_prefix("address ")?.parse().ok())
        .unwrap();
    let idle: Vec<Connection> = (0..300).map(|_| Connection::open(address)).collect();
    let began = Instant::now();
    for _ in 0..10 {
        let mut connection = Connection::open(address);
        connection.get("/readyz", KEY).expect(200);
        connection
            .post("/v1/pets", KEY, r#"{"name":"Rex","categoryId":3}"#)
            .expect(201);
    }
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "accepting waits for descriptors: {:?}",
        began.elapsed()
    );
    drop(idle);
    drop(server.stdin.take());
    assert!(
        server.wait().unwrap().success(),
        "{:?}",
        lines.collect::<Vec<_>>()
    );
}

fn start_and_stop(folder: &Path) {
    let (threads_before, files_before) = (threads(), open_files());
    for round in 0..ROUNDS {
        let start = |i| start(folder.join(format!("{i}.db")));
        let servers: Vec<Server> = (0..SERVERS).map(start).collect();
        assert_eq!(
            socket_folders(),
            Vec::<PathBuf>::new(),
            "the sockets have no files"
        );
        for server in &servers {
            ask(
                server,
                "POST",
                "/v1/pets",
                r#"{"name":"Rex","categoryId":3}"#,
                201,
            );
            ask(server, "GET", "/v1/pets", "", 200);
        }
        for server in servers {
            // Both ways to end a server.
            if round % 2 == 0 {
                server.stopper().stop();
                server.wait().unwrap();
            } else {
                drop(server);
            }
        }
    }
    assert_eq!(socket_folders(), Vec::<PathBuf>::new());
    wait_until("the servers' threads to end", || {
        threads() == threads_before
    });
    wait_until("the servers' descriptors to be closed", || {
        open_files() == files_before
    });
}

fn start(database: PathBuf) -> Server {
    Server::start(config(database)).unwrap()
}

fn config(database: PathBuf) -> Config {
    let mut config = Config::new()
        .listen(([127, 0, 0, 1], 0))
        .database(database)
        .api_key(KEY);
    // Two lanes for each server, whatever the number of processors.
    config.workers = 1;
    config
}

/// One request on a connection of its own.
fn ask(server: &Server, method: &str, target: &str, body: &str, expected: u16) {
    let mut connection = Connection::open(server.address().tcp().unwrap());
    connection.send(with_body(
        method,
        target,
        KEY,
        "Connection: close\r\n",
        body,
    ));
    connection.reply().expect(expected);
}

/// The names of this process's threads.
fn threads() -> Vec<String> {
    // A thread that has just ended has no name.
    let name = |task: PathBuf| std::fs::read_to_string(task.join("comm")).ok();
    sorted(entries("/proc/self/task").into_iter().filter_map(name))
}

/// The files behind the descriptors of this process.
fn open_files() -> Vec<String> {
    let target = |link: PathBuf| {
        std::fs::read_link(link)
            .ok()
            .map(|path| path.display().to_string())
    };
    sorted(entries("/proc/self/fd").into_iter().filter_map(target))
}

/// The entries of TMPDIR, where only the servers create any.
fn socket_folders() -> Vec<PathBuf> {
    entries(std::env::temp_dir())
}

fn entries(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}
