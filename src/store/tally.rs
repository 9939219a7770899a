//! The pets by status, without counting them at each request.
//!
//! A count takes less than a tenth of a second per million pets. After it, the writer keeps the result current: it adds
//! what each of its batches changes, and checks `PRAGMA data_version` for commits of other connections, such as the
//! `sqlite3` shell. After such a commit, or without a writer in this process, the pets are counted again as soon as a
//! client asks and the last result is too old.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::InterruptHandle;

use super::{Cause, Reader, StoreError};
use crate::model::PetCounts;

/// The age up to which a result is returned: a second, minus the time for the response.
const HOLDS: Duration = Duration::from_millis(900);
/// The time after the end of a count for which its result is returned, even if the count took longer than [`HOLDS`]. So
/// it answers everybody who has waited for it.
const SHARED_FOR: Duration = Duration::from_millis(100);
/// The time after the last commit at which the writer checks for commits of others.
pub const CHECK_AFTER: Duration = Duration::from_millis(400);

/// The pets by status, shared by the threads of a service.
#[derive(Clone)]
pub struct Tally(Arc<Shared>);

struct Shared {
    /// The connection that counts; `None` after the stop.
    reader: Mutex<Option<Reader>>,
    /// Ends its count. A cluster has none.
    interrupt: Option<InterruptHandle>,
    /// Held while the writer commits, so that a snapshot has all of a noted batch, or nothing of it.
    commits: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last result.
    last: Option<Counted>,
    /// The changes since the snapshot of the count under way.
    next: Option<Counted>,
}

/// A result, or what has changed since its snapshot.
struct Counted {
    counts: PetCounts,
    /// A moment at which the counts were exact.
    as_of: Instant,
    /// True if no other connection has changed the database since, as far as the writer knows.
    is_kept: bool,
    /// [`Reader::data_version`] of its snapshot.
    version: i64,
    /// The end of the count.
    ended: Instant,
}

impl Tally {
    /// Creates a tally that has counted nothing yet.
    pub fn new(reader: Reader) -> Self {
        Self(Arc::new(Shared {
            interrupt: reader.interrupt_handle(),
            reader: Mutex::new(Some(reader)),
            commits: Mutex::default(),
            state: Mutex::default(),
        }))
    }

    /// The counts of a moment less than a second ago, if they are known.
    pub fn current(&self) -> Option<PetCounts> {
        let last = &lock(&self.0.state).last;
        let is_fresh = |last: &&Counted| last.as_of.elapsed() < HOLDS || last.ended.elapsed() < SHARED_FOR;
        last.as_ref().filter(is_fresh).map(|last| last.counts)
    }

