//! The mark, which tells a database's write-ahead log from others (`log_check.rs`).
//!
//! The mark is a random number in `sqlite_sequence`, and with it the mark before. The writer makes a new
//! mark only when it knows that the database file itself has the present one: when a checkpoint has moved the whole
//! log into it. So the file, read without its log, has the mark that the log ends with, or the one before. With any
//! other mark it is another database, or an older copy of this one.
//!
//! A create writes the page of the mark anyway, so that a log with a create has it. Any other transaction of ours
//! touches the mark. A transaction of another program, such as sqlite3, leaves it as it is. What another program
//! does to the mark itself never makes a log foreign: a mark that is lost, or is not one of ours, fits every file.

use rusqlite::{Connection, OptionalExtension};

const READ: &str = "SELECT seq FROM sqlite_sequence WHERE name = 'petstore log'";
const CHANGE: &str = "UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'petstore log'";
const ADD: &str = "INSERT INTO sqlite_sequence (name, seq) VALUES ('petstore log', ?1)";

/// The number of a mark.
pub type Number = u64;

/// A mark as it stands in its row: three words. As it is text, no arithmetic on all rows makes another mark of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    number: Number,
    /// The mark before. `None`: it is not known what the file had.
    pub before: Option<Number>,
    /// Differs between two transactions that have the same number, so that the page is written.
    is_touched: bool,
}

impl Mark {
    fn parse(text: &str) -> Option<Self> {
        let number = |word: &str| Number::from_str_radix(word, 16).ok().filter(|_| word.len() == 16);
        let mut words = text.split(' ');
        let (own, before, touched) = (number(words.next()?)?, words.next()?, words.next()?);
        let before = if before == "-" { None } else { Some(number(before)?) };
        words.next().is_none().then_some(Self { number: own, before, is_touched: touched == "1" })
    }

    fn text(&self) -> String {
        let before = self.before.map_or("-".to_owned(), |before| format!("{before:016x}"));
        format!("{:016x} {before} {}", self.number, u8::from(self.is_touched))
    }

    pub fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(READ)?;
        let mark = statement.query_row([], |row| Ok(row.get_ref(0)?.as_str().ok().and_then(Self::parse)));
        mark.optional().map(Option::flatten)
    }

    /// Whether this mark of a database with its log can come from a file with that mark.
    pub fn follows(&self, file: Self) -> bool {
        self.before.is_none_or(|before| [self.number, before].contains(&file.number))
    }
}

/// The number of the present mark, if there is one.
pub fn number(connection: &Connection) -> rusqlite::Result<Option<Number>> {
    Ok(Mark::read(connection)?.map(|mark| mark.number))
}

/// Leaves a mark in the open transaction: a new one if the present one is `settled`, the one that the file is known
/// to have.
pub fn leave(connection: &Connection, settled: Option<Number>) -> rusqlite::Result<()> {
    let new = |before| -> rusqlite::Result<Mark> {
        let random: i64 = connection.query_row("SELECT random()", [], |row| row.get(0))?;
        Ok(Mark { number: random.cast_unsigned(), before, is_touched: false })
    };
    let mark = match Mark::read(connection)? {
        Some(mark) if settled == Some(mark.number) => new(settled)?,
        Some(mark) => Mark { is_touched: !mark.is_touched, ..mark },
        None => new(None)?,
    };
    if connection.prepare_cached(CHANGE)?.execute([mark.text()])? == 0 {
        connection.execute(ADD, [mark.text()])?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::Writer;
    use super::super::open_file::log_of;
    use super::super::pets::tests::new_pet;
    use super::super::tests::pair;
    use super::*;

    #[test]
    fn mark_is_read_as_it_was_written() {
        let mark = Mark { number: 7, before: Some(u64::MAX), is_touched: true };
        assert_eq!(mark.text(), "0000000000000007 ffffffffffffffff 1");
        for mark in [mark, Mark { before: None, is_touched: false, ..mark }] {
            assert_eq!(Mark::parse(&mark.text()), Some(mark));
        }
        for text in ["", "7 - 0", "0000000000000007 -", "0000000000000007 - 0 0", "1000"] {
            assert_eq!(Mark::parse(text), None, "{text}");
        }
    }

    pub fn create(writer: &mut Writer) {
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.commit().unwrap();
    }

    fn mark(writer: &Writer) -> Mark {
        Mark::read(&writer.connection).unwrap().unwrap()
    }

    #[test]
    fn mark_changes_once_the_file_has_the_one_before() {
        let (_folder, mut writer, mut reader) = pair();
        writer.checkpoint().unwrap();
        let before = mark(&writer);
        for _ in 0..2 {
            create(&mut writer);
            let after = mark(&writer);
            assert_eq!((after.before, after.number == before.number), (Some(before.number), false));
        }
        let before = mark(&writer);
        // A log that somebody reads is not moved whole.
        reader.begin().unwrap();
        create(&mut writer);
        assert!(writer.checkpoint().is_err());
        create(&mut writer);
        assert_eq!(mark(&writer), before);
        reader.end().unwrap();
    }

    #[test]
    fn every_transaction_but_one_that_changes_nothing_writes_the_page_of_the_mark() {
        let (folder, mut writer, _reader) = pair();
        writer.checkpoint().unwrap();
        assert_eq!(writer.probe(), Ok(()));
        assert_eq!(std::fs::metadata(log_of(&folder.database())).unwrap().len(), 0);
        create(&mut writer);
        let before = mark(&writer);
        writer.delete_pet(1).unwrap();
        writer.commit().unwrap();
        assert_eq!(mark(&writer), Mark { is_touched: !before.is_touched, ..before });
    }
}
