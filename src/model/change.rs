//! What has happened to a pet.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::{Order, Pet};
use petstore_base::clock::rfc3339_millis;
use petstore_base::words;

words! {
    /// What was done to a pet: `created`, `updated` or `deleted`.
    ChangeKind {
        /// It was added.
        Created = "created",
        /// Its name, category or status is another one.
        Updated = "updated",
        /// It was deleted.
        Deleted = "deleted",
    }
}

/// A recorded change of a pet. Its JSON is that of the HTTP interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PetChange<'a> {
    /// Ascends in the order of the commits, and is never used again.
    pub id: i64,
    /// When it was made, in milliseconds of Unix time.
    #[serde(serialize_with = "as_rfc3339")]
    pub at: i64,
    /// What was done.
    pub kind: ChangeKind,
    /// The id of the pet.
    #[serde(rename = "petId")]
    pub pet_id: i64,
    /// The pet before; `None` if it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Pet<'a>>,
    /// The pet after; `None` if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pet: Option<Pet<'a>>,
    /// The name of the API key, or the command, such as `petstore import`; `None` for a program that embeds petstore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
}

impl PetChange<'_> {
    /// A copy that borrows nothing.
    pub(crate) fn into_owned(self) -> PetChange<'static> {
        PetChange {
            before: self.before.map(Pet::into_owned),
            pet: self.pet.map(Pet::into_owned),
            key: self.key.map(|key| Cow::Owned(key.into_owned())),
            ..self
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let names =
            [&self.before, &self.pet].map(|pet| pet.as_ref().map_or(0, |pet| pet.name.len()));
        names.iter().sum::<usize>() + size_of::<Self>()
    }
}

fn as_rfc3339<S: Serializer>(at: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&rfc3339_millis(*at))
}

/// A query of the record.
#[derive(Clone, Copy, Debug)]
pub struct ChangeQuery {
    /// The least and the greatest id.
    pub ids: (i64, i64),
    pub order: Order,
    /// The most changes.
    pub limit: u32,
    /// Only those of this pet.
    pub pet: Option<i64>,
    pub kind: Option<ChangeKind>,
    /// Only those from this time on, in milliseconds of Unix time.
    pub since: Option<i64>,
}

/// What the record has.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangesKept {
    /// For how many seconds changes are kept; `None`: they are not recorded.
    pub seconds: Option<i64>,
    /// It is whole after this id.
    pub from: i64,
    /// The id of its first change. It is lower than `from` after a restore, and higher than `newest` if there is none.
    pub oldest: i64,
    /// The id of the last change, even if that is gone; 0 if none was ever recorded.
    pub newest: i64,
}

impl ChangesKept {
    /// Returns whether the record has everything after an id. An id that it has not given is one of another database.
    pub fn is_whole_after(&self, id: i64) -> bool {
        (self.from.max(self.oldest.saturating_sub(1))..=self.newest).contains(&id)
    }
}
