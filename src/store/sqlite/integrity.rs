//! Checks that this program could have written a database: its schema, its values and its pages.

use std::collections::HashSet;

use rusqlite::{Connection, ErrorCode};

use super::Snapshot;
use super::connection::{DAMAGED, cannot_open};
use super::migrations::schema_version;
use super::schema::{changed, loss, text, texts};
use super::schema_diff::SchemaDiff;
use super::trial::why;
use super::values::not_utf8;
use crate::model::{MAX_BROUGHT_ID, PetCounts};
use crate::store::pets::counts;
use crate::store::statements::{COUNT, LAST_ID};
use petstore_base::error::Error;

/// The result of a check.
#[derive(Default)]
pub struct Checked {
    /// The numbers of pets; 0 if they cannot be counted.
    pub pets: PetCounts,
    /// The version of the schema.
    pub schema_version: i64,
    /// The faults.
    pub faults: Vec<Error>,
    /// Values that no column can have. The service reads each as something else. Text that is not UTF-8 and references
    /// to nothing have the SQL that repairs them.
    pub values: Vec<Error>,
    /// Changes and additions of other programs, which do no harm.
    pub foreign: Vec<String>,
}

impl Snapshot {
    /// Checks the whole database.
    ///
    /// # Errors
    /// If the disk or the system fails. Damage is a finding.
    pub fn check(&self) -> Result<Checked, Error> {
        let mut checked = Checked::default();
        match check(self.connection(), &mut checked) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                checked
                    .faults
                    .push(loss(format!("it cannot be read to its end: it {DAMAGED}")));
            }
            result => result.map_err(|error| cannot_open(self.reader.watch.path(), error))?,
        }
        self.reader.ensure_unchanged().map(|()| checked)
    }
}

/// The start of SQLite's messages about pages.
const BROKEN_PAGES: &str = "*** in database ";
/// The most findings that are named.
const MOST: usize = 100;
/// Dangling references of a table: its column, the table and the column to which it refers, and the SQL that removes them.
const DANGLING: &str = "SELECT DISTINCT f.\"from\", f.\"table\", f.\"to\", \
    iif(t.\"notnull\", 'DELETE FROM ' || ?1, format('UPDATE %s SET %s = NULL', ?1, f.\"from\")) \
    FROM pragma_foreign_key_check(?1) AS c JOIN pragma_foreign_key_list(?1) AS f ON f.id = c.fkid \
    JOIN pragma_table_info(?1) AS t ON t.name = f.\"from\"";

fn check(connection: &Connection, checked: &mut Checked) -> rusqlite::Result<()> {
    checked.schema_version = schema_version(connection)?;
    let SchemaDiff {
        tables,
        gaps,
        obstacles,
        foreign,
    } = SchemaDiff::new(connection)?;
    (checked.faults, checked.foreign) = (gaps, foreign);
    // A database of another shape may have no pets to count.
    let has_pets = checked.faults.is_empty();
    if has_pets {
        let last: i64 = connection.query_row(LAST_ID, [], |row| row.get(0))?;
        if last > MAX_BROUGHT_ID {
            log::warn!(
                "the last id is {last}; ids left for new pets: {}",
                i64::MAX - last
            );
        }
    }
    checked.values = obstacles;
    for line in integrity(connection, checked, &tables)? {
        if line.contains(" value in ") {
            checked.values.push(changed(line));
            continue;
        }
        match index_of(&line) {
            Some(index) if checked.foreign.contains(&index) => checked.foreign.push(line),
            // Only if no page is broken, and no row is there twice.
            Some(index) if line.contains(" missing from ") && !has_broken_pages(checked) => {
                let name = index.replace("the index ", "");
                let line = format!("{line}; this SQL repairs it: REINDEX {name};");
                checked.faults.push(changed(line));
            }
            _ => checked.faults.push(loss(line)),
        }
    }
    if has_pets {
        match connection.query_row(COUNT, [], counts) {
            Ok(pets) => checked.pets = pets,
            Err(error) if checked.faults.is_empty() => return Err(error),
            Err(_) => {}
        }
    }
    // If pages contradict each other, SQL could change the rows of another table.
    let has_broken_pages = has_broken_pages(checked);
    for (table, definition) in tables.iter().filter(|_| !has_broken_pages) {
        let mut lines = not_utf8(connection, table)?;
        if has_pets {
            lines.extend(broken_checks(connection, table, definition)?);
        }
        lines.extend(dangling(connection, table, definition)?);
        checked.values.extend(lines.into_iter().map(changed));
    }
    Ok(())
}

fn has_broken_pages(checked: &Checked) -> bool {
    let mut faults = checked.faults.iter();
    faults.any(|fault| fault.to_string().contains(BROKEN_PAGES))
}

/// Returns true if a column, such as `pets.name`, is one of petstore's.
fn is_ours(column: &str, tables: &[(String, String)]) -> bool {
    tables.iter().any(|(table, definition)| {
        let name = column
            .strip_prefix(table)
            .and_then(|name| name.strip_prefix('.'));
        name.is_some_and(|name| definition.split([' ', '(', ',']).any(|word| word == name))
    })
}

