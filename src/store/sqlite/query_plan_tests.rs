//! The plan of every statement of the store: none scans or sorts a table that can be large, or reads any number of its
//! rows by an index, except those listed here.
//!
//! A read lane is one thread, so a statement that scans a million pets holds up every request behind it. Each list is
//! also asked for a rare value among many rows.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::migrations::STEPS;
use super::tests::pair;
use crate::model::{Page, PetQuery, PetStatus};
use crate::store::StoreError;
use crate::store::statements::{COLUMNS, FILTERS, PAGES};

/// Tables, and their aliases, whose rows only operators create: a scan of them is short.
const SMALL: &[&str] = &[
    "api_keys",
    "cluster_changes",
    "deploys",
    "d",
    "domains",
    "imports",
    "newest",
    "now",
    "project",
    "redirects",
    "sqlite_master",
    "sqlite_sequence",
];

/// Statements that read or sort more than a page: how they begin, and why they may.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "SELECT id, name, category_id, status FROM pets ORDER BY id",
        "an export reads every pet",
    ),
    (
        "SELECT id, name, category_id, status FROM (SELECT *, sum(",
        "it adds up the names of one page",
    ),
    (
        "SELECT count(*), (SELECT count(*) FROM pets WHERE status",
        "a count reads every pet, and is kept if it took long",
    ),
    (
        "SELECT count(*), ifnull(min(id), 0)",
        "an import counts every pet",
    ),
    (
        "SELECT id FROM pets WHERE id BETWEEN",
        "an operator names the range",
    ),
    (
        "SELECT digest, name, read_only, is_admin, created_at, expires_at, last_used_at FROM api_keys ORDER BY name",
        "key list sorts the keys",
    ),
    ("SELECT rowid, path, content_type", "it sorts two rows"),
    (
        "SELECT name FROM sqlite_schema WHERE type = 'trigger'",
        "a start reads the schema",
    ),
    (
        "DELETE FROM retries WHERE pet IN",
        "it looks at as many as it may remove",
    ),
    (
        "DELETE FROM changes WHERE id <",
        "it looks at as many as it may remove",
    ),
    (
        "UPDATE pets SET name = name, category_id = category_id, status = status WHERE id >",
        "a trial of the disk rewrites the last few pets",
    ),
    (
        "DELETE FROM cluster_batches WHERE id <=",
        "it removes the rows added since the last time",
    ),
    (
        "UPDATE retries SET at = ?1",
        "it reads on only if the clock was wrong, once",
    ),
];

/// Searches by an index that find few rows of a large table: one, or the files of one deploy, which are limited.
const SHORT_SEARCHES: &[&str] = &[
    "INTEGER PRIMARY KEY (rowid=?)",
    "sqlite_autoindex_retries_1 (key=?)",
    "sqlite_autoindex_cluster_batches_1 (writer=?)",
    "sqlite_autoindex_deploy_files_1 (deploy=?",
];

/// Files whose statements no request runs on a large table: the check of a whole database, the rows of an import, what a start asks of
/// a cluster, and tests.
const UNCHECKED: [&str; 10] = [
    "sqlite/schema_diff.rs",
    "integrity.rs",
    "sqlite/trial.rs",
    "store/staging.rs",
    "sqlite/values.rs",
    "rqlite/replicas.rs",
    "rqlite/schema.rs",
    "rqlite/tests/",
    "rqlite/copies.rs",
    "rqlite/client",
];

/// The statements in the string literals of a file, each on one line.
fn statements(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(start) = rest.find('"') {
        let literal = &rest[start + 1..];
        let Some(end) = literal
            .match_indices('"')
            .map(|(at, _)| at)
            .find(|at| !literal[..*at].ends_with('\\'))
        else {
            break;
        };
        let text = literal[..end].replace("\\\n", " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if starts_a_statement(&text) {
            found.extend(
                text.split(';')
                    .map(str::trim)
                    .filter(|sql| !sql.is_empty())
                    .map(str::to_owned),
            );
        }
        rest = &literal[end + 1..];
    }
    found
}

