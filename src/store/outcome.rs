//! The outcome of a batch and of its creates.

use super::StoreError;

/// Proof that a batch is on disk. Only the store makes one, at a commit, so nothing can be acknowledged earlier.
#[derive(Debug, Default, PartialEq)]
pub struct Committed {
    /// The outcomes of [`Inserted::Later`], in order.
    pub(super) outcomes: Vec<Result<Outcome, StoreError>>,
    /// The outcomes of [`Changed::Later`], in order.
    pub(super) changes: Vec<Result<(), StoreError>>,
}

/// A pet that waits for the commit.
#[derive(Debug, PartialEq)]
pub enum Inserted {
    /// The engine knows its outcome already.
    Now(Outcome),
    /// The engine will know it: the place among the creates of the batch.
    #[cfg_attr(
        not(feature = "cluster"),
        expect(dead_code, reason = "a file knows it at once")
    )]
    Later(usize),
}

/// The outcome of a create.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The pet with this id was added.
    Made(i64),
    /// The same create was carried out before, or earlier in this batch, and added this pet.
    Replayed(i64),
    /// Another create was carried out with the same key.
    Reused,
}

/// A change of a pet that waits for the commit.
#[derive(Debug, PartialEq)]
#[must_use]
pub enum Changed {
    /// The pet is as it was read until the commit.
    Now,
    /// The engine will know if it was: the place among the changes of the batch.
    #[cfg_attr(
        not(feature = "cluster"),
        expect(dead_code, reason = "a file knows it at once")
    )]
    Later(usize),
}

impl Changed {
    /// Checks that the pet was changed, once the batch is committed.
    ///
    /// # Errors
    /// [`Cause::Conflict`](super::Cause::Conflict) if another instance has changed the pet since it was read. The other
    /// requests of the batch are not affected.
    pub fn check(&self, committed: &Committed) -> Result<(), StoreError> {
        match self {
            Self::Now => Ok(()),
            Self::Later(place) => committed.changes[*place].clone(),
        }
    }
}

impl Inserted {
    /// The outcome of the create, which is valid only once its batch is committed.
    ///
    /// # Errors
    /// If this create of the batch was rejected; the others are not affected.
    pub fn outcome(&self, committed: &Committed) -> Result<Outcome, StoreError> {
        match self {
            Self::Now(outcome) => Ok(*outcome),
            Self::Later(place) => committed.outcomes[*place].clone(),
        }
    }

    /// The id, for tests.
    #[cfg(test)]
    pub fn id(&self, committed: &Committed) -> i64 {
        match self.outcome(committed) {
            Ok(Outcome::Made(id) | Outcome::Replayed(id)) => id,
            other => panic!("{other:?}"),
        }
    }
}
