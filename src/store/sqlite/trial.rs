//! Tries what petstore writes, in an empty database in memory with the schema of a file. A schema is code: other programs
//! rebuild tables, and add triggers and indexes, which may need a module, a table or a collation that is not there.

use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::connection::guard_tables;
use super::schema::{changed, text, texts};
use petstore_base::error::Error;

/// The statements. Above each is its table, and what that has lost if the outcome is another one than with petstore's
/// schema.
const TRIES: &str = include_str!("trial.sql");
/// The most instructions of SQLite's virtual machine for a statement, and the most bytes of a value, as a trigger may run
/// for ever.
const MOST: i32 = 20_000_000;
const MOST_BYTES: i32 = 100_000;

/// The table, what it has lost, and the statement.
fn tries() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TRIES.split("-- ").filter_map(|one| {
        let (head, sql) = one.split_once('\n')?;
        let (table, what) = head.split_once(": ")?;
        Some((table, what, sql))
    })
}

/// What came of a statement.
#[derive(PartialEq)]
enum Outcome {
    /// The first column of the first row.
    Done(Option<String>),
    /// A rule forbids it.
    Rejected,
    Failed(String),
}

fn run(connection: &Connection, table: &str, sql: &str) -> Outcome {
    let done = connection.query_row(sql, [], |row| text(row, 0)).optional();
    match done {
        Ok(first) => Outcome::Done(first),
        Err(error)
            if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
                && !error
                    .to_string()
                    .ends_with(&format!("NULL constraint failed: {table}.id")) =>
        {
            Outcome::Rejected
        }
        Err(error) => Outcome::Failed(why(error)),
    }
}

/// The outcomes of all statements, which are undone. The rules of other programs, such as a CHECK, would hide what their
/// tables have lost, so the second run is without them; the first one finds a reference to a table that is not there.
fn outcomes(database: &Connection) -> rusqlite::Result<Vec<Outcome>> {
    let mut found: Vec<Outcome> = Vec::new();
    let is_endless = |outcome: &Outcome| *outcome == Outcome::Failed("interrupted".to_owned());
    for rules in [
        "PRAGMA foreign_keys = ON; PRAGMA ignore_check_constraints = OFF",
        "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON",
    ] {
        database.execute_batch(rules)?;
        for (i, (table, _, sql)) in tries().enumerate() {
            if found.get(i).is_some_and(is_endless) {
                break;
            }
            // RAISE(ROLLBACK) ends the savepoint.
            if database.is_autocommit() {
                database.execute_batch("SAVEPOINT tries")?;
            }
            let outcome = run(database, table, sql);
            match found.get_mut(i) {
                None => found.push(outcome),
                // Otherwise a table of another program refers to this one.
                Some(Outcome::Failed(why)) if !why.starts_with("foreign key mismatch") => {}
                Some(earlier) => *earlier = outcome,
            }
            if found.get(i).is_some_and(is_endless) {
                break;
            }
        }
        if !database.is_autocommit() {
            database.execute_batch("ROLLBACK TO tries; RELEASE tries")?;
        }
    }
    Ok(found)
}

/// The words of SQLite, without the statement.
pub fn why(error: rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg,
        error => error.to_string(),
    }
}

/// An object of a schema.
struct Object {
    kind: String,
    name: String,
    table: String,
    sql: String,
}

impl Object {
    /// Makes the object in another database. Of the text, only the first statement counts, as for SQLite itself.
    fn make(&self, memory: &Connection) -> rusqlite::Result<()> {
        memory.prepare(&self.sql)?.raw_execute().map(drop)
    }

    /// The fault of an object that lets a statement fail, with the SQL that removes it.
    fn stops(&self, why: &str) -> Error {
        let Self {
            kind, name, table, ..
        } = self;
        let mut line = format!(
            "the {kind} {} lets writes to the table {table} fail ({why})",
            name.escape_debug()
        );
        if !name.contains(char::is_control) {
            let (kind, name) = (kind.to_uppercase(), name.replace('"', "\"\""));
            line += &format!("; this SQL repairs it: DROP {kind} \"{name}\";");
        }
        changed(line)
    }
}

