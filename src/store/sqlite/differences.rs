//! How the schema of a database differs from that of its version, and the SQL that repairs what is missing.
//!
//! Other programs leave tables, indexes, views and triggers in a database, which do no harm. What is missing of
//! petstore's own schema does.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::cannot_open;
use super::schema::{STEPS, schema_version};
use crate::error::{Error, ErrorKind};

/// Something that is wrong, in one line.
pub struct Fault {
    /// The line for an operator.
    pub line: String,
    /// Whether something is lost that only a backup has.
    is_loss: bool,
}

impl Fault {
    /// A loss, for which there may be a backup.
    pub fn loss(line: impl Into<String>) -> Self {
        Self { line: line.into(), is_loss: true }
    }

    /// A fault that this SQL repairs without losing anything.
    pub fn repaired_by(sql: &str, what: &str) -> Self {
        Self { line: format!("{what}; this SQL repairs it: {sql}"), is_loss: false }
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
    /// Tables that are defined in another way, which the service works with.
    pub changes: Vec<Fault>,
    /// What petstore did not make, such as `the table _litestream_seq`.
    pub foreign: Vec<String>,
}

impl Differences {
    /// Compares the schema of a database with that of its version.
    pub fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let done = usize::try_from(schema_version(connection)?).unwrap_or(0).min(STEPS.len());
        let model = Connection::open_in_memory()?;
        for step in &STEPS[..done] {
            model.execute_batch(step)?;
        }
        let (expected, found) = (objects(&model)?, objects(connection)?);
        let tables = expected.keys().filter(|key| key.kind == "table" && found.contains_key(*key));
        let mut differences =
            Self { tables: tables.map(|table| table.name.clone()).collect(), ..Self::default() };
        for (object, sql) in &expected {
            let Object { name, kind, .. } = object;
            let gap = match found.get(object) {
                Some(other) if essence(other) == essence(sql) => continue,
                Some(_) if kind == "table" => {
                    differences.compare_columns(name, &model, connection)?;
                    continue;
                }
                Some(_) => Fault::repaired_by(
                    &format!("DROP INDEX {name}; {sql}"),
                    &format!("the {kind} {name} is defined in another way"),
                ),
                None if kind == "index" => Fault::repaired_by(sql, &format!("the index {name} is missing")),
                None => Fault::loss(format!("the table {name} is missing with all its rows")),
            };
            differences.gaps.push(gap);
        }
        let foreign = found.keys().filter(|object| !expected.contains_key(*object));
        differences.foreign.extend(foreign.map(Object::describe));
        Ok(differences)
    }

    /// Compares the columns of a table that is defined in another way.
    fn compare_columns(
        &mut self,
        table: &str,
        model: &Connection,
        connection: &Connection,
    ) -> rusqlite::Result<()> {
        let (expected, found) = (columns(model, table)?, columns(connection, table)?);
        let missing: Vec<_> = expected.iter().filter(|name| !found.contains(name)).collect();
        let foreign: Vec<_> = found.iter().filter(|name| !expected.contains(name)).collect();
        if missing.is_empty() && foreign.is_empty() {
            let line = format!("the table {table} is defined in another way");
            self.changes.push(Fault { line, is_loss: false });
        }
        let lacks = |name| Fault::loss(format!("the table {table} lacks the column {name}"));
        self.gaps.extend(missing.into_iter().map(lacks));
        self.foreign.extend(foreign.into_iter().map(|name| format!("the column {} of {table}", shown(name))));
        Ok(())
    }

    /// One line about all of them; `None` if there are none.
    pub fn line(&self) -> Option<String> {
        let also = (!self.foreign.is_empty()).then(|| format!("it also has {}", self.foreign.join(", ")));
        let faults = self.gaps.iter().chain(&self.changes).map(|fault| fault.line.clone());
        let lines: Vec<String> = faults.chain(also).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}

/// Refuses a database that lacks a table, a column or an index of its version.
///
/// # Errors
/// If something is missing, with the SQL that repairs it.
pub fn refuse_gaps(connection: &Connection, path: &Path) -> Result<(), Error> {
    let gaps = Differences::of(connection).map_err(|error| cannot_open(path, error))?.gaps;
    if gaps.is_empty() {
        return Ok(());
    }
    let lines: Vec<&str> = gaps.iter().map(|gap| &*gap.line).collect();
    Err(Error::new(Fault::kind(&gaps), format!("{}: {}", path.display(), lines.join("; "))))
}

/// Logs in one line what other programs have changed or made in a database.
pub fn warn(connection: &Connection, path: &Path) {
    if let Some(line) = Differences::of(connection).ok().and_then(|differences| differences.line()) {
        log::warn!("{} is not as petstore made it: {line}", path.display());
    }
}

/// A table, an index, a view or a trigger.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    name: String,
    kind: String,
    /// The table that it belongs to.
    table: String,
}

