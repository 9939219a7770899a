//! Creates that may be sent again: the record of each is written in the transaction of its pet, so that a crash falls
//! before both or after both.
//!
//! Keys come in no order, and in a large table each would write a page of its own. So the records of a batch are one
//! row of the table `newest_retries`, and `memory.rs` finds them. When there are enough of them, `sweep.rs` moves them
//! into the table `older_retries` in the order of their keys, which writes a page once for many records. It also
//! removes what is old enough.

mod memory;
pub mod sweep;

use std::time::Instant;

use rusqlite::OptionalExtension;

use super::{Inserted, Outcome, StoreError, Writer};
use crate::model::{IdempotencyKey, NewPet};
use memory::{Memory, Record};
use sweep::Search;

/// How long a record is kept at least, in seconds that the service runs.
const KEPT: i64 = 24 * 3600;
/// A step between requests does the share of so many creates.
const AT_REST: u32 = 128;

const FIND: &str = "SELECT pet, fingerprint FROM older_retries WHERE key = ?1";

/// What the writer knows of the records.
pub struct Retries {
    /// The newest of them.
    pub memory: Memory,
    search: Search,
    started: Instant,
    /// The uptime at the start. `None` until the newest records are read.
    before: Option<i64>,
}

impl Retries {
    /// Begins now.
    pub fn new() -> Self {
        // Nothing is a day old before the first day has passed.
        Self { memory: Memory::new(), search: Search::Until(KEPT), started: Instant::now(), before: None }
    }

    /// How long the service has run, over all its starts, in seconds. It goes on from the newest record. So a clock
    /// that is set, a machine that sleeps and a restart can only keep records for longer.
    fn uptime(&self) -> i64 {
        self.before.unwrap_or(0).saturating_add_unsigned(self.started.elapsed().as_secs())
    }
}

