//! Whether a write-ahead log belongs to the database beside it. SQLite applies whatever log it finds.
//!
//! So each transaction of ours leaves a mark: a random number of its own, and that of the transaction before it. The
//! mark stands in `sqlite_sequence`, whose page a create writes anyway. What the database file holds without its log
//! is the mark of a transaction in the log, or the one before the first of them. Any other file belongs to another
//! log: another database, or an older copy of this one.
//!
//! A file that came from a backup says itself that it has no log.
//!
//! A transaction of another program, such as sqlite3, leaves the mark as it is. A log with nothing else may have
//! no mark at all, and is told by the times of the files.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rusqlite::Connection;

use super::open_file::{OpenFile, log_of};
use crate::{Error, ErrorKind as Kind};

/// The row of the mark: the number of the transaction before in the upper half, its own in the lower one. Both are
/// from 2^30 on and below 2^31, so that the row always has the same size.
const NEXT: &str = "UPDATE sqlite_sequence SET seq = ((seq & 4294967295) << 32) | 1073741824 | (random() & 1073741823) \
    WHERE name = 'petstore log'";
const FIRST: &str = "INSERT INTO sqlite_sequence (name, seq) \
    VALUES ('petstore log', (1073741824 << 32) | 1073741824 | (random() & 1073741823))";
const NAME: &[u8] = b"petstore log";
/// The number of a database without a mark.
const NONE: u32 = 1 << 30;

/// Leaves a mark in the open transaction.
pub fn leave(connection: &Connection) -> rusqlite::Result<()> {
    if connection.prepare_cached(NEXT)?.execute([])? == 0 {
        connection.execute(FIRST, [])?;
    }
    Ok(())
}

/// Refuses a log that is not that of the open database.
///
/// # Errors
/// One plain line that says what to do.
pub fn check_log(path: &Path, database: &OpenFile) -> Result<(), Error> {
    let log = log_of(path);
    let line = match belongs(database, &log) {
        Ok(Verdict::Own | Verdict::Empty) => return Ok(()),
        Ok(Verdict::Foreign) => format!(
            "{log} is not the log of {name}: one of them was replaced or written over. Put back the file that was \
             here, or restore a backup; to go on with {name} as it is, run: mv {log} {log}.old",
            log = log.display(),
            name = path.display()
        ),
        Ok(Verdict::Unmarked) if !came_later(path, &log) => return Ok(()),
        Ok(Verdict::Unmarked) => format!(
            "{log} may be the log of another database, as {name} came here later. If {name} was put in the place of \
             another file, run: mv {log} {log}.old - if it was not, run: sqlite3 {name} 'PRAGMA wal_checkpoint'",
            log = log.display(),
            name = path.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => format!("cannot read {}: the system says: {error}", log.display()),
    };
    Err(Error::new(Kind::LogForeign, line))
}

/// Whose a log is.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The marks say that it is that of the database.
    Own,
    /// They say that it is not.
    Foreign,
    /// It has transactions, and no marks.
    Unmarked,
    /// It has no whole transaction.
    Empty,
}

/// The pages at the beginning of a database among which that with the mark usually is.
const FIRST_PAGES: u32 = 8;

/// What the marks of the log say.
fn belongs(database: &OpenFile, log: &Path) -> io::Result<Verdict> {
    let Some(Marks { marks, mut places, page_size }) = Marks::in_log(log)? else { return Ok(Verdict::Empty) };
    // A backup is written without a log, and a database that has one says so before the log is begun.
    if !database.has_log_mode()? {
        return Ok(Verdict::Foreign);
    }
    if marks.is_empty() {
        return Ok(Verdict::Unmarked);
    }
    let mut page = vec![0; page_size];
    places.extend(1..=FIRST_PAGES);
    let mut kept = places.into_iter().filter_map(|place| {
        // The page has the same place in the file, which may not have it yet.
        let at = u64::from(place.saturating_sub(1)) * page_size as u64;
        database.read_exact_at(&mut page, at).ok()?;
        mark_in(&page).map(|[_, own]| own)
    });
    let kept = kept.next().unwrap_or(NONE);
    Ok(if marks.contains(&kept) { Verdict::Own } else { Verdict::Foreign })
}

/// The marks of the transactions in a log.
struct Marks {
    marks: BTreeSet<u32>,
    /// The pages that have one.
    places: BTreeSet<u32>,
    page_size: usize,
}

