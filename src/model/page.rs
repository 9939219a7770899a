//! A page of any list.

/// The size in bytes at which a page of a list ends early, because names may be long. The `Link` header leads to the
/// rest.
pub const FULL_PAGE_BYTES: usize = 1024 * 1024;

/// A request for one page of a list, in ascending order of ids.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Page {
    /// The most items.
    pub limit: u32,
    /// Only ids greater than this one; `None`: all.
    pub after: Option<i64>,
}

impl Page {
    /// Returns the lowest id that the page can contain; `None` if no id is greater than `after`.
    pub fn first(&self) -> Option<i64> {
        self.after
            .map_or(Some(i64::MIN), |after| after.checked_add(1))
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
            [1, 100].map(|limit| Page { limit, after: None }.rows()),
            [2, 101]
        );
    }

    #[test]
    fn every_id_but_the_greatest_has_a_successor() {
        let first = |after| Page { limit: 1, after }.first();
        assert_eq!(first(None), Some(i64::MIN));
        assert_eq!(first(Some(i64::MIN)), Some(i64::MIN + 1));
        assert_eq!(first(Some(i64::MAX)), None);
    }
}
