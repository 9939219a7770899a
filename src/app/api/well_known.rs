//! Well-known paths (RFC 8615, RFC 9309). A deployed file at the same path takes precedence.

use super::site_files::{asset, deployed, not_found, row};
use crate::app::endpoint::{Call, Failure, Operation, ReadContext};
use petstore_base::clock::{day, unix_time};
use petstore_base::http::Response;

pub const API_CATALOG: &str = "/.well-known/api-catalog";
const SECURITY_CONTACT: &str = "/.well-known/security.txt";

pub const ROBOTS: &str = "/robots.txt";
pub const SITEMAP: &str = "/sitemap.xml";
pub const FAVICON: &str = "/favicon.ico";

/// How long the contact is valid, in seconds: less than a year (RFC 9116, section 2.5.5).
const CONTACT_HOLDS: i64 = 300 * 24 * 3600;

pub static OPERATIONS: &[Operation] = &[
    row(API_CATALOG, "getApiCatalog", get),
    row(SECURITY_CONTACT, "getSecurityContact", get_contact),
];

/// The paths of the feature `site`.
pub static PAGES: &[Operation] = &[
    row(ROBOTS, "getRobots", get),
    row(SITEMAP, "getSitemap", get),
    row(FAVICON, "getFavicon", get),
];

/// Returns the deployed file at this path, or the built-in document.
fn get(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    deployed(context, call)?.map_or_else(|| asset(context, call, &call.target.path), Ok)
}

/// The security contact (RFC 9116).
fn get_contact(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    if let Some(file) = deployed(context, call)? {
        return Ok(file);
    }
    let Some(contact) = &context.settings.security_contact else {
        return not_found(context, call);
    };
    let expires = day(unix_time() + CONTACT_HOLDS);
    let text = format!("Contact: {contact}\nExpires: {expires}T00:00:00Z\n");
    Ok(Response::new(200, text.into_bytes()).header("Content-Type", "text/plain; charset=utf-8"))
}
