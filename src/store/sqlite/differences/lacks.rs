//! Indexes and triggers of other programs that keep petstore from writing: what they need, and what names them.

use rusqlite::{Connection, ErrorCode};

use super::MAX_NAMES;
use super::fault::Fault;
use super::objects::{is_plain, quoted, shown};

/// What an index needs that petstore's SQLite does not have, and the SQL that repairs it; `None` if nothing. Other
/// programs, such as the `sqlite3` shell, bring collations and functions of their own.
pub fn what_index_lacks(connection: &Connection, name: &str) -> Option<String> {
    // Only prepared, never run. With the name of the schema, it is not taken for that of a collation.
    let error = connection.prepare(&format!("REINDEX main.{}", quoted(name))).err()?.to_string();
    let (_, collation) = error.split_once(NO_COLLATION).unzip();
    let (_, function) = error.split_once(NO_FUNCTION).unzip();
    let end = |text: &str| text.split([' ', '(']).next().map(shown).unwrap_or_default();
    let lack = match (collation, function) {
        (Some(collation), _) => format!("collation {}", end(collation)),
        (_, Some(function)) => format!("function {}", end(function)),
        _ => return None,
    };
    let text = format!("the index {} needs the {lack}", shown(name));
    Some(match () {
        () if is_plain(name) => Fault::mended(text, format!("DROP INDEX {name}")).line(),
        // Quoted for SQL, it would have to stand on one line as it is.
        () if name.chars().any(char::is_control) => format!("{text}; drop it"),
        () => Fault::mended(text, format!("DROP INDEX {}", quoted(name))).line(),
    })
}

/// How SQLite's messages about what an index lacks begin. The name follows.
const NO_COLLATION: &str = "no such collation sequence: ";
const NO_FUNCTION: &str = "unknown function: ";

/// Whether a statement fails because an index needs a collation or a function that SQLite does not have here.
pub fn is_lack(error: &rusqlite::Error) -> bool {
    let text = error.to_string();
    // A trigger chooses the text of its own failure.
    error.sqlite_error_code() != Some(ErrorCode::ConstraintViolation)
        && [NO_COLLATION, NO_FUNCTION].iter().any(|begin| text.contains(begin))
}

/// What could have made a create fail, for the log: indexes that lack something, or else the triggers on the pets.
pub fn explain(connection: &Connection, error: &rusqlite::Error) -> rusqlite::Result<Option<String>> {
    let text = error.to_string();
    let is_trigger = error.sqlite_error().is_some_and(|error| error.extended_code == TRIGGER);
    let kind = if is_trigger { "trigger" } else { "index" };
    if !is_trigger && !is_lack(error) {
        return Ok(None);
    }
    let mut statement = connection.prepare(
        "SELECT name FROM sqlite_schema WHERE type = ?1 AND tbl_name = 'pets' COLLATE NOCASE ORDER BY name",
    )?;
    let names = statement.query_map([kind], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let lines: Vec<String> = if is_trigger {
        names.iter().map(|name| shown(name)).take(MAX_NAMES).collect()
    } else {
        names.iter().filter_map(|name| what_index_lacks(connection, name)).take(MAX_NAMES).collect()
    };
    Ok(match &lines[..] {
        [] => None,
        _ if is_trigger => Some(format!("{text} (a trigger on pets refuses it: {})", lines.join(", "))),
        _ => Some(lines.join("; ")),
    })
}

/// SQLite's code for a failure that a trigger has raised.
const TRIGGER: std::ffi::c_int = rusqlite::ffi::SQLITE_CONSTRAINT_TRIGGER;
