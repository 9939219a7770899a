//! The writer's work on keys between requests: it stores the time of their last use, and warns of keys that expire
//! soon.

use std::time::{Duration, Instant};

use crate::model::{ApiKey, Digest};
use crate::ops::keys::LastUses;
use crate::store::{Damage, Reader, StoreError, Writer};
use petstore_base::clock::rfc3339;

/// The interval of writing the uses, and of looking for the first one.
const WRITE_EVERY: Duration = Duration::from_secs(3600);
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The interval of warnings about keys that expire soon.
const WARN_EVERY: Duration = Duration::from_secs(DAY as u64);
const DAY: i64 = 24 * 3600;
/// The log warns of a key this long before its expiry, in seconds.
const SOON: i64 = 14 * DAY;

/// The keys of a service.
pub trait KeyTable {
    /// # Errors
    /// If they cannot be read.
    fn keys(&self) -> Result<Vec<ApiKey>, StoreError>;

    /// Stores when keys were last used, in Unix time. `now` is the present.
    ///
    /// # Errors
    /// If the database cannot be written. Nothing is then stored.
    fn record_uses(&mut self, uses: &[(Digest, i64)], now: i64) -> Result<(), StoreError>;
}

impl KeyTable for Writer {
    fn keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        Reader::keys(self)
    }

    fn record_uses(&mut self, uses: &[(Digest, i64)], now: i64) -> Result<(), StoreError> {
        self.transact(|store| Writer::record_uses(store, uses, now))
    }
}

/// The work on keys that the writer does while no request waits.
pub struct KeyTasks {
    uses: LastUses,
    damage: Damage,
    /// The time at which to write the uses.
    due: Instant,
    next_warning: Instant,
}

impl KeyTasks {
    /// Creates the tasks. The first call of [`do_due`](Self::do_due) looks for keys that expire soon.
    pub fn new(uses: LastUses, damage: Damage, now: Instant) -> Self {
        Self {
            uses,
            damage,
            due: now + LOOK_EVERY,
            next_warning: now,
        }
    }

    /// Does the work that is due, and returns the time until the next work.
    pub fn do_due(&mut self, store: &mut impl KeyTable, now: Instant, unix_time: i64) -> Duration {
        if now >= self.next_warning {
            self.next_warning = now + WARN_EVERY;
            match store.keys() {
                Ok(keys) => expiring(&keys, unix_time)
                    .iter()
                    .for_each(|line| log::warn!("{line}")),
                Err(error) if self.damage.note(&error) => {}
                Err(error) => {
                    log::error!("cannot look for API keys that will expire soon: {error}");
                }
            }
        }
        if now >= self.due {
            let is_idle = self.uses.is_empty();
            self.due = now + if is_idle { LOOK_EVERY } else { WRITE_EVERY };
            if let Err(error) = self.write(store, unix_time)
                && !self.damage.note(&error)
            {
                log::warn!(
                    "cannot store when API keys were last used; trying again later: {error}"
                );
            }
        }
        let next = self.due.min(self.next_warning);
        next.saturating_duration_since(now)
    }

    /// Writes the noted uses at this Unix time.
    ///
    /// # Errors
    /// Fails if the database cannot be written. The uses then stay in memory.
    pub fn write(&mut self, store: &mut impl KeyTable, now: i64) -> Result<(), StoreError> {
        let uses = self.uses.take();
        if uses.is_empty() || self.damage.found().is_err() {
            return Ok(());
        }
        let kept = store.record_uses(&uses, now);
        if kept.is_err() {
            uses.into_iter()
                .for_each(|(digest, at)| self.uses.note(digest, at));
        }
        kept
    }
}

/// Lists the keys without a successor that expire, and their expiries. Of several keys with one name, only the one that
/// expires last has no successor.
pub fn last_expiries(keys: &[ApiKey]) -> impl Iterator<Item = (&ApiKey, i64)> {
    let lives_longest = |key: &ApiKey| {
        let others = keys
            .iter()
            .filter(|other| other.name == key.name && other.digest != key.digest);
        others
            .map(|other| other.expires_at.unwrap_or(i64::MAX))
            .max()
            <= key.expires_at
    };
    keys.iter().filter_map(move |key| {
        key.expires_at
            .filter(|_| lives_longest(key))
            .map(|at| (key, at))
    })
}

