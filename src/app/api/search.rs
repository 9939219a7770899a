//! Finding pets by name, by category, or without a status: what `GET /v1/pets` also does with `--experimental`.
//!
//! No index serves a search, so a request looks at a bounded number of pets, and its `Link` leads on.

use super::paging::{LIMIT, is_long};
use crate::app::endpoint::parameter::{Experimental, QueryParameter};
use crate::app::endpoint::query::pairs;
use crate::app::endpoint::{ApiError, Call};
use crate::model::{ChangeKind, NamePart, Pet, PetSearch, PetStatus};
use petstore_base::http::Size;
use petstore_base::json::{DateTime, Enumeration, Integer, Json, Text};
use petstore_base::words;

/// The most pets that a request looks at, and the most bytes of their names.
pub const MOST_PETS: u32 = 20_000;
const MOST_BYTES: usize = 1 << 20;
/// The most pets on a cluster, which sends each of them.
const MOST_PETS_OF_CLUSTER: u32 = 2_000;

words! {
    /// The status to list: one of the words of a status, or `unset`.
    StatusFilter {
        /// It is available.
        Available = "available",
        /// It is pending.
        Pending = "pending",
        /// It is sold.
        Sold = "sold",
        /// It has no status.
        Unset = "unset",
    }
}

impl StatusFilter {
    /// The status, which an index finds; `None`: the lack of one.
    fn status(self) -> Option<PetStatus> {
        self.as_str().parse().ok()
    }
}

pub static NAME: Experimental<Text> = Experimental(QueryParameter {
    name: "name",
    about: "Returns only pets whose name contains this text. Upper and lower case are the same.",
    schema: Text {
        least: 1,
        most: 100,
    },
});
pub static CATEGORY_ID: Experimental<Integer> = Experimental(QueryParameter {
    name: "categoryId",
    about: "Returns only pets with this category.",
    schema: Integer::INT64,
});
pub static KIND: QueryParameter<Enumeration<ChangeKind>> = QueryParameter {
    name: "kind",
    about: "Returns only changes of this kind.",
    schema: ChangeKind::SCHEMA,
};
pub static SINCE: QueryParameter<DateTime> = QueryParameter {
    name: "since",
    about: "Returns only changes from this time on (RFC 3339). In a URL, the `+` of an offset is written `%2B`.",
    schema: DateTime,
};
pub static STATUS: QueryParameter<Enumeration<StatusFilter>> = QueryParameter {
    name: "status",
    about: "Returns only pets with this status. `unset`, which is experimental: only pets without a status.",
    schema: StatusFilter::SCHEMA,
};
/// The schema of [`STATUS`].
pub fn schema() -> (&'static str, Json) {
    StatusFilter::SCHEMA.component("The availability of pets, or `unset` for none.")
}

/// Estimates the size of a page by its query: its `limit` may be above the default, and a search takes long.
pub fn page_size(query: &str) -> Size {
    let mut size = Size::Medium;
    for (name, value) in pairs(query) {
        if [NAME.0.name, CATEGORY_ID.0.name, KIND.name, SINCE.name].contains(&&*name)
            || name == STATUS.name && value == StatusFilter::Unset.as_str()
        {
            return Size::Long;
        }
        if name == LIMIT.name && is_long(&value) {
            size = Size::Large;
        }
    }
    size
}

/// A search under way, and how much it may still look at.
#[derive(Debug)]
pub struct Search {
    wanted: PetSearch,
    pets: u32,
    bytes: usize,
}

impl Search {
    /// The status that an index finds, and the search if the request has a condition that no index serves.
    ///
    /// # Errors
    /// 400, if a parameter has a wrong value.
    pub fn parse(call: &Call) -> Result<(Option<PetStatus>, Option<Self>), ApiError> {
        let filter = call.query(&STATUS)?;
        let status = filter.and_then(StatusFilter::status);
        let wanted = PetSearch {
            name: call.query(&NAME.0)?.map(|name| NamePart::new(&name)),
            category_id: call.query(&CATEGORY_ID.0)?,
            is_unset: filter.is_some() && status.is_none(),
        };
        let is_any = wanted.name.is_some() || wanted.category_id.is_some() || wanted.is_unset;
        let search = Self {
            wanted,
            pets: MOST_PETS,
            bytes: MOST_BYTES,
        };
        Ok((status, is_any.then_some(search)))
    }

    /// Looks at fewer pets, as each comes from another machine.
    pub fn on_cluster(&mut self) {
        self.pets = MOST_PETS_OF_CLUSTER;
    }

    /// Looks at a pet, and returns whether it is one of those that are sought; `None` if no more may be looked at.
    pub fn look(&mut self, pet: &Pet) -> Option<bool> {
        if self.pets == 0 || self.bytes == 0 {
            return None;
        }
        self.pets -= 1;
        self.bytes = self.bytes.saturating_sub(pet.name.len());
        Some(self.wanted.finds(pet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::api::pets::FINDING;

    #[test]
    fn filter_has_every_status_and_none() {
        let statuses = PetStatus::ALL.iter().map(|status| status.as_str());
        let words: Vec<&str> = statuses.chain(["unset"]).collect();
        let filters = StatusFilter::ALL.iter().map(|filter| filter.as_str());
        assert_eq!(filters.collect::<Vec<_>>(), words);
    }

    #[test]
    fn budget_is_the_one_that_is_described() {
        let guide = include_str!("../../site/pages/pagination.md");
        for text in [FINDING[0].about, guide] {
            assert!(text.contains("looks at 20,000 pets at most"), "{text}");
        }
        assert!(guide.contains("(2,000 on a\n[cluster]") && guide.contains("1 MiB of names"));
        assert_eq!((MOST_PETS, MOST_PETS_OF_CLUSTER), (20_000, 2_000));
        assert_eq!(MOST_BYTES, 1 << 20);
    }
}