/// The objects of a schema, tables first.
const OBJECTS: &str = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql LIKE 'CREATE%' \
    AND (type = 'trigger' OR name NOT LIKE 'sqlite\\_%' ESCAPE '\\') ORDER BY type <> 'table', rowid";

/// Tries what petstore writes with the schema of a database, whose version is the newest. Returns the tables that were
/// rebuilt in a way in which they lose what is written, and the triggers and indexes that let a statement fail. `model` is
/// an empty database with petstore's schema.
pub fn try_writes(
    connection: &Connection,
    model: Connection,
) -> rusqlite::Result<(Vec<Error>, Vec<Error>)> {
    let mut memory = Connection::open_in_memory()?;
    guard_tables(&mut memory)?;
    memory.progress_handler(MOST, Some(|| true))?;
    memory.set_limit(Limit::SQLITE_LIMIT_LENGTH, MOST_BYTES)?;
    let is_ours = |name: &str| tries().any(|(table, ..)| name.eq_ignore_ascii_case(table));
    let (mut rebuilt, mut stopped, mut triggers) = (Vec::new(), Vec::new(), Vec::new());
    // Why an object cannot be made, which the statements that need it do not tell.
    let mut lacks = String::new();
    for [kind, name, table, sql] in texts(connection, OBJECTS, [])? {
        let object = Object {
            kind,
            name,
            table,
            sql,
        };
        let is_index = object.kind == "index";
        if object.kind == "trigger" && is_ours(&object.table) {
            triggers.push(object);
        } else if is_index && object.table.eq_ignore_ascii_case("api_keys") {
            stopped.push(object.stops("an index could lead to another key"));
        } else if let Err(error) = object.make(&memory) {
            let why = why(error);
            let is_own = || {
                model
                    .prepare(&format!("DROP INDEX {}", object.name))
                    .is_ok()
            };
            if is_index && is_ours(&object.table) && !is_own() {
                stopped.push(object.stops(&why));
            }
            lacks = format!("; {why}");
        }
    }
    // The row that the schema itself has.
    let _ = memory.execute_batch("INSERT INTO project (id, plan) VALUES (1, 'free')");

    let (expected, alone) = (outcomes(&model)?, outcomes(&memory)?);
    // The tables about which nothing more can be said.
    let mut done: Vec<&str> = Vec::new();
    for ((table, what, _), (expected, outcome)) in tries().zip(expected.iter().zip(&alone)) {
        if outcome == expected || done.contains(&table) {
            continue;
        }
        let why = match outcome {
            Outcome::Failed(why) => format!(": {why}"),
            _ => String::new(),
        };
        done.push(table);
        // A rule of another program, such as a CHECK, is no loss.
        if *outcome != Outcome::Rejected {
            let line = format!("the table {table} was rebuilt, and has lost {what}{why}");
            rebuilt.push(changed(line));
        }
    }
    for object in triggers {
        let failed = match object.make(&memory) {
            _ if !object.table.eq_ignore_ascii_case("pets") => {
                Some("only pets may have triggers".to_owned())
            }
            Ok(()) => {
                let found = outcomes(&memory)?;
                let drop = format!("DROP TRIGGER \"{}\"", object.name.replace('"', "\"\""));
                memory.execute_batch(&drop)?;
                found.into_iter().zip(&alone).find_map(|both| match both {
                    (_, Outcome::Failed(_)) => None,
                    (Outcome::Failed(why), _) => Some(why),
                    _ => None,
                })
            }
            Err(error) => Some(why(error)),
        };
        stopped.extend(failed.map(|why| object.stops(&(why + &lacks))));
    }
    Ok((rebuilt, stopped))
}
