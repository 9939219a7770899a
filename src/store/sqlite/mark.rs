//! The mark of a database: which database a file, or a write-ahead log, belongs to.
//!
//! It is a random number in `sqlite_sequence`, made with the schema, that stays the same until a restore makes another
//! database of a backup.
//! A create writes the page of the mark anyway, and the writer's other batches touch it, so their log has it. A step of
//! the schema and a transaction of another program leave it alone. A mark that another program has changed is no mark.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::{StoreError, Writer, cannot_open};
use crate::error::Error;

const READ: &str = "SELECT seq FROM sqlite_sequence WHERE name = 'petstore log'";
const FORGET: &str = "DELETE FROM sqlite_sequence WHERE name = 'petstore log'";
/// Text that ends in a digit, which every touch flips. If another program does arithmetic on all rows, the result is
/// not a mark.
const SET: &str =
    "INSERT INTO sqlite_sequence (name, seq) VALUES ('petstore log', hex(randomblob(8)) || ' 0')";
/// SQLite writes no page that stays the same.
const TOUCH: &str = "UPDATE sqlite_sequence SET seq = substr(seq, 1, 17) || (substr(seq, 18) = '0') \
    WHERE name = 'petstore log'";

/// The mark of one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark(String);

impl Mark {
    fn parse(text: &str) -> Option<Self> {
        let (number, touched) = text.split_once(' ')?;
        let is_mark = number.len() == 16 && number.bytes().all(|digit| digit.is_ascii_hexdigit());
        (is_mark && ["0", "1"].contains(&touched)).then(|| Self(number.to_owned()))
    }

    /// The mark that the connection sees; `None` if there is none.
    pub fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(READ)?;
        let mark = statement.query_row([], |row| Ok(row.get_ref(0)?.as_str().ok().and_then(Self::parse)));
        mark.optional().map(Option::flatten)
    }
}

/// Sets a new mark.
pub fn set(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute(FORGET, [])?;
    connection.execute(SET, []).map(drop)
}

/// Makes a new mark for a database file without a log, which is another database from now on.
pub fn renew(path: &Path) -> Result<(), Error> {
    let renew = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // A kill leaves no file next to it.
        connection.pragma_update(None, "journal_mode", "MEMORY")?;
        set(&connection)
    };
    renew().map_err(|error| cannot_open(path, error))
}

/// Touches the mark in the open transaction.
pub fn touch(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached(TOUCH)?.execute([]).map(drop)
}

impl Writer {
    /// Gives the database a mark if it has none. Call it after a checkpoint. Otherwise a new mark could
    /// stand in the log alone, while the file still has an older one.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn ensure_mark(&mut self) -> Result<(), StoreError> {
        if Mark::read(&self.connection)?.is_none() && self.try_begin()? {
            self.write(set)?;
            self.commit()?;
            // The file must have it before a log can be told by it.
            self.checkpoint()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::open_file::log_of;
    use super::super::tests::new_pet;
    use super::super::tests::pair;
    use super::*;

    #[test]
    fn only_what_was_written_as_a_mark_is_one() {
        let number = "0123456789ABCDEF";
        assert_eq!(Mark::parse(&format!("{number} 0")), Mark::parse(&format!("{number} 1")));
        assert!(Mark::parse(&format!("{number} 0")).is_some());
        for text in
            ["", "1000", number, "0123456789ABCDEF 2", "123 0", "0123456789ABCDEF 0 0", "ghijklmnopqrstuv 0"]
        {
            assert_eq!(Mark::parse(text), None, "{text}");
        }
    }

    #[test]
    fn mark_stays_and_every_change_writes_its_page() {
        let (folder, mut writer, _reader) = pair();
        writer.checkpoint().unwrap();
        writer.ensure_mark().unwrap();
        writer.checkpoint().unwrap();
        let before = Mark::read(&writer.connection).unwrap();
        assert!(before.is_some());
        let log_length = || std::fs::metadata(log_of(&folder.database())).unwrap().len();
        let text =
            |writer: &Writer| writer.connection.query_row(READ, [], |row| row.get::<_, String>(0)).unwrap();
        writer.ensure_mark().unwrap();
        assert_eq!((writer.probe(), log_length()), (Ok(()), 0), "nothing is changed");
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.commit().unwrap();
        let created = text(&writer);
        writer.change("DELETE FROM pets", &[]).unwrap();
        writer.commit().unwrap();
        assert_ne!(text(&writer), created);
        assert_eq!(Mark::read(&writer.connection).unwrap(), before);
        writer.change(FORGET, &[]).unwrap();
        writer.commit().unwrap();
        writer.checkpoint().and_then(|()| writer.ensure_mark()).unwrap();
        let after = Mark::read(&writer.connection).unwrap();
        assert!(after.is_some() && after != before);
    }
}