impl Marks {
    /// Reads what SQLite would apply: whole frames up to the last commit (`sqlite.org/fileformat2.html`, sections 4.1
    /// to 4.3). A killed process may leave a part of a frame over one of an earlier use. `None`: there is no commit.
    fn in_log(log: &Path) -> io::Result<Option<Self>> {
        let mut log = BufReader::with_capacity(1 << 16, File::open(log)?);
        let mut header = [0; 32];
        let Some(()) = fill(&mut log, &mut header)? else { return Ok(None) };
        let (magic, size) = (u32_at(&header, 0), u32_at(&header, 8));
        if magic & !1 != 0x377f_0682 || !(512..=65536).contains(&size) || !size.is_power_of_two() {
            return Ok(None);
        }
        let mut sum = Checksum { is_big_endian: magic & 1 == 1, sums: [0; 2] };
        sum.add(&header[..24]);
        if !sum.is(&header[24..]) {
            return Ok(None);
        }
        let mut frame = vec![0; 24 + size as usize];
        let (mut found, mut has_commit) =
            (Self { marks: BTreeSet::new(), places: BTreeSet::new(), page_size: size as usize }, false);
        // Those of the transaction under way.
        let mut open = Vec::new();
        // The salts of frames that an earlier use of the file has left differ.
        while fill(&mut log, &mut frame)?.is_some() && frame[8..16] == header[16..24] {
            sum.add(&frame[..8]);
            sum.add(&frame[24..]);
            if !sum.is(&frame[16..24]) {
                break;
            }
            open.extend(mark_in(&frame[24..]).map(|mark| (u32_at(&frame, 0), mark)));
            if u32_at(&frame, 4) != 0 {
                has_commit = true;
                for (place, mark) in open.drain(..) {
                    found.places.insert(place);
                    found.marks.extend(mark);
                }
            }
        }
        Ok(has_commit.then_some(found))
    }
}

/// The running checksum of a log (`sqlite.org/fileformat2.html`, section 4.2).
struct Checksum {
    is_big_endian: bool,
    sums: [u32; 2],
}

impl Checksum {
    /// Adds bytes, eight at a time.
    fn add(&mut self, bytes: &[u8]) {
        let number = |bytes: [u8; 4]| {
            if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let [mut first, mut second] = self.sums;
        for eight in bytes.as_chunks::<8>().0 {
            let [a, b, c, d, e, f, g, h] = *eight;
            first = first.wrapping_add(number([a, b, c, d])).wrapping_add(second);
            second = second.wrapping_add(number([e, f, g, h])).wrapping_add(first);
        }
        self.sums = [first, second];
    }

    /// Whether it is that which stands in these eight bytes.
    fn is(&self, bytes: &[u8]) -> bool {
        self.sums == [u32_at(bytes, 0), u32_at(bytes, 4)]
    }
}

/// Fills the buffer; `None` at the end.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<Option<()>> {
    match file.read_exact(buffer) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(Some),
    }
}

/// The mark in a page, the number of the transaction before first (`sqlite.org/fileformat2.html`, sections 1.6
/// and 2.1).
fn mark_in(page: &[u8]) -> Option<[u32; 2]> {
    let number = |at: usize| Some(usize::from(u16::from_be_bytes(page.get(at..at + 2)?.try_into().ok()?)));
    // A leaf of a table.
    let cells = if page[0] == 13 { number(3)? } else { 0 };
    (0..cells).find_map(|cell| {
        // Its length, the rowid, and the record's header of three bytes come before the name.
        let seq = page.get(number(8 + 2 * cell)? + 5..)?.strip_prefix(NAME)?.get(..8)?;
        Some([u32_at(seq, 0), u32_at(seq, 4)])
    })
}

/// A big-endian number in bytes that are there.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// Whether the log was there before the file was. A file that comes into its place by a move keeps its time of
/// modification, and gets a new time of change. One that is made anew is younger than its log.
fn came_later(path: &Path, log: &Path) -> bool {
    let (Ok(file), Ok(log)) = (fs::metadata(path), fs::metadata(log)) else { return false };
    let changed = |file: &Metadata| (file.ctime(), file.ctime_nsec());
    let was_moved_here = changed(&file) > changed(&log) && changed(&file) > (file.mtime(), file.mtime_nsec());
    let was_made_here = matches!((file.created(), log.created()), (Ok(file), Ok(log)) if file > log);
    log.len() > 0 && (was_moved_here || was_made_here)
}

#[cfg(test)]
mod tests {
    use super::super::Writer;
    use super::super::pets::tests::new_pet;
    use super::super::tests::{Folder, pair};
    use super::*;

