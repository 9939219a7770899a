//! The difference between the schema of a database and that of its version, and the SQL that repairs missing parts.
//!
//! Tables, indexes, views and triggers of other programs do no harm. Missing parts of petstore's own schema do.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::connection::cannot_open;
use super::migrations::{STEPS, schema_version};
use super::schema::{changed, loss, texts};
use super::trial::try_writes;
use petstore_base::error::{Error, ErrorKind, fail};

/// The kind of some faults together: [`ErrorKind::DatabaseDamaged`] if something is lost that only a backup has,
/// [`ErrorKind::SchemaChanged`] if SQL repairs all; `None` if there is no fault.
pub fn kind_of(faults: &[Error]) -> Option<ErrorKind> {
    let kinds = || faults.iter().map(Error::kind);
    kinds()
        .find(|kind| *kind == ErrorKind::DatabaseDamaged)
        .or(kinds().next())
}

/// The difference between a schema and that of its version.
pub struct SchemaDiff {
    /// The tables of petstore that are there, and how its version defines them.
    pub tables: Vec<(String, String)>,
    /// Missing or changed parts without which the service cannot work.
    pub gaps: Vec<Error>,
    /// Triggers and indexes of other programs that let writes of the service fail.
    pub obstacles: Vec<Error>,
    /// Changes and additions of other programs, such as `the table _litestream_seq`.
    pub foreign: Vec<String>,
}

impl SchemaDiff {
    /// Compares the schema of a database with that of its version.
    pub fn new(connection: &Connection) -> rusqlite::Result<Self> {
        let done = usize::try_from(schema_version(connection)?)
            .unwrap_or(0)
            .min(STEPS.len());
        let model = Connection::open_in_memory()?;
        for step in &STEPS[..done] {
            model.execute_batch(step)?;
        }
        let mut found = objects(connection)?;
        let (mut tables, mut gaps) = (Vec::new(), Vec::new());
        let (mut obstacles, mut foreign) = (Vec::new(), Vec::new());
        for (key, (name, sql)) in objects(&model)? {
            let other = found.remove(&key);
            let renamed = other.as_ref().map(|(other, _)| other.clone());
            let renamed = renamed.filter(|other| *other != name);
            let other = other.map(|(_, sql)| essence(&sql));
            let is_same = other.as_ref() == Some(&essence(&sql));
            let (_, kind) = key;
            match (kind.as_str(), other) {
                ("table", Some(_)) => {
                    // SQLite notes the last id by the letters of the name.
                    if let Some(other) = renamed {
                        gaps.push(changed(format!(
                            "the table {name} was rebuilt, and is named {other} now"
                        )));
                    }
                    if !is_same {
                        let there = columns(connection, &name)?;
                        let lost = columns(&model, &name)?.into_iter().filter(|column| {
                            !there.iter().any(|it| it.eq_ignore_ascii_case(column))
                        });
                        gaps.extend(
                            lost.map(|it| loss(format!("the table {name} lacks the column {it}, which may have another name now"))),
                        );
                        foreign.push(format!("another definition of the table {name}"));
                    }
                    tables.push((name, sql));
                }
                ("table", None) => gaps.push(loss(format!(
                    "the table {name} is missing with all its rows, unless it has another name now"
                ))),
                _ if is_same => {}
                // Its table is missing.
                _ if columns(connection, table_of(&sql))?.is_empty() => {}
                (_, other) => {
                    let (how, repair) = match other {
                        Some(_) => (
                            "defined in another way",
                            format!("DROP INDEX {name}; {sql}"),
                        ),
                        None => ("missing", sql),
                    };
                    let line = format!("the {kind} {name} is {how}; this SQL repairs it: {repair}");
                    gaps.push(changed(line));
                }
            }
        }
        // Other programs have chosen these names.
        for ((_, kind), (name, _)) in found {
            foreign.push(format!("the {kind} {}", name.escape_debug()));
        }
        // A part that is missing would fail there too.
        if gaps.is_empty() && !foreign.is_empty() && done == STEPS.len() {
            (gaps, obstacles) = try_writes(connection, model)?;
        }
        if gaps.is_empty() && done == STEPS.len() {
            gaps.extend(late_sequence(connection)?);
        }
        Ok(Self {
            tables,
            gaps,
            obstacles,
            foreign,
        })
    }
}

/// Refuses a database that lacks a table, a column or an index of its version, or whose writes other programs let fail.
///
/// # Errors
/// If something is in the way, with the SQL that repairs it.
pub fn refuse_gaps(connection: &Connection, path: &Path) -> Result<(), Error> {
    let found = SchemaDiff::new(connection).map_err(|error| cannot_open(path, error))?;
    let mut gaps = found.gaps;
    gaps.extend(found.obstacles);
    let Some(kind) = kind_of(&gaps) else {
        return Ok(());
    };
    let lines: Vec<String> = gaps.iter().map(Error::to_string).collect();
    fail(kind, format!("{}: {}", path.display(), lines.join("; ")))
}

/// The ids of deleted pets that would be given again, as after `DELETE FROM sqlite_sequence`.
const SEQUENCE: &str = "SELECT ifnull((SELECT max(CAST(seq AS INTEGER)) FROM sqlite_sequence WHERE name = 'pets'), 0), \
    max(ifnull((SELECT max(id) FROM pets), 0), ifnull((SELECT max(pet) FROM retries), 0))";

