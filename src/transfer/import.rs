//! Many animals into the database: all of them are checked, and only then the first one is written.

use std::borrow::Cow;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::ids::Ids;
use super::input::{Input, Source};
use super::rows::Rows;
use super::turns::{self, Size};
use super::{Format, say};
use crate::Error;
use crate::model::{NewPet, Pet};
use crate::store::Writer;

/// How long a batch waits for another process to release the lock of the database.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two tries to get the lock. A busy service leaves it for moments only.
const RETRY: Duration = Duration::from_millis(1);

/// What an import is to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImportOptions {
    /// How the animals are written; by default NDJSON.
    pub format: Format,
    /// Whether the animals keep their ids, in a database that never had an animal; by default not.
    pub keep_ids: bool,
    /// Whether the valid animals are written where others are not valid; by default not.
    pub skip_invalid: bool,
    /// The line from which on animals are written; by default 1, the first. A greater one goes on with an import
    /// that was interrupted.
    pub from_line: u64,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { format: Format::Ndjson, keep_ids: false, skip_invalid: false, from_line: 1 }
    }
}

/// How far an import has come. It is on the disk.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LinesWritten {
    /// All up to this line is written.
    pub line: u64,
    /// How many lines there are.
    pub lines: u64,
}

/// An import whose animals have been checked.
pub struct Import {
    input: Input,
    options: ImportOptions,
    database: PathBuf,
    found: Found,
}

/// What the check has found.
#[derive(Debug, Default)]
struct Found {
    lines: u64,
    /// Animals to be written.
    valid: u64,
    refused: u64,
    /// Lines that are refused for another reason than what stands there, in ascending order.
    unwanted: Vec<u64>,
    /// The ids that are kept, those before the first line to be written included.
    ids: Ids,
}

impl Import {
    /// Checks all animals of a source, and tells `refuse` the line of each that is not valid, and why. Nothing
    /// is written.
    ///
    /// # Errors
    /// One plain line, where an animal is not valid and [`ImportOptions::skip_invalid`] is not set, the source
    /// cannot be read, or the animals cannot keep their ids in this database.
    pub fn check(
        database: &Path,
        source: Source,
        options: ImportOptions,
        mut refuse: impl FnMut(u64, &str),
    ) -> Result<Self, Error> {
        // A database that cannot be used is told before all is read.
        let store = if database.exists() { Some(Writer::open(database)?) } else { None };
        if options.keep_ids && options.from_line == 1 {
            check_new(database, store.as_ref())?;
        }
        let input = Input::open(source)?;
        let found = check(&input, &options, database, store.as_ref(), &mut refuse)?;
        if found.refused > 0 && !options.skip_invalid {
            let lines =
                if found.refused == 1 { "1 line is" } else { &format!("{} lines are", found.refused) };
            return Err(Error::from(format!(
                "{lines} refused, so nothing was written; correct that, or leave it out with --skip-invalid"
            )));
        }
        Ok(Self { input, options, database: database.to_owned(), found })
    }

    /// How many animals will be written.
    pub fn valid(&self) -> u64 {
        self.found.valid
    }

    /// How many will be left out, as they are not valid.
    pub fn refused(&self) -> u64 {
        self.found.refused
    }

    /// Writes the animals, a flushed batch after the other, between which a running service has its turn. Calls
    /// `progress` after each batch. Ends early once `stop` is set.
    ///
    /// # Errors
    /// One plain line, where not all was written; it says up to which line all is.
    pub fn write(self, stop: &AtomicBool, mut progress: impl FnMut(LinesWritten)) -> Result<(), Error> {
        let mut line = self.options.from_line - 1;
        let lines = self.found.lines;
        let done = self.write_batches(stop, |written| {
            line = written;
            progress(LinesWritten { line, lines });
        });
        done.map_err(|why| {
            Error::from(if line == 0 {
                format!("{why}; nothing was written")
            } else {
                format!("{why}; all up to line {line} is written, go on with --from-line {}", line + 1)
            })
        })
    }

    fn write_batches(&self, stop: &AtomicBool, mut written: impl FnMut(u64)) -> Result<(), Error> {
        let mut store = Writer::open(&self.database)?;
        let mut rows = open(&self.input, &self.options)?;
        let mut batch = Vec::new();
        let (mut size, mut is_first) = (Size::default(), true);
        // When the lock was released, and how long it is left to others.
        let (mut released, mut pause) = (Instant::now(), Duration::ZERO);
        loop {
            // The next animals are read while the lock is left to others.
            let line = self.read_batch(&mut rows, size.get(), &mut batch)?;
            self.input.check()?;
            if batch.is_empty() {
                return Ok(());
            }
            std::thread::sleep(pause.saturating_sub(released.elapsed()));
            take_turn(&mut store, stop)?;
            let began = Instant::now();
            if is_first && self.options.keep_ids {
                if self.options.from_line == 1 {
                    check_new(&self.database, Some(&store))?;
                }
                // So that a running service gives its animals other ids.
                store.reserve_ids(self.found.ids.last()).map_err(say)?;
            }
            for (id, new) in &batch {
                let inserted = match id {
                    Some(id) => store.insert_pet_as(*id, new),
                    None => store.insert_pet(new).map(|_| ()),
                };
                inserted.map_err(say)?;
            }
            store.commit().map_err(say)?;
            let hold = began.elapsed();
            (released, pause) = (Instant::now(), turns::pause(hold));
            written(line);
            size.learn(batch.len(), hold);
            is_first = false;
        }
    }

