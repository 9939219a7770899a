//! Creates that may be sent again: the record of each is written in the transaction of its pet, so that a crash falls
//! before both or after both.

use std::time::{Duration, Instant};

use rusqlite::{OptionalExtension, params};

use super::pets::Inserted;
use super::{StoreError, Writer};
use crate::model::{IdempotencyKey, NewPet};

/// How long a record is kept at least, in seconds.
const KEPT: i64 = 24 * 3600;
/// A difference between the clock and the time that has passed, in seconds, from which the clock counts as set.
const SET: u64 = 3600;
/// The most old records to remove with one create: more than it adds, so that the table shrinks under any load.
const AT_ONCE: u32 = 2;
/// The most old records to remove in one step between requests.
const AT_REST: u32 = 256;

const FIND: &str = "SELECT pet, fingerprint FROM retries WHERE key = ?1";
const KEEP: &str = "INSERT INTO retries (key, fingerprint, pet, at) VALUES (?1, ?2, ?3, ?4)";
const OLDEST: &str = "SELECT at FROM retries WHERE id > 0 ORDER BY id LIMIT 1";
/// Looks at the oldest only, so that its cost does not depend on how many there are.
const REMOVE: &str = "DELETE FROM retries WHERE id IN
    (SELECT id FROM (SELECT id, at FROM retries WHERE id > 0 ORDER BY id LIMIT ?1) WHERE at < ?2 OR at > ?3)";

/// What a create with an `Idempotency-Key` came to.
#[derive(Debug, PartialEq)]
pub enum Once {
    /// It is the first one with this key.
    Made(Inserted),
    /// The same create was carried out before, or earlier in this batch.
    Replayed(Inserted),
    /// Another create was carried out with this key.
    Reused,
}

/// When the oldest records are to be removed.
pub struct Removal {
    /// Unix time from which there may be something to remove.
    due: i64,
    started: Instant,
    /// When the clock was last looked at, and what it showed.
    seen: Option<(Instant, i64)>,
    /// Nothing is removed before, because the clock was set and nobody knows how old the records are.
    not_before: Instant,
}

impl Removal {
    pub fn new(now: Instant) -> Self {
        Self { due: i64::MIN, started: now, seen: None, not_before: now }
    }

    /// The times between which records are kept at this time; `None` if nothing is due.
    fn kept(&mut self, now: Instant, unix_time: i64) -> Option<(i64, i64)> {
        if unix_time < self.due {
            return None;
        }
        let day = Duration::from_secs(KEPT.unsigned_abs());
        if let Some((then, showed)) = self.seen.replace((now, unix_time)) {
            let passed = i64::try_from(now.duration_since(then).as_secs()).unwrap_or(i64::MAX);
            if unix_time.abs_diff(showed.saturating_add(passed)) > SET {
                self.not_before = now + day;
            }
        }
        // What a wrong clock dated in the future goes when it has certainly been here for long enough.
        let latest = if now.duration_since(self.started) > day { unix_time + KEPT } else { i64::MAX };
        (now >= self.not_before).then_some((unix_time - KEPT, latest))
    }
}

