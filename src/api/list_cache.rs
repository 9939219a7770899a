//! Finished lists, kept for as long as nothing changes: a list asked for again costs no query.

use std::collections::HashMap;

use crate::http::Response;
use crate::store::Page;

/// The most bytes of bodies that one worker keeps.
const MAX_BYTES: usize = 1024 * 1024;

/// One worker's lists, all of the same version of the database.
#[derive(Default)]
pub struct Lists {
    version: i64,
    responses: HashMap<Page, Response>,
    bytes: usize,
}

impl Lists {
    /// The list, where it was made of this version.
    pub fn get(&mut self, page: &Page, version: i64) -> Option<Response> {
        if self.version != version {
            *self = Self { version, ..Self::default() };
        }
        self.responses.get(page).cloned()
    }

    /// Keeps a list of the version that [`Lists::get`] was last asked for.
    pub fn keep(&mut self, page: Page, response: &Response) {
        if response.body.len() > MAX_BYTES / 16 {
            return;
        }
        if self.bytes + response.body.len() > MAX_BYTES {
            self.responses.clear();
            self.bytes = 0;
        }
        self.bytes += response.body.len();
        self.responses.insert(page, response.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(after: i64) -> Page {
        Page { limit: 1, status: None, after }
    }

    #[test]
    fn list_lives_as_long_as_its_version() {
        let mut lists = Lists::default();
        assert!(lists.get(&page(1), 7).is_none());
        lists.keep(page(1), &Response::json_bytes(200, b"[]".to_vec()));
        assert_eq!(lists.get(&page(1), 7).unwrap().body, b"[]");
        assert!(lists.get(&page(2), 7).is_none());
        assert!(lists.get(&page(1), 8).is_none());
        assert!(lists.get(&page(1), 7).is_none(), "an old version does not come back");
    }

    #[test]
    fn memory_is_bounded() {
        let mut lists = Lists::default();
        for after in 0..1000 {
            lists.keep(page(after), &Response::json_bytes(200, vec![0; 60_000]));
            assert!(lists.responses.values().map(|response| response.body.len()).sum::<usize>() <= MAX_BYTES);
        }
        lists.keep(page(5000), &Response::json_bytes(200, vec![0; MAX_BYTES]));
        assert!(lists.get(&page(5000), 0).is_none(), "too large to keep");
    }
}