    /// Reads the next animals to be written, and returns the last line that was read.
    fn read_batch(&self, rows: &mut Lines<'_>, size: usize, batch: &mut Batch) -> Result<u64, Error> {
        batch.clear();
        let mut bytes = 0;
        while batch.len() < size && bytes < turns::MOST_BYTES {
            let Some(line) = rows.advance().map_err(|error| self.input.cannot_read(error))? else { break };
            if line < self.options.from_line {
                continue;
            }
            // What is not valid was refused by the check.
            if let Ok((id, new)) = rows.row()
                && self.found.unwanted.binary_search(&line).is_err()
            {
                bytes += new.name.len();
                batch.push((id, NewPet { name: Cow::Owned(new.name.into_owned()), ..new }));
            }
        }
        Ok(rows.next_line() - 1)
    }
}

type Batch = Vec<(Option<i64>, NewPet<'static>)>;
type Lines<'i> = Rows<std::io::BufReader<&'i std::fs::File>>;

fn open<'i>(input: &'i Input, options: &ImportOptions) -> Result<Lines<'i>, Error> {
    let cannot = |error| input.cannot_read(error);
    let mut source = input.read()?;
    if let Some((looks, format)) = other_format(source.fill_buf().map_err(cannot)?, options.format) {
        return Err(Error::from(format!("the input looks like {looks}; give --format {format}")));
    }
    let rows = Rows::new(source, options.format, options.keep_ids).map_err(cannot)?;
    rows.map_err(|why| Error::from(format!("line 1: {why}")))
}

/// The other format and its word, where the input begins as that does.
fn other_format(start: &[u8], format: Format) -> Option<(&'static str, &'static str)> {
    let is_json = start.trim_ascii_start().starts_with(b"{");
    let column = b"categoryId";
    let mut header = start.split(|byte| *byte == b'\n').next()?.windows(column.len());
    match format {
        Format::Csv if is_json => Some(("NDJSON", "ndjson")),
        Format::Ndjson if !is_json && header.any(|word| word == column) => Some(("CSV", "csv")),
        Format::Csv | Format::Ndjson => None,
    }
}

/// Says no to a database that has had an animal: its id would be used again.
fn check_new(database: &Path, store: Option<&Writer>) -> Result<(), Error> {
    match store.map_or(Ok(0), |store| store.last_id()).map_err(say)? {
        0 => Ok(()),
        _ => Err(Error::from(format!(
            "{} has had animals already; --keep-ids needs a database that never had one",
            database.display()
        ))),
    }
}

fn check(
    input: &Input,
    options: &ImportOptions,
    database: &Path,
    store: Option<&Writer>,
    refuse: &mut impl FnMut(u64, &str),
) -> Result<Found, Error> {
    let mut found = Found::default();
    let mut rows = open(input, options)?;
    // Whether the animal before the first to be written is in the database, where that matters.
    let mut is_continued = None;
    while let Some(line) = rows.advance().map_err(|error| input.cannot_read(error))? {
        let is_written = line < options.from_line;
        let row = rows.row();
        let is_valid = row.is_ok();
        let kept = row.and_then(|(id, new)| {
            let Some(id) = id else { return Ok(()) };
            if !found.ids.insert(id) {
                return Err(format!("The id {id} is given more than once."));
            }
            if options.from_line == 1 {
                return Ok(());
            }
            let is_same = |pet: Pet| pet.name == new.name && pet.category_id == new.category_id;
            let there = store.map_or(Ok(None), |store| store.pet(id, is_same));
            let there = there.map_err(|error| say(error).to_string())?;
            if is_written {
                is_continued = Some((line, there == Some(true)));
            } else if there.is_some() {
                return Err(format!("The id {id} is in the database already."));
            }
            Ok(())
        });
        match kept {
            _ if is_written => {}
            Ok(()) => found.valid += 1,
            Err(why) => {
                found.refused += 1;
                if is_valid {
                    found.unwanted.push(line);
                }
                refuse(line, &why);
            }
        }
    }
    found.lines = rows.next_line() - 1;
    let (from_line, lines) = (options.from_line, found.lines);
    if from_line > 1 && from_line > lines {
        return Err(Error::from(format!(
            "--from-line {from_line} is beyond the end: the last line is {lines}"
        )));
    }
    if let Some((line, false)) = is_continued {
        return Err(Error::from(format!(
            "the animal of line {line} is not in {}; --from-line must be the line that the import told",
            database.display()
        )));
    }
    Ok(found)
}

/// Opens a transaction, as soon as no other process has one.
fn take_turn(store: &mut Writer, stop: &AtomicBool) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if stop.load(Ordering::SeqCst) {
            return Err(Error::from("interrupted".to_owned()));
        }
        if store.try_begin().map_err(say)? {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Error::from("another process has locked the database for 30 seconds".to_owned()));
        }
        std::thread::sleep(RETRY);
    }
}
