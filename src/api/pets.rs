//! `/v1/pets`: list, create and get animals.

use std::ops::ControlFlow;

use crate::api::Context;
use crate::http::target;
use crate::http::{ApiError, Code};
use crate::http::{Request, Response};
use crate::model::pet::{InvalidPet, NewPet, Pet, PetStatus};
use crate::service::router::Target;
use crate::store::Page;

/// Animals on a page where `limit` is absent (specification, section 8).
const DEFAULT_LIMIT: u32 = 20;
/// The most animals on a page (specification, section 8).
const MAX_LIMIT: u32 = 100;
/// A page ends early once its body is as large, in bytes, so that a response is never huge: names may be
/// long. The `Link` header leads to the rest.
const FULL_PAGE_BYTES: usize = 1024 * 1024;

/// `GET /v1/pets`: a page of animals in ascending order of their ids.
///
/// ```json
/// [{"id":1,"name":"Rex","categoryId":3,"status":"available"},{"id":2,"name":"Tom","categoryId":3}]
/// ```
pub fn list(context: &mut Context, _: &Request, target: &Target) -> Result<Response, ApiError> {
    let page = page(target.query)?;
    let version = context.store.version();
    if let Some(response) = context.lists.get(&page, version) {
        return Ok(response);
    }
    let response = make_list(context, &page)?;
    context.lists.keep(page, &response);
    Ok(response)
}

/// Writes the rows from the database's own memory into the body.
fn make_list(context: &Context, page: &Page) -> Result<Response, ApiError> {
    let mut body = Vec::with_capacity(64 * page.limit as usize);
    body.push(b'[');
    let mut shown = 0;
    let mut last = page.after;
    let mut more = false;
    context.store.visit_pets(page, |pet| {
        if shown == page.limit || body.len() >= FULL_PAGE_BYTES {
            more = true;
            return ControlFlow::Break(());
        }
        if shown > 0 {
            body.push(b',');
        }
        // Writing a plain struct to memory cannot fail.
        let _ = serde_json::to_writer(&mut body, &pet);
        shown += 1;
        last = pet.id;
        ControlFlow::Continue(())
    })?;
    body.push(b']');
    let response = Response::json_bytes(200, body);
    Ok(if more { response.header("Link", next_link(page, last)) } else { response })
}

/// The way to the page after this one (RFC 8288).
fn next_link(page: &Page, last: i64) -> String {
    let limit = page.limit;
    let status = page.status.map(|status| format!("&status={}", status.as_str())).unwrap_or_default();
    format!("</v1/pets?limit={limit}{status}&after={last}>; rel=\"next\"")
}

/// Reads `limit`, `status` and `after`; other parameters are ignored.
fn page(query: Option<&str>) -> Result<Page, ApiError> {
    let invalid = |message| ApiError::with_message(Code::InvalidParameter, message);
    let limit = match target::parameter(query, "limit")? {
        None => DEFAULT_LIMIT,
        Some(text) => target::int64(&text)
            .filter(|_| !text.starts_with('-'))
            .and_then(|limit| u32::try_from(limit).ok())
            .filter(|limit| (1..=MAX_LIMIT).contains(limit))
            .ok_or_else(|| invalid("The query parameter 'limit' must be an integer from 1 to 100."))?,
    };
    let status = match target::parameter(query, "status")? {
        None => None,
        Some(word) => Some(PetStatus::parse(&word).ok_or_else(|| {
            invalid("The query parameter 'status' must be 'available', 'pending' or 'sold'.")
        })?),
    };
    let after = match target::parameter(query, "after")? {
        None => i64::MIN,
        Some(text) => target::int64(&text).ok_or_else(|| {
            invalid("The query parameter 'after' must be the id of an animal, an integer of 64 bits (int64).")
        })?,
    };
    Ok(Page { limit, status, after })
}

