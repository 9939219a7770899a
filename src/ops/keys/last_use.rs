//! The last use of each key, kept in memory until it is written to the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::model::Digest;
use petstore_base::threads::lock;

/// The time of the latest use of each key that was used since the last call of [`take`](Self::take). All workers of a
/// service share it. Only existing keys are noted, so it never has more entries than there are keys.
#[derive(Clone, Default)]
pub struct LastUses(Arc<Mutex<HashMap<Digest, i64>>>);

impl LastUses {
    /// Notes the use of a key at this Unix time.
    pub fn note(&self, digest: Digest, now: i64) {
        let mut uses = lock(&self.0);
        let at = uses.entry(digest).or_insert(now);
        *at = now.max(*at);
    }

    /// Returns true if no use is noted.
    pub fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// Returns the noted uses and forgets them.
    pub fn take(&self) -> Vec<(Digest, i64)> {
        std::mem::take(&mut *lock(&self.0)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_use_is_taken_once() {
        let uses = LastUses::default();
        for (key, at) in [(1, 5), (2, 6), (1, 7), (1, 4)] {
            uses.note([key; 32], at);
        }
        let mut taken = uses.take();
        taken.sort_unstable();
        assert_eq!(taken, [([1; 32], 7), ([2; 32], 6)]);
        assert_eq!(uses.take(), []);
    }
}
