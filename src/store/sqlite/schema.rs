//! Which application a database file belongs to, whether this program can use its version, and its identity.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Params};

use super::connection::cannot_open;
use super::migrations::{APPLICATION_ID, STEPS, VERSION, newest_version, schema_version};
use crate::store::rows::AnyText;
use petstore_base::error::{Error, ErrorKind, fail};

/// Empties every table except for the rows that the schema itself adds.
pub fn empty(connection: &Connection) -> rusqlite::Result<()> {
    // The tables that others refer to come first in the schema, so they are emptied last.
    let sql =
        "SELECT 'DELETE FROM ' || name FROM sqlite_master WHERE type = 'table' ORDER BY rowid DESC";
    for [delete] in texts(connection, sql, [])? {
        connection.execute_batch(&delete)?;
    }
    let rows = STEPS
        .concat()
        .lines()
        .filter(|line| line.starts_with("INSERT "))
        .collect::<String>();
    connection.execute_batch(&rows)
}

/// The text of [`IDENTIFY`](super::migrations::IDENTIFY); `None` if there is none, or another program has set the number of every row.
pub fn identity(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let sql =
        "SELECT seq FROM sqlite_sequence WHERE name = 'petstore database' AND typeof(seq) = 'text'";
    connection.query_row(sql, [], |row| text(row, 0)).optional()
}

/// A text that other programs may have written.
pub fn text(row: &rusqlite::Row, column: usize) -> rusqlite::Result<String> {
    Ok(row.get::<_, AnyText>(column)?.0)
}

/// The rows of a statement, as texts.
pub fn texts<const COLUMNS: usize>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
) -> rusqlite::Result<Vec<[String; COLUMNS]>> {
    let mut select = connection.prepare(sql)?;
    let rows = select.query_map(values, |row| {
        let mut texts = [const { String::new() }; COLUMNS];
        for (column, found) in texts.iter_mut().enumerate() {
            *found = text(row, column)?;
        }
        Ok(texts)
    })?;
    rows.collect()
}

/// The fault of something that only a backup has.
pub fn loss(line: String) -> Error {
    Error::new(ErrorKind::DatabaseDamaged, line)
}

/// The fault of something that another program has changed.
pub fn changed(line: String) -> Error {
    Error::new(ErrorKind::SchemaChanged, line)
}

/// Refuses a file that is not a database, belongs to another application, or is of a later version. Changes
/// nothing, and returns the version.
pub fn check(connection: &Connection, path: &Path, steps: &[&str]) -> Result<i64, Error> {
    let say = |error| cannot_open(path, error);
    if lacks_mark(connection).map_err(say)? {
        let name = path.display();
        let message = format!(
            "{name} has the tables of petstore without the marks of its file, which a dump as SQL leaves out; \
             this SQL repairs it: PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}"
        );
        return fail(ErrorKind::SchemaChanged, message);
    }
    if is_foreign(connection).map_err(say)? {
        return Err(foreign(path));
    }
    let version = schema_version(connection).map_err(say)?;
    if version > newest_version(steps) {
        return Err(newer(path, version));
    }
    Ok(version)
}

/// The refusal of a database of a later version.
pub fn newer(path: &Path, version: i64) -> Error {
    let name = path.display();
    let message =
        format!("{name} is of version {version}, and this program knows versions up to {VERSION}");
    Error::new(ErrorKind::DatabaseNewer, message)
}

/// Refuses what [`check`] refuses, and a database that no service has used yet. Changes nothing.
pub fn check_used(connection: &Connection, path: &Path) -> Result<(), Error> {
    if check(connection, path, STEPS)? > 0 {
        return Ok(());
    }
    let message = format!("{} is empty: no service has used it yet", path.display());
    fail(ErrorKind::DatabaseMissing, message)
}

/// Refuses a file of an earlier version, for whoever may not bring it up to date. A new one is made.
pub fn refuse_older(connection: &Connection, path: &Path) -> Result<(), Error> {
    let version = schema_version(connection).map_err(|error| cannot_open(path, error))?;
    if version == newest_version(STEPS) || version == 0 {
        return Ok(());
    }
    let name = path.display();
    let message =
        format!("{name} is of version {version}, and this program needs version {VERSION}");
    fail(ErrorKind::DatabaseOlder, message)
}

/// The refusal of another application's database.
pub fn foreign(path: &Path) -> Error {
    let message = format!("{} is the database of another application", path.display());
    Error::new(ErrorKind::DatabaseForeign, message)
}

/// Returns true if a database that names no application, or no version, has our tables, so that a start could take it for a
/// new one.
fn lacks_mark(connection: &Connection) -> rusqlite::Result<bool> {
    let sql =
        "SELECT count(*) = 3 FROM sqlite_master WHERE name IN ('pets', 'api_keys', 'retries')";
    let has_tables: bool = connection.query_row(sql, [], |row| row.get(0))?;
    let id: i64 = connection.pragma_query_one(None, "application_id")?;
    Ok(has_tables && (id == 0 || id == APPLICATION_ID && schema_version(connection)? <= 0))
}

/// Returns true if the database is another application's, of any version. An empty one without a name is nobody's.
pub fn is_foreign(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM sqlite_schema";
    let objects: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    // The application in the header; 0 if it names none.
    let id: i64 = connection.pragma_query_one(None, "application_id")?;
    Ok(id != APPLICATION_ID && (id, schema_version(connection)?, objects) != (0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::super::{Writer, tests::Folder};
    use super::*;

    #[test]
    fn foreign_files_are_refused_and_left_as_they_were() {
        let folder = Folder::new();
        let path = folder.database();
        let refusal = || Writer::open(&path).err().unwrap();

        std::fs::write(
            &path,
            "no database at all, just some text that goes on for a while",
        )
        .unwrap();
        let before = std::fs::read(&path).unwrap();
        assert_eq!(refusal().kind(), ErrorKind::DatabaseForeign);
        assert!(
            refusal().to_string().contains("is not an SQLite database"),
            "{}",
            refusal()
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);

        std::fs::remove_file(&path).unwrap();
        Connection::open(&path)
            .unwrap()
            .execute_batch("CREATE TABLE theirs (x)")
            .unwrap();
        let before = std::fs::read(&path).unwrap();
        assert_eq!(refusal().kind(), ErrorKind::DatabaseForeign);
        assert!(
            refusal().to_string().contains("another application"),
            "{}",
            refusal()
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);

        std::fs::remove_file(&path).unwrap();
        drop(Writer::open(&path).unwrap());
        let later = newest_version(STEPS) + 1;
        Connection::open(&path)
            .unwrap()
            .pragma_update(None, "user_version", later)
            .unwrap();
        assert_eq!(refusal().kind(), ErrorKind::DatabaseNewer);
        assert!(
            refusal().to_string().contains(&format!("version {later}")),
            "{}",
            refusal()
        );
    }
}
