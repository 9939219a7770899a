//! `GET /v1/store/inventory`: the number of pets with each status.

use super::entity_tag::{ETAG, tagged, unless_known};
use super::orders::STORE;
use super::{Call, Handler, Operation, ReadContext};
use crate::app::endpoint::parameter::IF_NONE_MATCH;
use crate::app::endpoint::{Failure, Stability, Success};
use crate::base::http::Response;
use crate::base::http::response::Disposition;
use crate::base::json::{Integer, Json, Member, Required, describe, object};

pub static EXPERIMENTAL: &[Operation] = &[Operation {
    title: "Count pets by status",
    summary: "Count animals by status",
    about: "Returns the number of pets with each status, of those without one, and of all. The numbers are exact as of \
        a moment at most a second before the response.",
    tag: Some(&STORE),
    stability: Some(Stability::Experimental),
    rows: Some(0),
    parameters: &[&IF_NONE_MATCH],
    success: Some(Success {
        status: 200,
        about: "The number of pets with each status.",
        schema: Some("Inventory"),
        headers: &[ETAG],
    }),
    ..Operation::new("/v1/store/inventory", "getInventory", Handler::Get(get))
}];

/// The schema of the interface description: its name and its JSON Schema.
pub fn schemas() -> Vec<(&'static str, Json)> {
    let example = object! { "available": 2, "pending": 0, "sold": 1, "unset": 0, "total": 3 };
    vec![("Inventory", describe("The number of pets with each status.", &MEMBERS, example))]
}

const fn number(name: &'static str, about: &'static str) -> Required<Integer> {
    Required { name, about, schema: Integer::between(0, i64::MAX) }
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
    let no_tally = || Failure::Fault("nobody counts the pets".to_owned());
    let tally = context.tally.as_ref().ok_or_else(no_tally)?;
    let counts = match tally.current() {
        Some(counts) => counts,
        None if context.may_count => tally.count()?,
        // So no other request of this worker waits for the count.
        None => return Ok(Response::only(Disposition::RetryOnSlow)),
    };
    Ok(unless_known(tagged(Response::json(200, &counts), false), call))
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
