//! Import: adds many pets to a database. All rows are checked before the first one is written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Format;
use super::input::{Input, Source};
use super::rows::{InputRow, InputRows};
use super::start;
use crate::base::clock::past;
use crate::base::error::{Error, ErrorKind, fail};
use crate::store::{self, BatchIds, Progress, Reader, Writer};

/// The most pets of a batch. It holds the lock on the database for about 20 ms, its flush included, so the creates of
/// a running service never wait long.
const MOST_PETS: usize = 4096;
/// The most bytes of names in a batch, to limit its memory.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// The pause between two batches, in which other processes can take the lock. They try once per millisecond; a few more
/// are a margin for inexact sleeps.
const PAUSE: Duration = Duration::from_millis(5);
/// The busy timeout of a batch.
const PATIENCE: Duration = Duration::from_secs(30);

/// The options of an import.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The format of the input; by default NDJSON.
    pub format: Format,
    /// Keeps the ids of the pets. The database must never have had a pet. By default false.
    pub keep_ids: bool,
    /// Writes the valid pets even if others are invalid; by default false.
    pub skip_invalid: bool,
    /// The first line to write, counted from 1. By default all lines are written.
    pub from_line: Option<u64>,
    /// Continues an earlier import of the same input, with the same format and `keep_ids`, after its last written line.
    /// Each pet is added once; if the import was complete, nothing is added. By default false.
    pub resume: bool,
    /// Writes all lines, even if an earlier import of the same input has already written them; by default false.
    pub again: bool,
    /// Only checks. The database need not be writable. By default false.
    pub dry_run: bool,
}

/// The progress of an import.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LinesWritten {
    /// Every pet up to this line is written and flushed to the disk.
    pub line: u64,
    /// The number of lines of the input.
    pub lines: u64,
}

/// An import whose pets have been checked and can be written.
///
/// ```no_run
/// use std::sync::atomic::AtomicBool;
/// use petstore::{Import, ImportOptions, Source};
///
/// let source = Source::File("pets.ndjson".into());
/// let refuse = |line, why: &str| eprintln!("line {line}: {why}");
/// let import = Import::check("pets.db".as_ref(), source, ImportOptions::default(), refuse)?;
/// println!("importing {}", import.valid());
/// import.write(&AtomicBool::new(false), |progress| println!("line {}", progress.line))?;
/// # Ok::<(), petstore::Error>(())
/// ```
#[derive(Debug)]
pub struct Import {
    input: Input,
    options: ImportOptions,
    database: PathBuf,
    /// The SHA-256 of the input, which identifies its import.
    digest: [u8; 32],
    /// The progress of an earlier import of this input.
    begun: Option<Progress>,
    /// The first line to write.
    from_line: u64,
    rows: CheckedRows,
}

/// The rows of an input after the check.
#[derive(Debug, Default)]
struct CheckedRows {
    /// The number of lines.
    lines: u64,
    /// The number of pets to write.
    valid: u64,
    /// The rejected lines, in ascending order.
    refused: Vec<u64>,
    /// The highest id of the input if ids are kept, including lines before the first one to write; otherwise 0.
    last_id: i64,
}

impl Import {
    /// Checks all pets of a source, and calls `refuse` for each invalid one with its line and a sentence about its
    /// fault. Adds no pets. Do not change the current folder before [`write`](Self::write) if `database` is a relative
    /// path.
    ///
    /// # Errors
    /// [`ErrorKind::ImportedBefore`] if the input was imported before, [`ErrorKind::ImportUnfinished`] if an import of
    /// it ended early and must be resumed, [`ErrorKind::InvalidInput`] if there is none to resume,
    /// [`ErrorKind::InvalidRows`] if a pet is invalid and [`ImportOptions::skip_invalid`] is not set,
    /// [`ErrorKind::InvalidInput`] if the input is of another format, the header line of CSV is wrong, an invalid row
    /// takes several lines, a row is longer than 1 MiB, or [`ImportOptions::from_line`] is beyond the end,
    /// [`ErrorKind::DatabaseNotNew`] if the pets cannot keep their ids, [`ErrorKind::FileMissing`] if there is no such
    /// file, and the kinds of a database that cannot be opened.
    pub fn check(
        database: &Path,
        source: Source,
        options: ImportOptions,
        refuse: impl FnMut(u64, &str),
    ) -> Result<Self, Error> {
        // An unusable database is reported before the input is read.
        let exists = store::exists(database);
        if exists && !options.dry_run {
            drop(Writer::open(database)?);
        }
        let store = if exists { Some(Reader::open_existing(database)?) } else { None };
        let input = Input::open(source)?;
        start::check(&input, options.format)?;
        let digest = input.digest()?;
        let begun = store.as_ref().map_or(Ok(None), |store| store.progress(&digest))?;
        let from_line = first_line(&options, database, begun)?;
        if options.keep_ids && from_line == 1 {
            check_new(database, store.as_ref())?;
        }
        let database = database.to_owned();
        let rows = CheckedRows::default();
        let mut import = Self { input, options, database, digest, begun, from_line, rows };
        import.rows = import.check_rows(refuse)?;
        let refused = import.rows.refused.len();
        if refused > 0 && !import.options.skip_invalid {
            let lines = if refused == 1 { "1 line is" } else { &format!("{refused} lines are") };
            let line = format!("{lines} refused, so nothing was written");
            return fail(ErrorKind::InvalidRows, line);
        }
        Ok(import)
    }

