//! The vocabulary that all rooms share: requests, responses, failures and targets, as plain data.
//! Knows nothing of sockets, SQL or pets.

pub mod error;
pub mod request;
pub mod response;
pub mod target;

pub use error::{ApiError, Code};
pub use request::Request;
pub use response::Response;
