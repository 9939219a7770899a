//! Documents for everybody: the interface description and the project site.

use super::{Call, Handler, Operation, ReadContext};
use crate::app::endpoint::Failure;
use crate::app::endpoint::parameter::{ACCEPT_ENCODING, HeaderParameter, IF_NONE_MATCH, Parameter};
use crate::base::http::response::Body;
use crate::base::http::{ApiError, AssetFields, Code, Form, Response, percent};
use crate::store::{FileInfo, Reader, StoreError};

pub static OPERATIONS: &[Operation] = &[row("/openapi.json", "getDescription", Handler::Get(get))];

/// The pages of the feature `site`.
pub static PAGES: &[Operation] = &[
    // The reference, with a panel to try each operation.
    row("/", "getReference", Handler::Get(get_reference)),
    row("/docs", "getGuide", Handler::Get(get)),
    row("/docs/{page}", "getPage", Handler::Get(get)),
    row("/assets/{digest}/{file}", "getAsset", Handler::Get(get_asset)),
];

/// Where every file of the pages is for clients that know another digest.
pub const LATEST: &str = "/assets/latest/";

/// Pages that have moved. The contract names the path of the deprecations.
const MOVED: [(&str, &str); 5] = [
    ("/docs/deprecations", "/docs/versions#deprecations"),
    ("/docs/first-call", "/docs/quickstart"),
    ("/docs/pages", "/docs/pagination"),
    ("/docs/changes", "/docs/changelog"),
    ("/docs/running", "/docs/settings"),
];

/// The reference while deployed files are on its origin: their scripts could read a key that the browser keeps for it.
pub const REFERENCE_AMONG_FILES: &str = "/ among files";

/// The request header field in which a browser asks for pages.
pub static ACCEPT: HeaderParameter = HeaderParameter::undescribed("Accept");

/// The page for paths that lead nowhere: the one of the deploy, or else the one of the site.
pub const NOT_FOUND: &str = "/404.html";

/// A static file of the deploy, or the page for paths that lead nowhere, for paths that match no row.
pub const FILE: Operation = row("/{file}", "getFile", Handler::Get(get_file));

/// Returns a deployed file, or the page for what is not there.
fn get_file(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    deployed(context, call)?.map_or_else(|| not_found(context, call), Ok)
}

/// The 404 for a browser outside `/v1`: a page, the deployed one if there is one.
///
/// # Errors
/// The 404 for everybody else.
pub(super) fn not_found(context: &ReadContext, call: &Call) -> Result<Response, Failure> {
    let error = || ApiError::new(Code::NotFound).into();
    let takes_pages = call.header_values(&ACCEPT).any(|value| value.contains("text/html"));
    if !takes_pages || call.target.path.split('/').nth(1) == Some("v1") {
        return Err(error());
    }
    let response = match context.store.file(NOT_FOUND, NOT_FOUND)? {
        Some(page) => Response::new(404, content(context, call, &page, false)?)
            .header("Content-Type", page.content_type),
        None => {
            let mut page = context.assets.get(NOT_FOUND).ok_or_else(error)?.respond(&AssetFields::default());
            page.status = 404;
            page
        }
    };
    Ok(response.header("Vary", ACCEPT.name))
}

/// The response with a deployed file, or with the index of a folder; `None` if there is none. A folder without its
/// trailing slash is redirected, so that its relative links work.
pub(super) fn deployed(context: &ReadContext, call: &Call) -> Result<Option<Response>, Failure> {
    let encoded = &*call.target.path;
    let Some(path) = decoded(encoded) else { return Ok(None) };
    let Some(file) = find(&context.store, &path)? else { return Ok(None) };
    if file.path != path && !path.ends_with('/') {
        // Relative, so that it never points to another host, whatever the name is.
        let name = encoded.rsplit('/').next().unwrap_or_default();
        let query = call.target.query.map(|query| format!("?{query}")).unwrap_or_default();
        return Ok(Some(Response::new(308, b"").header("Location", format!("./{name}/{query}"))));
    }
    let form = Form::choose(&file.tag, file.gzip_length.is_some(), &call.asset_fields());
    let content = if form.is_known { None } else { Some(content(context, call, &file, form.gzip)?) };
    let response = form.respond(file.content_type, content);
    Ok(Some(response.header("Cache-Control", "no-cache")))
}

/// The content of a file in this form. For HEAD, only its length is read.
fn content(context: &ReadContext, call: &Call, file: &FileInfo, gzip: bool) -> Result<Body, StoreError> {
    let length = file.gzip_length.filter(|_| gzip).unwrap_or(file.length);
    if call.is_head() {
        Ok(Body::Length(length as usize))
    } else {
        Ok(context.store.content(file, gzip)?.into())
    }
}

/// Returns whether there is a deployed file at a path.
///
/// # Errors
/// If the database cannot be read.
pub fn is_deployed(database: &Reader, path: &str) -> Result<bool, StoreError> {
    let Some(path) = decoded(path) else { return Ok(false) };
    Ok(find(database, &path)?.is_some())
}

/// The path with everything decoded; `None` if no file can have it.
fn decoded(encoded: &str) -> Option<String> {
    let path = String::from_utf8(percent::decode(encoded).into_owned()).ok()?;
    // An encoded slash would become a separator; no file has one in its name.
    (path.matches('/').count() == encoded.matches('/').count()).then_some(path)
}

fn find(database: &Reader, path: &str) -> Result<Option<FileInfo>, StoreError> {
    let index = if path.ends_with('/') { format!("{path}index.html") } else { format!("{path}/index.html") };
    database.file(path, &index)
}

pub(super) const fn row(path: &'static str, id: &'static str, handler: Handler) -> Operation {
    // These header fields decide what is sent for a path.
    const PARAMETERS: &[&dyn Parameter] = &[&ACCEPT_ENCODING, &IF_NONE_MATCH, &ACCEPT];
    // Which deploy is live, the file or the index of its folder, and the content; the same for the page for what is
    // not there.
    Operation { parameters: PARAMETERS, rows: Some(8), ..Operation::new(path, id, handler) }
}

/// The response with a document of the site, or the 404.
pub(super) fn asset(context: &ReadContext, call: &Call, path: &str) -> Result<Response, Failure> {
    let found = context.assets.get(path).map(|asset| asset.respond(&call.asset_fields()));
    found.map_or_else(|| not_found(context, call), Ok)
}

fn get(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    match MOVED.iter().find(|(old, _)| *old == call.target.path) {
        Some((_, new)) => Ok(Response::new(308, b"").header("Location", new)),
        None => asset(context, call, &call.target.path),
    }
}

fn get_reference(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    asset(context, call, if context.store.has_files()? { REFERENCE_AMONG_FILES } else { "/" })
}

/// Returns a file of the pages. A page that was made before an upgrade, or by another instance, names another digest:
/// it gets the file as it is now, which it does not keep.
fn get_asset(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    let path = &*call.target.path;
    if context.assets.contains_key(path) {
        return asset(context, call, path);
    }
    asset(context, call, &format!("{LATEST}{}", path.rsplit('/').next().unwrap_or_default()))
}
