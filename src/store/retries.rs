//! Creates that may be sent again: the record of each is written in the transaction of its pet, so that a crash falls
//! before both or after both.

use std::time::Instant;

use rusqlite::{OptionalExtension, params};

use super::pets::Inserted;
use super::{StoreError, Writer};
use crate::model::{IdempotencyKey, NewPet};

/// How long a record is kept at least, in seconds that the service runs.
const KEPT: i64 = 24 * 3600;
/// The most old records to remove with one create: more than it adds, so that the table shrinks under any load.
const AT_ONCE: u32 = 2;
/// The most old records to remove in one step between requests.
const AT_REST: u32 = 256;

const FIND: &str = "SELECT pet, fingerprint FROM retries WHERE key = ?1";
const KEEP: &str = "INSERT INTO retries (key, fingerprint, pet, at) VALUES (?1, ?2, ?3, ?4)";
const OLDEST: &str = "SELECT at FROM retries WHERE id > 0 ORDER BY id LIMIT 1";
const NEWEST: &str = "SELECT at FROM retries WHERE id > 0 ORDER BY id DESC LIMIT 1";
/// Looks at the oldest only, so that its cost does not depend on how many there are.
const REMOVE: &str = "DELETE FROM retries WHERE id IN
    (SELECT id FROM (SELECT id, at FROM retries WHERE id > 0 ORDER BY id LIMIT ?1) WHERE at < ?2)";

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

/// How long the service has run, over all its starts, in seconds. It goes on from the newest record. So a clock that is
/// set, a machine that sleeps and a restart can only keep records for longer.
pub struct Uptime {
    started: Instant,
    /// At the start; `None` until somebody asks.
    before: Option<i64>,
    /// When there may be something to remove.
    due: i64,
}

impl Uptime {
    /// Begins now.
    pub fn new() -> Self {
        Self { started: Instant::now(), before: None, due: i64::MIN }
    }
}

impl Writer {
    /// Adds a pet to the batch, unless the same create was carried out before.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_pet_once(&mut self, new: &NewPet, key: &IdempotencyKey) -> Result<Once, StoreError> {
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
        let at = self.uptime()?;
        self.change(KEEP, params![key.bytes(), fingerprint, inserted.unconfirmed(), at])?;
        self.remove_retries(AT_ONCE)?;
        Ok(Once::Made(inserted))
    }

    /// Removes some records that are old enough, in a transaction of its own. Returns how many.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn forget_retries(&mut self) -> Result<usize, StoreError> {
        let removed = self.remove_retries(AT_REST);
        if removed.is_err() {
            self.undo();
        }
        self.commit()?;
        removed
    }

    /// Removes the oldest records if they are old enough. Returns how many.
    fn remove_retries(&mut self, most: u32) -> Result<usize, StoreError> {
        let now = self.uptime()?;
        if now < self.uptime.due {
            return Ok(0);
        }
        let removed = self.change(REMOVE, params![most, now - KEPT])?;
        if removed < most as usize {
            self.uptime.due = self.at_of(OLDEST)?.unwrap_or(now) + KEPT + 1;
        }
        Ok(removed)
    }

    /// How long the service has run, in seconds.
    fn uptime(&mut self) -> Result<i64, StoreError> {
        let before = match self.uptime.before {
            Some(before) => before,
            None => *self.uptime.before.insert(self.at_of(NEWEST)?.unwrap_or(0)),
        };
        Ok(before.saturating_add_unsigned(self.uptime.started.elapsed().as_secs()))
    }

    fn at_of(&self, sql: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pets::tests::{count, new_pet};
    use super::super::tests::pair;
    use super::super::{Committed, Units};
    use super::*;
    use crate::model::Caller;

    /// Adds a pet once the service has run for so long.
    fn insert_at(writer: &mut Writer, at: i64, name: &str, key: &str) -> Once {
        writer.uptime.before = Some(at);
        let key = IdempotencyKey::new(Caller::extra(), key.as_bytes());
        writer.insert_pet_once(&new_pet(name), &key).unwrap()
    }

    fn insert(writer: &mut Writer, name: &str, key: &str) -> Once {
        insert_at(writer, 0, name, key)
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
            [("Rex", "1"), ("Rex", "1"), ("Rex", "2")].map(|(name, key)| insert(&mut writer, name, key));
        assert_eq!(insert(&mut writer, "Tom", "1"), Once::Reused);
        let committed = writer.commit().unwrap();
        assert_eq!(
            [&first, &again, &other].map(|once| id(once, &committed)),
            [(false, 1), (true, 1), (false, 2)]
        );
        let later = insert_at(&mut writer, KEPT, "Rex", "1");
        assert_eq!(id(&later, &writer.commit().unwrap()), (true, 1));
        assert_eq!(count(&reader), 2);
    }

    #[test]
    fn what_is_undone_is_not_kept() {
        let (_folder, mut writer, reader) = pair();
        insert(&mut writer, "Rex", "1");
        writer.undo();
        let again = insert(&mut writer, "Tom", "1");
        assert!(!id(&again, &writer.commit().unwrap()).0);
        writer.begin(Units::Separate).unwrap();
        writer.begin_unit().unwrap();
        insert(&mut writer, "Rex", "2");
        assert!(writer.undo_unit());
        writer.commit().unwrap();
        assert_eq!((count(&reader), records(&writer)), (1, 1));
    }

    #[test]
    fn records_are_removed_after_a_day_in_small_steps() {
        let (_folder, mut writer, _reader) = pair();
        for i in 0..600 {
            insert_at(&mut writer, 10 * i, "Rex", &i.to_string());
        }
        writer.commit().unwrap();
        assert_eq!(writer.forget_retries(), Ok(0));
        assert_eq!(records(&writer), 600, "kept for a day");
        writer.uptime = Uptime { before: Some(KEPT + 3005), ..Uptime::new() };
        assert_eq!(writer.forget_retries(), Ok(256));
        assert_eq!(records(&writer), 600 - 256);
        assert_eq!(writer.forget_retries(), Ok(45));
        assert_eq!((records(&writer), writer.uptime.due), (299, 3010 + KEPT + 1));
        assert_eq!(writer.forget_retries(), Ok(0));
    }

    #[test]
    fn table_shrinks_while_creates_go_on() {
        let (_folder, mut writer, _reader) = pair();
        for i in 0..100 {
            insert(&mut writer, "Rex", &i.to_string());
        }
        writer.uptime.due = i64::MIN;
        for i in 100..200 {
            insert_at(&mut writer, 2 * KEPT, "Rex", &i.to_string());
        }
        writer.commit().unwrap();
        assert_eq!(records(&writer), 100);
    }

    #[test]
    fn uptime_goes_on_from_the_newest_record() {
        let (folder, mut writer, _reader) = pair();
        insert_at(&mut writer, 5, "Rex", "1");
        insert_at(&mut writer, 1_000_000, "Rex", "2");
        writer.commit().unwrap();
        drop(writer);
        let mut writer = Writer::open(&folder.database()).unwrap();
        let uptime = writer.uptime().unwrap();
        assert!((1_000_000..1_000_100).contains(&uptime), "{uptime}");
        assert_eq!((writer.forget_retries(), records(&writer)), (Ok(0), 1));
    }
}
