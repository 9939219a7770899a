//! What is served as it is, to everybody: the interface description and the project site.

#[cfg(feature = "site")]
use percent_encoding::percent_decode_str;

use crate::api::operation::{Handler, Operation};
use crate::api::{Call, Reading};
#[cfg(feature = "site")]
use crate::http::Asset;
use crate::http::{ASSET_HEADERS, ApiError, Code, Response};
#[cfg(feature = "site")]
use crate::model::SiteFile;

pub const OPERATIONS: &[Operation] = &[
    row("/openapi.json", "getDescription", "The interface description"),
    #[cfg(feature = "site")]
    row("/", "getReference", "The reference, with a panel to try each operation"),
    #[cfg(feature = "site")]
    row("/docs/{page}", "getPage", "A page of the project site"),
    #[cfg(feature = "site")]
    row("/assets/{file}", "getAsset", "A file that the pages need"),
];

/// A static file of the deploy: what a path is that no row has.
#[cfg(feature = "site")]
pub const FILE: Operation = Operation {
    headers: ASSET_HEADERS,
    ..Operation::new("/{file}", "getFile", "A static file of the deploy", Handler::Get(get_file))
};

/// A file, or that of a folder. A folder without its slash is sent to where its links are right.
#[cfg(feature = "site")]
fn get_file(reading: &mut Reading, call: &Call) -> Result<Response, ApiError> {
    let not_found = || ApiError::new(Code::NotFound);
    let path = percent_decode_str(call.whole_path()).decode_utf8().map_err(|_| not_found())?;
    let project = reading.store.project()?;
    let index = format!("{}/index.html", path.trim_end_matches('/'));
    let SiteFile { path: found, content_type, content, gzip, tag } =
        project.file(&path, &index)?.ok_or_else(not_found)?;
    if found != path && !path.ends_with('/') {
        // As it was sent: what is encoded stays so. Two slashes in front would be another host.
        let path = call.whole_path().trim_start_matches('/');
        return Ok(Response::new(308, b"").header("Location", format!("/{path}/")));
    }
    let [encoding, tags] = ["Accept-Encoding", "If-None-Match"].map(|name| call.header_values(name));
    Ok(Asset::stored(content_type, content, gzip, tag).respond(encoding, tags))
}

const fn row(path: &'static str, id: &'static str, summary: &'static str) -> Operation {
    Operation { headers: ASSET_HEADERS, ..Operation::new(path, id, summary, Handler::Get(get)) }
}

fn get(reading: &mut Reading, call: &Call) -> Result<Response, ApiError> {
    let asset = reading.assets.find(call.whole_path()).ok_or_else(|| ApiError::new(Code::NotFound))?;
    let [encoding, tags] = ["Accept-Encoding", "If-None-Match"].map(|name| call.header_values(name));
    Ok(asset.respond(encoding, tags))
}
