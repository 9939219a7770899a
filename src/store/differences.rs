//! How the schema of a database differs from that of its version, and the SQL that mends what is missing.
//!
//! Other programs leave tables, indexes, views and triggers in a database, which do no harm. What is missing of
//! petstore's own schema does.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use super::cannot_open;
use super::schema::{STEPS, version};
use crate::error::{Error, ErrorKind};
use crate::log_line::log_line;

/// The most names in one line.
const MAX_NAMES: usize = 10;
/// The most characters of a name that another program has chosen.
const MAX_NAME: usize = 64;

/// Something that is wrong, in one line.
pub struct Fault {
    text: String,
    /// Whether something is lost that only a backup has.
    is_loss: bool,
}

impl Fault {
    /// A loss, for which there may be a backup.
    pub fn loss(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_loss: true }
    }

    /// A fault that SQL mends without losing anything.
    pub fn mended(text: impl fmt::Display, sql: impl fmt::Display) -> Self {
        Self { text: format!("{text}; this SQL mends it: {sql}"), is_loss: false }
    }

    /// Something that another program has changed on purpose.
    pub fn change(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_loss: false }
    }

    /// One line for an operator.
    pub fn line(&self) -> String {
        self.text.clone()
    }

    /// The kind of an error for some faults.
    pub fn kind(faults: &[Self]) -> ErrorKind {
        let is_loss = faults.iter().any(|fault| fault.is_loss);
        if is_loss { ErrorKind::DatabaseDamaged } else { ErrorKind::SchemaChanged }
    }
}

/// How a schema differs from that of its version.
#[derive(Default)]
pub struct Differences {
    /// The tables of petstore that are there.
    pub tables: Vec<String>,
    /// What the service cannot work with.
    pub gaps: Vec<Fault>,
    /// Tables that are defined in another way, which the service works with, and indexes that keep it from writing
    /// until they are dropped, one line each. No data is lost by either.
    pub changes: Vec<String>,
    /// What petstore did not make, such as `the table _litestream_seq`.
    pub foreign: Vec<String>,
}

impl Differences {
    /// Compares the schema of a database with that of its version.
    pub fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let done = usize::try_from(version(connection)?).unwrap_or(0).min(STEPS.len());
        let model = Connection::open_in_memory()?;
        for step in &STEPS[..done] {
            model.execute_batch(step)?;
        }
        let (expected, found) = (objects(&model)?, objects(connection)?);
        let tables = expected.keys().filter(|key| key.1 == "table" && found.contains_key(*key));
        let tables = tables.map(|(name, _)| name.clone());
        let mut differences = Self { tables: tables.collect(), ..Self::default() };
        for (key, wanted) in &expected {
            let (name, kind) = key;
            let sql = &wanted.sql;
            let other_way =
                || format!("the {kind} {name} is defined in another way than version {done} has it");
            match found.get(key) {
                Some(other) if same(&other.sql, sql) => {}
                Some(other) if kind == "table" => {
                    let [wanted, other] = [(&model, sql), (connection, &other.sql)];
                    if !differences.compare_columns(name, wanted, other)? {
                        differences.changes.push(other_way());
                    }
                }
                Some(_) => differences
                    .gaps
                    .push(Fault::mended(other_way(), format!("DROP INDEX {name}; {sql}"))),
                None if kind == "index" => {
                    let missing = format!("the index {name} is missing");
                    differences.gaps.push(Fault::mended(missing, sql));
                }
                None => differences.gaps.push(Fault::loss(format!(
                    "the table {name} is missing with all its rows; without a backup, this SQL makes it empty: {sql}"
                ))),
            }
        }
        for ((name, kind), object) in found.iter().filter(|(key, _)| !expected.contains_key(*key)) {
            let is_ours = expected.contains_key(&(object.table.clone(), "table".to_owned()));
            match (kind == "index").then(|| what_index_lacks(connection, name)).flatten() {
                Some(lack) if is_ours => differences.changes.push(lack),
                _ => differences.foreign.push(object.describe(name, kind, is_ours)),
            }
        }
        Ok(differences)
    }

    /// Compares the columns of a table. Returns whether additional columns are the only difference.
    fn compare_columns(
        &mut self,
        table: &str,
        (model, wanted_sql): (&Connection, &String),
        (connection, found_sql): (&Connection, &String),
    ) -> rusqlite::Result<bool> {
        let (expected, found) = (columns(model, table)?, columns(connection, table)?);
        let rest = |all: &[Column], others: &[Column]| -> Vec<Column> {
            let is_rest = |column: &&Column| !others.iter().any(|other| other.name == column.name);
            all.iter().filter(is_rest).cloned().collect()
        };
        let (missing, foreign) = (rest(&expected, &found), rest(&found, &expected));
        for column in &missing {
            let name = &column.name;
            self.gaps.push(match (&missing[..], &foreign[..]) {
                ([_], [Column { name: other, .. }]) if shown(other) == *other => Fault::change(format!(
                    "the table {table} lacks the column {name}; if it was renamed to {other}, \
                     this SQL mends it: ALTER TABLE {table} RENAME COLUMN \"{other}\" TO {name}"
                )),
                _ => Fault::loss(match definition(wanted_sql, name) {
                    Some(definition) if !column.must_have_value => format!(
                        "the table {table} lacks the column {name}; without a backup, this SQL makes it empty: \
                         ALTER TABLE {table} ADD COLUMN {definition}"
                    ),
                    _ => format!("the table {table} lacks the column {name}"),
                }),
            });
        }
        for column in &foreign {
            let name = shown(&column.name);
            if column.must_have_value {
                let why = "which must have a value, so petstore cannot write to it";
                self.changes.push(format!("the table {table} has a foreign column {name}, {why}"));
            } else {
                self.foreign.push(format!("the column {name} of {table}"));
            }
        }
        Ok(!missing.is_empty() || (!foreign.is_empty() && is_extended(found_sql, wanted_sql)))
    }

    /// One line about all of them; `None` if there are none.
    pub fn line(&self) -> Option<String> {
        let also = match &self.foreign[..] {
            [] => None,
            names => {
                let some = names[..names.len().min(MAX_NAMES)].join(", ");
                let more = names.len().saturating_sub(MAX_NAMES);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                Some(format!("it also has {some}{more}"))
            }
        };
        let gaps = self.gaps.iter().map(Fault::line);
        let lines: Vec<String> = gaps.chain(self.changes.iter().cloned()).chain(also).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}

