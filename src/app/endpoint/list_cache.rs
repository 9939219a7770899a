//! A cache of lists, valid until the database changes, so that a repeated request needs no query.

use std::collections::BTreeMap;

use petstore_base::http::Response;

/// The size limit of one worker's cache, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// Larger lists are not cached, so that a few of them do not evict all others.
const MAX_LIST_BYTES: usize = MAX_BYTES / 16;
/// An estimate of the bytes that an entry takes in addition to its target, its header fields and its body.
const ENTRY_BYTES: usize = 256;

/// One worker's lists by request target, all of the same version of the database. A B-tree, not a hash map: clients
/// choose the targets, and its lookups have a bounded cost for all of them.
#[derive(Default)]
pub struct ListCache {
    version: i64,
    lists: BTreeMap<Box<str>, Response>,
    bytes: usize,
}

impl ListCache {
    /// Caches a list that [`ListCache::get`] did not find, and returns it.
    pub fn insert(&mut self, target: &str, list: Response) -> Response {
        let list = list.shared();
        self.add(target, &list);
        list
    }

    /// Returns the cached response to a request with this target, if it is of this version.
    pub fn get(&mut self, target: &str, version: i64) -> Option<Response> {
        if self.version != version {
            *self = Self {
                version,
                ..Self::default()
            };
        }
        self.lists.get(target).cloned()
    }

    fn add(&mut self, target: &str, list: &Response) {
        // A client chooses the length of the fields too: the link repeats its filters.
        let length = target.len() + list.fields.lines.len() + list.body().len();
        if length > MAX_LIST_BYTES {
            return;
        }
        let cost = length + ENTRY_BYTES;
        if self.bytes + cost > MAX_BYTES {
            self.lists.clear();
            self.bytes = 0;
        }
        self.bytes += cost;
        self.lists.insert(target.into(), list.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(length: usize) -> Response {
        Response::json_bytes(200, vec![0; length])
    }

    #[test]
    fn list_lives_as_long_as_its_version() {
        let mut lists = ListCache::default();
        assert!(lists.get("/a", 7).is_none());
        lists.add("/a", &list(2));
        assert_eq!(lists.get("/a", 7).unwrap().body().len(), 2);
        assert!(lists.get("/b", 7).is_none());
        assert!(lists.get("/a", 8).is_none());
        assert!(
            lists.get("/a", 7).is_none(),
            "an old version does not come back"
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut lists = ListCache::default();
        for i in 0..1000 {
            let target = format!("/{i}");
            lists.add(&target, &list(60_000));
            assert!(lists.get(&target, 0).is_some(), "small enough to keep");
            assert!(
                lists
                    .lists
                    .values()
                    .map(|list| list.body().len())
                    .sum::<usize>()
                    <= MAX_BYTES
            );
        }
        lists.add("/large", &list(MAX_BYTES));
        assert!(lists.get("/large", 0).is_none(), "too large to keep");
    }

    #[test]
    fn bounds_are_reached_and_not_passed() {
        let mut lists = ListCache::default();
        let fields = list(0).fields.lines.len();
        lists.add("/1", &list(MAX_LIST_BYTES - fields - 2));
        lists.add("/2", &list(MAX_LIST_BYTES - fields - 1));
        assert!(lists.get("/1", 0).is_some() && lists.get("/2", 0).is_none());

        let mut lists = ListCache::default();
        let most = MAX_BYTES / (2 * ENTRY_BYTES);
        let body = ENTRY_BYTES - fields - 8;
        (0..most).for_each(|i| lists.add(&format!("/{i:07}"), &list(body)));
        assert_eq!(lists.lists.len(), most);
        lists.add("/another", &list(body));
        assert_eq!(lists.lists.len(), 1, "all others made room");
    }
}