/// `POST /v1/pets`: adds an animal. The worker holds the answer back until it is on the disk.
///
/// ```json
/// {"name":"Rex","categoryId":3,"status":"available"}
/// ```
pub fn create(context: &mut Context, request: &Request, _: &Target) -> Result<Response, ApiError> {
    check_content(request)?;
    let new = NewPet::from_json(request.body)?;
    let id = context.store.insert_pet(&new)?;
    let pet = Pet { id, name: &new.name, category_id: new.category_id, status: new.status };
    Ok(Response::json(201, &pet).header("Location", format!("/v1/pets/{id}")))
}

/// Refuses what says of itself that it is no plain JSON (RFC 9110, sections 8.3 and 8.4).
fn check_content(request: &Request) -> Result<(), ApiError> {
    for coding in request.header_values("Content-Encoding").flat_map(|value| value.split(',')) {
        if !coding.trim().eq_ignore_ascii_case("identity") {
            return Err(ApiError::new(Code::UnsupportedContentEncoding).header("Accept-Encoding", "identity"));
        }
    }
    for value in request.header_values("Content-Type") {
        let media_type = value.split(';').next().unwrap_or("").trim();
        if !media_type.eq_ignore_ascii_case("application/json") {
            return Err(ApiError::new(Code::UnsupportedMediaType).header("Accept", "application/json"));
        }
    }
    Ok(())
}

impl From<InvalidPet> for ApiError {
    fn from(invalid: InvalidPet) -> Self {
        let (code, message) = match invalid {
            InvalidPet::Json(message) => (Code::InvalidJson, message),
            InvalidPet::Missing(message) => (Code::MissingMember, message),
            InvalidPet::Member(message) => (Code::InvalidMember, message),
            InvalidPet::Duplicate(message) => (Code::DuplicateMember, message),
        };
        ApiError::with_message(code, message)
    }
}

/// `GET /v1/pets/{petId}`: one animal. An id that is no int64 is 404, as no animal has it.
///
/// ```json
/// {"id":1,"name":"Rex","categoryId":3,"status":"available"}
/// ```
pub fn get(context: &mut Context, _: &Request, target: &Target) -> Result<Response, ApiError> {
    let found = match target::int64(target.parameter()) {
        Some(id) => context.store.pet(id, |pet| Response::json(200, &pet))?,
        None => None,
    };
    found.ok_or_else(|| ApiError::with_message(Code::NotFound, "There is no animal with this id."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_defaults() {
        assert_eq!(page(None), Ok(Page { limit: 20, status: None, after: i64::MIN }));
        assert_eq!(
            page(Some("after=-5&x=1&status=sold&limit=100")),
            Ok(Page { limit: 100, status: Some(PetStatus::Sold), after: -5 })
        );
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (query, name) in [
            ("limit=0", "'limit'"),
            ("limit=101", "'limit'"),
            ("limit=", "'limit'"),
            ("limit", "'limit'"),
            ("limit=-1", "'limit'"),
            ("limit=-0", "'limit'"),
            ("limit=%2B5", "'limit'"),
            ("limit=1.0", "'limit'"),
            ("limit=4294967297", "'limit'"),
            ("limit=1&limit=1", "'limit'"),
            ("status=", "'status'"),
            ("status=Sold", "'status'"),
            ("status=sold&status=sold", "'status'"),
            ("after=", "'after'"),
            ("after=9223372036854775808", "'after'"),
            ("after=1&after=2", "'after'"),
        ] {
            let error = format!("{:?}", page(Some(query)).unwrap_err());
            assert!(error.contains(name), "{query}: {error}");
        }
    }

    #[test]
    fn next_link_repeats_the_filter() {
        let page = Page { limit: 5, status: Some(PetStatus::Sold), after: 0 };
        assert_eq!(next_link(&page, 9), "</v1/pets?limit=5&status=sold&after=9>; rel=\"next\"");
        assert_eq!(next_link(&Page { status: None, ..page }, 9), "</v1/pets?limit=5&after=9>; rel=\"next\"");
    }
}