/// Refuses a database that lacks a table, a column or an index of its version.
///
/// # Errors
/// If something is missing, with the SQL that mends it.
pub fn refuse_gaps(connection: &Connection, path: &Path) -> Result<(), Error> {
    let gaps = Differences::of(connection).map_err(|error| cannot_open(path, error))?.gaps;
    if gaps.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = gaps.iter().map(Fault::line).collect();
    Err(Error::new(Fault::kind(&gaps), format!("{}: {}", path.display(), lines.join("; "))))
}

/// Logs in one line what other programs have changed or made in a database.
pub fn warn(connection: &Connection, path: &Path) {
    if let Some(line) = Differences::of(connection).ok().and_then(|differences| differences.line()) {
        log_line!(warn, "{} is not as petstore made it: {line}", path.display());
    }
}

/// What an index needs that petstore's SQLite does not have, and the SQL that mends it; `None` if nothing. Other
/// programs, such as the `sqlite3` shell, bring collations and functions of their own.
fn what_index_lacks(connection: &Connection, name: &str) -> Option<String> {
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
    let kind = match () {
        () if is_lack(error) => "index",
        () if is_trigger => "trigger",
        () => return Ok(None),
    };
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

/// A name in quotes, for SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether SQL takes a name without quotes.
fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A table, an index, a view or a trigger.
struct Object {
    /// The table that it belongs to.
    table: String,
    /// Its definition, without comments and line breaks.
    sql: String,
}

impl Object {
    /// What another program has made, in words. `is_ours`: its table is one of petstore's.
    fn describe(&self, name: &str, kind: &str, is_ours: bool) -> String {
        let (name, table) = (shown(name), shown(&self.table));
        match kind {
            "trigger" if is_ours => {
                format!("the trigger {name} on {table} (it can change or refuse what petstore writes)")
            }
            "index" if is_ours && self.sql.to_ascii_uppercase().starts_with("CREATE UNIQUE") => {
                format!("the unique index {name} on {table} (it can refuse what petstore writes)")
            }
            "index" if is_ours => format!("the index {name} on {table}"),
            _ => format!("the {kind} {name}"),
        }
    }
}

/// What is in a schema, by name and kind, without SQLite's own.
fn objects(connection: &Connection) -> rusqlite::Result<BTreeMap<(String, String), Object>> {
    let mut statement = connection.prepare(
        "SELECT name, type, tbl_name, ifnull(sql, '') FROM sqlite_schema
            WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let objects = statement.query_map([], |row| {
        let sql: String = row.get(3)?;
        Ok(((row.get(0)?, row.get(1)?), Object { table: row.get(2)?, sql: plain(&sql) }))
    })?;
    objects.collect()
}

/// A name that another program has chosen, fit for a line.
fn shown(name: &str) -> String {
    name.chars().take(MAX_NAME).flat_map(char::escape_debug).collect()
}

/// A definition without its comments and line breaks.
fn plain(sql: &str) -> String {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// What counts of a definition: `ALTER TABLE` leaves other spaces, and quotes around names.
fn essence(sql: &str) -> String {
    plain(sql).replace([' ', '"'], "")
}

fn same(one: &str, other: &str) -> bool {
    essence(one) == essence(other)
}

/// Whether a definition is another one with something added in one place, as `ALTER TABLE ADD COLUMN` does.
fn is_extended(found: &str, expected: &str) -> bool {
    let (found, expected) = (essence(found), essence(expected));
    let common = |a: &mut dyn Iterator<Item = u8>, b: &mut dyn Iterator<Item = u8>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let begin = common(&mut found.bytes(), &mut expected.bytes());
    let end = common(&mut found.bytes().rev(), &mut expected.bytes().rev());
    begin + end >= expected.len() && found.len() > expected.len()
}

/// The definition of a column within that of its table, which has no comments.
fn definition<'a>(table: &'a str, column: &str) -> Option<&'a str> {
    let columns = table.get(table.find('(')? + 1..table.rfind(')')?)?;
    let mut depth = 0;
    let is_end = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    columns.split(is_end).map(str::trim).find(|definition| definition.split(' ').next() == Some(column))
}

#[derive(Clone)]
struct Column {
    name: String,
    /// Whether a row cannot be written without a value for it.
    must_have_value: bool,
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
    let mut statement = connection.prepare(
        "SELECT name, \"notnull\" AND dflt_value IS NULL AND hidden = 0 FROM pragma_table_xinfo(?1)",
    )?;
    let columns =
        statement.query_map([table], |row| Ok(Column { name: row.get(0)?, must_have_value: row.get(1)? }))?;
    columns.collect()
}

/// Every table and index with what counts of its definition.
#[cfg(test)]
pub fn definitions(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    Ok(objects(connection)?.into_iter().map(|((name, _), object)| (name, essence(&object.sql))).collect())
}

#[cfg(test)]
mod tests {
    use super::super::schema::newest_version;
    use super::*;

    /// A database of the newest version, changed by some SQL.
    fn changed(sql: &str) -> (Connection, Differences) {
        let connection = Connection::open_in_memory().unwrap();
        STEPS.iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection.pragma_update(None, "user_version", newest_version(STEPS)).unwrap();
        connection.execute_batch(sql).unwrap();
        let differences = Differences::of(&connection).unwrap();
        (connection, differences)
    }

    fn gaps(differences: &Differences) -> Vec<String> {
        differences.gaps.iter().map(Fault::line).collect()
    }

    #[test]
    fn spaces_comments_and_quotes_do_not_count() {
        let text = "CREATE TABLE a (\n    -- what it is\n    b TEXT, -- and so on\n    c\n)";
        assert_eq!(plain(text), "CREATE TABLE a ( b TEXT, c )");
        assert!(same(text, "CREATE TABLE \"a\" (b TEXT, c)"));
        // A table that is renamed there and back gets quotes.
        for sql in [
            "",
            "ALTER TABLE pets RENAME TO animals; ALTER TABLE animals RENAME TO pets",
            "ALTER TABLE pets RENAME COLUMN status TO state; ALTER TABLE pets RENAME COLUMN state TO status",
        ] {
            let (_, found) = changed(sql);
            assert_eq!(found.line(), None, "{sql}");
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
            ("CREATE INDEX theirs ON pets (name)", "the index theirs on pets"),
            (
                "CREATE UNIQUE INDEX theirs ON pets (name)",
                "the unique index theirs on pets (it can refuse what petstore writes)",
            ),
            (
                "CREATE TRIGGER theirs AFTER INSERT ON pets BEGIN DELETE FROM pets; END",
                "the trigger theirs on pets (it can change or refuse what petstore writes)",
            ),
            ("ALTER TABLE pets ADD COLUMN tag TEXT DEFAULT 'a, b)'", "the column tag of pets"),
            ("ALTER TABLE deploy_files ADD COLUMN tag2 TEXT", "the column tag2 of deploy_files"),
            ("CREATE TABLE \"a\nb\u{1b}\" (x)", "the table a\\nb\\u{1b}"),
        ] {
            let (_, found) = changed(sql);
            assert_eq!(found.line(), Some(format!("it also has {expected}")), "{sql}");
            assert!(found.gaps.is_empty() && found.changes.is_empty(), "{sql}");
        }
        let many: String = (0..12).map(|i| format!("CREATE TABLE t{i:02} (x);")).collect();
        assert!(changed(&many).1.line().unwrap().ends_with("the table t09 and 2 more"));
    }

    #[test]
    fn table_of_another_definition_is_a_change() {
        for add in ["", ", tag TEXT"] {
            let sql = format!(
                "DROP TABLE redirects; CREATE TABLE redirects (source TEXT PRIMARY KEY, target TEXT NOT NULL, \
                 status INTEGER NOT NULL{add})"
            );
            let (_, found) = changed(&sql);
            let way =
                format!("the table redirects is defined in another way than version {} has it", STEPS.len());
            assert_eq!((found.gaps.len(), found.changes), (0, vec![way]));
        }
        let (_, found) = changed(
            "DROP TABLE deploys; CREATE TABLE deploys (id INTEGER PRIMARY KEY AUTOINCREMENT, deployed_at INTEGER, \
             who TEXT NOT NULL) STRICT",
        );
        assert!(found.changes[0].contains("a foreign column who, which must have a value"));
    }

    #[test]
    fn sql_in_a_gap_mends_it() {
        for sql in [
            "DROP INDEX pets_by_status",
            "DROP INDEX pets_by_status; CREATE INDEX pets_by_status ON pets (name)",
            "DROP INDEX primary_domain; DROP INDEX pets_by_status",
            "ALTER TABLE pets RENAME COLUMN status TO state",
            "ALTER TABLE pets RENAME COLUMN status TO \"a state\"",
        ] {
            let (connection, found) = changed(sql);
            assert_eq!(Fault::kind(&found.gaps), ErrorKind::SchemaChanged, "{sql}");
            assert!(!found.gaps.is_empty(), "{sql}");
            for gap in gaps(&found) {
                let (_, mend) = gap.split_once("mends it: ").unwrap();
                connection.execute_batch(mend).unwrap();
            }
            assert_eq!(Differences::of(&connection).unwrap().line(), None, "{sql}");
        }
    }

    #[test]
    fn index_that_cannot_be_used_is_named_on_one_line_with_sql_that_runs() {
        for (name, expected) in [
            ("ci", "the index ci needs the collation uint; this SQL mends it: DROP INDEX ci"),
            ("a b", "the index a b needs the collation uint; this SQL mends it: DROP INDEX \"a b\""),
            ("NOCASE", "the index NOCASE needs the collation uint; this SQL mends it: DROP INDEX NOCASE"),
            ("a\nb", "the index a\\nb needs the collation uint; drop it"),
        ] {
            let make = format!("CREATE INDEX {} ON pets (name)", quoted(name));
            let (connection, _) = changed(&make);
            let spoil = "PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, '(name)', '(name COLLATE uint)') WHERE type = 'index';
                PRAGMA writable_schema = RESET";
            connection.execute_batch(spoil).unwrap();
            assert_eq!(Differences::of(&connection).unwrap().line().as_deref(), Some(expected));
            if let Some((_, mend)) = expected.split_once("mends it: ") {
                connection.execute_batch(mend).unwrap();
                assert_eq!(Differences::of(&connection).unwrap().line(), None);
            }
        }
    }

    #[test]
    fn lost_rows_need_a_backup() {
        for (sql, expected) in [
            ("DROP TABLE api_keys", "without a backup, this SQL makes it empty: CREATE TABLE api_keys ("),
            ("ALTER TABLE pets DROP COLUMN name", "the table pets lacks the column name"),
            (
                "DROP INDEX pets_by_status; ALTER TABLE pets DROP COLUMN status",
                "makes it empty: ALTER TABLE pets ADD COLUMN status TEXT CHECK (status = 'available' OR",
            ),
            ("ALTER TABLE api_keys DROP COLUMN is_admin", "ADD COLUMN is_admin INTEGER NOT NULL DEFAULT 0"),
            ("ALTER TABLE project DROP COLUMN deploy", "ADD COLUMN deploy INTEGER REFERENCES deploys (id)"),
        ] {
            let (connection, found) = changed(sql);
            assert_eq!(Fault::kind(&found.gaps), ErrorKind::DatabaseDamaged, "{sql}");
            let line = found.gaps[0].line();
            assert!(line.contains(expected), "{line}");
            if let Some((_, make)) = line.split_once("makes it empty: ") {
                connection.execute_batch(make).unwrap();
                let left = gaps(&Differences::of(&connection).unwrap());
                assert!(left.iter().all(|gap| gap.starts_with("the index")), "{sql}: {left:?}");
            }
        }
    }
}