impl Writer {
    /// Adds a pet to the batch, unless the same create was carried out before.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_pet_once(
        &mut self,
        new: &NewPet,
        key: &IdempotencyKey,
        unix_time: i64,
    ) -> Result<Once, StoreError> {
        self.open_transaction()?;
        let fingerprint = new.fingerprint();
        let earlier = self.connection.prepare_cached(FIND)?.query_row([key.bytes()], |row| {
            Ok((Inserted::earlier(row.get(0)?), row.get::<_, [u8; 16]>(1)? == fingerprint))
        });
        match earlier.optional()? {
            Some((pet, true)) => return Ok(Once::Replayed(pet)),
            Some((_, false)) => return Ok(Once::Reused),
            None => {}
        }
        let inserted = self.insert_pet(new)?;
        let values = params![key.bytes(), fingerprint, inserted.unconfirmed(), unix_time];
        self.change(KEEP, values)?;
        self.remove_retries(AT_ONCE, unix_time)?;
        Ok(Once::Made(inserted))
    }

    /// Removes some records that are older than a day, in a transaction of its own. Returns how many.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn forget_retries(&mut self, unix_time: i64) -> Result<usize, StoreError> {
        let removed = self.remove_retries(AT_REST, unix_time);
        if removed.is_err() {
            self.undo();
        }
        self.commit()?;
        removed
    }

    /// Removes the oldest records if they are older than a day. Returns how many.
    fn remove_retries(&mut self, most: u32, unix_time: i64) -> Result<usize, StoreError> {
        let Some((earliest, latest)) = self.removal.kept(Instant::now(), unix_time) else {
            return Ok(0);
        };
        let removed = self.change(REMOVE, params![most, earliest, latest])?;
        if removed < most as usize {
            let oldest: Option<i64> =
                self.connection.prepare_cached(OLDEST)?.query_row([], |row| row.get(0)).optional()?;
            self.removal.due = oldest.unwrap_or(unix_time).saturating_add(KEPT + 1).min(unix_time + KEPT);
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pets::tests::{count, new_pet};
    use super::super::tests::pair;
    use super::super::{Committed, Units};
    use super::*;
    use crate::model::Caller;

    const NOW: i64 = 1_800_000_000;

    fn key(text: &str) -> IdempotencyKey {
        IdempotencyKey::new(Caller::extra(), text.as_bytes())
    }

    fn insert(writer: &mut Writer, name: &str, text: &str, at: i64) -> Once {
        writer.insert_pet_once(&new_pet(name), &key(text), at).unwrap()
    }

    fn id(once: &Once, committed: &Committed) -> (bool, i64) {
        match once {
            Once::Made(pet) => (false, pet.id(committed)),
            Once::Replayed(pet) => (true, pet.id(committed)),
            Once::Reused => panic!("reused"),
        }
    }

    fn records(writer: &Writer) -> i64 {
        writer.connection.query_row("SELECT count(*) FROM retries", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn same_create_makes_one_pet_within_a_batch_and_later() {
        let (_folder, mut writer, reader) = pair();
        writer.begin(Units::Joined).unwrap();
        let [first, again, other] =
            [("Rex", "1"), ("Rex", "1"), ("Rex", "2")].map(|(name, key)| insert(&mut writer, name, key, NOW));
        assert_eq!(insert(&mut writer, "Tom", "1", NOW), Once::Reused);
        let committed = writer.commit().unwrap();
        assert_eq!(
            [&first, &again, &other].map(|once| id(once, &committed)),
            [(false, 1), (true, 1), (false, 2)]
        );
        let later = insert(&mut writer, "Rex", "1", NOW + KEPT);
        assert_eq!(id(&later, &writer.commit().unwrap()), (true, 1));
        assert_eq!(count(&reader), 2);
    }

    #[test]
    fn what_is_undone_is_not_kept() {
        let (_folder, mut writer, reader) = pair();
        insert(&mut writer, "Rex", "1", NOW);
        writer.undo();
        let again = insert(&mut writer, "Tom", "1", NOW);
        assert!(!id(&again, &writer.commit().unwrap()).0);
        writer.begin(Units::Separate).unwrap();
        writer.begin_unit().unwrap();
        insert(&mut writer, "Rex", "2", NOW);
        assert!(writer.undo_unit());
        writer.commit().unwrap();
        assert_eq!((count(&reader), records(&writer)), (1, 1));
    }

    #[test]
    fn records_are_removed_after_a_day_in_small_steps() {
        let (_folder, mut writer, _reader) = pair();
        for i in 0..600 {
            insert(&mut writer, "Rex", &i.to_string(), NOW + i);
        }
        writer.commit().unwrap();
        assert_eq!(writer.forget_retries(NOW + KEPT), Ok(0));
        assert_eq!(records(&writer), 600, "kept for a day");
        writer.removal = Removal::new(Instant::now());
        assert_eq!(writer.forget_retries(NOW + KEPT + 301), Ok(256));
        assert_eq!(records(&writer), 600 - 256);
        assert_eq!(writer.forget_retries(NOW + KEPT + 301), Ok(45));
        assert_eq!(records(&writer), 299);
        assert_eq!(writer.removal.due, NOW + 301 + KEPT + 1);
    }

    #[test]
    fn table_shrinks_while_creates_go_on() {
        let (_folder, mut writer, _reader) = pair();
        for i in 0..100 {
            insert(&mut writer, "Rex", &i.to_string(), NOW);
        }
        writer.removal = Removal::new(Instant::now());
        for i in 100..200 {
            insert(&mut writer, "Rex", &i.to_string(), NOW + KEPT + 1);
        }
        writer.commit().unwrap();
        assert_eq!(records(&writer), 100);
    }

    #[test]
    fn clock_that_is_set_removes_nothing_for_a_day() {
        let start = Instant::now();
        let day = Duration::from_secs(86_400);
        let mut removal = Removal::new(start);
        assert!(removal.kept(start, NOW).is_some());
        let minute = Duration::from_secs(60);
        assert!(removal.kept(start + minute, NOW + 60).is_some());
        assert_eq!(removal.kept(start + minute, NOW + 60 + 2 * KEPT), None);
        assert_eq!(removal.kept(start + day, NOW + 3 * KEPT), None);
        let kept = removal.kept(start + day + 2 * minute, NOW + 3 * KEPT + 120);
        // What is dated in the future goes as well, because it has been here for a day.
        assert_eq!(kept, Some((NOW + 2 * KEPT + 120, NOW + 4 * KEPT + 120)));
    }
}
