//! `GET /openapi.json`: the interface description, for everybody.

use crate::api::operation::{Handler, Operation};
use crate::api::{Call, Reading};
use crate::http::{ASSET_HEADERS, ApiError, Response};

pub const OPERATIONS: &[Operation] = &[Operation {
    headers: ASSET_HEADERS,
    ..Operation::new("/openapi.json", "getDescription", "The interface description", Handler::Get(get))
}];

fn get(reading: &mut Reading, call: &Call) -> Result<Response, ApiError> {
    let [encoding, tags] = ["Accept-Encoding", "If-None-Match"].map(|name| call.header_values(name));
    Ok(reading.description.respond(encoding, tags))
}
