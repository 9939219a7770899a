//! Documents that need no key: the OpenAPI description and the project site.

use crate::app::endpoint::parameter::{ACCEPT_ENCODING, HeaderParameter, IF_NONE_MATCH, Parameter};
use crate::app::endpoint::{ApiError, Call, Code, Failure, Handler, Operation, ReadContext};
use crate::store::Reader;
use petstore_base::error::Error;
use petstore_base::http::response::ResponseBody;
use petstore_base::http::{AssetFields, Form, Response, percent};
use petstore_hosting::{FileInfo, ProjectReads};

pub static OPERATIONS: &[Operation] = &[row("/openapi.json", "getDescription", get)];

/// The pages of the feature `site`.
pub static PAGES: &[Operation] = &[
    // The reference, with a panel to try each operation.
    row("/", "getReference", get_with_key),
    row("/pets", "getPetsPage", get_pets_page),
    row("/docs", "getGuide", get),
    row("/docs/{page}", "getPage", get),
    row("/assets/{digest}/{file}", "getAsset", get_asset),
];

/// The path prefix of the pages' current files, for clients that ask for another digest.
pub const LATEST: &str = "/assets/latest/";

/// Other paths of documents: that of the deprecations in the specification, and usual ones of the OpenAPI description.
const MOVED: [(&str, &str); 3] = [
    ("/docs/deprecations", "/docs/versions#deprecations"),
    ("/openapi.yaml", "/openapi.json"),
    ("/swagger.json", "/openapi.json"),
];

/// The variant of a page with a field for the API key. It is served while the origin has deployed files, whose scripts
/// could read a key that the browser stores for the page.
pub fn among_files(path: &str) -> String {
    format!("{path} among files")
}

/// The request header field that distinguishes browsers, which accept HTML.
pub static ACCEPT: HeaderParameter = HeaderParameter::undescribed("Accept");

/// The path of the page for a 404: the deploy's, or else the site's.
pub const NOT_FOUND: &str = "/404.html";

/// The operation for paths that match no row: a static file of the deploy, or the page for a 404.
pub const FILE: Operation = row("/{file}", "getFile", get_file);

/// Returns a deployed file, a redirect, or the 404.
fn get_file(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    let found = deployed(context, call)?.or_else(|| moved(context, call));
    found.map_or_else(|| not_found(context, call), Ok)
}

/// The redirect from another path of a document, or from that of a page with a slash at its end.
fn moved(context: &ReadContext, call: &Call) -> Option<Response> {
    let path = &*call.target.path;
    let redirect = |location: &str| Response::new(308, b"").header("Location", location);
    if let Some((_, new)) = MOVED.iter().find(|(old, _)| *old == path) {
        return Some(redirect(new));
    }
    let page = path
        .strip_suffix('/')
        .filter(|page| context.assets.contains_key(*page))?;
    Some(redirect(&format!("{page}{}", query(call))))
}

/// The query of a request, with its question mark.
fn query(call: &Call) -> String {
    let query = call.target.query;
    query.map_or(String::new(), |query| format!("?{query}"))
}

