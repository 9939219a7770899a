//! Clients that end or mislead a server of tiny_http alone, against `examples/hello.rs` as it stands.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/hello.rs"]
mod hello;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(60);
const GET: &str = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

/// The example, in a process of its own.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start() -> Self {
        Self::start_after("true")
    }

    /// Starts it after a command of a shell, such as a limit.
    fn start_after(command: &str) -> Self {
        let mut process = Command::new("sh")
            .args([
                "-c",
                &format!("{command}; exec \"$0\" --exact example_serves --nocapture"),
            ])
            .arg(std::env::current_exe().unwrap())
            .env("LISTEN", "127.0.0.1:0")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let address = stderr
            .lines()
            .find_map(|line| Some(line.unwrap().split_once("http://")?.1.to_owned()));
        Self {
            process,
            address: address.unwrap(),
        }
    }

    fn connect(&self) -> TcpStream {
        let client = TcpStream::connect(&self.address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    }

    /// Sends bytes on a connection of their own.
    fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut client = self.connect();
        // The server may have closed it already.
        let _ = client.write_all(bytes);
        client
    }

    /// What a server that is well responds within a second.
    fn assert_serves(&mut self) {
        let begun = Instant::now();
        let mut client = self.send(GET.as_bytes());
        assert_eq!(status(&mut client), 200);
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(self.process.try_wait().unwrap(), None, "it has ended");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The status of the next response; 0 if the connection is closed.
fn status(client: &mut TcpStream) -> u16 {
    let mut line = [0; 12];
    match client.read_exact(&mut line) {
        Ok(()) => str::from_utf8(&line[9..]).unwrap().parse().unwrap(),
        Err(_) => 0,
    }
}

/// The memory of the process, in MiB.
fn mebibytes(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim()
        .strip_suffix(" kB")
        .unwrap()
        .parse::<usize>()
        .unwrap()
        / 1024
}

/// No test of its own: the process that the others start.
#[test]
fn example_serves() {
    if std::env::var_os("LISTEN").is_some() {
        hello::main().unwrap();
    }
}

#[test]
fn length_beyond_memory_is_413() {
    let mut server = Server::start();
    for length in ["9000000000000000000", "99999999999999999999999", "65537"] {
        let request = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
        assert_eq!(
            status(&mut server.send(request.as_bytes())),
            413,
            "{length}"
        );
    }
    server.assert_serves();
}

#[test]
fn line_without_an_end_is_431_and_takes_no_memory() {
    let mut server = Server::start();
    let mut client = server.send(b"GET / HTTP/1.1\r\nHost: h\r\nX: ");
    for _ in 0..4096 {
        if client.write_all(&[b'x'; 16 * 1024]).is_err() {
            break;
        }
    }
    assert_eq!(status(&mut server.send(&[b'x'; 20_000])), 431);
    assert!(mebibytes(&server) < 32, "{} MiB", mebibytes(&server));
    server.assert_serves();
}

#[test]
fn silent_clients_take_no_thread() {
    let mut server = Server::start();
    let clients: Vec<_> = (0..500).map(|_| server.send(b"GET /")).collect();
    server.assert_serves();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.process.id()));
    let count = tasks.unwrap().count();
    assert!(count < 24, "{count} threads for {} clients", clients.len());
}

#[test]
fn more_clients_than_descriptors_are_survived() {
    let mut server = Server::start_after("ulimit -n 64");
    let clients: Vec<_> = (0..200).map(|_| server.connect()).collect();
    drop(clients);
    server.assert_serves();
}

#[test]
fn burst_of_clients_is_answered_at_once() {
    let server = Server::start();
    for _ in 0..20 {
        let mut clients: Vec<_> = (0..16).map(|_| server.send(GET.as_bytes())).collect();
        assert!(clients.iter_mut().all(|client| status(client) == 200));
    }
}

#[test]
fn framing_that_a_proxy_could_read_otherwise_is_rejected() {
    let mut server = Server::start();
    let post = |fields: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n0\r\n\r\n");
    for (request, expected) in [
        (post("Transfer-Encoding: gzip\r\n"), 501),
        (post("Transfer-Encoding: xchunked\r\n"), 501),
        (
            post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
            400,
        ),
        (
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            501,
        ),
        (post("Content-Length: 5\r\nContent-Length: 5\r\n"), 400),
        (post("Content-Length: +5\r\n"), 400),
        (post("Content-Length: 5 5\r\n"), 400),
        (post("Content-Length : 5\r\n"), 400),
        (post("X: a\rb\r\n"), 400),
        (post("X: a\nb\r\n"), 400),
        (post("X: a\r\n b\r\n"), 400),
        ("GET / HTTP/1.1\nHost: h\n\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("nonsense\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n".to_owned(), 505),
        (post("Transfer-Encoding: chunked\r\n"), 200),
    ] {
        let mut client = server.send(request.as_bytes());
        assert_eq!(status(&mut client), expected, "{request:?}");
    }
    server.assert_serves();
}