impl Object {
    fn describe(&self) -> String {
        let (kind, name) = (&self.kind, shown(&self.name));
        if self.table == self.name {
            format!("the {kind} {name}")
        } else {
            format!("the {kind} {name} on {}", shown(&self.table))
        }
    }
}

/// What is in a schema, without SQLite's own, and how it is defined, on one line.
fn objects(connection: &Connection) -> rusqlite::Result<BTreeMap<Object, String>> {
    let mut statement = connection.prepare(
        "SELECT name, type, tbl_name, ifnull(sql, '') FROM sqlite_schema
            WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let objects = statement.query_map([], |row| {
        let sql: String = row.get(3)?;
        let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
        let sql = code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
        Ok((Object { name: row.get(0)?, kind: row.get(1)?, table: row.get(2)? }, sql))
    })?;
    objects.collect()
}

/// What counts of a definition: `ALTER TABLE` leaves other spaces, and quotes around names.
fn essence(sql: &str) -> String {
    sql.replace([' ', '"'], "")
}

fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_xinfo(?1)")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

/// A name that another program has chosen, fit for a line.
fn shown(name: &str) -> String {
    name.escape_debug().to_string()
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

    #[test]
    fn spaces_comments_and_quotes_do_not_count() {
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
                "CREATE TRIGGER theirs AFTER INSERT ON pets BEGIN DELETE FROM pets; END",
                "the trigger theirs on pets",
            ),
            ("ALTER TABLE pets ADD COLUMN theirs TEXT DEFAULT 'a, b)'", "the column theirs of pets"),
            ("CREATE TABLE \"a\nb\u{1b}\" (x)", "the table a\\nb\\u{1b}"),
        ] {
            let (_, found) = changed(sql);
            assert_eq!(found.line(), Some(format!("it also has {expected}")), "{sql}");
            assert!(found.gaps.is_empty() && found.changes.is_empty(), "{sql}");
        }
    }

    #[test]
    fn table_of_another_definition_is_a_change() {
        let (_, found) = changed(
            "DROP TABLE redirects; CREATE TABLE redirects (source TEXT PRIMARY KEY, target TEXT NOT NULL, \
             status INTEGER NOT NULL)",
        );
        assert!(found.gaps.is_empty());
        assert_eq!(found.line().as_deref(), Some("the table redirects is defined in another way"));
    }

    #[test]
    fn sql_in_a_gap_repairs_it() {
        for sql in [
            "DROP INDEX pets_by_status",
            "DROP INDEX pets_by_status; CREATE INDEX pets_by_status ON pets (name)",
            "DROP INDEX primary_domain; DROP INDEX pets_by_status",
        ] {
            let (connection, found) = changed(sql);
            assert_eq!(Fault::kind(&found.gaps), ErrorKind::SchemaChanged, "{sql}");
            assert!(!found.gaps.is_empty(), "{sql}");
            for gap in found.gaps {
                let (_, repair) = gap.line.split_once("repairs it: ").unwrap();
                connection.execute_batch(repair).unwrap();
            }
            assert_eq!(Differences::of(&connection).unwrap().line(), None, "{sql}");
        }
    }

    #[test]
    fn lost_rows_need_a_backup() {
        for (sql, expected) in [
            ("DROP TABLE api_keys", "the table api_keys is missing with all its rows"),
            ("ALTER TABLE pets DROP COLUMN name", "the table pets lacks the column name"),
            ("ALTER TABLE pets RENAME COLUMN status TO state", "the table pets lacks the column status"),
        ] {
            let (_, found) = changed(sql);
            assert_eq!(Fault::kind(&found.gaps), ErrorKind::DatabaseDamaged, "{sql}");
            assert_eq!(found.gaps[0].line, expected);
        }
    }
}
