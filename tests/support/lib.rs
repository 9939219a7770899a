//! The tools of the tests: the executable and its clients, and the servers that it talks to. Nothing here knows the
//! library.

pub mod client;
pub mod cluster_pool;
pub mod dns_server;
pub mod harness;
pub mod openapi;
pub mod rqlite_nodes;
pub mod wait;

pub use petstore_base::testing::random;
