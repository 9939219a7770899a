//! The rollback journal next to a database (`sqlite.org/fileformat2.html`, section 3). If a program is stopped within a
//! change of a database without a write-ahead log, its journal has what undoes the change, and SQLite plays it back into
//! whatever file then has the name of that database.
//!
//! Petstore writes one only where it switches between a journal and a log, which changes the header in the first page
//! and nothing else. Such a journal is played back. Any other is left for an operator to look at: nothing in it tells
//! which file it belongs to, as after `cp backup.db petstore.db`.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::open_file::{OpenFile, journal_of};
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_base::files::open_at_once;

/// The first bytes of a journal that may be played back; those of one that is done with are 0.
const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// The length of its header, which is followed by nothing up to the end of the sector.
const HEADER: usize = 28;
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 512..=65_536;
/// What a switch changes in the first page: the format versions, the change counter, and the version of SQLite with the
/// counter at its last change (`sqlite.org/fileformat2.html`, section 1.3).
const SWITCHED: [std::ops::Range<usize>; 3] = [18..20, 24..28, 92..100];

/// Returns true if there is a journal that may be played back, or it cannot be read.
pub fn has_journal(path: &Path) -> bool {
    let journal = journal_of(path);
    let mut first = [0];
    // Not of a named pipe, which would keep whoever opens it waiting.
    let read = open_at_once(&journal).and_then(|mut file| match file.metadata()?.is_file() {
        true => file.read(&mut first),
        false => Err(io::ErrorKind::InvalidInput.into()),
    });
    match read {
        Ok(_) => first != [0],
        Err(_) => fs::symlink_metadata(&journal).is_ok(),
    }
}

/// Refuses a journal with a change that petstore has not made. `file` is the database at the path.
///
/// # Errors
/// If there is such a journal.
pub fn check_journal(path: &Path, file: &OpenFile) -> Result<(), Error> {
    if !has_journal(path) || is_of_a_switch(&journal_of(path), file).unwrap_or(false) {
        return Ok(());
    }
    if is_in_use(path) {
        let line = format!(
            "another program is changing the database {}",
            path.display()
        );
        return fail(ErrorKind::DatabaseLocked, line);
    }
    let message = format!(
        "{} undoes a change of {} that another program has not finished, unless one of the two was replaced",
        journal_of(path).display(),
        path.display()
    );
    fail(ErrorKind::LogForeign, message)
}

/// Returns true if the program whose journal it is still holds its lock. Otherwise, a connection that may not write fails
/// instead of playing it back.
fn is_in_use(path: &Path) -> bool {
    // SQLite would wait for whoever opens a named pipe, and takes no journal for that of an empty file.
    let has_content = |path: &Path| fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() > 0);
    let read = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(Duration::ZERO)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
    };
    has_content(path)
        && has_content(&journal_of(path))
        && match read() {
            Ok(()) => true,
            Err(error) => error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy),
        }
}

