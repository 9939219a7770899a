//! A set of ids that takes little memory if most ids are consecutive, as in an export.

use std::collections::BTreeMap;

/// The ids as ranges that do not overlap, from the first id of each to its last.
#[derive(Debug, Default)]
pub struct Ids(BTreeMap<i64, i64>);

impl Ids {
    /// Adds an id greater than 0; `false` if the set has it already.
    pub fn insert(&mut self, id: i64) -> bool {
        match self.0.range_mut(..=id).next_back() {
            Some((_, last)) if *last >= id => return false,
            Some((_, last)) if *last == id - 1 => *last = id,
            _ => drop(self.0.insert(id, id)),
        }
        true
    }

    /// The largest id; 0 if the set is empty.
    pub fn last(&self) -> i64 {
        self.0.last_key_value().map_or(0, |(_, last)| *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_is_new_once() {
        let mut ids = Ids::default();
        assert_eq!(ids.last(), 0);
        for id in [5, 1, 3, 2, 4, 6, 9, i64::MAX, 10, 8, i64::MAX - 1] {
            assert!(ids.insert(id), "{id}");
            assert!(!ids.insert(id), "{id}");
        }
        for id in [1, 2, 3, 4, 5, 6, 8, 9, 10] {
            assert!(!ids.insert(id), "{id}");
        }
        assert_eq!(ids.last(), i64::MAX);
        let mut ids = Ids::default();
        assert!((1..1000).all(|id| ids.insert(id)));
        assert_eq!(ids.0.len(), 1);
    }
}
