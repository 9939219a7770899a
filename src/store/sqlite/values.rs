//! Values that no column of petstore can have. Other programs write too, disks flip bits, and SQLite checks neither the
//! encoding of text nor what it reads. The service reads such a value as something that harms no other row; here it is
//! named, with the SQL that makes it what the service reads.

use rusqlite::Connection;

use super::schema::text;
use crate::base::error::{Error, ErrorKind};
use crate::base::json::Enumeration;
use crate::model::{DomainState, PetStatus, Plan, REDIRECT_STATUSES};

/// In place of a value: the row is nothing without it, so it goes.
const DELETE: &str = "";

/// The condition for the values of a column, besides that of their type, and what the service reads in place of another.
fn rule(column: &str) -> Option<(String, &'static str)> {
    Some(match column {
        "pets.status" => (one_of(PetStatus::SCHEMA), "NULL"),
        "project.plan" => (one_of(Plan::SCHEMA), "'free'"),
        "domains.state" => (one_of(DomainState::SCHEMA), "'dns_changed'"),
        "redirects.status" => {
            (format!("IN ({})", REDIRECT_STATUSES.map(|it| it.to_string()).join(", ")), "307")
        }
        "project.id" => ("= 1".into(), DELETE),
        "api_keys.read_only" => ("IN (0, 1)".into(), "1"),
        "api_keys.is_admin" | "domains.is_primary" | "imports.keeps_ids" => ("IN (0, 1)".into(), "0"),
        "api_keys.expires_at" => ("IS NOT NULL".into(), "0"),
        "domains.name" | "redirects.source" | "redirects.target" => {
            ("NOT GLOB '*[^a-zA-Z0-9._-]*'".into(), DELETE)
        }
        "api_keys.digest" => ("IS NOT NULL AND length(digest) = 32".into(), DELETE),
        "imports.input" => ("IS NOT NULL AND length(input) = 32".into(), DELETE),
        "retries.key" => ("IS NOT NULL AND length(key) = 16".into(), DELETE),
        "retries.fingerprint" => ("IS NOT NULL AND length(fingerprint) = 16".into(), DELETE),
        "deploy_files.deploy" | "deploy_files.path" | "imports.line" => ("IS NOT NULL".into(), DELETE),
        _ => return None,
    })
}

/// The condition that a text is one of these words.
fn one_of<W>(words: Enumeration<W>) -> String {
    let words: Vec<String> = words.words.iter().map(|(_, word)| format!("'{word}'")).collect();
    format!("IN ({})", words.join(", "))
}

/// The values of a table that its columns cannot have: a line for each.
///
/// # Errors
/// If the table cannot be read.
pub fn odd(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Error>> {
    let mut columns =
        connection.prepare("SELECT name, lower(type), \"notnull\" FROM pragma_table_info(?1)")?;
    let columns = columns.query_map([table], |row| Ok([text(row, 0)?, text(row, 1)?, text(row, 2)?]))?;
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let has_rowid =
        connection.prepare("SELECT 1 FROM pragma_table_list WHERE name = ?1 AND NOT wr")?.exists([table])?;
    // Bytes, as the key may be such a value.
    let key = if has_rowid { "rowid".to_owned() } else { format!("CAST({} AS BLOB)", columns[0][0]) };
    let mut found = Vec::new();
    for [name, kind, is_required] in &columns {
        let (condition, instead) = rule(&format!("{table}.{name}")).unzip();
        let condition = condition.as_deref().unwrap_or("IS NOT NULL");
        let is_right = format!("typeof({name}) = '{kind}' AND ({name} {condition})");
        let mut rows = connection.prepare(&format!(
            "SELECT quote({key}), {name}, {is_right} FROM {table} NOT INDEXED
             WHERE ({is_required} OR {name} IS NOT NULL) AND ('{kind}' = 'text' OR NOT ({is_right}))"
        ))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            if row.get(2)? && row.get_ref(1)?.as_str().is_ok() {
                continue;
            }
            let repair = match (instead, &kind[..], &is_required[..]) {
                // The column may have an index, which says something else.
                (Some(DELETE), ..) => format!("REINDEX {table}; DELETE FROM {table}"),
                (Some(instead), ..) => format!("REINDEX {table}; UPDATE {table} SET {name} = {instead}"),
                (None, "text", _) => format!("UPDATE {table} SET {name} = {}", quoted(&text(row, 1)?)),
                (None, "blob", _) => format!("UPDATE {table} SET {name} = x''"),
                (None, _, is_required) => {
                    format!("UPDATE {table} SET {name} = iif({is_required}, 0, NULL)")
                }
            };
            let at = text(row, 0)?;
            let line = format!(
                "{table}, {key} {at}: {name} has a value that it cannot have; this SQL repairs it: {repair} WHERE {key} = {at};"
            );
            found.push(Error::new(ErrorKind::SchemaChanged, line));
        }
    }
    Ok(found)
}

