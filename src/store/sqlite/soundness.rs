//! Checks whether a database is one that this program could have written: its schema, its ids and its pages.

#[cfg(test)]
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::Snapshot;
use super::differences::{Differences, Fault};
use super::schema::schema_version;
#[cfg(test)]
use super::schema::{STEPS, migrate};
use super::snapshot::{DAMAGED, unreadable};
use crate::error::Error;

/// The result of a check.
#[derive(Default)]
pub struct Checked {
    /// The number of pets.
    pub pets: u64,
    /// The version of the schema.
    pub schema_version: i64,
    /// How the schema differs.
    pub schema: Differences,
    /// What is wrong with the content.
    pub faults: Vec<Fault>,
}

impl Snapshot {
    /// Checks the whole database.
    ///
    /// # Errors
    /// If the disk or the system fails. Damage is a finding.
    pub fn check(&self) -> Result<Checked, Error> {
        let mut checked = Checked::default();
        match check(&self.connection, &mut checked) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                checked.faults.push(Fault::loss(format!("it cannot be read to its end: {DAMAGED}")));
            }
            result => result.map_err(|error| unreadable(&self.path, error))?,
        }
        Ok(checked)
    }
}

fn check(connection: &Connection, checked: &mut Checked) -> rusqlite::Result<()> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    checked.schema_version = schema_version(connection)?;
    checked.schema = Differences::of(connection)?;
    // A database of another shape may have no ids to check.
    if checked.schema.gaps.is_empty() {
        checked.faults.extend(ids(connection)?);
        if checked.schema_version > 0 && number("SELECT count(*) FROM project")? != 1 {
            let text = "the table project does not have exactly one row";
            checked
                .faults
                .push(Fault::repaired_by("INSERT INTO project (id, plan) VALUES (1, 'free')", text));
        }
        checked.pets = u64::try_from(number("SELECT count(*) FROM pets NOT INDEXED")?).unwrap_or(0);
    }
    checked.faults.extend(integrity(connection, &checked.schema.tables)?);
    Ok(())
}

/// What SQLite's own checks find (`sqlite.org/pragma.html#pragma_integrity_check`): pages and indexes that contradict
/// each other, values that their column does not allow, and dangling references of
/// these tables.
fn integrity(connection: &Connection, tables: &[String]) -> rusqlite::Result<Vec<Fault>> {
    let mut faults = Vec::new();
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    for said in statement.query_map([], |row| row.get::<_, String>(0))? {
        let said = said?;
        let lines = said.lines().filter(|line| *line != "ok");
        faults.extend(
            lines.map(|line| Fault::loss(format!("its content contradicts itself: {}", line.escape_debug()))),
        );
    }
    let mut statement = connection.prepare("SELECT DISTINCT parent FROM pragma_foreign_key_check(?1)")?;
    for table in tables {
        for parent in statement.query_map([table], |row| row.get::<_, String>(0))? {
            let parent = parent?;
            let line = format!("a row of {table} refers to a row of {parent} that does not exist");
            faults.push(Fault::loss(line));
        }
    }
    Ok(faults)
}

/// Ids must be positive and at most the last one assigned (`sqlite.org/autoinc.html`).
fn ids(connection: &Connection) -> rusqlite::Result<Vec<Fault>> {
    let id = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).optional();
    let last_given =
        id("SELECT max(seq) FROM sqlite_sequence WHERE name = 'pets' HAVING count(*) > 0")?.unwrap_or(0);
    let mut faults = Vec::new();
    if let Some(least) = id("SELECT id FROM pets ORDER BY id LIMIT 1")?.filter(|id| *id < 1) {
        faults.push(Fault::loss(format!("a pet has the id {least}, which is not positive")));
    }
    if let Some(greatest) = id("SELECT id FROM pets ORDER BY id DESC LIMIT 1")?.filter(|id| *id > last_given)
    {
        let sql = format!(
            "DELETE FROM sqlite_sequence WHERE name = 'pets'; \
             INSERT INTO sqlite_sequence (name, seq) VALUES ('pets', {greatest})"
        );
        let what = format!("a pet has the id {greatest}, but the last id assigned is {last_given}");
        faults.push(Fault::repaired_by(&sql, &what));
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a database that some SQL has changed.
    fn faults(sql: &str) -> Vec<String> {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new("new"), STEPS, false).unwrap();
        connection.execute_batch(sql).unwrap();
        let mut checked = Checked::default();
        check(&connection, &mut checked).unwrap();
        checked.faults.into_iter().map(|fault| fault.line).collect()
    }

    #[test]
    fn database_without_its_project_is_not_sound() {
        assert_eq!(faults("INSERT INTO pets (id, name, category_id) VALUES (5, 'Rex', 1)"), [""; 0]);
        assert!(faults("DELETE FROM project")[0].starts_with("the table project does not have"));
    }

    #[test]
    fn new_database_is_sound() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new("new"), STEPS, false).unwrap();
        let mut checked = Checked::default();
        check(&connection, &mut checked).unwrap();
        assert!(checked.schema.gaps.is_empty() && checked.faults.is_empty());
        assert!(checked.schema.line().is_none());
    }
}