/// Returns true if a text begins like a statement, in any letter case.
fn starts_a_statement(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match text.split(' ').next() {
        Some("SELECT" | "DELETE") => has(&[" FROM ", "SELECT "]),
        Some("INSERT" | "REPLACE") => has(&[" INTO "]),
        Some("UPDATE") => has(&[" SET "]),
        Some("WITH") => has(&[" AS ("]),
        _ => false,
    }
}

/// Returns true if the first WHERE of a statement compares a column other than the id.
fn compares_another_column(sql: &str) -> bool {
    let sql = sql.to_ascii_uppercase();
    let condition = sql.split_once(" WHERE ").map_or("", |(_, rest)| rest);
    let condition = condition.split(" ORDER BY ").next().unwrap_or_default();
    let columns = condition
        .split(" AND ")
        .filter_map(|part| part.split([' ', '=', '<', '>']).next());
    columns
        .filter(|column| !column.is_empty())
        .any(|column| !["ID", "ROWID", "P.ID"].contains(&column))
}

/// The steps of a plan that read a large table whole or sort it, that read any number of its rows by an index, or that
/// search by rowid for the value of another column.
fn scans(connection: &Connection, sql: &str) -> Vec<String> {
    // Texts that are assembled from parts.
    let sql = sql
        .replace("{page}", PAGES[0][0])
        .replace("{order}", "ORDER BY id")
        .replace("{pet}", "pet = ?6 AND")
        .replace("{LIST_BYTES}", "1")
        .replace("{REVISION}", "SELECT 1, 2, 3")
        .replace("{counts}", "")
        .replace("{contents}", "id")
        .replace("{column}", "content")
        .replace("{table}", "pets")
        .replace("{others}", "= ?1");
    let sql = if sql.ends_with(" WHERE") {
        format!("{sql} id = ?1)")
    } else if sql.ends_with(" VALUES") {
        format!("{sql} ({})", ["?"; COLUMNS.len()].join(", "))
    } else {
        sql
    };
    let mut plan = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap_or_else(|error| {
            panic!("{sql}: {error}");
        });
    let values = vec![rusqlite::types::Null; plan.parameter_count()];
    let steps = plan
        .query_map(rusqlite::params_from_iter(values), |row| {
            row.get::<_, String>(3)
        })
        .unwrap();
    let is_long = |step: &String| {
        let (kind, rest) = step.split_once(' ').unwrap_or_default();
        let table = rest.split(' ').next().unwrap_or_default();
        match kind {
            "SCAN" => step != "SCAN CONSTANT ROW" && !SMALL.contains(&table),
            "SEARCH" if SMALL.contains(&table) => false,
            "SEARCH"
                if step.contains("INTEGER PRIMARY KEY (rowid>")
                    && compares_another_column(&sql) =>
            {
                true
            }
            // Without an index, it takes the least or the greatest key.
            "SEARCH" if !step.contains(" USING ") => false,
            "SEARCH" => {
                !SHORT_SEARCHES.iter().any(|search| step.contains(search))
                    && !is_limited(connection, &sql)
            }
            _ => step.contains("TEMP B-TREE"),
        }
    };
    steps.map(Result::unwrap).filter(is_long).collect()
}

/// Returns true if the limit of a statement bounds the rows that it reads. An aggregate, a group and an offset read
/// more. SQLite's opcodes show the limit, the offset and the call of any aggregate function.
fn is_limited(connection: &Connection, sql: &str) -> bool {
    let mut program = connection.prepare(&format!("EXPLAIN {sql}")).unwrap();
    let values = vec![rusqlite::types::Null; program.parameter_count()];
    let opcodes = program
        .query_map(rusqlite::params_from_iter(values), |row| {
            row.get::<_, String>(1)
        })
        .unwrap();
    let opcodes: Vec<_> = opcodes.map(Result::unwrap).collect();
    let has = |name: &str| opcodes.iter().any(|opcode| opcode == name);
    let sql = sql.to_ascii_uppercase();
    let reads_on = has("AggStep")
        || has("OffsetLimit")
        || sql.contains(" GROUP BY ")
        || sql.contains(" DISTINCT ");
    has("DecrJumpZero") && !reads_on
}

