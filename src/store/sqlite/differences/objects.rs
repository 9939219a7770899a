//! What a schema has, and when two definitions are the same.

use std::collections::BTreeMap;

use rusqlite::Connection;

/// The most characters of a name that another program has chosen.
const MAX_NAME: usize = 64;

/// A name in quotes, for SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether SQL takes a name without quotes.
pub fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A table, an index, a view or a trigger.
pub struct Object {
    /// The table that it belongs to.
    pub table: String,
    /// Its definition, without comments and line breaks.
    pub sql: String,
}

impl Object {
    /// What another program has made, in words. `is_ours`: its table is one of petstore's.
    pub fn describe(&self, name: &str, kind: &str, is_ours: bool) -> String {
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
pub fn objects(connection: &Connection) -> rusqlite::Result<BTreeMap<(String, String), Object>> {
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
pub fn shown(name: &str) -> String {
    name.chars().take(MAX_NAME).flat_map(char::escape_debug).collect()
}

/// A definition without its comments and line breaks.
pub fn plain(sql: &str) -> String {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// What counts of a definition: `ALTER TABLE` leaves other spaces, and quotes around names.
fn essence(sql: &str) -> String {
    plain(sql).replace([' ', '"'], "")
}

pub fn same(one: &str, other: &str) -> bool {
    essence(one) == essence(other)
}

/// Whether a definition is another one with something added in one place, as `ALTER TABLE ADD COLUMN` does.
pub fn is_extended(found: &str, expected: &str) -> bool {
    let (found, expected) = (essence(found), essence(expected));
    let common = |a: &mut dyn Iterator<Item = u8>, b: &mut dyn Iterator<Item = u8>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let begin = common(&mut found.bytes(), &mut expected.bytes());
    let end = common(&mut found.bytes().rev(), &mut expected.bytes().rev());
    begin + end >= expected.len() && found.len() > expected.len()
}

/// The definition of a column within that of its table, which has no comments.
pub fn definition<'a>(table: &'a str, column: &str) -> Option<&'a str> {
    let columns = table.get(table.find('(')? + 1..table.rfind(')')?)?;
    let mut depth = 0;
    let is_end = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    columns.split(is_end).map(str::trim).find(|definition| definition.split(' ').next() == Some(column))
}

#[derive(Clone)]
pub struct Column {
    pub name: String,
    /// Whether a row cannot be written without a value for it.
    pub must_have_value: bool,
}

pub fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Column>> {
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
