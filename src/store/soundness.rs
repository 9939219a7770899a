//! Checks whether a database is one that this program could have written.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::schema::{STEPS, is_foreign, version};
use super::snapshot::DAMAGED;
use super::{Snapshot, cannot_open};
use crate::error::{Error, ErrorKind};

/// The result of a check.
pub struct Findings {
    /// The number of pets.
    pub pets: u64,
    /// The version of the schema.
    pub version: i64,
    /// What is wrong, one plain line each; empty if nothing is.
    pub faults: Vec<String>,
}

impl Snapshot {
    /// Checks the whole database.
    pub fn findings(&self) -> Findings {
        let mut findings = Findings { pets: 0, version: 0, faults: Vec::new() };
        if let Err(error) = look(&self.connection, &mut findings) {
            findings.faults.push(match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt) => format!("it cannot be read to its end: {DAMAGED}"),
                _ => format!("it cannot be read to its end: the disk or the system fails ({error})"),
            });
        }
        findings
    }
}

fn look(connection: &Connection, findings: &mut Findings) -> rusqlite::Result<()> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    if is_foreign(connection)? {
        findings.faults.push("it is the database of another application".to_owned());
        return Ok(());
    }
    findings.version = version(connection)?;
    let Some(steps) = usize::try_from(findings.version).ok().and_then(|done| STEPS.get(..done)) else {
        findings.faults.push(format!(
            "it is of version {}, and this program knows versions up to {}; use a later program",
            findings.version,
            STEPS.len()
        ));
        return Ok(());
    };
    if steps.is_empty() {
        findings.faults.push("it is empty: no service has used it yet".to_owned());
        return Ok(());
    }
    findings.faults = differences(connection, steps, true)?;
    // A database of another shape may have no ids to check.
    if findings.faults.is_empty() {
        findings.faults = ids(connection)?;
        // Since version 2 there is a project.
        if findings.version > 1 && number("SELECT count(*) FROM project")? != 1 {
            findings.faults.push("the table project does not have its one row".to_owned());
        }
        findings.pets = u64::try_from(number("SELECT count(*) FROM pets")?).unwrap_or(0);
    }
    findings.faults.extend(integrity(connection)?);
    Ok(())
}

/// What SQLite's own check finds (`sqlite.org/pragma.html#pragma_integrity_check`): pages and indexes that
/// contradict each other, values that their column does not allow, and dangling references.
fn integrity(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let said = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let lines = said.iter().flat_map(|said| said.lines()).filter(|line| *line != "ok");
    let contradictions = lines.map(|line| Ok(format!("its content contradicts itself: {line}")));
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let dangling = statement.query_map([], |row| {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        Ok(format!("a row of {table} refers to one of {parent} that is not there"))
    })?;
    contradictions.chain(dangling).collect()
}

/// Refuses a database that lacks a table, a column or an index of its version. Additional ones do no harm.
///
/// # Errors
/// If something is missing, with its name.
pub fn refuse_gaps(connection: &Connection, path: &Path) -> Result<(), Error> {
    let look = || {
        let done = usize::try_from(version(connection)?).unwrap_or(0).min(STEPS.len());
        differences(connection, &STEPS[..done], false)
    };
    let gaps = look().map_err(|error| cannot_open(path, error))?;
    match gaps.first() {
        Some(gap) => Err(Error::new(ErrorKind::DatabaseDamaged, format!("{}: {gap}", path.display()))),
        None => Ok(()),
    }
}

/// How the tables and indexes differ from the schema. Without `all`, only the differences that a service cannot work
/// with.
fn differences(connection: &Connection, steps: &[&str], all: bool) -> rusqlite::Result<Vec<String>> {
    let model = Connection::open_in_memory()?;
    for step in steps {
        model.execute_batch(step)?;
    }
    let (expected, found) = (objects(&model)?, objects(connection)?);
    let mut faults = Vec::new();
    for (key, text) in &expected {
        let (name, kind) = key;
        match found.get(key) {
            None => faults.push(format!("the {kind} {name} is missing")),
            Some(other) if other != text => {
                let columns = columns(&model, connection, name, all)?;
                if columns.is_empty() && (all || kind == "index") {
                    let version = steps.len();
                    faults.push(format!(
                        "the {kind} {name} is defined in another way than version {version} has it"
                    ));
                }
                faults.extend(columns);
            }
            Some(_) => {}
        }
    }
    let foreign = found.keys().filter(|key| all && !expected.contains_key(*key));
    faults.extend(foreign.map(|(name, kind)| format!("the {kind} {name} does not belong to it")));
    Ok(faults)
}

/// The tables, indexes, views and triggers by name and kind, without SQLite's own: their definitions, without
/// comments and line breaks.
fn objects(connection: &Connection) -> rusqlite::Result<BTreeMap<(String, String), String>> {
    let mut statement = connection.prepare(
        "SELECT name, type, ifnull(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let objects = statement.query_map([], |row| {
        let text: String = row.get(2)?;
        Ok(((row.get(0)?, row.get(1)?), plain(&text)))
    })?;
    objects.collect()
}

/// A definition without its comments and line breaks.
fn plain(sql: &str) -> String {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// Which columns of a table are missing or, with `all`, not ours.
fn columns(
    model: &Connection,
    connection: &Connection,
    table: &str,
    all: bool,
) -> rusqlite::Result<Vec<String>> {
    let names = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare("SELECT name FROM pragma_table_xinfo(?1)")?;
        let names = statement.query_map([table], |row| row.get(0))?;
        names.collect()
    };
    let (expected, found) = (names(model)?, names(connection)?);
    let missing = expected.iter().filter(|name| !found.contains(name));
    let foreign = found.iter().filter(|name| all && !expected.contains(name));
    let missing = missing.map(|name| format!("the table {table} lacks the column {name}"));
    Ok(missing.chain(foreign.map(|name| format!("the table {table} has a foreign column {name}"))).collect())
}

/// Ids must be positive and at most the last one assigned (`sqlite.org/autoinc.html`).
fn ids(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let id = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).optional();
    let last_given =
        id("SELECT max(seq) FROM sqlite_sequence WHERE name = 'pets' HAVING count(*) > 0")?.unwrap_or(0);
    let mut faults = Vec::new();
    if let Some(least) = id("SELECT id FROM pets ORDER BY id LIMIT 1")?.filter(|id| *id < 1) {
        faults.push(format!("a pet has the id {least}, which is not positive"));
    }
    if let Some(greatest) = id("SELECT id FROM pets ORDER BY id DESC LIMIT 1")?.filter(|id| *id > last_given)
    {
        faults.push(format!("a pet has the id {greatest}, and the last one given is {last_given}"));
    }
    Ok(faults)
}

/// Every table and index with its definition.
#[cfg(test)]
pub fn definitions(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    // ALTER TABLE leaves other spaces than people do.
    let plain = |text: String| text.replace(" ,", ",").replace(" )", ")");
    Ok(objects(connection)?.into_iter().map(|((name, _), text)| (name, plain(text))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_do_not_count() {
        let text = "CREATE TABLE a (\n    -- what it is\n    b TEXT, -- and so on\n    c\n)";
        assert_eq!(plain(text), "CREATE TABLE a ( b TEXT, c )");
    }

    #[test]
    fn sound_database_has_no_differences() {
        let connection = Connection::open_in_memory().unwrap();
        STEPS.iter().for_each(|step| connection.execute_batch(step).unwrap());
        assert_eq!(differences(&connection, STEPS, true).unwrap(), [""; 0]);
        assert_eq!((ids(&connection).unwrap(), integrity(&connection).unwrap()), (vec![], vec![]));
    }
}