impl Writer {
    /// Adds a pet to the batch, unless the same create was carried out before.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_pet_once(&mut self, new: &NewPet, key: &IdempotencyKey) -> Result<Inserted, StoreError> {
        self.open_transaction()?;
        self.retries.load(&self.database.connection)?;
        let earlier = match self.retries.memory.find(key.bytes()) {
            Some(record) => Some((record.pet, record.fingerprint)),
            None => {
                let mut find = self.connection.prepare_cached(FIND)?;
                find.query_row([key.bytes()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?
            }
        };
        if let Some((pet, fingerprint)) = earlier {
            let is_same = new.has_fingerprint(fingerprint);
            self.replays += usize::from(is_same);
            return Ok(Inserted::Now(if is_same { Outcome::Replayed(pet) } else { Outcome::Reused }));
        }
        let pet = self.insert(new)?;
        let (fingerprint, at) = (new.fingerprint(), self.retries.uptime());
        self.retries.memory.add(*key.bytes(), Record { fingerprint, pet, at });
        Ok(Inserted::Now(Outcome::Made(pet)))
    }

    /// Reads the newest records of retries, for a service that is to answer soon.
    ///
    /// # Errors
    /// If the database cannot be read. Then the first create with a key tries again.
    pub fn load_retries(&mut self) -> Result<(), StoreError> {
        Ok(self.retries.load(&self.database.connection)?)
    }

    /// Moves and removes some records of retries, in a transaction of its own. Returns whether there may be more to do.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn sweep_retries(&mut self) -> Result<bool, StoreError> {
        self.retries.load(&self.database.connection)?;
        if !self.retries.is_due() {
            return Ok(false);
        }
        let opened = self.open_transaction();
        let swept = opened.and_then(|()| Ok(self.retries.sweep(&self.database.connection, AT_REST)?));
        if swept.is_err() {
            self.undo();
        }
        self.commit()?;
        swept.map(|()| true)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use super::super::tests::Folder;
    use super::super::tests::{count, new_pet};
    use super::super::{Committed, Reader, Units};
    use super::memory::Stage;
    use super::*;
    use crate::model::Caller;
    use crate::testing::Random;

    /// The writer of a new database that is never flushed, and a reader.
    fn pair() -> (Folder, Writer, Reader) {
        let folder = Folder::new();
        let writer = Writer::open_with(&folder.database(), "OFF").unwrap();
        let reader = Reader::open(&folder.database()).unwrap();
        (folder, writer, reader)
    }

    fn digest(key: &str) -> IdempotencyKey {
        IdempotencyKey::new(Caller::extra(), key.as_bytes())
    }

    /// From now on, the service has run for so long.
    fn pass(writer: &mut Writer, uptime: i64) {
        writer.retries.load(&writer.database.connection).unwrap();
        writer.retries.before = Some(uptime);
        writer.retries.started = Instant::now() + Duration::from_secs(3600);
    }

    /// Adds a pet once the service has run for so long.
    fn insert_at(writer: &mut Writer, at: i64, name: &str, key: &str) -> Inserted {
        pass(writer, at);
        writer.insert_pet_once(&new_pet(name), &digest(key)).unwrap()
    }

    fn insert(writer: &mut Writer, name: &str, key: &str) -> Inserted {
        writer.insert_pet_once(&new_pet(name), &digest(key)).unwrap()
    }

    fn id(once: &Inserted, committed: &Committed) -> (bool, i64) {
        match once.outcome(committed).unwrap() {
            Outcome::Made(pet) => (false, pet),
            Outcome::Replayed(pet) => (true, pet),
            Outcome::Reused => panic!("reused"),
        }
    }

    fn number(writer: &Writer, sql: &str) -> i64 {
        writer.connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// How many records are in the rows of the newest, and among the older.
    fn records(writer: &Writer) -> (i64, i64) {
        (
            number(writer, "SELECT coalesce(sum(length(records)), 0) / 40 FROM newest_retries"),
            number(writer, "SELECT count(*) FROM older_retries"),
        )
    }

    fn sweep(writer: &mut Writer) -> usize {
        let mut steps = 0;
        while writer.sweep_retries().unwrap() {
            steps += 1;
            assert!(steps < 10_000, "the sweep never ends");
        }
        steps
    }

    /// Another service opens the database, as after a crash: SQLite has lost nothing that was committed.
    fn open_again(writer: &mut Writer, path: &std::path::Path, generation: usize) {
        *writer = Writer::open_with(path, "OFF").unwrap();
        writer.retries.memory.generation = generation;
    }

    #[test]
    fn same_create_makes_one_pet_within_a_batch_and_later() {
        let (_folder, mut writer, reader) = pair();
        writer.begin(Units::Joined).unwrap();
        let [first, again, other] =
            [("Rex", "1"), ("Rex", "1"), ("Rex", "2")].map(|(name, key)| insert(&mut writer, name, key));
        assert_eq!(insert(&mut writer, "Tom", "1"), Inserted::Now(Outcome::Reused));
        let committed = writer.commit().unwrap();
        assert_eq!(
            [&first, &again, &other].map(|once| id(once, &committed)),
            [(false, 1), (true, 1), (false, 2)]
        );
        let later = insert_at(&mut writer, KEPT, "Rex", "1");
        assert_eq!(id(&later, &writer.commit().unwrap()), (true, 1));
        assert_eq!(count(&reader.0), 2);
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
        assert_eq!((count(&reader.0), records(&writer)), (1, (1, 0)));
        // A panic left this batch without an end.
        insert(&mut writer, "Rex", "2");
        writer.begin(Units::Joined).unwrap();
        assert!(!id(&insert(&mut writer, "Tom", "2"), &writer.commit().unwrap()).0);
    }

    #[test]
    fn one_batch_is_one_row() {
        let (_folder, mut writer, _reader) = pair();
        for i in 0..100 {
            insert(&mut writer, "Rex", &i.to_string());
        }
        writer.commit().unwrap();
        assert_eq!((number(&writer, "SELECT count(*) FROM newest_retries"), records(&writer)), (1, (100, 0)));
    }

    #[test]
    fn generation_moves_in_the_order_of_its_keys_and_its_rows_go() {
        let (folder, mut writer, _reader) = pair();
        writer.retries.memory.generation = 50;
        for i in 0..60 {
            insert(&mut writer, "Rex", &i.to_string());
            writer.commit().unwrap();
        }
        // Of 50, two have moved with each of the ten after them.
        assert_eq!(records(&writer), (60, 20));
        let moved = number(
            &writer,
            "SELECT max(key) = (SELECT key FROM older_retries ORDER BY key LIMIT 1 OFFSET 19) FROM older_retries",
        );
        assert_eq!(moved, 1);
        for i in 60..85 {
            insert(&mut writer, "Rex", &i.to_string());
            writer.commit().unwrap();
        }
        let (newest, older) = records(&writer);
        assert_eq!((older, writer.retries.memory.stage()), (50, &Stage::Moved(50)));
        assert!(newest < 85 - 15, "rows of the generation are removed: {newest}");
        sweep(&mut writer);
        assert_eq!(records(&writer), (35, 50));
        for again in 0..2 {
            for i in 0..85 {
                assert!(
                    matches!(insert(&mut writer, "Rex", &i.to_string()), Inserted::Now(Outcome::Replayed(_))),
                    "{i} {again}"
                );
            }
            open_again(&mut writer, &folder.database(), 50);
        }
    }

    #[test]
    fn records_are_removed_after_a_day_in_small_steps() {
        let (_folder, mut writer, _reader) = pair();
        writer.retries.memory.generation = 3000;
        for i in 0..5500 {
            insert_at(&mut writer, i, "Rex", &i.to_string());
            if i % 10 == 9 {
                writer.commit().unwrap();
            }
        }
        sweep(&mut writer);
        assert_eq!(records(&writer), (2500, 3000), "kept for a day");
        pass(&mut writer, KEPT + 2000);
        writer.retries.search = Search::Until(0);
        assert!(sweep(&mut writer) >= 2);
        assert_eq!(records(&writer), (2500, 1000));
        pass(&mut writer, KEPT + 2000 + sweep::PAUSE - 60);
        assert_eq!(sweep(&mut writer), 0, "not yet");
        pass(&mut writer, KEPT + 5460);
        writer.retries.search = Search::Until(KEPT);
        sweep(&mut writer);
        assert_eq!(records(&writer), (40, 0));
        assert!(matches!(insert(&mut writer, "Rex", "5460"), Inserted::Now(Outcome::Replayed(_))));
        assert!(
            matches!(insert(&mut writer, "Rex", "5459"), Inserted::Now(Outcome::Made(_))),
            "memory has forgotten it too"
        );
        assert_eq!(writer.commit().unwrap().replays, 1);
        pass(&mut writer, 3 * KEPT);
        sweep(&mut writer);
        assert_eq!(records(&writer), (1, 0), "the newest row stays");
    }

    #[test]
    fn tables_shrink_while_creates_go_on() {
        let (_folder, mut writer, _reader) = pair();
        writer.retries.memory.generation = 300;
        for i in 0..900 {
            insert_at(&mut writer, 0, "Rex", &i.to_string());
            writer.commit().unwrap();
        }
        writer.retries.search = Search::Until(0);
        for i in 900..1500 {
            insert_at(&mut writer, 2 * KEPT, "Rex", &i.to_string());
            writer.commit().unwrap();
        }
        let (newest, older) = records(&writer);
        assert!(newest + older <= 600 + 300, "{newest} {older}");
    }

    #[test]
    fn uptime_goes_on_from_the_newest_record() {
        let (folder, mut writer, _reader) = pair();
        writer.retries.memory.generation = 1;
        insert_at(&mut writer, 5, "Rex", "1");
        writer.commit().unwrap();
        insert_at(&mut writer, 1_000_000, "Rex", "2");
        writer.commit().unwrap();
        open_again(&mut writer, &folder.database(), 1);
        sweep(&mut writer);
        let uptime = writer.retries.uptime();
        assert!((1_000_000..1_000_100).contains(&uptime), "{uptime}");
        open_again(&mut writer, &folder.database(), 1);
        sweep(&mut writer);
        assert!(writer.retries.uptime() >= 1_000_000, "its row has not moved away");
        assert!(matches!(insert(&mut writer, "Rex", "2"), Inserted::Now(Outcome::Replayed(_))));
        assert!(matches!(insert(&mut writer, "Rex", "1"), Inserted::Now(Outcome::Made(_))));
    }

    #[test]
    fn rows_that_somebody_deletes_confuse_nothing() {
        let (folder, mut writer, _reader) = pair();
        writer.retries.memory.generation = 20;
        for i in 0..70 {
            insert(&mut writer, "Rex", &i.to_string());
            writer.commit().unwrap();
            if i == 25 || i == 45 {
                writer.connection.execute("DELETE FROM newest_retries", []).unwrap();
            }
        }
        sweep(&mut writer);
        // What was in memory has moved, and what came later has its row.
        for i in 0..70 {
            assert!(
                matches!(insert(&mut writer, "Rex", &i.to_string()), Inserted::Now(Outcome::Replayed(_))),
                "{i}"
            );
        }
        open_again(&mut writer, &folder.database(), 20);
        for i in 60..70 {
            assert!(
                matches!(insert(&mut writer, "Rex", &i.to_string()), Inserted::Now(Outcome::Replayed(_))),
                "{i}"
            );
        }
    }

    #[test]
    fn records_of_version_4_are_kept() {
        let folder = crate::testing::Folder::new();
        let old = rusqlite::Connection::open(folder.database()).unwrap();
        super::super::schema::STEPS[..4].iter().for_each(|step| old.execute_batch(step).unwrap());
        old.execute_batch("PRAGMA user_version = 4; PRAGMA application_id = 0x50455453").unwrap();
        // The digest of its content, as version 4 kept it.
        let fingerprint = new_pet("Rex").old_fingerprint();
        let add = "INSERT INTO retries (key, fingerprint, pet, at) VALUES (?1, ?2, ?3, ?4)";
        for (key, pet, at) in [("1", 7, 100), ("2", 8, 50_000)] {
            old.execute(add, rusqlite::params![digest(key).bytes(), fingerprint, pet, at]).unwrap();
        }
        drop(old);
        let mut writer = Writer::open(&folder.database()).unwrap();
        let first = insert(&mut writer, "Rex", "1");
        assert_eq!(insert(&mut writer, "Tom", "2"), Inserted::Now(Outcome::Reused));
        assert_eq!(id(&first, &writer.commit().unwrap()), (true, 7));
        assert!((50_000..50_100).contains(&writer.retries.uptime()));
    }

    /// Whatever happens between, a key makes one pet, and a second one only after a day.
    #[test]
    fn every_key_makes_one_pet_whatever_happens() {
        let (folder, mut writer, _reader) = pair();
        let path = folder.database();
        let mut random = Random::new();
        let mut known: HashMap<usize, (i64, i64)> = HashMap::new();
        let mut now = 0;
        writer.retries.memory.generation = 40;
        for _ in 0..800 {
            pass(&mut writer, now);
            writer.begin([Units::Joined, Units::Separate][random.below(2)]).unwrap();
            let mut batch: Vec<(usize, Inserted)> = Vec::new();
            for _ in 0..random.below(6) {
                writer.begin_unit().unwrap();
                let key = random.below(400);
                let once = insert(&mut writer, "Rex", &key.to_string());
                if writer.units == Units::Separate && random.below(4) == 0 {
                    assert!(writer.undo_unit());
                } else {
                    writer.keep_unit().unwrap();
                    batch.push((key, once));
                }
            }
            if random.below(5) == 0 {
                writer.undo();
            } else {
                let committed = writer.commit().unwrap();
                for (key, once) in &batch {
                    let (is_replayed, pet) = id(once, &committed);
                    match known.get(key) {
                        Some((earlier, _)) if is_replayed => assert_eq!(*earlier, pet, "{key}"),
                        Some((_, at)) => assert!(now - at > KEPT, "{key}: a second pet after {} s", now - at),
                        None => assert!(!is_replayed, "{key}"),
                    }
                    if !is_replayed {
                        known.insert(*key, (pet, now));
                    }
                }
            }
            match random.below(40) {
                0..3 => now += 3600,
                3 => now += KEPT,
                4..14 => drop(writer.sweep_retries().unwrap()),
                14 => drop(sweep(&mut writer)),
                15 => open_again(&mut writer, &path, 40),
                _ => {}
            }
        }
        let pets = number(&writer, "SELECT count(*) FROM pets");
        assert!(known.len() > 300 && pets > 400, "{} {pets}", known.len());
        now += 3 * KEPT;
        pass(&mut writer, now);
        writer.retries.search = Search::Until(0);
        sweep(&mut writer);
        let (newest, older) = records(&writer);
        assert!(newest < 6 && older == 0, "{newest} {older}");
    }
}
