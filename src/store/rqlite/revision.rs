//! Revisions of the database: an order of its states, by which one state includes another.

use super::client::{ClusterRows, ClusterValue};
use crate::store::{Cause, StoreError};

/// The state of what clients can see. A create raises `seq`, and triggers count other changes in `changes`.
pub const REVISION: &str = "SELECT changes, ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'pets'), 0), \
    ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'petstore log'), '') FROM cluster_changes";

/// A state of the database: the row of [`REVISION`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The number of changes other than creates.
    pub changes: i64,
    /// The greatest id of a pet.
    pub seq: i64,
    /// The mark of the database. A restore gives it another one.
    pub mark: String,
}

impl Revision {
    /// The revision in an answer to [`REVISION`].
    ///
    /// # Errors
    /// If the answer has no revision.
    pub fn of(rows: &ClusterRows) -> Result<Self, StoreError> {
        match rows.first().map(Vec::as_slice) {
            Some(
                [
                    ClusterValue::Integer(changes),
                    ClusterValue::Integer(seq),
                    ClusterValue::Text(mark),
                ],
            ) => Ok(Self {
                changes: *changes,
                seq: *seq,
                mark: mark.clone(),
            }),
            _ => Err(StoreError::Unavailable(
                Cause::SchemaChanged,
                "it has no counter of changes".to_owned(),
            )),
        }
    }

    /// Returns `true` if the small tables are the same in both.
    pub fn has_same_small_tables(&self, other: &Self) -> bool {
        (self.changes, &self.mark) == (other.changes, &other.mark)
    }

    /// Returns `true` if a database of this revision has everything that a database of the other revision has.
    pub fn has_all_of(&self, other: &Self) -> bool {
        self.mark == other.mark && self.seq >= other.seq && self.changes >= other.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_has_all_of_another_if_it_is_the_same_and_no_older() {
        let revision = |changes, seq, mark: &str| Revision {
            changes,
            seq,
            mark: mark.to_owned(),
        };
        let seen = revision(5, 7, "a");
        for newer in [seen.clone(), revision(6, 7, "a"), revision(5, 8, "a")] {
            assert!(newer.has_all_of(&seen), "{newer:?}");
        }
        for other in [
            revision(4, 8, "a"),
            revision(6, 6, "a"),
            revision(9, 9, "b"),
        ] {
            assert!(!other.has_all_of(&seen), "{other:?}");
        }
        // A create changes no small table.
        assert!(seen.has_same_small_tables(&revision(5, 8, "a")));
        assert!(!seen.has_same_small_tables(&revision(6, 7, "a")));
        assert!(!seen.has_same_small_tables(&revision(5, 7, "b")));
    }
}