/// The files of a folder and of those in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn no_statement_reads_a_whole_table() {
    let connection = Connection::open_in_memory().unwrap();
    STEPS
        .iter()
        .for_each(|step| connection.execute_batch(step).unwrap());
    connection
        .execute_batch(include_str!("../cluster/rqlite/cluster.sql"))
        .unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src/store", "src/hosting/statements"].map(|folder| files(&root.join(folder)));
    let (mut used, mut faults) = (Vec::new(), Vec::new());
    for path in folders.concat() {
        let is_code = path.extension().is_some_and(|end| end == "rs")
            && !path.to_str().unwrap().ends_with("tests.rs");
        if !is_code
            || UNCHECKED.iter().any(|name| {
                path.ends_with(name) || path.parent().is_some_and(|it| it.ends_with(name))
            })
        {
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let code = source.split("mod tests {").next().unwrap();
        for sql in statements(code) {
            let scans = scans(&connection, &sql);
            match EXCEPTIONS.iter().find(|(start, _)| sql.starts_with(start)) {
                Some((start, _)) => used.push(*start),
                None if scans.is_empty() => {}
                None => faults.push(format!("{}: {sql}: {scans:?}", path.display())),
            }
        }
    }
    assert!(
        faults.is_empty(),
        "they read too much, or are exceptions whose text has changed: {faults:#?}"
    );
    let unused = EXCEPTIONS.iter().find(|(start, _)| !used.contains(start));
    assert_eq!(unused, None, "it is in no file any more");
}

#[test]
fn read_of_any_number_of_rows_by_an_index_is_found() {
    let connection = Connection::open_in_memory().unwrap();
    STEPS
        .iter()
        .for_each(|step| connection.execute_batch(step).unwrap());
    for sql in [
        "SELECT status, count(*) FROM pets WHERE status IS NOT NULL GROUP BY status",
        "SELECT count(*) FROM pets WHERE status = ?1",
        "SELECT count(*) FROM pets WHERE status = ?1 LIMIT 1",
        "SELECT sum(status = ?1) FROM pets WHERE id > 0",
        "SELECT id FROM pets WHERE status = ?1",
        "UPDATE pets SET name = ?1 WHERE status = ?2",
        "DELETE FROM pets WHERE id > ?1",
        "SELECT id FROM pets WHERE status = ?1 LIMIT ?2 OFFSET ?3",
        "SELECT group_concat(name) FROM pets WHERE status = ?1 LIMIT 1",
        "select id from pets where status = ?1",
        "select Count(*) from pets where status = ?1 limit 1",
        "select status from pets where status > ?1 group by status limit 1",
        "select id from pets where name = ?1 and id > ?2 limit 1",
        "SELECT (SELECT id FROM pets LIMIT 1) FROM pets WHERE status = ?1",
    ] {
        assert!(starts_a_statement(sql), "{sql}");
        assert!(!scans(&connection, sql).is_empty(), "{sql}");
    }
    for sql in [
        "SELECT name FROM pets WHERE id = ?1",
        "SELECT id FROM pets WHERE status = ?1 LIMIT ?2",
        "SELECT max(id) FROM pets",
        "UPDATE pets SET name = ?1 WHERE id = ?2",
    ] {
        assert!(scans(&connection, sql).is_empty(), "{sql}");
    }
}

