//! Notices a write-ahead log whose header is damaged. SQLite takes such a log for an empty one and says nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::open_file::log_of;
use crate::log_line::log_line;

/// The bytes of the header (`sqlite.org/fileformat2.html#walformat`).
const HEADER: usize = 32;
/// The bytes of the header that its checksum covers.
const COVERED: usize = 24;
/// The header's first number, for checksums of little-endian and of big-endian words.
const MAGIC: [u32; 2] = [0x377f_0682, 0x377f_0683];

/// The path of the log of a database if it has frames and SQLite cannot read its header.
pub fn damaged_log(path: &Path) -> Option<PathBuf> {
    let log = log_of(path);
    // A service may write the header at this moment.
    (is_damaged(&log).ok()? && is_damaged(&log).ok()?).then_some(log)
}

fn is_damaged(log: &Path) -> io::Result<bool> {
    let mut file = File::open(log)?;
    if file.metadata()?.len() <= HEADER as u64 {
        return Ok(false);
    }
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    Ok(!is_header(&header))
}

fn is_header(header: &[u8; HEADER]) -> bool {
    let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    let stored = |at: usize| u32::from_be_bytes(word(at));
    let read = match MAGIC.iter().position(|magic| *magic == stored(0)) {
        Some(0) => u32::from_le_bytes,
        Some(_) => u32::from_be_bytes,
        None => return false,
    };
    let (mut one, mut two) = (0u32, 0u32);
    for at in (0..COVERED).step_by(8) {
        one = one.wrapping_add(read(word(at))).wrapping_add(two);
        two = two.wrapping_add(read(word(at + 4))).wrapping_add(one);
    }
    [one, two] == [stored(COVERED), stored(COVERED + 4)]
}

/// What is wrong with a log whose header is damaged, in one line; `None` if it is not.
pub fn damage(path: &Path) -> Option<String> {
    let log = damaged_log(path)?;
    Some(format!("the header of {} is damaged, so SQLite ignores its content", log.display()))
}

/// Logs that the header of the log is damaged, for a connection that changes nothing.
pub fn warn_reader(path: &Path) {
    if let Some(line) = damage(path) {
        log_line!(warn, "{line}: pets may be missing here");
    }
}

/// Logs that the header of the log is damaged, and keeps a copy of the log, because SQLite is about to write over it.
pub fn keep_damaged(path: &Path) {
    let Some(log) = damaged_log(path) else { return };
    let mut name = log.clone().into_os_string();
    name.push(".damaged");
    let copy = PathBuf::from(name);
    let kept = match keep(&log, &copy) {
        Ok(()) => format!("{} is a copy of it", copy.display()),
        Err(error) => format!("it cannot be kept as {} ({error})", copy.display()),
    };
    log_line!(
        warn,
        "the header of {} is damaged, so SQLite ignores its content: {kept}. Pets that were created just before the service last stopped may be missing",
        log.display()
    );
}

/// Copies the log, unless an earlier start has done so.
fn keep(log: &Path, copy: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(copy) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        opened => opened?,
    };
    let copied = io::copy(&mut File::open(log)?, &mut file).and_then(|_| file.sync_all());
    copied.inspect_err(|_| drop(fs::remove_file(copy)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::new_pet;
    use super::super::tests::pair;
    use super::*;

    #[test]
    fn every_damaged_byte_of_a_header_is_noticed() {
        let (folder, mut writer, _reader) = pair();
        let path = folder.database();
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.commit().unwrap();
        assert_eq!(damaged_log(&path), None);
        let bytes = fs::read(log_of(&path)).unwrap();
        let header: [u8; HEADER] = bytes[..HEADER].try_into().unwrap();
        assert!(is_header(&header) && !is_header(&[0; HEADER]));
        for at in 0..HEADER {
            let mut damaged = header;
            damaged[at] ^= 0x10;
            assert!(!is_header(&damaged), "{at}");
        }
    }

    #[test]
    fn log_without_frames_or_no_log_is_not_damaged() {
        let folder = crate::testing::Folder::new();
        let path = folder.database();
        assert_eq!(damaged_log(&path), None);
        for length in [0, HEADER] {
            fs::write(log_of(&path), vec![7; length]).unwrap();
            assert_eq!(damaged_log(&path), None);
        }
        fs::write(log_of(&path), [7; HEADER + 1]).unwrap();
        assert_eq!(damaged_log(&path), Some(log_of(&path)));
        let said = format!("WARN the header of {} is damaged", log_of(&path).display());
        let lines = crate::testing::logged(|| warn_reader(&path));
        assert!(lines.len() == 1 && lines[0].starts_with(&said), "{lines:?}");
    }

    #[test]
    fn first_copy_is_kept() {
        let folder = crate::testing::Folder::new();
        let (log, copy) = (folder.0.join("log"), folder.0.join("copy"));
        for text in ["first", "second"] {
            fs::write(&log, text).unwrap();
            keep(&log, &copy).unwrap();
        }
        assert_eq!(fs::read(&copy).unwrap(), b"first");
        assert!(keep(&log, &folder.0.join("missing/copy")).is_err());
    }
}