/// Returns the page for a 404, if a browser asks for a path outside `/v1`: the deploy's page, or else the site's.
///
/// # Errors
/// The 404 for other clients and paths.
pub(super) fn not_found(context: &ReadContext, call: &Call) -> Result<Response, Failure> {
    let error = || ApiError::new(Code::NotFound).into();
    let takes_pages = call
        .header_values(&ACCEPT)
        .any(|value| value.contains("text/html"));
    if !takes_pages || call.target.path.split('/').nth(1) == Some("v1") {
        return Err(error());
    }
    let response = match context.store.file(NOT_FOUND, NOT_FOUND)? {
        Some(page) => Response::new(404, content(context, call, &page, false)?)
            .header("Content-Type", page.content_type),
        None => {
            let mut page = context
                .assets
                .get(NOT_FOUND)
                .ok_or_else(error)?
                .respond(&AssetFields::default());
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
    let Some(path) = decoded(encoded) else {
        return Ok(None);
    };
    let Some(file) = find(&context.store, &path)? else {
        return Ok(None);
    };
    if file.path != path && !path.ends_with('/') {
        // Relative, so that no name can point to another host.
        let name = encoded.rsplit('/').next().unwrap_or_default();
        return Ok(Some(
            Response::new(308, b"").header("Location", format!("./{name}/{}", query(call))),
        ));
    }
    let form = Form::choose(&file.tag, file.gzip_length.is_some(), &call.asset_fields());
    let content = if form.is_known {
        None
    } else {
        Some(content(context, call, &file, form.gzip)?)
    };
    let response = form.respond(file.content_type, content);
    Ok(Some(response.header("Cache-Control", "no-cache")))
}

/// Returns the content of a file, compressed or not. For HEAD, it reads only the length.
fn content(
    context: &ReadContext,
    call: &Call,
    file: &FileInfo,
    gzip: bool,
) -> Result<ResponseBody, Failure> {
    let length = file.gzip_length.filter(|_| gzip).unwrap_or(file.length);
    if call.is_head() {
        Ok(ResponseBody::Length(length as usize))
    } else {
        let content = context.store.content(file, gzip)?;
        // Another deploy has removed it since it was found.
        let gone = || Failure::Fault(format!("{} is gone", file.path));
        Ok(content.ok_or_else(gone)?.into())
    }
}

/// Returns whether there is a deployed file at a path.
///
/// # Errors
/// If the database cannot be read.
pub fn is_deployed(database: &Reader, path: &str) -> Result<bool, Error> {
    let Some(path) = decoded(path) else {
        return Ok(false);
    };
    Ok(find(database, &path)?.is_some())
}

/// Returns the path without percent-encoding; `None` if no file can have it.
fn decoded(encoded: &str) -> Option<String> {
    let path = String::from_utf8(percent::decode(encoded).into_owned()).ok()?;
    // An encoded slash would become a separator; no file has one in its name.
    (path.matches('/').count() == encoded.matches('/').count()).then_some(path)
}

fn find(database: &Reader, path: &str) -> Result<Option<FileInfo>, Error> {
    let folder = path.strip_suffix('/').unwrap_or(path);
    database.file(path, &format!("{folder}/index.html"))
}

/// A handler of the rows that [`row`] makes.
type Get = for<'r> fn(&mut ReadContext, &Call<'r>) -> Result<Response, Failure>;

pub(super) const fn row(path: &'static str, id: &'static str, handler: Get) -> Operation {
    // The request header fields that select the form of a document.
    const PARAMETERS: &[&dyn Parameter] = &[&ACCEPT_ENCODING, &IF_NONE_MATCH, &ACCEPT];
    // The live deploy, the file or the index of its folder, and the content; and again for the page of a 404.
    Operation {
        parameters: PARAMETERS,
        rows: Some(8),
        ..Operation::new(path, id, Handler::Get(handler))
    }
}

/// The response with a document of the site, or the 404.
pub(super) fn asset(context: &ReadContext, call: &Call, path: &str) -> Result<Response, Failure> {
    let found = context
        .assets
        .get(path)
        .map(|asset| asset.respond(&call.asset_fields()));
    found.map_or_else(|| not_found(context, call), Ok)
}

fn get(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    moved(context, call).map_or_else(|| asset(context, call, &call.target.path), Ok)
}

/// Returns a page with a field for the API key.
fn get_with_key(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    if context.store.has_files()? {
        return asset(context, call, &among_files(&call.target.path));
    }
    get(context, call)
}

/// Returns the page with the pets. A program that has left out `/v1` gets a 404 instead, since it would take the page
/// for a success.
fn get_pets_page(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    let names = |field, words: &[&str]| {
        let values = call.request.header_values(field);
        values
            .map(str::to_ascii_lowercase)
            .any(|value| words.iter().any(|word| value.contains(word)))
    };
    let takes_html = call.header_values(&ACCEPT).next().is_none()
        || names(ACCEPT.name, &["html", "text/*", "*/*"]);
    let response = if takes_html && !names("Authorization", &["bearer "]) {
        get_with_key(context, call)?
    } else {
        let message = format!(
            "This page is for people. The API has {}.",
            context.settings.url("/v1/pets")
        );
        ApiError::with_message(Code::NotFound, message).into_response()
    };
    Ok(response.header("Vary", "Accept, Authorization"))
}

/// Returns a file of the pages. A page from before an upgrade, or from another instance, may ask for another digest: it
/// gets the current file, which the browser must not cache.
fn get_asset(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    let path = &*call.target.path;
    if context.assets.contains_key(path) {
        return asset(context, call, path);
    }
    asset(
        context,
        call,
        &format!("{LATEST}{}", path.rsplit('/').next().unwrap_or_default()),
    )
}