#[test]
fn natural_filter_without_an_index_is_found() {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE TABLE toys (id INTEGER PRIMARY KEY, shop INTEGER) STRICT")
        .unwrap();
    let filter = |condition| {
        format!(
            "const A: &str = \"SELECT id FROM toys \\\n    WHERE {condition} ORDER BY id LIMIT ?2\";"
        )
    };
    for (condition, step) in [
        ("shop = ?1", "SCAN toys"),
        (
            "shop = ?1 AND id >= ?3",
            "SEARCH toys USING INTEGER PRIMARY KEY (rowid>?)",
        ),
    ] {
        let [sql] = &statements(&filter(condition))[..] else {
            panic!("one statement")
        };
        assert_eq!(scans(&connection, sql), [step]);
    }
    let with = "\"WITH all_toys AS (SELECT * FROM toys) SELECT count(*) FROM all_toys\"";
    let [sql] = &statements(with)[..] else {
        panic!("one statement")
    };
    assert_eq!(scans(&connection, sql).len(), 1);
}

/// A page of every pet, and one with each filter set to what only the last pet has. The pattern names each field of the
/// query, so that the compiler asks here for a new filter.
fn rare(page: Page) -> [PetQuery; 2] {
    let all = PetQuery::all(page);
    let PetQuery { page: _, status: _ } = all;
    [
        all,
        PetQuery {
            status: Some(PetStatus::Sold),
            ..all
        },
    ]
}

/// Also of two values that are frequent, of which the pair is rare.
#[test]
fn every_set_of_filters_has_an_index_with_all_of_them() {
    let (_folder, writer, _reader) = pair();
    let sets = PAGES.iter().flat_map(|pages| pages.iter().enumerate());
    for (set, sql) in sets {
        let mut plan = writer
            .raw()
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let plan: Vec<String> = plan
            .query_map(
                rusqlite::params_from_iter(vec![
                    rusqlite::types::Null;
                    set.count_ones() as usize + 2
                ]),
                |row| row.get(3),
            )
            .unwrap()
            .flatten()
            .collect();
        for (n, column) in FILTERS.iter().enumerate() {
            let is_found = plan.concat().contains(&format!("{column}=? AND "));
            assert_eq!(is_found, set & (1 << n) != 0, "{sql}: {plan:?}");
        }
    }
}

#[test]
fn page_of_a_rare_value_reads_only_its_rows() {
    let (_folder, writer, mut reader) = pair();
    let many = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
        INSERT INTO pets (name, category_id, status) SELECT 'x', 1, 'available' FROM n;
        INSERT INTO pets (name, category_id, status) VALUES ('rare', 2, 'sold')";
    writer.raw().execute_batch(many).unwrap();
    // Stops each statement that takes a thousand steps of SQLite's virtual machine; a page of 20 takes a few hundred.
    reader
        .raw_mut()
        .progress_handler(1000, Some(|| true))
        .unwrap();
    let ids = |query: &PetQuery| -> Result<Vec<i64>, StoreError> {
        let mut ids = Vec::new();
        reader.visit_pets(query, |pet| {
            ids.push(pet.id);
            ControlFlow::Continue(())
        })?;
        Ok(ids)
    };
    for after in [None, Some(10_000)] {
        let [all, filters @ ..] = rare(Page::ascending(20, after));
        assert_eq!(ids(&all).unwrap().len(), 21);
        for query in filters {
            assert_eq!(ids(&query), Ok(vec![20_001]), "{query:?}");
        }
    }
    let indexes = "SELECT group_concat('DROP INDEX ' || name, ';') FROM sqlite_master WHERE type = 'index' AND tbl_name = 'pets'";
    let drop_all: String = writer
        .raw()
        .query_row(indexes, [], |row| row.get(0))
        .unwrap();
    writer.raw().execute_batch(&drop_all).unwrap();
    let [_, by_status] = rare(Page::ascending(20, None));
    let stopped = ids(&by_status).unwrap_err().to_string();
    assert!(stopped.contains("interrupt"), "{stopped}");
}