    /// Ends a count under way, and closes the connection, so that the writer is the last to close the database.
    pub fn stop(&self) {
        loop {
            match self.0.reader.try_lock() {
                Ok(mut reader) => return drop(reader.take()),
                Err(TryLockError::Poisoned(reader)) => return drop(reader.into_inner().take()),
                // A count that is about to begin does not see the interrupt.
                Err(TryLockError::WouldBlock) => {
                    self.0.interrupt.iter().for_each(InterruptHandle::interrupt);
                    sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// Forgets all counts: the database was reset.
    pub fn forget(&self) {
        *lock(&self.0.state) = State::default();
    }

    /// The current counts. If they are not known, counts the pets, which may be slow.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn count(&self) -> Result<PetCounts, StoreError> {
        let mut reader = lock(&self.0.reader);
        if let Some(counts) = self.current() {
            return Ok(counts);
        }
        let stopped = || StoreError::Unavailable(Cause::Locked, "the service is stopping".to_owned());
        let reader = reader.as_mut().ok_or_else(stopped)?;
        let counted = self.begin(reader).and_then(|known| match known {
            Some(counts) => Ok(counts),
            None => Ok(self.finish(&reader.count_pets()?)),
        });
        if counted.is_err() {
            lock(&self.0.state).next = None;
        }
        reader.end().and(counted)
    }

    /// Takes the snapshot of a count. Returns the counts if nothing was committed since the last one.
    fn begin(&self, reader: &mut Reader) -> Result<Option<PetCounts>, StoreError> {
        let _no_commit = lock(&self.0.commits);
        let as_of = Instant::now();
        reader.begin()?;
        let version = reader.data_version();
        let State { last, next } = &mut *lock(&self.0.state);
        if let Some(last) = last.as_mut().filter(|last| last.version == version) {
            (last.as_of, last.is_kept) = (as_of, true);
            return Ok(Some(last.counts));
        }
        let counts = PetCounts::default();
        *next = Some(Counted { counts, as_of, is_kept: true, version, ended: as_of });
        Ok(None)
    }

    /// Adds what the count has found to the changes since its snapshot.
    fn finish(&self, found: &PetCounts) -> PetCounts {
        let State { last, next } = &mut *lock(&self.0.state);
        if let Some(mut next) = next.take() {
            next.counts.add_all(found);
            next.ended = Instant::now();
            *last = Some(next);
        }
        last.as_ref().map_or(*found, |last| last.counts)
    }

    /// Returns true if the writer has to check for commits of others.
    pub(super) fn is_due(&self) -> bool {
        let State { last, next } = &*lock(&self.0.state);
        let kept = next.as_ref().or(last.as_ref()).filter(|counted| counted.is_kept);
        kept.is_some_and(|counted| counted.as_of.elapsed() >= CHECK_AFTER)
    }

    /// Commits a batch with this change to the counts. `is_alone`: see [`Tally::note`].
    pub(super) fn commit<E>(
        &self,
        change: &PetCounts,
        is_alone: bool,
        commit: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let at = Instant::now();
        let _no_snapshot = lock(&self.0.commits);
        let committed = commit();
        self.note(change, is_alone && committed.is_ok(), at);
        committed
    }

    /// Notes a change to the counts. `is_alone`: at this moment, no other connection had changed the database since the
    /// last call.
    pub(super) fn note(&self, change: &PetCounts, is_alone: bool, at: Instant) {
        let State { last, next } = &mut *lock(&self.0.state);
        for counted in [last, next].into_iter().flatten() {
            counted.is_kept &= is_alone;
            if counted.is_kept {
                counted.counts.add_all(change);
                counted.as_of = at;
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NewPet, PetPatch, PetStatus};
    use crate::store::tests::{pair, run};
    use crate::store::{BatchWriter, Writer};

    impl Tally {
        /// Lets more than a second pass.
        fn age(&self) {
            if let Some(last) = &mut lock(&self.0.state).last {
                let earlier = |at: Instant| at.checked_sub(Duration::from_secs(2)).unwrap();
                (last.as_of, last.ended) = (earlier(last.as_of), earlier(last.ended));
            }
        }

        fn is_kept(&self) -> bool {
            lock(&self.0.state).last.as_ref().is_some_and(|last| last.is_kept)
        }
    }

    const SOLD: Option<PetStatus> = Some(PetStatus::Sold);

    fn add(writer: &mut Writer, status: Option<PetStatus>) {
        BatchWriter::new(writer, false).insert_pet(&NewPet { status, ..NewPet::new("a", 1) }, None).unwrap();
    }

    fn of(available: i64, pending: i64, sold: i64, unset: i64) -> PetCounts {
        PetCounts { available, pending, sold, unset, total: available + pending + sold + unset }
    }

    #[test]
    fn writer_keeps_the_counts_current() {
        let (_folder, mut writer, reader) = pair();
        let tally = Tally::new(reader);
        writer.keep(tally.clone());
        assert_eq!((tally.current(), tally.is_due()), (None, false), "nobody has asked");
        add(&mut writer, None);
        writer.commit().unwrap();
        assert_eq!(tally.count(), Ok(of(0, 0, 0, 1)));
        for (status, expected) in [(SOLD, of(0, 0, 1, 1)), (None, of(0, 0, 1, 2))] {
            tally.age();
            add(&mut writer, status);
            assert_eq!(tally.current(), None);
            writer.commit().unwrap();
            assert_eq!(tally.current(), Some(expected));
        }
        add(&mut writer, SOLD);
        writer.undo();
        add(&mut writer, Some(PetStatus::Pending));
        writer.commit().unwrap();
        assert_eq!(tally.current(), Some(of(0, 1, 1, 2)));
        let mut transaction = writer.transaction().unwrap();
        let available = PetPatch { status: Some(Some(PetStatus::Available)), ..PetPatch::default() };
        transaction.update_pet(1, None, &available).unwrap();
        transaction.update_pet(2, SOLD, &available).unwrap();
        transaction.delete_pet(3, None).unwrap();
        writer.commit().unwrap();
        assert_eq!(tally.current(), Some(of(2, 1, 0, 0)));
        assert_eq!(lock(&tally.0.reader).as_ref().unwrap().count_pets(), Ok(of(2, 1, 0, 0)));
    }

    #[test]
    fn commit_that_fails_changes_no_counts() {
        let (_folder, mut writer, reader) = pair();
        let tally = Tally::new(reader);
        writer.keep(tally.clone());
        tally.count().unwrap();
        add(&mut writer, SOLD);
        run(&writer, "ROLLBACK");
        assert!(writer.commit().is_err());
        assert_eq!(tally.count(), Ok(of(0, 0, 0, 0)));
        tally.age();
        add(&mut writer, None);
        writer.commit().unwrap();
        assert_eq!(tally.count(), Ok(of(0, 0, 0, 1)));
    }

    #[test]
    fn change_by_another_program_is_counted() {
        let (folder, mut writer, reader) = pair();
        let other = Writer::open(&folder.database()).unwrap();
        let tally = Tally::new(reader);
        writer.keep(tally.clone());
        add(&mut writer, None);
        writer.commit().unwrap();
        tally.count().unwrap();
        run(&other, "UPDATE pets SET status = 'sold'");
        assert!(tally.is_kept(), "not noticed yet");
        tally.age();
        writer.vouch();
        assert_eq!((tally.is_kept(), tally.current()), (false, None), "noticed");
        assert_eq!(tally.count(), Ok(of(0, 0, 1, 0)));
        writer.vouch();
        assert!(tally.is_kept());
        // A commit of the writer does not make the counts before the change of another program current.
        run(&other, "DELETE FROM pets");
        tally.age();
        add(&mut writer, SOLD);
        writer.commit().unwrap();
        assert_eq!(tally.current(), None);
        assert_eq!(tally.count(), Ok(of(0, 0, 1, 0)));
    }

    #[test]
    fn trigger_of_another_program_is_counted() {
        let (folder, mut writer, reader) = pair();
        let tally = Tally::new(reader);
        writer.keep(tally.clone());
        tally.count().unwrap();
        let sql = "CREATE TRIGGER sells AFTER INSERT ON pets BEGIN UPDATE pets SET status = 'sold' WHERE id = new.id; END";
        run(&Writer::open(&folder.database()).unwrap(), sql);
        for pets in 1..4 {
            add(&mut writer, None);
            writer.commit().unwrap();
            tally.age();
            assert_eq!(tally.count(), Ok(of(0, 0, pets, 0)));
        }
    }

    #[test]
    fn batch_during_a_count_is_counted_once() {
        let (folder, mut writer, reader) = pair();
        let other = Writer::open(&folder.database()).unwrap();
        let tally = Tally::new(reader);
        writer.keep(tally.clone());
        add(&mut writer, None);
        assert_eq!(tally.begin(lock(&tally.0.reader).as_mut().unwrap()), Ok(None));
        writer.commit().unwrap();
        let found = lock(&tally.0.reader).as_ref().unwrap().count_pets().unwrap();
        assert_eq!(found, of(0, 0, 0, 0), "the snapshot is older");
        assert_eq!(tally.finish(&found), of(0, 0, 0, 1));
        // If another program writes meanwhile, the result is that of the snapshot, and is not kept.
        tally.age();
        lock(&tally.0.reader).as_mut().unwrap().end().unwrap();
        assert_eq!(tally.begin(lock(&tally.0.reader).as_mut().unwrap()), Ok(None));
        run(&other, "DELETE FROM pets");
        add(&mut writer, SOLD);
        writer.commit().unwrap();
        assert_eq!(
            tally.finish(&lock(&tally.0.reader).as_ref().unwrap().count_pets().unwrap()),
            of(0, 0, 0, 1)
        );
        assert!(!tally.is_kept());
        tally.age();
        lock(&tally.0.reader).as_mut().unwrap().end().unwrap();
        assert_eq!(tally.count(), Ok(of(0, 0, 1, 0)));
    }

    #[test]
    fn nothing_is_counted_again_while_nothing_changes() {
        let (_folder, writer, reader) = pair();
        let tally = Tally::new(reader);
        run(&writer, "INSERT INTO pets (name, category_id) VALUES ('a', 1)");
        assert_eq!(tally.count(), Ok(of(0, 0, 0, 1)));
        tally.age();
        let ended = lock(&tally.0.state).last.as_ref().unwrap().ended;
        assert_eq!(tally.current(), None);
        assert_eq!(tally.count(), Ok(of(0, 0, 0, 1)));
        assert_eq!(lock(&tally.0.state).last.as_ref().unwrap().ended, ended);
        run(&writer, "UPDATE pets SET status = 'sold'");
        assert_eq!(tally.count(), Ok(of(0, 0, 0, 1)), "of less than a second ago");
        tally.age();
        assert_eq!(tally.count(), Ok(of(0, 0, 1, 0)));
    }

    #[test]
    fn long_count_answers_everybody_who_waits_for_it() {
        let (_folder, _writer, reader) = pair();
        let tally = Tally::new(reader);
        tally.count().unwrap();
        tally.age();
        lock(&tally.0.state).last.as_mut().unwrap().ended = Instant::now();
        assert!(tally.current().is_some());
    }

    #[test]
    fn tally_that_is_stopped_counts_no_more_and_keeps_no_file() {
        let (folder, mut writer, reader) = pair();
        let tally = Tally::new(reader);
        writer.keep(tally.clone());
        tally.count().unwrap();
        tally.stop();
        tally.age();
        assert!(tally.count().is_err());
        add(&mut writer, SOLD);
        writer.commit().unwrap();
        drop(writer);
        let files = std::fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().file_name());
        assert_eq!(files.collect::<Vec<_>>(), [folder.database().file_name().unwrap()]);
    }

    #[test]
    fn tally_forgets() {
        let (_folder, _writer, reader) = pair();
        let tally = Tally::new(reader);
        tally.count().unwrap();
        tally.forget();
        assert_eq!(tally.current(), None);
    }
}
