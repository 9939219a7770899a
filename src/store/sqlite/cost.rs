//! What the reads of one request may cost, counted in the steps of SQLite's virtual machine
//! (`sqlite.org/c3ref/progress_handler.html`): a statement that scans a large table is stopped after a bounded
//! number of them, instead of holding up everybody behind it. Only `count(*)` over a whole table is a single step, however large it is.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;

/// SQLite asks each time a statement has taken so many steps.
const STEPS_PER_QUESTION: c_int = 1000;
/// A statement takes a dozen steps for a row of a page; this leaves room for larger rows, and for a sort.
const ROWS_PER_QUESTION: u32 = 10;
/// Questions that every request may have, whatever it reads.
const FREE_QUESTIONS: u32 = 10;

/// The steps that are left to the request under way, in questions. [`u32::MAX`] lasts for hours, so it is no bound.
pub(super) struct Cost(Arc<AtomicU32>);

impl Cost {
    /// Has a connection count the steps of its statements. Nothing is bounded yet.
    pub fn count(connection: &mut Connection) -> rusqlite::Result<Self> {
        let left = Arc::new(AtomicU32::new(u32::MAX));
        let counted = Arc::clone(&left);
        let is_spent = move || {
            let spent =
                counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            spent.is_err()
        };
        connection.progress_handler(STEPS_PER_QUESTION, Some(is_spent))?;
        Ok(Self(left))
    }

    /// Lets the statements from now on take the steps of so many rows; `None`: any number.
    pub fn bound(&self, rows: Option<u32>) {
        let left = rows.map_or(u32::MAX, |rows| FREE_QUESTIONS + rows / ROWS_PER_QUESTION);
        self.0.store(left, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pair;
    use super::super::{FileReader, StoreError};

    /// Counts up in SQL, a few steps for each number.
    fn count(reader: &FileReader, most: u32) -> Result<u32, StoreError> {
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) SELECT max(i) FROM n";
        Ok(reader.connection.query_row(sql, [most], |row| row.get(0))?)
    }

    #[test]
    fn statement_that_visits_far_more_rows_than_allowed_is_stopped() {
        let (_folder, _writer, reader) = pair();
        reader.limit_rows(Some(101));
        assert_eq!(count(&reader, 101), Ok(101));
        let stopped = count(&reader, 20_000);
        assert!(
            matches!(&stopped, Err(StoreError::Internal(why)) if why.contains("more rows")),
            "{stopped:?}"
        );
        assert!(count(&reader, 20_000).is_err(), "what is spent stays spent");
        reader.limit_rows(Some(1));
        assert_eq!(count(&reader, 500), Ok(500), "and the next request has its own");
        reader.limit_rows(Some(1000));
        assert_eq!(count(&reader, 5000), Ok(5000), "and more for more rows");
        reader.limit_rows(None);
        assert_eq!(count(&reader, 100_000), Ok(100_000));
    }
}