/// Returns true if the journal is that of a switch of this file: playing it back changes nothing else.
fn is_of_a_switch(journal: &Path, file: &OpenFile) -> io::Result<bool> {
    let journal = open_at_once(journal)?;
    let mut header = [0; HEADER];
    if journal.read_at(&mut header, 0)? < HEADER {
        // SQLite finds no page in it.
        return Ok(true);
    }
    let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| header[at + i]));
    let [pages, before, sector, page] = [word(8), word(16), word(20), word(24)];
    // It cuts the file to its size before the change. A new file gets its first page in the switch.
    let size = file.metadata()?.len();
    let is_cut =
        size != u64::from(before) * u64::from(page) && (before, size) != (0, u64::from(page));
    // A second part, with more pages, would begin in the next sector.
    let has_more = journal.metadata()?.len() > u64::from(sector) + 4 + u64::from(page) + 4;
    if header[..MAGIC.len()] != MAGIC
        || is_cut
        || has_more
        || pages > 1
        || !PAGE_SIZES.contains(&page)
    {
        return Ok(false);
    }
    if pages == 0 {
        return Ok(true);
    }
    let [mut number, mut was, mut now] =
        [vec![0; 4], vec![0; page as usize], vec![0; page as usize]];
    journal.read_exact_at(&mut number, sector.into())?;
    journal.read_exact_at(&mut was, u64::from(sector) + 4)?;
    file.read_exact_at(&mut now, 0)?;
    for page in [&mut was, &mut now] {
        for part in SWITCHED {
            page[part].fill(0);
        }
    }
    Ok(number == [0, 0, 0, 1] && was == now)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{new_pet, pair};
    use super::super::{Claim, Reader, Snapshot, Writer};
    use super::*;
    use petstore_base::testing::Folder;

    /// A database without a log, and a copy of it and its journal in the middle of a change.
    fn killed(pets: &[&str], change: &str) -> (Folder, Folder) {
        let (folder, mut writer, reader) = pair();
        for name in pets {
            writer.insert_pet(&new_pet(name), None).unwrap();
        }
        writer.commit().unwrap();
        drop((reader, writer));
        let shell = Connection::open(folder.database()).unwrap();
        let begin = "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN";
        shell.execute_batch(begin).unwrap();
        shell.execute_batch(change).unwrap();
        shell.cache_flush().unwrap();
        let killed = Folder::new();
        for path in [folder.database(), journal_of(&folder.database())] {
            fs::copy(&path, killed.0.join(path.file_name().unwrap())).unwrap();
        }
        drop(shell);
        (folder, killed)
    }

    #[test]
    fn page_of_no_possible_size_is_refused() {
        for (page, content) in [(0, vec![]), (50, vec![0; 50]), (99, vec![0; 99])] {
            let folder = Folder::new();
            fs::write(folder.database(), &content).unwrap();
            let mut journal = vec![0; 2048];
            let before = u32::from(page > 0);
            journal[..8].copy_from_slice(&MAGIC);
            for (at, word) in [(8, 1), (16, before), (20, 512), (24, page)] {
                journal[at..at + 4].copy_from_slice(&u32::to_be_bytes(word));
            }
            journal.truncate(512 + 8 + page as usize);
            fs::write(journal_of(&folder.database()), journal).unwrap();
            let file = OpenFile::at(&folder.database()).unwrap();
            assert!(check_journal(&folder.database(), &file).is_err(), "{page}");
        }
    }

    #[test]
    fn change_of_another_program_is_left_as_it_is_by_whoever_opens_the_file() {
        // In the second one, another file was copied over the database.
        let delete = "DELETE FROM pets";
        // Its journal begins with a part that has the first page alone.
        let grow = "INSERT INTO pets (name, category_id) VALUES (hex(zeroblob(100000)), 1); DELETE FROM pets";
        let (other, _) = killed(&["Tom", "Ada"], delete);
        for (content, change) in [
            (None, delete),
            (Some(fs::read(other.database()).unwrap()), delete),
            (Some(fs::read(other.database()).unwrap()), grow),
            (Some(Vec::new()), delete),
        ] {
            let (_, folder) = killed(&["Rex"], change);
            let path = folder.database();
            if let Some(content) = content {
                fs::write(&path, content).unwrap();
            }
            let files = || [path.clone(), journal_of(&path)].map(|it| fs::read(it).unwrap());
            let before = files();
            let refused = [
                Writer::open(&path).map(drop),
                Reader::open(&path).map(drop),
                Snapshot::of_file(&path).map(drop),
                Claim::take(&path).and_then(|claim| claim.check_log(&path)),
            ];
            for refused in refused {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::LogForeign);
            }
            assert!(files() == before);
            // Neither is it taken for that of a new database.
            fs::remove_file(&path).unwrap();
            let orphaned = Writer::open(&path).map(drop).unwrap_err();
            assert_eq!(orphaned.kind(), ErrorKind::LogOrphaned);
            assert!(journal_of(&path).exists() && !path.exists());
        }
    }
}
