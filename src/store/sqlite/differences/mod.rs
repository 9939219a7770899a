//! How the schema of a database differs from that of its version, and the SQL that repairs what is missing.
//!
//! Other programs leave tables, indexes, views and triggers in a database, which do no harm. What is missing of
//! petstore's own schema does.

mod fault;
mod lacks;
mod objects;

use std::path::Path;

use rusqlite::Connection;

use super::cannot_open;
use super::schema::{STEPS, version};
use crate::error::Error;
use crate::log_line::log_line;
pub use fault::Fault;
use lacks::what_index_lacks;
pub use lacks::{explain, is_lack};
#[cfg(test)]
pub use objects::definitions;
pub use objects::quoted;
use objects::{Column, columns, definition, is_extended, objects, same, shown};

/// The most names in one line.
const MAX_NAMES: usize = 10;

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
                     this SQL repairs it: ALTER TABLE {table} RENAME COLUMN \"{other}\" TO {name}"
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
/// If something is missing, with the SQL that repairs it.
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

#[cfg(test)]
mod tests {
    use super::super::schema::newest_version;
    use super::objects::plain;
    use super::*;
    use crate::error::ErrorKind;

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
            (
                "CREATE TABLE theirs (x); CREATE INDEX t_i ON theirs (x);
                 CREATE TRIGGER t_t AFTER INSERT ON theirs BEGIN DELETE FROM theirs; END",
                "the index t_i, the trigger t_t, the table theirs",
            ),
        ] {
            let (_, found) = changed(sql);
            assert_eq!(found.line(), Some(format!("it also has {expected}")), "{sql}");
            assert!(found.gaps.is_empty() && found.changes.is_empty(), "{sql}");
        }
        let many: String = (0..12).map(|i| format!("CREATE TABLE t{i:02} (x);")).collect();
        assert!(changed(&many).1.line().unwrap().ends_with("the table t09 and 2 more"));
    }

    #[test]
    fn only_one_addition_makes_an_extended_table() {
        let table = "CREATE TABLE t (a, b, c)";
        assert!(is_extended("CREATE TABLE t (a, b, b2, c)", table));
        for other in
            [table, "CREATE TABLE t (a, xyz, c)", "CREATE TABLE t (a, c)", "CREATE TABLE t (a, b, d)"]
        {
            assert!(!is_extended(other, table), "{other}");
        }
    }

    #[test]
    fn tables_that_are_there_are_those_to_check() {
        let (_, found) = changed("DROP TABLE redirects; CREATE TABLE theirs (x)");
        assert!(found.tables.contains(&"pets".to_owned()), "{:?}", found.tables);
        assert!(
            !found.tables.iter().any(|table| table == "redirects" || table == "theirs"),
            "{:?}",
            found.tables
        );
    }

    #[test]
    fn name_that_does_not_fit_on_a_line_is_not_put_into_sql() {
        let (_, found) = changed("ALTER TABLE pets RENAME COLUMN status TO \"a\nstate\"");
        let line = found.line().unwrap();
        assert!(line.starts_with("the table pets lacks the column status; without a backup"), "{line}");
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
                let (_, mend) = gap.split_once("repairs it: ").unwrap();
                connection.execute_batch(mend).unwrap();
            }
            assert_eq!(Differences::of(&connection).unwrap().line(), None, "{sql}");
        }
    }

    /// Gives the indexes on names a collation that SQLite does not have here.
    const SPOIL: &str = "PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(sql, '(name)', '(name COLLATE uint)') WHERE type = 'index';
        PRAGMA writable_schema = RESET";

    #[test]
    fn index_that_cannot_be_used_is_named_on_one_line_with_sql_that_runs() {
        for (name, expected) in [
            ("ci", "the index ci needs the collation uint; this SQL repairs it: DROP INDEX ci"),
            ("a b", "the index a b needs the collation uint; this SQL repairs it: DROP INDEX \"a b\""),
            ("NOCASE", "the index NOCASE needs the collation uint; this SQL repairs it: DROP INDEX NOCASE"),
            ("a\nb", "the index a\\nb needs the collation uint; drop it"),
        ] {
            let make = format!("CREATE INDEX {} ON pets (name)", quoted(name));
            let (connection, _) = changed(&make);
            connection.execute_batch(SPOIL).unwrap();
            assert_eq!(Differences::of(&connection).unwrap().line().as_deref(), Some(expected));
            if let Some((_, mend)) = expected.split_once("repairs it: ") {
                connection.execute_batch(mend).unwrap();
                assert_eq!(Differences::of(&connection).unwrap().line(), None);
            }
        }
        // Petstore does not use an index on a table of others.
        let (connection, _) = changed("CREATE TABLE theirs (name); CREATE INDEX ci ON theirs (name)");
        connection.execute_batch(SPOIL).unwrap();
        let found = Differences::of(&connection).unwrap();
        assert_eq!((found.changes.len(), found.foreign.len()), (0, 2));
    }

    #[test]
    fn failure_of_a_create_is_explained_by_what_is_on_the_pets() {
        let refusing = "CREATE TABLE theirs (x);
            CREATE TRIGGER a BEFORE INSERT ON theirs BEGIN SELECT RAISE(ABORT, 'no'); END";
        let (connection, _) = changed(refusing);
        let error = connection.execute("INSERT INTO theirs VALUES (1)", []).unwrap_err();
        assert_eq!(explain(&connection, &error).unwrap(), None);
        connection.execute_batch("CREATE TRIGGER b AFTER DELETE ON pets BEGIN SELECT 1; END").unwrap();
        let explained = explain(&connection, &error).unwrap();
        assert_eq!(explained.as_deref(), Some("no (a trigger on pets refuses it: b)"));
        connection.execute_batch("CREATE INDEX ci ON pets (name)").unwrap();
        connection.execute_batch(SPOIL).unwrap();
        let error =
            connection.execute("INSERT INTO pets (name, category_id) VALUES ('a', 1)", []).unwrap_err();
        let explained = explain(&connection, &error).unwrap();
        let named = "the index ci needs the collation uint; this SQL repairs it: DROP INDEX ci";
        assert_eq!(explained.as_deref(), Some(named));
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
