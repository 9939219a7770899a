//! `petstore healthcheck`: checks the readiness of a running service. For images without a shell.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;

use petstore::{Error, ErrorKind, start_thread};

use super::command::{Command, CommandResult, Invocation, Takes};
use super::output::print;

pub const COMMANDS: &[Command] = &[Command {
    takes: Takes::Only(&["listen"]),
    ..Command::new(
        "healthcheck",
        "",
        "ask the service at --listen whether it is ready",
        run,
    )
}];

/// The timeout from the resolution of the host to the last byte.
const PATIENCE: Duration = Duration::from_secs(5);
/// The size limit of the response, in bytes.
const MAX_BYTES: u64 = 16 * 1024;
const REQUEST: &[u8] = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn run(call: &Invocation) -> CommandResult {
    let address = call.config.listen.text().unwrap_or_default();
    let (sender, response) = mpsc::channel();
    let asked = address.clone();
    start_thread("healthcheck", move || drop(sender.send(ask(&asked))))?;
    let late = |_| {
        Err(io::Error::other(format!(
            "no response within {} s",
            PATIENCE.as_secs()
        )))
    };
    let response = response.recv_timeout(PATIENCE).unwrap_or_else(late);
    let response = response.map_err(|error| Error::io(format!("cannot ask {address}"), error))?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    if head.starts_with("HTTP/1.1 200 ") {
        return Ok(print(&format!("{address} is ready\n"))?);
    }
    // Another program may listen there.
    let said = [head.lines().next().unwrap_or("no HTTP"), body]
        .join(" ")
        .replace(char::is_control, " ");
    Err(Error::new(
        ErrorKind::Io,
        format!("{address} is not ready: {}", said.trim_end()),
    )
    .into())
}

/// Sends the request, and returns the response. The system connects `0.0.0.0` and `[::]` to this machine. If `[::]`
/// fails, tries IPv4, which may be all that the machine has.
fn ask(address: &str) -> io::Result<String> {
    match address.strip_prefix("unix:") {
        Some(path) => exchange(UnixStream::connect(path)?),
        None => exchange(TcpStream::connect(address).or_else(|error| {
            let port = address
                .strip_prefix("[::]:")
                .and_then(|port| port.parse().ok());
            port.map_or(Err(error), |port: u16| {
                TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            })
        })?),
    }
}

fn exchange(mut stream: impl Read + Write) -> io::Result<String> {
    stream.write_all(REQUEST)?;
    let mut response = String::new();
    stream.take(MAX_BYTES).read_to_string(&mut response)?;
    Ok(response)
}
