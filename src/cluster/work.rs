//! What a batch does to the database of a cluster, and the values that go through the seam.

use crate::model::{ApiKey, Digest, IdempotencyKey, NewPet, Pet};
use crate::store::Outcome;

/// One part of a batch. Creates come first, and then the others in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Adds a pet, unless a create with this key was carried out before.
    Create {
        new: NewPet<'static>,
        key: Option<IdempotencyKey>,
    },
    /// Adds a pet that keeps its id.
    CreateAs(Pet<'static>),
    /// Changes a pet, or deletes it, if it is still as it was read.
    Change {
        old: Pet<'static>,
        new: Option<Pet<'static>>,
    },
    /// Adds a key, if this is still the newest of its name.
    AddKey {
        key: ApiKey,
        newest: Option<Digest>,
    },
    /// Makes a key expire at this Unix time at the latest.
    ExpireKey(Digest, i64),
    DeleteKey(Digest),
    /// Stores when a key was last used, in Unix time. A time later than `now` counts as `now`, and a stored one as none.
    UseKey {
        digest: Digest,
        at: i64,
        now: i64,
    },
    /// Notes an import of an input with this digest. `ids` are the least and the greatest of its pets, if they keep them: then
    /// there must never have been a pet. `None`: the creates of the batch are its pets. It may have been imported before only
    /// if it is to be imported `again`.
    NoteImport {
        input: [u8; 32],
        ids: Option<(i64, i64)>,
        again: bool,
    },
}

/// What came of a part of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    not(feature = "cluster"),
    expect(dead_code, reason = "only a cluster makes them")
)]
pub enum Done {
    Created(Outcome),
    /// What it changes or adds is so now.
    Changed,
    /// Nothing: what it changes is not as it was when it was read.
    Overtaken,
}

/// The API keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys {
    /// By name, the newest of a name last.
    pub all: Vec<ApiKey>,
    /// True if there has ever been one.
    pub has_had: bool,
}

/// A state of the database, of which one may include another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revision {
    /// The number of changes other than creates.
    pub changes: i64,
    /// The greatest id of a pet.
    pub seq: i64,
    /// The mark of the database. A restore gives it another one.
    pub mark: String,
}

impl Revision {
    /// Returns `true` if both have the same keys.
    pub fn has_keys_of(&self, other: &Self) -> bool {
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
        // A create changes no key.
        assert!(seen.has_keys_of(&revision(5, 8, "a")));
        assert!(!seen.has_keys_of(&revision(6, 7, "a")));
        assert!(!seen.has_keys_of(&revision(5, 7, "b")));
    }
}