/// Returns a log line for each key without a successor that expires soon.
fn expiring(keys: &[ApiKey], now: i64) -> Vec<String> {
    let soon = last_expiries(keys).filter(|(_, at)| (now + 1..now + SOON).contains(at));
    let line = |(key, at): (&ApiKey, _)| {
        format!(
            "the API key '{}' expires at {} and has no successor",
            key.name,
            rfc3339(at)
        )
    };
    soon.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::KeyScope;
    use crate::store::tests::{Folder, refuse_writes};

    const NOW: i64 = 1_000_000_000;

    fn key(number: u8, name: &str, expires_at: Option<i64>) -> ApiKey {
        ApiKey {
            digest: [number; 32],
            name: name.to_owned(),
            scope: KeyScope::Full,
            created_at: 0,
            expires_at,
            last_used_at: None,
        }
    }

    fn store_with_key() -> (Folder, Writer) {
        let folder = Folder::new();
        let mut store = Writer::open(&folder.database()).unwrap();
        store.insert_key(&key(1, "ci", None)).unwrap();
        store.commit().unwrap();
        (folder, store)
    }

    #[test]
    fn key_that_expires_soon_is_logged() {
        let keys = [
            key(1, "soon", Some(NOW + 9 * DAY + 5)),
            key(2, "late", Some(NOW + SOON + 7200)),
            key(3, "never", None),
            key(4, "gone", Some(NOW)),
        ];
        let lines = expiring(&keys, NOW);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(
            lines[0],
            "the API key 'soon' expires at 2001-09-18T01:46:45Z and has no successor"
        );
        assert_eq!(expiring(&keys, NOW + DAY).len(), 2);
    }

    #[test]
    fn key_with_a_successor_may_expire() {
        let keys = [key(1, "ci", Some(NOW + DAY)), key(2, "ci", None)];
        assert_eq!(expiring(&keys, NOW), [""; 0]);
    }

    #[test]
    fn uses_are_written_when_they_are_due_and_kept_until_then() {
        let (_folder, mut store) = store_with_key();
        let began = Instant::now();
        let mut tasks = KeyTasks::new(LastUses::default(), Damage::default(), began);
        tasks.uses.note([1; 32], NOW);
        let used = |store: &Writer| Reader::keys(store).unwrap()[0].last_used_at;
        assert_eq!(tasks.do_due(&mut store, began, NOW), LOOK_EVERY);
        assert_eq!(used(&store), None);
        refuse_writes(&store, true);
        let failed = began + LOOK_EVERY;
        assert_eq!(tasks.do_due(&mut store, failed, NOW), WRITE_EVERY);
        refuse_writes(&store, false);
        tasks.do_due(&mut store, failed + WRITE_EVERY - LOOK_EVERY, NOW);
        assert_eq!(used(&store), None, "not due again");
        tasks.do_due(&mut store, failed + WRITE_EVERY, NOW);
        assert_eq!(used(&store), Some(NOW));
        // Without a use, nothing is due, and the next is stored soon.
        let idle = failed + 3 * WRITE_EVERY;
        assert_eq!(tasks.do_due(&mut store, idle, NOW), LOOK_EVERY);
    }

    #[test]
    fn use_of_later_than_now_is_no_time() {
        let (_folder, mut store) = store_with_key();
        let mut write = |at, now| {
            KeyTable::record_uses(&mut store, &[([1; 32], at)], now).unwrap();
            Reader::keys(&store).unwrap()[0].last_used_at
        };
        assert_eq!(
            write(NOW + 40 * 365 * DAY, NOW + 40 * 365 * DAY),
            Some(NOW + 40 * 365 * DAY)
        );
        assert_eq!(write(NOW, NOW + 5), Some(NOW), "the clock is right again");
        assert_eq!(
            write(NOW - 9, NOW + 5),
            Some(NOW),
            "another process was later"
        );
        assert_eq!(
            write(NOW + 1000, NOW + 5),
            Some(NOW + 5),
            "noted under the wrong clock"
        );
    }
}
