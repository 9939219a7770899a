//! Paging for every list: the parameters `limit` and `after`, the array, and the link to the next page.

use std::mem;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::app::endpoint::parameter::{Experimental, QueryParameter};
use crate::app::endpoint::query::{ignored, parameter};
use crate::app::endpoint::{ApiError, Call, Code, HeaderField, tagged};
use crate::model::{FULL_PAGE_BYTES, Order, Page};
use petstore_base::http::{Response, percent};
use petstore_base::json::{Enumeration, Integer, Json, object, reference};

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
/// The order of the items.
pub static ORDER: Experimental<Enumeration<Order>> = Experimental(QueryParameter {
    name: "order",
    about: "`desc`: the items in descending order of their ids, the newest first. By default `asc`.",
    schema: Order::SCHEMA,
});
/// The cursor in descending order.
pub static BEFORE: Experimental<Integer> = Experimental(QueryParameter {
    name: "before",
    about: "Returns only items with an id less than this. It needs `order=desc`, where it stands for `after`. The \
        `Link` header of the previous page contains it.",
    schema: Integer::INT64,
});

/// The header field with the URL of the next page.
pub const LINK: HeaderField = HeaderField {
    name: "Link",
    about: "The URL of the next page, if there is one, with rel=\"next\" (RFC 8288).",
    example: "</v1/pets?limit=20&after=20>; rel=\"next\"",
};

/// The header field with the names of parameters that have no effect.
pub const IGNORED_PARAMETERS: HeaderField = HeaderField {
    name: "Ignored-Parameters",
    about: "The query parameters that this list does not know, and ignores: a list of tokens (RFC 9651), of at most ten.",
    example: "q, page",
};

/// Returns the JSON Schema of a page. `name` is the component of its items.
pub fn list_of(name: &str, about: &str) -> Json {
    object! { "type": "array", "description": about, "items": reference(name), "maxItems": MAX_LIMIT }
}

/// Returns whether the text of a `limit` is above the default.
pub fn is_long(limit: &str) -> bool {
    limit.parse().is_ok_and(|limit: i64| limit > DEFAULT_LIMIT)
}

/// The order of a request, and the id that its page comes after in that order.
///
/// # Errors
/// 400, if a parameter has a wrong value, or `after` or `before` stands with the other order.
fn order(call: &Call) -> Result<(Order, Option<i64>), ApiError> {
    let order = call.query(&ORDER.0)?.unwrap_or(Order::Ascending);
    let (after, before) = (call.query(&AFTER)?, call.query(&BEFORE.0)?);
    let wrong = |message| ApiError::with_message(Code::InvalidParameter, message);
    match order {
        Order::Ascending if before.is_some() => Err(wrong(
            "The query parameter 'before' needs 'order=desc'; without it, use 'after'.",
        )),
        Order::Descending if after.is_some() => Err(wrong(
            "The query parameter 'after' cannot be used with 'order=desc'; use 'before'.",
        )),
        Order::Ascending => Ok((order, after)),
        Order::Descending => Ok((order, before)),
    }
}

/// Writes a page as a JSON array.
pub struct PageWriter {
    /// The requested page.
    pub page: Page,
    /// The filters, as a part of the query in the link to the next page.
    filters: String,
    /// The names in the query that the operation does not know.
    ignored: String,
    body: Vec<u8>,
    shown: u32,
    last: Option<i64>,
    is_followed: bool,
}

impl PageWriter {
    /// Begins the page of a request. The link to the next page repeats each filter that the operation declares.
    ///
    /// # Errors
    /// 400, if a parameter is given twice, or one of the page has a wrong value.
    pub fn of(call: &Call) -> Result<Self, ApiError> {
        let limit = u32::try_from(call.query(&LIMIT)?.unwrap_or(DEFAULT_LIMIT)).unwrap_or(u32::MAX);
        let (order, after) = if call.operation.declares(ORDER.0.name) {
            order(call)?
        } else {
            (Order::Ascending, call.query(&AFTER)?)
        };
        let mut list = Self::new(Page {
            limit,
            order,
            after,
        });
        let of_page = [LIMIT.name, AFTER.name, BEFORE.0.name];
        for name in call
            .operation
            .query_parameters()
            .filter(|name| !of_page.contains(name))
        {
            if let Some(value) = parameter(call.target.query, name)? {
                list.filter(name, &value);
            }
        }
        list.ignored = ignored(call.target.query, |name| call.operation.declares(name));
        Ok(list)
    }

    fn new(page: Page) -> Self {
        let mut body = Vec::with_capacity(64 * page.limit as usize);
        body.push(b'[');
        Self {
            page,
            filters: String::new(),
            ignored: String::new(),
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
            return self.interrupt();
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

    /// Passes over an item that the page does not have, so that the link leads past it.
    pub fn pass(&mut self, cursor: i64) -> ControlFlow<()> {
        self.last = Some(cursor);
        ControlFlow::Continue(())
    }

    /// Ends the page early. The link leads to what follows the last item, or the last that was passed over.
    pub fn interrupt(&mut self) -> ControlFlow<()> {
        self.is_followed = true;
        ControlFlow::Break(())
    }

    /// Has the link lead on after this id, unless the page is full.
    pub fn go_on_after(&mut self, cursor: i64) {
        if !self.is_followed {
            (self.last, self.is_followed) = (Some(cursor), true);
        }
    }

    /// Returns the response with its tag, and with a link if another page follows (RFC 8288). `first` is the URL of the
    /// first page.
    pub fn finish(mut self, first: &str) -> Response {
        let mut body = mem::take(&mut self.body);
        body.push(b']');
        let mut response = tagged(Response::json_bytes(200, body), Some(self.is_followed));
        if !self.ignored.is_empty() {
            response = response.header(IGNORED_PARAMETERS.name, &self.ignored);
        }
        match self.last {
            Some(last) if self.is_followed => response.header(LINK.name, self.link(first, last)),
            _ => response,
        }
    }

    /// The link to what follows an id, with the filters of this page.
    pub fn link(&self, first: &str, last: i64) -> String {
        let (limit, filters) = (self.page.limit, &self.filters);
        let after = match self.page.order {
            Order::Ascending => AFTER.name,
            Order::Descending => BEFORE.0.name,
        };
        format!("<{first}?limit={limit}{filters}&{after}={last}>; rel=\"next\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(limit: u32, items: &[&str]) -> Response {
        let mut page = PageWriter::new(Page::ascending(limit, None));
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