fn late_sequence(connection: &Connection) -> rusqlite::Result<Option<Error>> {
    let (last, given): (i64, i64) = connection.query_row(SEQUENCE, [], |row| row.try_into())?;
    let line = format!(
        "the last id of pets is {last}, and {given} was given; this SQL repairs it: DELETE FROM sqlite_sequence \
         WHERE name = 'pets'; INSERT INTO sqlite_sequence (name, seq) VALUES ('pets', {given});"
    );
    Ok((last < given).then(|| changed(line)))
}

/// Tables, indexes, views and triggers, without SQLite's own, by name in lower case and kind.
type Objects = BTreeMap<(String, String), (String, String)>;

/// The name of each object, and how it is defined, on one line.
fn objects(connection: &Connection) -> rusqlite::Result<Objects> {
    let objects = texts(
        connection,
        "SELECT name, type, sql FROM sqlite_schema WHERE type = 'trigger' OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        [],
    )?;
    let one_line = |[name, kind, sql]: [String; 3]| {
        let code = sql
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default());
        let words: Vec<&str> = code.flat_map(str::split_whitespace).collect();
        ((name.to_ascii_lowercase(), kind), (name, words.join(" ")))
    };
    Ok(objects.into_iter().map(one_line).collect())
}

/// A definition without spaces, quotes and capital letters, which `ALTER TABLE` changes.
fn essence(sql: &str) -> String {
    sql.replace([' ', '"'], "").to_ascii_lowercase()
}

/// The table of an index.
fn table_of(sql: &str) -> &str {
    let on = sql.split(" ON ").nth(1).unwrap_or_default();
    on.split([' ', '(']).next().unwrap_or_default()
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let names = texts::<1>(
        connection,
        "SELECT name FROM pragma_table_xinfo(?1)",
        [table],
    )?;
    Ok(names.concat())
}

#[cfg(test)]
mod tests {
    use super::super::migrations::newest_version;
    use super::*;

    /// A database of the newest version, changed by some SQL.
    fn changed_by(sql: &str) -> (Connection, SchemaDiff) {
        let connection = Connection::open_in_memory().unwrap();
        STEPS
            .iter()
            .for_each(|step| connection.execute_batch(step).unwrap());
        connection
            .pragma_update(None, "user_version", newest_version(STEPS))
            .unwrap();
        connection.execute_batch(sql).unwrap();
        let differences = SchemaDiff::new(&connection).unwrap();
        (connection, differences)
    }

    #[test]
    fn spaces_comments_and_quotes_do_not_count() {
        // A table that is renamed there and back gets quotes.
        for sql in [
            "",
            "ALTER TABLE pets RENAME TO animals; ALTER TABLE animals RENAME TO pets",
            "ALTER TABLE pets RENAME COLUMN status TO state; ALTER TABLE pets RENAME COLUMN state TO status",
        ] {
            let (_, found) = changed_by(sql);
            assert!(found.gaps.is_empty() && found.foreign.is_empty(), "{sql}");
        }
    }

    #[test]
    fn what_others_made_is_named_and_no_gap() {
        for (sql, expected) in [
            (
                "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)",
                "the table _litestream_seq",
            ),
            ("CREATE VIEW theirs AS SELECT 1", "the view theirs"),
            ("CREATE INDEX theirs ON pets (name)", "the index theirs"),
            (
                "CREATE TRIGGER theirs AFTER INSERT ON pets BEGIN DELETE FROM pets; END",
                "the trigger theirs",
            ),
            (
                "ALTER TABLE pets ADD COLUMN theirs TEXT DEFAULT 'a, b)'",
                "another definition of the table pets",
            ),
            (
                "DROP TABLE redirects; CREATE TABLE redirects (source TEXT PRIMARY KEY, target TEXT NOT NULL, \
                 status INTEGER NOT NULL)",
                "another definition of the table redirects",
            ),
            ("CREATE TABLE \"a\nb\u{1b}\" (x)", "the table a\\nb\\u{1b}"),
        ] {
            let (_, found) = changed_by(sql);
            assert_eq!(found.foreign, [expected], "{sql}");
            assert!(found.gaps.is_empty(), "{sql}");
        }
    }

    #[test]
    fn sql_in_a_gap_repairs_it() {
        for sql in [
            "DROP INDEX pets_by_status",
            "DROP INDEX pets_by_status; CREATE INDEX pets_by_status ON pets (name)",
            "DROP INDEX primary_domain; DROP INDEX pets_by_status",
        ] {
            let (connection, found) = changed_by(sql);
            assert_eq!(
                kind_of(&found.gaps),
                Some(ErrorKind::SchemaChanged),
                "{sql}"
            );
            assert!(!found.gaps.is_empty(), "{sql}");
            for gap in found.gaps {
                let line = gap.to_string();
                let (_, repair) = line.split_once("repairs it: ").unwrap();
                connection.execute_batch(repair).unwrap();
            }
            assert!(
                SchemaDiff::new(&connection).unwrap().gaps.is_empty(),
                "{sql}"
            );
        }
    }

    #[test]
    fn lost_rows_need_a_backup() {
        for (sql, expected) in [
            (
                "DROP TABLE api_keys",
                "the table api_keys is missing with all its rows, unless it has another name now",
            ),
            (
                "ALTER TABLE pets DROP COLUMN name",
                "the table pets lacks the column name, which may have another name now",
            ),
            (
                "ALTER TABLE pets RENAME COLUMN status TO state",
                "the table pets lacks the column status, which may have another name now",
            ),
        ] {
            let (_, found) = changed_by(sql);
            assert_eq!(
                kind_of(&found.gaps),
                Some(ErrorKind::DatabaseDamaged),
                "{sql}"
            );
            assert_eq!(found.gaps[0].to_string(), expected);
        }
    }
}