    /// Checks every row.
    fn check_rows(&self, mut refuse: impl FnMut(u64, &str)) -> Result<CheckedRows, Error> {
        let mut rows = self.read_rows()?;
        let mut ids = BTreeMap::new();
        let mut checked = CheckedRows::default();
        while let Some(line) = rows.advance()? {
            let row = rows.row().and_then(|row| match row.id {
                Some(id) if !insert(&mut ids, id) => Err(format!("The id {id} is given more than once.")),
                _ => Ok(()),
            });
            match row {
                Err(why) if rows.next_line - 1 > line => {
                    let last = rows.next_line - 1;
                    let why = why.trim_end_matches('.');
                    let why = format!(
                        "lines {line} to {last}: {why}; a quote there may be missing, so nothing was written"
                    );
                    return fail(ErrorKind::InvalidInput, why);
                }
                _ if line < self.from_line => {}
                Ok(()) => checked.valid += 1,
                Err(why) => {
                    checked.refused.push(line);
                    refuse(line, &why);
                }
            }
        }
        checked.lines = rows.next_line - 1;
        checked.last_id = ids.last_key_value().map_or(0, |(_, last)| *last);
        if let Some(line) = self.options.from_line
            && line > checked.lines.max(1)
        {
            let message = format!("line {line} is beyond the end: the last line is {}", checked.lines);
            return fail(ErrorKind::InvalidInput, message);
        }
        Ok(checked)
    }

    /// The number of pets to write.
    pub fn valid(&self) -> u64 {
        self.rows.valid
    }

    /// Writes the pets in batches, flushes each to the disk, and then calls `progress`. A running service can write
    /// between the batches. Ends early if `stop` is set. Returns the lowest and the highest id of the input's pets,
    /// including those of an earlier import that it resumes; `None` if it wrote none.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] if `stop` was set, [`ErrorKind::DatabaseLocked`] if another process holds the lock
    /// for 30 seconds, [`ErrorKind::ImportUnfinished`] if another import of the same input has written meanwhile, and
    /// the kinds of a database that cannot be written. Every pet up to the last [`LinesWritten::line`] is then written.
    pub fn write(self, stop: &AtomicBool, mut progress: impl FnMut(LinesWritten)) -> Result<Ids, Error> {
        let mut line = self.from_line - 1;
        let lines = self.rows.lines;
        if self.options.resume {
            progress(LinesWritten { line, lines });
        }
        let done = self.write_batches(stop, |written| {
            line = written;
            progress(LinesWritten { line, lines });
        });
        done.map_err(|why| match line {
            _ if why.kind() == ErrorKind::OutcomeUnknown => why.followed_by(format!(
                "everything up to line {line} is written, and perhaps some lines after it"
            )),
            0 => why.followed_by("nothing was written"),
            _ => why.followed_by(format!("everything up to line {line} is written")),
        })
    }

