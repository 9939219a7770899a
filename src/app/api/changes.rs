//! `/v1/changes`: what has happened to pets, while the operator has it recorded.

use super::paging::{
    AFTER, BEFORE, IGNORED_PARAMETERS, LIMIT, LINK, MAX_PAGE_ROWS, ORDER, PageWriter, list_of,
};
use super::pets::PETS_TAG;
use super::search::{KIND, MOST_PETS, SINCE};
use crate::app::endpoint::parameter::{IF_NONE_MATCH, QueryParameter};
use crate::app::endpoint::{
    ApiError, Call, Code, ETAG, Failure, Handler, Operation, ReadContext, Stability, Success,
};
use crate::model::{ChangeKind, ChangeQuery, ChangesKept, ID, KeyScope, Order};
use petstore_base::http::Response;
use petstore_base::json::{
    AnyString, DateTime, Integer, Json, Member, Optional, Required, describe, object, reference,
};

pub const CHANGES: &str = "/v1/changes";

pub static EXPERIMENTAL: &[Operation] = &[Operation {
    title: "List changes",
    summary: "List the changes of animals",
    about: "Returns what has happened to pets, in the order of the commits, one page at a time. Ask again with the `id` of \
        the last change in `after`, and you get what has happened since. The operator has changes recorded with `petstore \
        changes keep 90d`. With `kind` or `since`, a request looks at 20,000 changes at most, so a page can have few changes or \
        none although more follow. After a restore, or if recording was off, the changes before are only listed with `order=desc`.",
    tag: Some(&PETS_TAG),
    stability: Some(Stability::Experimental),
    rows: Some(MAX_PAGE_ROWS),
    parameters: &[
        &LIMIT,
        &AFTER,
        &PET_ID,
        &KIND,
        &SINCE,
        &ORDER,
        &BEFORE,
        &IF_NONE_MATCH,
    ],
    success: Some(Success {
        status: 200,
        about: "A page of changes.",
        schema: Some("Changes"),
        headers: &[LINK, ETAG, IGNORED_PARAMETERS],
    }),
    codes: &[
        Code::InvalidParameter,
        Code::DuplicateParameter,
        Code::NotFound,
        Code::ChangesGone,
    ],
    not_found: Some(NOT_KEPT),
    ..Operation::new(CHANGES, "listChanges", Handler::Get(list))
}];

const NOT_KEPT: &str =
    "Changes are not recorded. The operator starts that with: petstore changes keep 90d";
static PET_ID: QueryParameter<Integer> = QueryParameter {
    name: "petId",
    about: "Returns only changes of this pet.",
    schema: Integer::INT64,
};

/// The schemas of the OpenAPI description: their names and their JSON Schemas.
pub fn schemas() -> Vec<(&'static str, Json)> {
    let members: [&dyn Member; 5] = [
        &Required {
            name: "id",
            about: "Ascends in the order of the commits, and is never used again.",
            schema: Integer::INT64,
        },
        &Required {
            name: "at",
            about: "When the change was made.",
            schema: DateTime,
        },
        &Required {
            name: "kind",
            about: "What was done.",
            schema: ChangeKind::SCHEMA,
        },
        &Required {
            name: "petId",
            ..ID
        },
        &Optional {
            name: "key",
            about: "The name of the API key, or the command, such as `petstore import`. Only keys that may write see it.",
            schema: AnyString,
        },
    ];
    let pet = |status: &str| object! { "id": 3, "name": "Rex", "categoryId": 3, "status": status };
    let example = object! {
        "id": 7, "at": "2026-11-28T20:14:03.125Z", "kind": "updated", "petId": 3,
        "before": pet("available"), "pet": pet("sold"), "key": "web-shop",
    };
    let mut change = describe(
        "A change of a pet. `before` is absent if it was created, and `pet` if it was deleted.",
        &members,
        example,
        true,
    );
    change["properties"]["before"] = reference("Pet");
    change["properties"]["pet"] = reference("Pet");
    vec![
        ChangeKind::SCHEMA.component("What was done to a pet."),
        ("Change", change),
        (
            "Changes",
            list_of("Change", "Changes in the order of their commits."),
        ),
    ]
}

/// `GET /v1/changes`: a page of changes.
///
/// ```json
/// [{"id":7,"at":"2026-11-28T20:14:03.125Z","kind":"deleted","petId":3,"before":{"id":3,"name":"Rex","categoryId":3}}]
/// ```
fn list(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    let shows_keys = call.scope != Some(KeyScope::ReadOnly);
    let target = if shows_keys {
        call.request.target
    } else {
        &format!("{} to read", call.request.target)
    };
    let version = context.store.data_version();
    if let Some(list) = context.lists.get(target, version) {
        return Ok(call.unless_known(list));
    }
    let kept = context.store.changes_kept()?;
    if kept.seconds.is_none() {
        return Err(ApiError::with_message(Code::NotFound, NOT_KEPT).into());
    }
    let mut page = PageWriter::of(call)?;
    let mut query = ChangeQuery {
        ids: (0, 0),
        order: page.page.order,
        limit: page.page.rows(),
        pet: call.query(&PET_ID)?,
        kind: call.query(&KIND)?,
        since: call.query(&SINCE)?,
    };
    let url = context.settings.url(CHANGES);
    let ends_at = look(&mut query, &page, kept, &url)?;
    context.store.visit_changes(&query, |mut change| {
        if !shows_keys {
            change.key = None;
        }
        page.push(change.id, &change)
    })?;
    if let Some(last) = ends_at {
        page.go_on_after(last);
    }
    let response = page.finish(&url);
    Ok(call.unless_known(context.lists.insert(target, response)))
}

/// Sets the ids that a request looks at. Returns the last of them if more follow.
///
/// # Errors
/// 410 with the URL at which the reader can go on, if the record is not whole after the id that the page comes after.
fn look(
    query: &mut ChangeQuery,
    page: &PageWriter,
    kept: ChangesKept,
    url: &str,
) -> Result<Option<i64>, ApiError> {
    let is_search = query.kind.is_some() || query.since.is_some();
    let most = if is_search {
        i64::from(MOST_PETS)
    } else {
        i64::MAX
    };
    match (page.page.order, page.page.after) {
        (Order::Ascending, Some(after)) if !kept.is_whole_after(after) => {
            let go_on = page.link(url, kept.newest);
            Err(ApiError::new(Code::ChangesGone).header(LINK.name, go_on))
        }
        (Order::Ascending, after) => {
            let after = after.unwrap_or(kept.from.max(kept.oldest.saturating_sub(1)));
            let last = after.saturating_add(most).min(kept.newest);
            query.ids = (after.saturating_add(1), last);
            Ok((last < kept.newest).then_some(last))
        }
        (Order::Descending, _) => {
            let last = page.page.first().unwrap_or(i64::MIN).min(kept.newest);
            let first = last.saturating_sub(most - 1).max(kept.oldest);
            query.ids = (first, last);
            Ok((kept.oldest < first).then_some(first))
        }
    }
}
