//! What is served as it is, to everybody: the interface description and the project site.

use crate::api::operation::{Handler, Operation};
use crate::api::{Call, Reading};
use crate::http::{ASSET_HEADERS, ApiError, Code, Response};

pub const OPERATIONS: &[Operation] = &[
    row("/openapi.json", "getDescription", "The interface description"),
    #[cfg(feature = "site")]
    row("/", "getReference", "The reference, with a panel to try each operation"),
    #[cfg(feature = "site")]
    row("/docs/{page}", "getPage", "A page of the project site"),
    #[cfg(feature = "site")]
    row("/assets/{file}", "getAsset", "A file that the pages need"),
];

const fn row(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation { headers: ASSET_HEADERS, ..Operation::new(path, id, summary, Handler::Get(get)) }
}

fn get(reading: &mut Reading, call: &Call) -> Result<Response, ApiError> {
    let asset = reading.assets.find(call.whole_path()).ok_or_else(|| ApiError::new(Code::NotFound))?;
    let [encoding, tags] = ["Accept-Encoding", "If-None-Match"].map(|name| call.header_values(name));
    Ok(asset.respond(encoding, tags))
}