/// A text as SQL has it, without what a terminal or `sqlite3` could take for something else.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace(char::is_control, "\u{FFFD}").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::Folder;
    use super::super::tests::new_pet;
    use super::super::{FileConnection, Snapshot};
    use super::*;
    use crate::model::{IdempotencyKey, Page, PetPatch, PetQuery, PetStatus};
    use crate::store::{Reader, Writer};
    use std::ops::ControlFlow;

    /// One row of each table.
    const ROWS: &str = "
        INSERT INTO pets (id, name, category_id, status) VALUES (7, 'Rex', 3, 'sold'), (8, 'Tom', 4, NULL);
        INSERT INTO api_keys (digest, name, read_only, created_at) VALUES (randomblob(32), 'ci', 0, 9);
        INSERT INTO deploys (id, deployed_at) VALUES (1, 9);
        INSERT INTO deploy_files VALUES (1, '/a', 'text/plain', 'tag', x'00', x'01');
        UPDATE project SET deploy = 1;
        INSERT INTO domains VALUES ('a.test', 'active', 1, 'code', 'text', 1, 1, 1);
        INSERT INTO redirects VALUES ('a.test', 'b.test', 301);
        INSERT INTO imports VALUES (zeroblob(32), 5, 6, 7, 8, 0);
        INSERT INTO retries VALUES (7, zeroblob(16), zeroblob(16), 9);";

    /// As the `sqlite3` shell opens it.
    fn shell(folder: &Folder) -> Connection {
        let connection = Connection::open(folder.database()).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        connection.pragma_update(None, "synchronous", "OFF").unwrap();
        connection
    }

    /// A database whose tables take any value.
    fn loosened() -> Folder {
        let folder = Folder::new();
        drop(FileConnection::open(&folder.database()).unwrap());
        shell(&folder).execute_batch(ROWS).unwrap();
        let loosen = "CREATE TABLE kept AS SELECT rowid AS n, sql FROM sqlite_schema WHERE type = 'table';
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(replace(replace(sql, 'STRICT,', ''), 'STRICT', ''), 'NOT NULL', '')
                WHERE type = 'table' AND sql LIKE '%STRICT%'";
        shell(&folder).execute_batch(loosen).unwrap();
        folder
    }

    /// A copy with one value that is written past everything that SQLite checks, as a flipped bit is.
    fn with_value(loosened: &Folder, table: &str, column: &str, value: &str) -> Folder {
        let folder = Folder::new();
        std::fs::copy(loosened.database(), folder.database()).unwrap();
        let row = if table == "pets" { "WHERE id = 7" } else { "" };
        let sql = format!(
            "PRAGMA ignore_check_constraints = ON; UPDATE {table} SET {column} = {value} {row};
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = (SELECT sql FROM kept WHERE n = sqlite_schema.rowid)
                WHERE rowid IN (SELECT n FROM kept) AND type = 'table'"
        );
        shell(&folder).execute_batch(&sql).unwrap();
        shell(&folder).execute_batch("DROP TABLE kept").unwrap();
        folder
    }

    /// Reads everything that a service reads.
    fn read_all(database: &Reader) -> Vec<(i64, String)> {
        let mut pets = Vec::new();
        let all = PetQuery::all(Page { limit: 100, after: None });
        let visit = |pet: crate::model::Pet| {
            pets.push((pet.id, pet.name.to_owned()));
            ControlFlow::Continue(())
        };
        database.visit_pets(&all, visit).unwrap();
        database.visit_every_pet(|_| ControlFlow::Continue(())).unwrap();
        database.keys().unwrap();
        database.has_had_keys().unwrap();
        database.plan().unwrap();
        database.domains().unwrap();
        database.domain("a.test").unwrap();
        database.primary().unwrap();
        database.redirects().unwrap();
        database.redirect("a.test").unwrap();
        database.deploys().unwrap();
        database.is_deployed().unwrap();
        if let Some(file) = database.file("/a", "/b").unwrap() {
            database.content(&file, false).unwrap();
            database.content(&file, true).unwrap();
        }
        database.last_id().unwrap();
        pets
    }

    const TABLES: [&str; 9] = [
        "pets",
        "api_keys",
        "project",
        "deploys",
        "deploy_files",
        "domains",
        "redirects",
        "imports",
        "retries",
    ];
    const VALUES: [&str; 7] = [
        "CAST(x'4a6fe9' AS TEXT)",
        "CAST(x'2700' AS TEXT)",
        "'none of the words'",
        "x'e900'",
        "2.5",
        "9223372036854775807",
        "NULL",
    ];
    /// They are the key by which SQLite finds the row, and so always what they can be.
    const ROWIDS: [&str; 5] = ["pets.id", "api_keys.id", "deploys.id", "project.id", "retries.pet"];
    /// No row lacks them either.
    const KEYS: [&str; 3] = ["domains.name", "redirects.source", "imports.input"];

    #[test]
    fn no_value_of_any_column_harms_a_start_or_another_row_and_its_sql_mends_it() {
        let model = Connection::open_in_memory().unwrap();
        model.execute_batch(include_str!("../../../schema.sql")).unwrap();
        let (loosened, mut mended) = (loosened(), 0);
        for table in TABLES {
            let mut columns = model.prepare("SELECT name FROM pragma_table_info(?1)").unwrap();
            for column in columns.query_map([table], |row| text(row, 0)).unwrap().map(Result::unwrap) {
                let name = format!("{table}.{column}");
                let is_possible = |value| value != "NULL" || !KEYS.contains(&&name[..]);
                for value in VALUES.into_iter().filter(|value| is_possible(*value)) {
                    if !ROWIDS.contains(&&name[..]) {
                        let folder = with_value(&loosened, table, &column, value);
                        use_all(&folder, &format!("{name} = {value}"));
                        mended += mend(&folder, table, &format!("{name} = {value}"));
                    }
                }
            }
        }
        assert!(mended > 120, "{mended}");
    }

    /// Does what a service and the commands do, on other rows and on the one with the value.
    fn use_all(folder: &Folder, what: &str) {
        let open = Writer::open(&folder.database());
        let mut writer = open.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(writer.probe(), Ok(()), "{what}");
        let key = IdempotencyKey([0; 16]);
        writer.insert_pet(&new_pet("Max"), Some(&key)).unwrap();
        // SQLite refuses to write the row again while a value of it is of another type.
        if what.contains("AS TEXT") && !what.contains("category_id") {
            let sold = PetPatch { status: Some(Some(PetStatus::Sold)), ..PetPatch::default() };
            assert_eq!(writer.transaction().unwrap().update_pet(7, None, &sold), Ok(()), "{what}");
        }
        assert_eq!(writer.transaction().unwrap().delete_pet(7, None), Ok(()), "{what}");
        writer.undo();
        drop(writer);
        let pets = read_all(&Reader::open(&folder.database()).unwrap());
        assert_eq!(pets.last(), Some(&(8, "Tom".to_owned())), "{what}");
    }

    /// Runs the SQL that a check names, and checks again. Returns how many values it mended.
    fn mend(folder: &Folder, table: &str, what: &str) -> usize {
        let check = || Snapshot::of_file(&folder.database()).unwrap().check().unwrap();
        let before = check();
        for fault in before.values.iter().map(Error::to_string) {
            let is_of_table = fault.starts_with(&format!("{table}, "));
            assert!(
                is_of_table || fault.contains(&format!(" refers to a row of {table} ")),
                "{what}: {fault}"
            );
            let (_, sql) = fault.split_once("repairs it: ").unwrap();
            shell(folder).execute_batch(sql).unwrap_or_else(|error| panic!("{what}: {sql}: {error}"));
        }
        assert!(before.faults.is_empty(), "{what}: {:?}", before.faults);
        let after = check();
        let left: Vec<&Error> = after.faults.iter().chain(&after.values).collect();
        assert!(left.is_empty(), "{what}: {left:?}");
        before.values.len()
    }
}
