//! A program that embeds the service: it starts a server, adds a pet, lists all pets, and stops the server.
//!
//! Its own Cargo.toml would have `petstore = { …, default-features = false }`: the library without what only the
//! executable needs. Run it here with:
//!
//!     cargo run --no-default-features --example embed
#![expect(clippy::print_stdout, reason = "printing is what an example is for")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;

use petstore::{Config, Server};

/// The key that the clients send. `petstore::KeyRing` creates further keys.
const API_KEY: &str = "example-key";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("petstore-embed-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let done = serve(folder.join("pets.db"));
    std::fs::remove_dir_all(&folder)?;
    done
}

fn serve(database: PathBuf) -> Result<(), Box<dyn Error>> {
    let config = Config::new()
        .listen(([127, 0, 0, 1], 0))
        .database(database)
        .api_key(API_KEY);

    // The server runs in threads of its own and accepts clients from here on.
    let server = Server::start(config)?;
    let address = server
        .address()
        .tcp()
        .ok_or("the server listens on no TCP address")?;
    println!("listening on http://{address}\n");
    println!(
        "{}\n",
        ask(address, "POST /v1/pets", r#"{"name":"Rex","categoryId":3}"#)?
    );
    println!("{}\n", ask(address, "GET /v1/pets", "")?);

    // A stopper can move to another thread, such as one that waits for signals.
    server.stopper().stop();
    // Returns once every request under way is answered and everything is on the disk.
    server.wait()?;
    println!("stopped");
    Ok(())
}

/// Sends one request on a connection of its own, and returns the response.
fn ask(address: SocketAddr, operation: &str, body: &str) -> Result<String, Box<dyn Error>> {
    let request = format!(
        "{operation} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {API_KEY}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    if response.starts_with("HTTP/1.1 2") {
        Ok(response)
    } else {
        Err(response.into())
    }
}
