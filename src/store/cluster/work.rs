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
    AddKey { key: ApiKey, newest: Option<Digest> },
    /// Makes a key expire at this Unix time at the latest.
    ExpireKey(Digest, i64),
    /// Deletes a key, if the newest of its name is still this one.
    DeleteKey { digest: Digest, newest: Digest },
    /// Stores when a key was last used, in Unix time. A time later than `now` counts as `now`, and a stored one as none.
    UseKey { digest: Digest, at: i64, now: i64 },
    /// Notes an import of an input with this digest. `ids` are the least and the greatest id, if the pets keep theirs; the
    /// database must then never have had a pet. `None`: the pets are the creates of this batch. An import that is noted already
    /// is accepted only with `again`.
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
    /// Nothing was changed, because somebody else changed the row after it was read.
    Overtaken,
}

/// The API keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys {
    /// By name, the newest of a name last.
    pub all: Vec<ApiKey>,
    /// True if there has ever been one.
    pub has_ever_had_one: bool,
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

/// Numbers revisions, for caches: a new number for each other revision, and after each failure.
#[derive(Default)]
pub struct Version {
    seen: Option<Revision>,
    number: i64,
}

impl Version {
    /// The number of the revision of a batch; `None` if it could not begin.
    pub fn of(&mut self, revision: Option<&Revision>) -> i64 {
        if revision.is_none() || revision != self.seen.as_ref() {
            self.seen = revision.cloned();
            self.number += 1;
        }
        self.number
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
