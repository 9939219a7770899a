//! Text that is not UTF-8. Other programs write too, and SQLite does not check text. The service shows U+FFFD in place of
//! such bytes; here each text is named, with the SQL that makes it what the service shows. What STRICT, NOT NULL and CHECK
//! rule out, `integrity.rs` finds.

use rusqlite::Connection;

use super::schema::{text, texts};

/// The columns of a table that have text, and how to name a row: by its bytes if its key is text. The key comes last, as
/// the SQL for the other columns needs it.
const TEXTS: &str = "SELECT format('\"%w\"', c.name), iif(t.wr, 'CAST(' || k.name || ' AS BLOB)', 'rowid') \
    FROM pragma_table_list(?1) AS t JOIN pragma_table_info(?1) AS c LEFT JOIN pragma_table_info(?1) AS k ON k.pk = 1 \
    WHERE c.type = 'TEXT' ORDER BY c.cid DESC";

/// The texts of a table that are not UTF-8: a line for each.
///
/// # Errors
/// If the table cannot be read.
pub fn not_utf8(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    for [name, key] in texts(connection, TEXTS, [table])? {
        let mut rows = connection.prepare(&format!(
            "SELECT quote({key}), {name} FROM {table} NOT INDEXED WHERE typeof({name}) = 'text'"
        ))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let stored = row.get_ref(1)?;
            if stored.as_str().is_err() {
                let [at, shown] = [text(row, 0)?, text(row, 1)?];
                // A name as it is could say something else to a terminal, or to `sqlite3`.
                let hex = |bytes: &[u8]| -> String {
                    bytes.iter().map(|it| format!("{it:02x}")).collect()
                };
                let (new, old) = (
                    hex(shown.as_bytes()),
                    hex(stored.as_bytes().unwrap_or_default()),
                );
                found.push(format!(
                    "{table}, {key} {at}: {name} is not UTF-8: {shown:?}; this SQL repairs it: \
                     UPDATE {table} SET {name} = CAST(x'{new}' AS TEXT) WHERE {key} = {at} AND CAST({name} AS BLOB) = x'{old}';"
                ));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::migrations::STEPS;
    use super::super::tests::{Folder, new_pet};
    use super::super::{Snapshot, Writer};
    use super::*;
    use crate::model::{IdempotencyKey, Page, PetPatch, PetQuery, PetStatus};
    use crate::store::Reader;
    use petstore_hosting::ProjectReads;
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
        INSERT INTO imports VALUES (zeroblob(32), 6, 7, 8);
        INSERT INTO retries VALUES (7, zeroblob(16), zeroblob(16), 9);
        INSERT INTO changes_kept VALUES (1, 9, 0);
        INSERT INTO changes VALUES (7, 9, 8, 1, 2, 'sold', 'sold', 'ci', 'Tim', 'Tom');";

    /// As the `sqlite3` shell opens it.
    fn shell(folder: &Folder) -> Connection {
        let connection = Connection::open(folder.database()).unwrap();
        connection
            .pragma_update(None, "foreign_keys", false)
            .unwrap();
        connection
            .pragma_update(None, "synchronous", "OFF")
            .unwrap();
        connection
    }

    fn strict() -> Folder {
        let folder = Folder::new();
        drop(Writer::open(&folder.database()).unwrap());
        shell(&folder).execute_batch(ROWS).unwrap();
        folder
    }

    /// Whether SQLite itself refuses a value.
    fn refuses(strict: &Folder, table: &str, column: &str, value: &str) -> bool {
        let sql = format!("BEGIN; UPDATE {table} SET {column} = {value}; ROLLBACK");
        shell(strict).execute_batch(&sql).is_err()
    }

    /// A database whose tables take any value.
    fn loosened() -> Folder {
        let folder = strict();
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
        let all = PetQuery::all(Page::ascending(100, None));
        let visit = |pet: crate::model::Pet| {
            pets.push((pet.id, pet.name.into_owned()));
            ControlFlow::Continue(())
        };
        database.visit_pets(&all, visit).unwrap();
        database
            .visit_every_pet(|_| ControlFlow::Continue(()))
            .unwrap();
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

    #[test]
    fn sql_for_a_row_whose_key_is_text_finds_it_line_by_line() {
        let folder = strict();
        let damage =
            "UPDATE domains SET name = CAST(x'61e9' AS TEXT), message = CAST(x'62e9' AS TEXT);
            DELETE FROM redirects";
        shell(&folder).execute_batch(damage).unwrap();
        let check = || {
            let snapshot = Snapshot::of_file(&folder.database()).unwrap();
            snapshot.check().unwrap().values
        };
        for line in check() {
            let line = line.to_string();
            let (_, sql) = line.split_once("repairs it: ").unwrap();
            shell(&folder).execute_batch(sql).unwrap();
        }
        assert_eq!(check().len(), 0);
    }

    const TABLES: [&str; 11] = [
        "pets",
        "api_keys",
        "project",
        "deploys",
        "deploy_files",
        "domains",
        "redirects",
        "imports",
        "retries",
        "changes_kept",
        "changes",
    ];
    const NOT_UTF8: &str = "CAST(x'4a0a2700e9' AS TEXT)";
    const VALUES: [&str; 7] = [
        NOT_UTF8,
        "CAST(x'2700' AS TEXT)",
        "'none of the words'",
        "x'e900'",
        "2.5",
        "9223372036854775807",
        "NULL",
    ];
    /// Columns that are the rowid. SQLite stores nothing but integers there.
    const ROWIDS: [&str; 7] = [
        "pets.id",
        "api_keys.id",
        "deploys.id",
        "project.id",
        "retries.pet",
        "changes_kept.id",
        "changes.id",
    ];
    /// No row lacks them either.
    const KEYS: [&str; 3] = ["domains.name", "redirects.source", "imports.input"];

    #[test]
    fn no_value_of_any_column_harms_a_start_or_another_row_and_a_check_names_it() {
        let model = Connection::open_in_memory().unwrap();
        model.execute_batch(&STEPS.concat()).unwrap();
        let (loosened, strict) = (loosened(), strict());
        let (mut ruled_out, mut mended) = (0, 0);
        for table in TABLES {
            let mut columns = model
                .prepare("SELECT name FROM pragma_table_info(?1)")
                .unwrap();
            for column in columns
                .query_map([table], |row| text(row, 0))
                .unwrap()
                .map(Result::unwrap)
            {
                let name = format!("{table}.{column}");
                let is_possible = |value| value != "NULL" || !KEYS.contains(&&name[..]);
                for value in VALUES.into_iter().filter(|value| is_possible(*value)) {
                    if !ROWIDS.contains(&&name[..]) {
                        let folder = with_value(&loosened, table, &column, value);
                        let what = format!("{name} = {value}");
                        use_all(&folder, &what);
                        let is_ruled_out = refuses(&strict, table, &column, value);
                        ruled_out += usize::from(is_ruled_out);
                        mended += expect_named(&folder, table, &column, is_ruled_out, &what);
                        // A redirect of a domain that does not exist is removed.
                        let stays = name != "redirects.source";
                        if value == NOT_UTF8 && !is_ruled_out && stays {
                            let sql = format!("SELECT {column} FROM {table} LIMIT 1");
                            let shown: String = shell(&folder)
                                .query_row(&sql, [], |row| row.get(0))
                                .unwrap();
                            assert_eq!(shown, "J\n'\0\u{fffd}", "{what}");
                        }
                    }
                }
            }
        }
        assert!(ruled_out > 100 && mended > 10, "{ruled_out}, {mended}");
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
            let sold = PetPatch {
                status: Some(Some(PetStatus::Sold)),
                ..PetPatch::default()
            };
            assert_eq!(
                writer.transaction().unwrap().update_pet(7, &sold),
                Ok(()),
                "{what}"
            );
        }
        assert_eq!(
            writer.transaction().unwrap().delete_pet(7),
            Ok(()),
            "{what}"
        );
        writer.undo();
        drop(writer);
        let pets = read_all(&Reader::open(&folder.database()).unwrap());
        assert_eq!(pets.last(), Some(&(8, "Tom".to_owned())), "{what}");
    }

    /// Checks, runs the SQL that the check names, and checks again. Returns how many values have SQL.
    fn expect_named(
        folder: &Folder,
        table: &str,
        column: &str,
        is_ruled_out: bool,
        what: &str,
    ) -> usize {
        let check = || {
            let snapshot = Snapshot::of_file(&folder.database()).unwrap();
            let found = snapshot.check().unwrap();
            assert!(found.faults.is_empty(), "{what}: {:?}", found.faults);
            let lines = found.values.iter().map(ToString::to_string);
            let (texts, others): (Vec<_>, Vec<_>) =
                lines.partition(|line| line.contains("repairs it: "));
            (texts, others.join("\n"))
        };
        let (repairs, others) = check();
        let is_named = others.contains(&format!(" value in {table}.{column}"))
            || others.contains(&format!("{table}: a row breaks CHECK ("));
        assert_eq!(is_named, is_ruled_out, "{what}: {others}");
        for line in &repairs {
            let (_, sql) = line.split_once("repairs it: ").unwrap();
            let result = shell(folder).execute_batch(sql);
            // SQLite refuses what a CHECK rules out: nothing is lost.
            let is_refused = is_ruled_out && line.contains("not UTF-8");
            assert_eq!(result.is_err(), is_refused, "{what}: {sql}: {result:?}");
        }
        if !is_ruled_out {
            assert_eq!(check(), (Vec::new(), String::new()), "{what}");
        }
        repairs.len()
    }
}