    #[test]
    fn marks_are_a_chain() {
        let (folder, mut writer, _reader) = pair();
        let mut marks = Vec::new();
        for name in ["Rex", "Tom"] {
            writer.insert_pet(&new_pet(name)).unwrap();
            writer.commit().unwrap();
            writer.checkpoint().unwrap();
            let file = fs::read(folder.database()).unwrap();
            marks.push(file.chunks(4096).find_map(mark_in).unwrap());
        }
        assert_eq!(marks[0][1], marks[1][0]);
        assert!(marks.as_flattened().iter().all(|number| *number >= NONE && *number < 2 * NONE), "{marks:?}");
        assert_ne!(marks[1][0], marks[1][1]);
    }

    #[test]
    fn transaction_that_changes_nothing_leaves_no_mark() {
        let (folder, mut writer, _reader) = pair();
        writer.checkpoint().unwrap();
        assert_eq!(writer.probe(), Ok(()));
        assert_eq!(fs::metadata(log_of(&folder.database())).unwrap().len(), 0);
    }

    #[test]
    fn what_is_no_page_with_a_mark_has_none() {
        for page in [[0; 512], [13; 512], [255; 512]] {
            assert_eq!(mark_in(&page), None);
        }
    }

    /// A database of another program, and its log, which has a transaction.
    fn unmarked() -> (Folder, Connection) {
        let folder = Folder::new();
        let other = Connection::open(folder.database()).unwrap();
        other.pragma_update(None, "journal_mode", "WAL").unwrap();
        other.execute_batch("CREATE TABLE a (b); INSERT INTO a VALUES (1)").unwrap();
        (folder, other)
    }

    #[test]
    fn log_without_marks_is_told_by_the_times() {
        let (folder, other) = unmarked();
        let path = folder.database();
        let check = || check_log(&path, &OpenFile::at(&path).unwrap());
        assert!(check().is_ok(), "the log is younger");
        let copy = folder.0.join("copy");
        fs::copy(&path, &copy).unwrap();
        // Times of change move on in steps of some milliseconds; each of these calls sets it.
        let ctime = |path: &Path| fs::metadata(path).map(|file| (file.ctime(), file.ctime_nsec())).unwrap();
        while ctime(&copy) <= ctime(&log_of(&path)) {
            File::open(&copy).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        }
        fs::rename(&copy, &path).unwrap();
        let said = check().unwrap_err().to_string();
        assert!(said.contains("may be the log of another") && said.contains("wal_checkpoint"), "{said}");
        drop(other);
    }

    #[test]
    fn part_of_a_frame_over_an_older_one_is_not_read() {
        let (folder, mut writer, _reader) = pair();
        let (path, log) = (folder.database(), log_of(&folder.database()));
        let create = |writer: &mut Writer| {
            writer.insert_pet(&new_pet("Rex")).unwrap();
            writer.commit().unwrap();
        };
        (0..20).for_each(|_| create(&mut writer));
        writer.checkpoint().unwrap();
        // In one use of the log, then in the next, with the same page size.
        create(&mut writer);
        let whole = fs::read(&log).unwrap();
        let database = OpenFile::at(&path).unwrap();
        assert_eq!(belongs(&database, &log).unwrap(), Verdict::Own);
        let frame = 24 + u32_at(&whole, 8) as usize;
        // A header with the right salts and another page number, over the body of a page that has a mark.
        let torn: Vec<u8> = whole[32..]
            .chunks(frame)
            .find(|frame| mark_in(&frame[24..]).is_some())
            .map(|frame| [&[0, 0, 83, 165], &frame[4..]].concat())
            .unwrap();
        fs::write(&log, [&whole[..], &torn].concat()).unwrap();
        assert_eq!(belongs(&database, &log).unwrap(), Verdict::Own);
        // Nor is one transaction that has no end.
        fs::write(&log, [&whole[..32], &torn].concat()).unwrap();
        assert_eq!(belongs(&database, &log).unwrap(), Verdict::Empty);
        fs::write(&log, &whole[..32]).unwrap();
        assert_eq!(belongs(&database, &log).unwrap(), Verdict::Empty);
    }

    #[test]
    fn log_of_another_program_has_no_marks() {
        let (folder, other) = unmarked();
        let found = belongs(&OpenFile::at(&folder.database()).unwrap(), &log_of(&folder.database())).unwrap();
        assert_eq!(found, Verdict::Unmarked);
        drop(other);
    }
}
