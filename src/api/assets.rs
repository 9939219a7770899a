//! Documents for everybody: the interface description and the project site.

use super::{Call, Handler, Operation, ReadContext};
use crate::endpoint::Failure;
use crate::http::{ASSET_HEADERS, ApiError, Code, Form, Response, percent};

pub static OPERATIONS: &[Operation] = &[row("/openapi.json", "getDescription")];

/// The pages of the feature `site`.
pub static PAGES: &[Operation] = &[
    // The reference, with a panel to try each operation.
    row("/", "getReference"),
    row("/docs/{page}", "getPage"),
    row("/assets/{file}", "getAsset"),
];

/// The request header field that tells a browser from a program.
pub const ACCEPT: &str = "Accept";

/// The page of a deploy for paths that lead nowhere.
const NOT_FOUND: &str = "/404.html";

/// A static file of the deploy, for paths that match no row.
pub const FILE: Operation = Operation {
    // Which deploy is live, the file or the index of its folder, and the content; or the deploy's own page for what
    // is not there.
    rows: Some(8),
    headers: &[ASSET_HEADERS[0], ASSET_HEADERS[1], ACCEPT],
    ..Operation::new("/{file}", "getFile", Handler::Get(get_file))
};

/// Returns a file, or the index of a folder. A folder without its trailing slash is redirected, so that its
/// relative links work.
fn get_file(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    let not_found = || ApiError::new(Code::NotFound);
    let encoded = call.whole_path();
    let path = percent::decode(encoded);
    let path = str::from_utf8(&path).map_err(|_| not_found())?;
    // An encoded slash would become a separator; no file has one in its name.
    if path.matches('/').count() != encoded.matches('/').count() {
        return Err(not_found().into());
    }
    let project = context.store.project()?;
    let index = if path.ends_with('/') { format!("{path}index.html") } else { format!("{path}/index.html") };
    let Some(file) = project.file(path, &index)? else {
        let takes_pages = || call.header_values(ACCEPT).any(|value| value.contains("text/html"));
        let page = if takes_pages() { project.file(NOT_FOUND, NOT_FOUND)? } else { None };
        let page = page.ok_or_else(not_found)?;
        let content = project.content(&page, false)?;
        return Ok(Response::new(404, content).header("Content-Type", page.content_type));
    };
    if file.path != path && !path.ends_with('/') {
        // Relative, so that it never points to another host, whatever the name is.
        let name = encoded.rsplit('/').next().unwrap_or_default();
        let query = call.raw_query().map(|query| format!("?{query}")).unwrap_or_default();
        return Ok(Response::new(308, b"").header("Location", format!("./{name}/{query}")));
    }
    let form = Form::choose(&file.tag, file.has_gzip, call.asset_fields());
    let content = if form.is_known { None } else { Some(project.content(&file, form.gzip)?.into()) };
    Ok(form.respond(file.content_type, content).header("Cache-Control", "no-cache"))
}

const fn row(path: &'static str, id: &'static str) -> Operation {
    Operation { headers: &ASSET_HEADERS, rows: Some(0), ..Operation::new(path, id, Handler::Get(get)) }
}

fn get(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    Ok(context.assets.respond(call.whole_path(), call.asset_fields())?)
}
