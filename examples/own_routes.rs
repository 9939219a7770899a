//! A program with routes of its own: tiny_http in front of the service, which listens on a Unix socket.
//!
//! tiny_http has no limits and no deadlines, and a request with a huge Content-Length ends the program. So this address is
//! for the machine itself: for others, put a proxy that limits bodies in front, such as nginx with
//! `scripts/deploy/nginx.conf`.
//!
//! Its own Cargo.toml would have `petstore = { …, default-features = false }` and `tiny_http = "0.12"`. Run it here
//! with:
//!
//!     cargo run --no-default-features --example own_routes
#![expect(clippy::print_stdout, reason = "printing is what an example is for")]

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use petstore::{Config, Listen, Server};
use tiny_http::{Request, Response};

/// Fields that describe the connection or the body, or that only this program may set.
const NOT_FORWARDED: [&str; 5] = [
    "Connection",
    "Content-Length",
    "Transfer-Encoding",
    "Expect",
    "X-Forwarded-For",
];

/// The size of a body that the service accepts, in bytes.
const MAX_BODY: u64 = 64 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("petstore-routes-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let socket = folder.join("pets.sock");
    let config = Config::new()
        .listen(Listen::Unix(socket.clone()))
        .database(folder.join("pets.db"))
        .api_key("example-key");
    let server = Server::start(config)?;

    let front =
        Arc::new(tiny_http::Server::http("127.0.0.1:0").map_err(|error| error.to_string())?);
    let address = front
        .server_addr()
        .to_ip()
        .ok_or("the front listens on no TCP address")?;
    // A program that serves many clients starts a few of these threads.
    let serving = std::thread::spawn({
        let front = Arc::clone(&front);
        move || serve(&front, &socket)
    });
    for path in ["/hello", "/v1/pets"] {
        println!("{}\n", ask(&address.to_string(), path)?);
    }
    front.unblock();
    serving.join().map_err(|_| "the front panicked")?;
    server.stopper().stop();
    server.wait()?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Answers requests until the front is unblocked. The failure of one client must not end it for the others.
pub fn serve(front: &tiny_http::Server, service: &Path) {
    for request in front.incoming_requests() {
        if let Err(error) = answer(request, service) {
            println!("no response to a request: {error}");
        }
    }
}

/// Answers a route of this program, and forwards everything else.
fn answer(request: Request, service: &Path) -> io::Result<()> {
    if request.url() == "/hello" {
        request.respond(Response::from_string("Hello\n"))
    } else {
        forward(request, service)
    }
}

/// Sends a request to the service, and its response to the client as it is.
fn forward(mut request: Request, service: &Path) -> io::Result<()> {
    // One byte more than the service accepts is enough for its 413. Without this bound, one client fills the memory.
    let mut body = Vec::new();
    let mut bounded = request.as_reader().take(MAX_BODY + 1);
    bounded.read_to_end(&mut body)?;
    let mut service = UnixStream::connect(service)?;
    write!(
        service,
        "{} {} HTTP/1.1\r\nConnection: close\r\n",
        request.method(),
        request.url()
    )?;
    let is_forwarded =
        |name: &tiny_http::HeaderField| !NOT_FORWARDED.iter().any(|own| name.equiv(own));
    for header in request
        .headers()
        .iter()
        .filter(|header| is_forwarded(&header.field))
    {
        write!(service, "{}: {}\r\n", header.field, header.value)?;
    }
    if let Some(client) = request.remote_addr() {
        write!(service, "X-Forwarded-For: {}\r\n", client.ip())?;
    }
    write!(service, "Content-Length: {}\r\n\r\n", body.len())?;
    service.write_all(&body)?;
    let mut client = request.into_writer();
    io::copy(&mut service, &mut client)?;
    client.flush()
}

/// Gets a path, and returns the response.
fn ask(address: &str, path: &str) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer example-key\r\nConnection: close\r\n\r\n"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    if response.starts_with("HTTP/1.1 200 ") {
        Ok(response)
    } else {
        Err(response.into())
    }
}
