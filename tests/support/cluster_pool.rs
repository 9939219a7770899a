//! Clusters for tests that work with any database. If `PETSTORE_TEST_CLUSTER` is set, each test borrows an empty
//! cluster of three nodes in place of a file. They are used again, and end with the tests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use crate::rqlite_nodes::Nodes;

/// The clusters that nobody uses.
static IDLE: Mutex<Vec<Nodes>> = Mutex::new(Vec::new());

/// A cluster that nobody else uses.
pub struct Borrowed(Option<Nodes>);

impl Borrowed {
    /// Borrows an empty cluster; `None` if the tests work with files.
    pub fn new() -> Option<Self> {
        std::env::var_os("PETSTORE_TEST_CLUSTER")?;
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let nodes = idle.unwrap_or_else(|| Nodes::start(3));
        nodes.empty();
        Some(Self(Some(nodes)))
    }

    /// The address of the database.
    pub fn address(&self) -> String {
        self.0.as_ref().unwrap().address()
    }
}

/// Carries out statements on the node with this IP address.
pub fn execute(ip: &str, statements: &str) {
    let body = serde_json::json!([statements]).to_string();
    let mut stream = TcpStream::connect((ip, 4001)).unwrap();
    let head = format!(
        "POST /db/execute?transaction HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(
        reply.contains("\r\n\r\n{\"results\"") && !reply.contains("\"error\""),
        "{statements}: {reply}"
    );
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        IDLE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(self.0.take());
    }
}
