//! Places that programs know without being told (RFC 8615). A deployed file of the same name goes first.

use super::assets::deployed;
use super::{Call, Handler, Operation, ReadContext};
use crate::clock::{day, unix_time};
use crate::endpoint::Failure;
use crate::http::{ASSET_HEADERS, Response};

pub const API_CATALOG: &str = "/.well-known/api-catalog";
pub const SECURITY_CONTACT: &str = "/.well-known/security.txt";

/// How long the contact may be relied on, in seconds: less than a year (RFC 9116, section 2.5.5).
const CONTACT_HOLDS: i64 = 300 * 24 * 3600;

pub static OPERATIONS: &[Operation] = &[
    row(API_CATALOG, "getApiCatalog", get_catalog),
    row(SECURITY_CONTACT, "getSecurityContact", get_contact),
];

const fn row(
    path: &'static str,
    id: &'static str,
    get: for<'r> fn(&mut ReadContext, &Call<'r>) -> Result<Response, Failure>,
) -> Operation {
    // Which deploy is live, the file, and its content.
    Operation { headers: &ASSET_HEADERS, rows: Some(4), ..Operation::new(path, id, Handler::Get(get)) }
}

/// Where the interface and its description are (RFC 9727).
fn get_catalog(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    if let Some(file) = deployed(context, call)? {
        return Ok(file);
    }
    Ok(context.assets.respond(API_CATALOG, call.asset_fields())?)
}

/// Whom to tell of a weakness (RFC 9116).
fn get_contact(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    if let Some(file) = deployed(context, call)? {
        return Ok(file);
    }
    let contact =
        context.assets.respond(SECURITY_CONTACT, [const { None::<&str> }; 2].map(Option::into_iter))?;
    let expires = format!("Expires: {}T00:00:00Z\n", day(unix_time() + CONTACT_HOLDS));
    let text = [contact.body(), expires.as_bytes()].concat();
    Ok(Response::new(200, text).header("Content-Type", "text/plain; charset=utf-8"))
}