    fn write_batches(&self, stop: &AtomicBool, mut written: impl FnMut(u64)) -> Result<Ids, Error> {
        if self.options.dry_run {
            return Ok(None);
        }
        let mut store = Writer::open(&self.database)?;
        store.set_busy_timeout(PATIENCE);
        let mut rows = self.read_rows()?;
        let mut batch = Vec::new();
        let mut released: Option<Instant> = None;
        let mut seen = self.begun.map(|begun| begun.line);
        let mut left = self.rows.valid;
        while left > 0 {
            // Read the next pets while other processes can take the lock.
            let line = self.read_batch(&mut rows, &mut batch)?;
            if batch.is_empty() {
                return fail(ErrorKind::InvalidInput, "the input was changed meanwhile");
            }
            left = left.saturating_sub(batch.len() as u64);
            if let Some(released) = released {
                std::thread::sleep(PAUSE.saturating_sub(released.elapsed()));
            }
            if stop.load(Ordering::SeqCst) {
                return fail(ErrorKind::Interrupted, "interrupted");
            }
            store.transact(|store| {
                if store.progress(&self.digest)?.map(|progress| progress.line) != seen {
                    let line = "another import of the same input has written meanwhile";
                    return fail(ErrorKind::ImportUnfinished, line);
                }
                self.write_batch(store, &batch, released.is_none())?;
                let kept = || batch.iter().filter_map(|row| row.id);
                let ids = match (kept().min(), kept().max()) {
                    (Some(least), Some(greatest)) => BatchIds::Kept { least, greatest },
                    _ => BatchIds::New(batch.len()),
                };
                Ok::<_, Error>(store.set_progress(&self.digest, line, left == 0, ids)?)
            })?;
            seen = Some(line);
            released = Some(Instant::now());
            written(line);
        }
        // A failure here does not matter, since all pets are written.
        Ok(store.progress(&self.digest).ok().flatten().map(|progress| progress.ids))
    }

    /// Writes a batch within a transaction.
    fn write_batch(&self, store: &mut Writer, batch: &[InputRow], is_first: bool) -> Result<(), Error> {
        if is_first && self.options.keep_ids {
            if self.from_line == 1 {
                check_new(&self.database, Some(store))?;
            }
            // From here on, a running service assigns higher ids.
            store.reserve_ids(self.rows.last_id)?;
        }
        for row in batch {
            match row.id {
                Some(id) => store.insert_pet_as(id, &row.pet)?,
                None => store.insert_pet(&row.pet, None).map(drop)?,
            }
        }
        Ok(())
    }

    fn read_rows(&self) -> Result<FileRows<'_>, Error> {
        InputRows::new(self.input.read()?, &self.input.name, self.options.format, self.options.keep_ids)
    }

    /// Reads the next pets to write, and returns the last line that was read.
    fn read_batch(&self, rows: &mut FileRows<'_>, batch: &mut Vec<InputRow<'static>>) -> Result<u64, Error> {
        batch.clear();
        let mut bytes = 0;
        while batch.len() < MOST_PETS && bytes < MOST_BYTES {
            let Some(line) = rows.advance()? else { break };
            if line < self.from_line || self.rows.refused.binary_search(&line).is_ok() {
                continue;
            }
            let row = rows.row().map_err(|why| Error::new(ErrorKind::InvalidInput, why))?;
            bytes += row.pet.name.len();
            batch.push(InputRow { id: row.id, pet: row.pet.to_static() });
        }
        Ok(rows.next_line - 1)
    }
}

type Ids = Option<(i64, i64)>;
type FileRows<'i> = InputRows<'i, BufReader<&'i File>>;

/// Adds an id to a set; returns false if the set has it. Consecutive ids are one entry, from the first to the last, so
/// the ids of an export take little memory.
fn insert(ranges: &mut BTreeMap<i64, i64>, id: i64) -> bool {
    match ranges.range_mut(..=id).next_back() {
        Some((_, last)) if *last >= id => return false,
        Some((_, last)) if *last == id - 1 => *last = id,
        _ => drop(ranges.insert(id, id)),
    }
    true
}

/// Returns the first line to write. `begun` is the progress of an earlier import of the same input.
fn first_line(options: &ImportOptions, database: &Path, begun: Option<Progress>) -> Result<u64, Error> {
    if options.resume {
        let begun = begun.filter(|begun| begun.keeps_ids == options.keep_ids).ok_or_else(|| {
            let knows = format!("{} knows of no import of this input", database.display());
            Error::new(ErrorKind::InvalidInput, format!("{knows}, as it is now and with these options"))
        });
        return Ok(begun?.line + 1);
    }
    let first = options.from_line.unwrap_or(1);
    let Some(begun) = begun.filter(|begun| !options.again && first <= begun.line) else { return Ok(first) };
    let (least, greatest) = begun.ids;
    let (kind, message) = match begun.finished_at {
        None => {
            let line = begun.line;
            let message =
                format!("an import of this input ended early: everything up to line {line} is written");
            (ErrorKind::ImportUnfinished, message)
        }
        Some(at) => {
            let on = past(at).map(|at| format!(" on {at}")).unwrap_or_default();
            let message =
                format!("this input was imported{on}, and its pets got ids from {least} to {greatest}");
            (ErrorKind::ImportedBefore, message)
        }
    };
    fail(kind, message)
}

