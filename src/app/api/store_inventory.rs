//! `GET /v1/store/inventory`: the number of pets with each status.

use super::changes::CHANGES;
use super::orders::STORE;
use crate::app::endpoint::parameter::IF_NONE_MATCH;
use crate::app::endpoint::{
    Call, ETAG, Failure, Handler, HeaderField, Operation, ReadContext, Stability, Success, tagged,
};
use crate::store::Counted;
use petstore_base::http::Response;
use petstore_base::json::{Integer, Json, Member, Required, describe, object};

const AGE: HeaderField = HeaderField {
    name: "Age",
    about: "The most seconds since the numbers were exact (RFC 9111, section 5.1).",
    example: "0",
};

const LINK_OF_CHANGES: HeaderField = HeaderField {
    name: "Link",
    about: "While changes are recorded, the URL of their list (RFC 8288).",
    example: "</v1/changes>; rel=\"related\"",
};

pub static EXPERIMENTAL: &[Operation] = &[Operation {
    title: "Count pets by status",
    summary: "Count animals by status",
    about: "Returns the number of pets with each status, of those without one, and of all. The numbers are exact as of \
        a moment that `Age` tells. If pets have changed since, it is at most eleven times as long ago as a count takes, \
        which is about 0.1 seconds per million pets.",
    tag: Some(&STORE),
    stability: Some(Stability::Experimental),
    rows: Some(u32::MAX),
    parameters: &[&IF_NONE_MATCH],
    success: Some(Success {
        status: 200,
        about: "The number of pets with each status.",
        schema: Some("Inventory"),
        headers: &[ETAG, AGE, LINK_OF_CHANGES],
    }),
    ..Operation::new("/v1/store/inventory", "getInventory", Handler::Get(get))
}];

/// The schema of the OpenAPI description: its name and its JSON Schema.
pub fn schemas() -> Vec<(&'static str, Json)> {
    let example = object! { "available": 2, "pending": 0, "sold": 1, "unset": 0, "total": 3 };
    vec![(
        "Inventory",
        describe(
            "The number of pets with each status.",
            &MEMBERS,
            example,
            true,
        ),
    )]
}

const fn number(name: &'static str, about: &'static str) -> Required<Integer> {
    Required {
        name,
        about,
        schema: Integer::between(0, i64::MAX),
    }
}

static MEMBERS: [&dyn Member; 5] = [
    &const { number("available", "Pets that are for sale.") },
    &const { number("pending", "Pets that are being sold.") },
    &const { number("sold", "Pets that are sold.") },
    &const { number("unset", "Pets without a status.") },
    &const { number("total", "All pets.") },
];

/// `GET /v1/store/inventory`: the number of pets with each status.
///
/// ```json
/// {"available":2,"pending":0,"sold":1,"unset":0,"total":3}
/// ```
fn get(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    let store = &context.store;
    let counted = context
        .counts
        .current(store.data_version(), || store.count_pets())?;
    let response = respond(call, counted);
    if store.changes_kept()?.seconds.is_none() {
        return Ok(response);
    }
    let link = format!("<{}>; rel=\"related\"", context.settings.url(CHANGES));
    Ok(response.header(LINK_OF_CHANGES.name, link))
}

/// The response with these counts.
pub fn respond(call: &Call, counted: Counted) -> Response {
    // Rounded up.
    let age = counted.age().as_millis().div_ceil(1000);
    let response = Response::json(200, &counted.counts).header(AGE.name, age.to_string());
    call.unless_known(tagged(response, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PetCounts;

    #[test]
    fn description_has_the_members_of_the_response() {
        let counts = serde_json::to_value(PetCounts::default()).unwrap();
        let mut described = MEMBERS.map(|member| member.name());
        described.sort_unstable();
        assert!(counts.as_object().unwrap().keys().eq(described));
    }
}
