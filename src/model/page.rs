//! A page of any list.

use petstore_base::words;

words! {
    /// The order of a list: `asc` or `desc`.
    Order {
        /// The oldest first.
        Ascending = "asc",
        /// The newest first.
        Descending = "desc",
    }
}

/// The size in bytes at which a page of a list ends early, because names may be long. The `Link` header leads to the
/// rest.
pub const FULL_PAGE_BYTES: usize = 1024 * 1024;

/// A request for one page of a list, in the order of the ids.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Page {
    /// The most items.
    pub limit: u32,
    pub order: Order,
    /// Only ids that follow this one in the order; `None`: all.
    pub after: Option<i64>,
}

impl Page {
    /// A page in ascending order.
    pub const fn ascending(limit: u32, after: Option<i64>) -> Self {
        Self {
            limit,
            order: Order::Ascending,
            after,
        }
    }

    /// Returns the first id that the page can contain; `None` if no id follows `after`.
    pub fn first(&self) -> Option<i64> {
        match (self.order, self.after) {
            (Order::Ascending, None) => Some(i64::MIN),
            (Order::Ascending, Some(after)) => after.checked_add(1),
            (Order::Descending, None) => Some(i64::MAX),
            (Order::Descending, Some(after)) => after.checked_sub(1),
        }
    }

    /// Returns the number of rows to read: one more than the limit, to see if another page follows.
    pub fn rows(&self) -> u32 {
        self.limit.saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_more_is_read_than_a_page_has() {
        assert_eq!(
            [1, 100].map(|limit| Page::ascending(limit, None).rows()),
            [2, 101]
        );
    }

    #[test]
    fn every_id_but_the_last_has_a_successor() {
        let first = |after| Page::ascending(1, after).first();
        assert_eq!(first(None), Some(i64::MIN));
        assert_eq!(first(Some(i64::MIN)), Some(i64::MIN + 1));
        assert_eq!(first(Some(i64::MAX)), None);
        let last = |after| {
            let order = Order::Descending;
            let page = Page {
                order,
                ..Page::ascending(1, after)
            };
            page.first()
        };
        assert_eq!(last(None), Some(i64::MAX));
        assert_eq!(last(Some(i64::MAX)), Some(i64::MAX - 1));
        assert_eq!(last(Some(i64::MIN)), None);
    }
}
