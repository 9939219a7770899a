//! Paging for every list: the parameters `limit` and `after`, the array, and the link to the next page.

use std::ops::ControlFlow;

use serde::Serialize;

use crate::app::endpoint::ApiError;
use crate::app::endpoint::parameter::QueryParameter;
use crate::app::endpoint::query::parameter;
use crate::app::endpoint::{Call, HeaderField, tagged};
use crate::model::FULL_PAGE_BYTES;
use crate::model::Page;
use petstore_base::http::{Response, percent};
use petstore_base::json::{Integer, Json, object, reference};

const DEFAULT_LIMIT: i64 = 20;
const MAX_LIMIT: u32 = 100;
/// The most rows that a list reads: a full page, and one more row to see if another page follows.
pub const MAX_PAGE_ROWS: u32 = MAX_LIMIT + 1;
/// The most items of a page (specification, section 8).
pub static LIMIT: QueryParameter<Integer> = QueryParameter {
    name: "limit",
    about: "Maximum number of items per page.",
    schema: Integer {
        minimum: 1,
        maximum: MAX_LIMIT as i64,
        default: Some(DEFAULT_LIMIT),
    },
};
/// The cursor: the id of the last item of the previous page.
pub static AFTER: QueryParameter<Integer> = QueryParameter {
    name: "after",
    about: "Returns only items with an id greater than this. The `Link` header of the previous page contains it.",
    schema: Integer::INT64,
};
/// The header field with the URL of the next page.
pub const LINK: HeaderField = HeaderField {
    name: "Link",
    about: "The URL of the next page, if there is one, with rel=\"next\" (RFC 8288).",
    example: "</v1/pets?limit=20&after=20>; rel=\"next\"",
};

/// Returns the JSON Schema of a page. `name` is the component of its items.
pub fn list_of(name: &str, about: &str) -> Json {
    object! { "type": "array", "description": about, "items": reference(name), "maxItems": MAX_LIMIT }
}

/// Returns whether a query has a `limit` above the default.
pub fn is_long_page(query: &str) -> bool {
    let limit = parameter(Some(query), LIMIT.name).ok().flatten();
    limit
        .and_then(|limit| limit.parse().ok())
        .is_some_and(|limit: i64| limit > DEFAULT_LIMIT)
}

/// Writes a page as a JSON array.
pub struct PageWriter {
    /// The requested page.
    pub page: Page,
    /// The filters, as a part of the query in the link to the next page.
    filters: String,
    body: Vec<u8>,
    shown: u32,
    last: Option<i64>,
    is_followed: bool,
}

impl PageWriter {
    /// Begins the page of a request. The link to the next page repeats each filter that the operation declares.
    ///
    /// # Errors
    /// 400, if a parameter is given twice, or `limit` or `after` has a wrong value.
    pub fn of(call: &Call) -> Result<Self, ApiError> {
        let limit = u32::try_from(call.query(&LIMIT)?.unwrap_or(DEFAULT_LIMIT)).unwrap_or(u32::MAX);
        let mut list = Self::new(Page {
            limit,
            after: call.query(&AFTER)?,
        });
        let declared = call
            .operation
            .parameters
            .iter()
            .filter_map(|parameter| parameter.query());
        for name in declared.filter(|name| ![LIMIT.name, AFTER.name].contains(name)) {
            if let Some(value) = parameter(call.target.query, name)? {
                list.filter(name, &value);
            }
        }
        Ok(list)
    }

    fn new(page: Page) -> Self {
        let mut body = Vec::with_capacity(64 * page.limit as usize);
        body.push(b'[');
        Self {
            page,
            filters: String::new(),
            body,
            shown: 0,
            last: None,
            is_followed: false,
        }
    }

    /// Repeats a filter in the link to the next page.
    fn filter(&mut self, name: &str, value: &str) {
        self.filters
            .extend(["&", name, "=", &percent::encode(value)]);
    }

    /// Adds an item. If the page is already full, it notes that another page follows, and returns `Break`.
    pub fn push(&mut self, cursor: i64, item: &impl Serialize) -> ControlFlow<()> {
        if self.shown == self.page.limit || self.body.len() >= FULL_PAGE_BYTES {
            self.is_followed = true;
            return ControlFlow::Break(());
        }
        if self.shown > 0 {
            self.body.push(b',');
        }
        // Writing plain structs to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.body, item);
        self.shown += 1;
        self.last = Some(cursor);
        ControlFlow::Continue(())
    }

    /// Returns the response with its tag, and with a link if another page follows (RFC 8288). `first` is the URL of the
    /// first page.
    pub fn finish(mut self, first: &str) -> Response {
        self.body.push(b']');
        let response = tagged(Response::json_bytes(200, self.body), Some(self.is_followed));
        match self.last {
            Some(last) if self.is_followed => {
                let (limit, filters) = (self.page.limit, self.filters);
                response.header(
                    "Link",
                    format!("<{first}?limit={limit}{filters}&after={last}>; rel=\"next\""),
                )
            }
            _ => response,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(limit: u32, items: &[&str]) -> Response {
        let mut page = PageWriter::new(Page { limit, after: None });
        page.filter("status", "sold");
        for (cursor, item) in (5..).zip(items) {
            if page.push(cursor, item).is_break() {
                break;
            }
        }
        page.finish("/x")
    }

    fn link(response: &Response) -> Option<&str> {
        response.field("Link")
    }

    #[test]
    fn full_page_leads_on() {
        let last = written(2, &["a", "b"]);
        assert_eq!((last.body(), link(&last)), (&br#"["a","b"]"#[..], None));
        let full = written(2, &["a", "b", "c"]);
        assert_eq!(full.body(), br#"["a","b"]"#);
        assert_eq!(
            link(&full),
            Some("</x?limit=2&status=sold&after=6>; rel=\"next\"")
        );
        assert_eq!(written(2, &[]).body(), b"[]");
    }

    #[test]
    fn huge_page_ends_early() {
        let large = "x".repeat(FULL_PAGE_BYTES / 2);
        let huge = written(100, &[&large, &large, &large]);
        assert_eq!(
            link(&huge),
            Some("</x?limit=100&status=sold&after=6>; rel=\"next\"")
        );
        assert!(huge.body().len() < FULL_PAGE_BYTES + 10);
        let long = "x".repeat(1000);
        assert_eq!(
            link(&written(100, &[long.as_str(); 100])),
            None,
            "ordinary names end no page"
        );
    }
}
