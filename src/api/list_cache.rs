//! Finished lists, kept for as long as nothing changes: a list asked for again costs no query.

use std::collections::HashMap;

use crate::http::Response;
use crate::store::PetQuery;

/// The most bytes that one worker keeps.
const MAX_BYTES: usize = 1024 * 1024;
/// A larger list is not kept, so that a few do not drive out all others.
const MAX_LIST_BYTES: usize = MAX_BYTES / 16;
/// What a list costs beside its body: its place in the map and its header fields, roughly.
const ENTRY_BYTES: usize = 512;

/// One worker's lists, all of the same version of the database.
#[derive(Default)]
pub struct ListCache {
    version: i64,
    responses: HashMap<PetQuery, Response>,
    bytes: usize,
}

impl ListCache {
    /// The list, where it was made of this version.
    pub fn get(&mut self, query: &PetQuery, version: i64) -> Option<Response> {
        if self.version != version {
            *self = Self { version, ..Self::default() };
        }
        self.responses.get(query).cloned()
    }

    /// Keeps a list of the version that [`ListCache::get`] was last asked for.
    pub fn keep(&mut self, query: PetQuery, response: &Response) {
        if response.body().len() > MAX_LIST_BYTES {
            return;
        }
        let cost = response.body().len() + ENTRY_BYTES;
        if self.bytes + cost > MAX_BYTES {
            self.responses.clear();
            self.bytes = 0;
        }
        self.bytes += cost;
        self.responses.insert(query, response.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(after: i64) -> PetQuery {
        PetQuery { limit: 1, status: None, after: Some(after) }
    }

    #[test]
    fn list_lives_as_long_as_its_version() {
        let mut lists = ListCache::default();
        assert!(lists.get(&query(1), 7).is_none());
        lists.keep(query(1), &Response::json_bytes(200, b"[]"));
        assert_eq!(lists.get(&query(1), 7).unwrap().body(), b"[]");
        assert!(lists.get(&query(2), 7).is_none());
        assert!(lists.get(&query(1), 8).is_none());
        assert!(lists.get(&query(1), 7).is_none(), "an old version does not come back");
    }

    #[test]
    fn memory_is_bounded() {
        let mut lists = ListCache::default();
        for after in 0..1000 {
            lists.keep(query(after), &Response::json_bytes(200, vec![0; 60_000]));
            assert!(lists.get(&query(after), 0).is_some(), "small enough to keep");
            assert!(
                lists.responses.values().map(|response| response.body().len()).sum::<usize>() <= MAX_BYTES
            );
        }
        lists.keep(query(5000), &Response::json_bytes(200, vec![0; MAX_BYTES]));
        assert!(lists.get(&query(5000), 0).is_none(), "too large to keep");
    }

    #[test]
    fn bounds_are_reached_and_not_passed() {
        let list = |length| Response::json_bytes(200, vec![0; length]);
        let mut lists = ListCache::default();
        lists.keep(query(1), &list(MAX_LIST_BYTES));
        lists.keep(query(2), &list(MAX_LIST_BYTES + 1));
        assert!(lists.get(&query(1), 0).is_some() && lists.get(&query(2), 0).is_none());

        let mut lists = ListCache::default();
        let most = MAX_BYTES / (2 * ENTRY_BYTES);
        (0..).take(most).for_each(|after| lists.keep(query(after), &list(ENTRY_BYTES)));
        assert_eq!(lists.responses.len(), most);
        lists.keep(query(-1), &list(ENTRY_BYTES));
        assert_eq!(lists.responses.len(), 1, "all others made room");
    }

    #[test]
    fn empty_lists_are_bounded_too() {
        let mut lists = ListCache::default();
        for after in 0..100_000 {
            lists.keep(query(after), &Response::json_bytes(200, b"[]"));
            assert!(lists.responses.len() <= MAX_BYTES / ENTRY_BYTES);
        }
        assert!(lists.responses.capacity() <= 4 * MAX_BYTES / ENTRY_BYTES);
    }
}
