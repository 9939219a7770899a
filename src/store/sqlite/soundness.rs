//! Checks whether a database is one that this program could have written: its schema, its ids and its pages.

#[cfg(test)]
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::Snapshot;
use super::differences::{Differences, Fault, is_lack, quoted};
use super::log_head::damage;
use super::schema::version;
#[cfg(test)]
use super::schema::{STEPS, migrate};
use super::snapshot::{DAMAGED, unreadable};
use crate::error::Error;

/// The result of a check.
#[derive(Default)]
pub struct Findings {
    /// The number of pets.
    pub pets: u64,
    /// The version of the schema.
    pub version: i64,
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
    pub fn findings(&self) -> Result<Findings, Error> {
        let mut findings = Findings::default();
        findings.faults.extend(damage(&self.path).map(Fault::loss));
        match look(&self.connection, &mut findings) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                findings.faults.push(Fault::loss(format!("it cannot be read to its end: {DAMAGED}")));
            }
            looked => looked.map_err(|error| unreadable(&self.path, error))?,
        }
        Ok(findings)
    }
}

fn look(connection: &Connection, findings: &mut Findings) -> rusqlite::Result<()> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    findings.version = version(connection)?;
    findings.schema = Differences::of(connection)?;
    // A database of another shape may have no ids to check.
    if findings.schema.gaps.is_empty() {
        findings.faults.extend(ids(connection)?);
        // Since version 2 there is a project.
        if findings.version > 1 && number("SELECT count(*) FROM project")? != 1 {
            let text = "the table project does not have exactly one row";
            findings.faults.push(Fault::mended(text, "INSERT INTO project (id, plan) VALUES (1, 'free')"));
        }
        findings.pets = u64::try_from(number("SELECT count(*) FROM pets NOT INDEXED")?).unwrap_or(0);
    }
    findings.faults.extend(integrity(connection, &findings.schema.tables)?);
    Ok(())
}

fn integrity_of(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check{table}"))?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Checks each table by itself. Of one with an index that cannot be used, it reads every row instead.
fn integrity_by_table(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let tables = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let mut said = Vec::new();
    for table in tables.iter().map(|table| quoted(table)) {
        match integrity_of(connection, &format!("({table})")) {
            Err(error) if is_lack(&error) => {
                let mut rows = connection.prepare(&format!("SELECT * FROM {table} NOT INDEXED"))?;
                let (columns, mut rows) = (rows.column_count(), rows.query([])?);
                while let Some(row) = rows.next()? {
                    // SQLite reads what does not fit into the page of a row only when it is asked for.
                    (0..columns).try_for_each(|column| row.get_ref(column).map(drop))?;
                }
            }
            found => said.extend(found?),
        }
    }
    Ok(said)
}

/// What SQLite's own check finds (`sqlite.org/pragma.html#pragma_integrity_check`): pages and indexes that
/// contradict each other, values that their column does not allow, and dangling references of these tables.
fn integrity(connection: &Connection, tables: &[String]) -> rusqlite::Result<Vec<Fault>> {
    let said = match integrity_of(connection, "") {
        Err(error) if is_lack(&error) => integrity_by_table(connection)?,
        said => said?,
    };
    let lines = said.iter().flat_map(|said| said.lines()).filter(|line| *line != "ok");
    let mut faults: Vec<Fault> = lines
        .map(|line| Fault::loss(format!("its content contradicts itself: {}", line.escape_debug())))
        .collect();
    let mut statement = connection.prepare("SELECT DISTINCT parent FROM pragma_foreign_key_check(?1)")?;
    for table in tables {
        let parents = statement.query_map([table], |row| row.get::<_, String>(0))?;
        for parent in parents {
            let parent = parent?;
            faults.push(Fault::loss(format!(
                "a row of {table} refers to a row of {parent} that does not exist"
            )));
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
        faults.push(Fault::mended(
            format!("a pet has the id {greatest}, but the last id assigned is {last_given}"),
            format!(
                "DELETE FROM sqlite_sequence WHERE name = 'pets'; \
                 INSERT INTO sqlite_sequence (name, seq) VALUES ('pets', {greatest})"
            ),
        ));
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a database of so many steps that some SQL has changed.
    fn faults(steps: usize, sql: &str) -> Vec<String> {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new("new"), &STEPS[..steps], false).unwrap();
        connection.execute_batch(sql).unwrap();
        let mut findings = Findings::default();
        look(&connection, &mut findings).unwrap();
        findings.faults.iter().map(Fault::line).collect()
    }

    #[test]
    fn every_version_is_sound_and_has_its_project() {
        let insert = "INSERT INTO pets (id, name, category_id) VALUES (5, 'Rex', 1)";
        for steps in 1..=STEPS.len() {
            assert_eq!(faults(steps, insert), [""; 0], "{steps}");
            let found = faults(steps, if steps > 1 { "DELETE FROM project" } else { "" });
            assert_eq!(found.len(), usize::from(steps > 1), "{found:?}");
        }
        assert!(faults(STEPS.len(), "DELETE FROM project")[0].starts_with("the table project does not have"));
    }

    #[test]
    fn tables_next_to_an_index_that_cannot_be_used_are_checked_as_well() {
        // An index of a collation that SQLite does not have here, and a row that its table does not allow.
        let spoil = "CREATE TABLE theirs (x); CREATE INDEX uses ON theirs (x COLLATE NOCASE);
            CREATE TABLE strict (y); INSERT INTO strict VALUES (NULL); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'NOCASE', 'uint') WHERE name = 'uses';
            UPDATE sqlite_schema SET sql = 'CREATE TABLE strict (y NOT NULL)' WHERE name = 'strict';
            PRAGMA writable_schema = RESET";
        assert_eq!(faults(STEPS.len(), spoil), ["its content contradicts itself: NULL value in strict.y"]);
    }

    #[test]
    fn new_database_is_sound() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new("new"), STEPS, false).unwrap();
        let mut findings = Findings::default();
        look(&connection, &mut findings).unwrap();
        assert!(findings.schema.gaps.is_empty() && findings.faults.is_empty());
        assert!(findings.schema.line().is_none());
    }
}