/// The index that a finding is about.
fn index_of(line: &str) -> Option<String> {
    let (_, name) = line.rsplit_once(" index ")?;
    Some(format!("the index {name}"))
}

/// The findings of SQLite's own checks (`sqlite.org/pragma.html#pragma_integrity_check`): pages and indexes that
/// contradict each other, and values that their column does not allow. If an index of others needs what petstore lacks,
/// they look at each table by itself. However many findings are about what others have added, they hide none of petstore's.
fn integrity(
    connection: &Connection,
    checked: &mut Checked,
    tables: &[(String, String)],
) -> rusqlite::Result<Vec<String>> {
    let foreign = checked.foreign.clone();
    let findings = |argument: &str| {
        // An index of others is named once.
        let mut named = HashSet::new();
        let mut is_told = |line: &str| match (line.split_once(" value in "), index_of(line)) {
            (Some((_, place)), _) => is_ours(place, tables),
            (None, Some(index)) if foreign.contains(&index) => named.insert(index),
            (None, _) => line != "ok" && !line.starts_with("CHECK "),
        };
        let mut found = Vec::new();
        let mut said = connection.prepare(&format!("PRAGMA integrity_check({argument})"))?;
        let mut said = said.query([])?;
        while let Some(row) = said.next()?
            && found.len() < MOST
        {
            let said = text(row, 0)?;
            let lines = said.lines().filter(|line| is_told(line));
            found
                .extend(lines.map(|line| {
                    format!("its content contradicts itself: {}", line.escape_debug())
                }));
        }
        Ok(found)
    };
    match findings("2147483647") {
        Err(error) if is_unknown(&error) => {}
        found => return found,
    }
    let mut found = Vec::new();
    let names = "SELECT name, format('%Q', name) FROM sqlite_schema WHERE type = 'table'";
    for [name, argument] in texts(connection, names, [])? {
        match findings(&argument) {
            Err(error) if is_unknown(&error) => {
                let (name, why) = (name.escape_debug(), why(error));
                let line = format!("the table {name}, which was not checked: {why}");
                checked.foreign.push(line);
            }
            lines => found.extend(lines?),
        }
    }
    Ok(found)
}

/// An index needs a function or a collation that petstore lacks.
fn is_unknown(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::Unknown)
}

/// The CHECKs of a table that a row breaks. SQLite ignores them if it may not write to the file, as while a service runs
/// (`sqlite3AddCheckConstraint`).
fn broken_checks(
    connection: &Connection,
    table: &str,
    definition: &str,
) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    for rest in definition.split("CHECK ").skip(1) {
        let mut depth = 0;
        let closes = |it| {
            depth += i32::from(it == '(') - i32::from(it == ')');
            depth == 0
        };
        let check = rest.find(closes).map_or(rest, |end| &rest[..=end]);
        let sql = format!("SELECT 1 FROM {table} NOT INDEXED WHERE NOT {check}");
        if connection.prepare(&sql)?.exists([])? {
            found.push(format!("{table}: a row breaks CHECK {check}"));
        }
    }
    Ok(found)
}

/// References of a table to rows that other programs have deleted. The service takes each for none.
fn dangling(
    connection: &Connection,
    table: &str,
    definition: &str,
) -> rusqlite::Result<Vec<String>> {
    let mut lines = Vec::new();
    for [column, of, to, repair] in texts(connection, DANGLING, [table])? {
        // A reference that another program has added is not judged.
        if definition.contains(&format!("REFERENCES {of} (")) {
            lines.push(format!(
                "{table}, {column}: a row refers to a row of {of} that does not exist; this SQL repairs it: \
                 {repair} WHERE {column} NOT IN (SELECT {to} FROM {of});"
            ));
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::migrations::{STEPS, migrate};
    use super::super::tests::{new_pet, pair};
    use super::*;

    #[test]
    fn new_database_is_sound() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new("new"), STEPS).unwrap();
        let mut checked = Checked::default();
        check(&connection, &mut checked).unwrap();
        assert!(checked.faults.is_empty() && checked.foreign.is_empty());
    }
    #[test]
    fn no_sql_is_named_where_two_tables_share_a_page() {
        let (folder, mut writer, reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        drop((writer, reader));
        let shell = Connection::open(folder.database()).unwrap();
        let share = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage =
            (SELECT rootpage FROM sqlite_schema WHERE name = 'pets') WHERE name = 'retries'";
        shell.execute_batch(share).unwrap();
        drop(shell);
        let checked = Snapshot::of_file(&folder.database())
            .unwrap()
            .check()
            .unwrap();
        assert!(
            !checked.faults.is_empty()
                && checked
                    .values
                    .iter()
                    .all(|it| !it.to_string().contains("SQL")),
            "{:?}",
            checked.values
        );
    }
}
