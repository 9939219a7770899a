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

use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rusqlite::Connection;

use super::file::log_of;
use super::snapshot::{LOG_MODE, MODE_AT};

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
pub fn check_log(path: &Path, database: &File) -> Result<(), String> {
    let log = log_of(path);
    let line = match belongs(database, &log) {
        Ok(Some(true)) => return Ok(()),
        Ok(Some(false)) => format!(
            "{log} is not the log of {name}: one of them was replaced or written over. Put back the file that was \
             here, or restore a backup; to go on with {name} as it is, run: mv {log} {log}.old",
            log = log.display(),
            name = path.display()
        ),
        Ok(None) if !came_later(path, &log) => return Ok(()),
        Ok(None) => format!(
            "{log} may be the log of another database, as {name} came here later. If {name} was put in the place of \
             another file, run: mv {log} {log}.old - if it was not, run: touch {log}",
            log = log.display(),
            name = path.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => format!("cannot read {}: the system says: {error}", log.display()),
    };
    Err(line)
}

/// What the marks say; `None`: the log has none (`sqlite.org/fileformat2.html`, section 4.1).
fn belongs(database: &File, log: &Path) -> io::Result<Option<bool>> {
    let mut log = BufReader::with_capacity(1 << 16, File::open(log)?);
    let mut header = [0; 32];
    let Some(()) = fill(&mut log, &mut header)? else { return Ok(None) };
    let size = u32_at(&header, 8);
    if !(512..=65536).contains(&size) {
        return Ok(None);
    }
    // A backup is written without a log, and a database that has one says so before the log is begun.
    let mut mode = LOG_MODE;
    if database.read_exact_at(&mut mode, MODE_AT).is_ok() && mode != LOG_MODE {
        return Ok(Some(false));
    }
    let mut frame = vec![0; 24 + size as usize];
    let (mut marks, mut place) = (Vec::new(), 0);
    // The salts of frames that an earlier use of the file has left differ.
    while fill(&mut log, &mut frame)?.is_some() && frame[8..16] == header[16..24] {
        if let Some(mark) = mark_in(&frame[24..]) {
            marks.extend(mark);
            place = u32_at(&frame, 0);
        }
    }
    // The page has the same place in the file, which may not have it yet.
    let page = &mut frame[24..];
    let at = u64::from(place.saturating_sub(1)) * u64::from(size);
    let kept =
        database.read_exact_at(page, at).ok().and_then(|()| mark_in(page)).map_or(NONE, |[_, own]| own);
    Ok((!marks.is_empty()).then(|| marks.contains(&kept)))
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

    #[test]
    fn log_without_marks_is_told_by_the_times() {
        let folder = Folder::new();
        let path = folder.database();
        fs::write(&path, "copy").unwrap();
        let check = || check_log(&path, &File::open(&path).unwrap());
        assert_eq!(check(), Ok(()));
        fs::write(log_of(&path), "log").unwrap();
        assert_eq!(check(), Ok(()), "the log is younger");
        let copy = folder.0.join("copy");
        fs::write(&copy, "copy").unwrap();
        // Times of change move on in steps of some milliseconds; each of these calls sets it.
        let ctime = |path: &Path| fs::metadata(path).map(|file| (file.ctime(), file.ctime_nsec())).unwrap();
        while ctime(&copy) <= ctime(&log_of(&path)) {
            File::open(&copy).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        }
        fs::rename(&copy, &path).unwrap();
        let said = check().unwrap_err();
        assert!(said.contains("may be the log of another") && said.contains("touch"), "{said}");
        // A file that was written to, as a checkpoint does, is not one that was moved.
        fs::write(&path, "written").unwrap();
        assert_eq!(check(), Ok(()));
    }
}