/// Rejects a database that has ever had a pet, since an id could be reused.
fn check_new(database: &Path, store: Option<&Reader>) -> Result<(), Error> {
    if store.map_or(Ok(0), |store| store.last_id())? > 0 {
        let line = format!("ids cannot be kept: {} already has or had pets", database.display());
        return fail(ErrorKind::DatabaseNotNew, line);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::testing::Folder;

    /// Checks an import of this text, and returns the messages about rejected lines too.
    fn checked(folder: &Folder, text: &str, options: ImportOptions) -> (Result<Import, Error>, Vec<String>) {
        let source = Source::Stream(Box::new(std::io::Cursor::new(text.to_owned())));
        let mut refused = Vec::new();
        let refuse = |line, why: &str| refused.push(format!("{line}: {why}"));
        let checked = Import::check(&folder.database(), source, options, refuse);
        (checked, refused)
    }

    fn from(from_line: u64) -> ImportOptions {
        ImportOptions { from_line: Some(from_line), ..ImportOptions::default() }
    }

    /// Imports the text, and returns the last line of each batch.
    fn imported(folder: &Folder, text: &str, options: ImportOptions) -> Vec<u64> {
        let mut written = Vec::new();
        let import = checked(folder, text, options).0.unwrap();
        import.write(&AtomicBool::new(false), |progress| written.push(progress.line)).unwrap();
        written
    }

    #[test]
    fn batch_has_only_so_many_pets_and_bytes() {
        let pets = |count: usize, bytes: usize| {
            format!("{{\"name\":\"{}\",\"categoryId\":1}}\n", "x".repeat(bytes)).repeat(count)
        };
        let most = MOST_PETS as u64;
        assert_eq!(
            imported(&Folder::new(), &pets(2 * MOST_PETS + 1, 1), from(1)),
            [most, 2 * most, 2 * most + 1]
        );
        assert_eq!(imported(&Folder::new(), &pets(17, MOST_BYTES / 8), from(1)), [8, 16, 17]);
    }

    #[test]
    fn import_that_is_stopped_reports_the_last_line() {
        for (from_line, said) in
            [(1, "interrupted; nothing was written"), (3, "interrupted; everything up to line 2 is written")]
        {
            let (folder, text) = (Folder::new(), "{\"name\":\"a\",\"categoryId\":1}\n".repeat(3));
            let import = checked(&folder, &text, from(from_line)).0.unwrap();
            let error = import.write(&AtomicBool::new(true), |_| ()).unwrap_err();
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Interrupted, said));
        }
    }

    #[test]
    fn lines_before_the_first_to_write_count_for_nothing() {
        let text = "nonsense\n{\"name\":\"a\",\"categoryId\":1}\n{\"name\":\"b\",\"categoryId\":1}\n";
        let beyond = Err("line 4 is beyond the end: the last line is 3".to_owned());
        for (from_line, valid) in [(2, Ok(2)), (3, Ok(1)), (4, beyond)] {
            let (import, refused) = checked(&Folder::new(), text, from(from_line));
            let found = import.map(|import| import.valid()).map_err(|error| error.to_string());
            assert_eq!((found, refused), (valid, Vec::new()));
        }
        assert_eq!(checked(&Folder::new(), "", from(1)).0.unwrap().valid(), 0);
    }

    #[test]
    fn each_id_is_new_once() {
        let mut ids = BTreeMap::new();
        for id in [5, 1, 3, 2, 4, 6, 9, i64::MAX, 10, 8] {
            assert!(insert(&mut ids, id), "{id}");
            assert!(!insert(&mut ids, id), "{id}");
        }
        assert!((1..=6).chain(8..=10).all(|id| !insert(&mut ids, id)));
        let mut ids = BTreeMap::new();
        assert!((1..1000).all(|id| insert(&mut ids, id)));
        assert_eq!(ids.len(), 1);
    }

    #[test]
    fn pets_that_came_since_the_check_end_an_import_that_keeps_ids() {
        let (folder, text) = (Folder::new(), r#"{"id":7,"name":"a","categoryId":1}"#);
        let import = checked(&folder, text, ImportOptions { keep_ids: true, ..from(1) }).0.unwrap();
        imported(&folder, &text.replace("7", "8"), from(1));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Ends the test if the import tries for ever.
            let patience = scope.spawn(|| {
                std::thread::park_timeout(Duration::from_secs(20));
                stop.store(true, Ordering::SeqCst);
            });
            let error = import.write(&stop, |_| ()).unwrap_err();
            patience.thread().unpark();
            assert_eq!(error.kind(), ErrorKind::DatabaseNotNew, "{error}");
        });
    }
}
