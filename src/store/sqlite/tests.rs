use super::*;

pub use crate::store::pets::tests::new_pet;
pub use petstore_base::testing::Folder;

/// The first column of a statement.
pub fn all<T: rusqlite::types::FromSql>(reader: &Reader, sql: &str) -> Vec<T> {
    let mut rows = reader.raw().prepare(sql).unwrap();
    rows.query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Runs statements as another program would.
pub fn run(reader: &Reader, sql: &str) {
    reader.raw().execute_batch(sql).unwrap();
}

/// The names of all pets, as a batch sees them.
pub fn names(reader: &mut Reader) -> Vec<String> {
    reader.begin().unwrap();
    let names = all(reader, "SELECT name FROM pets ORDER BY id");
    reader.end().unwrap();
    names
}

/// Has SQLite refuse every write, as a file does that may only be read.
pub fn refuse_writes(writer: &Writer, refuse: bool) {
    writer
        .raw()
        .pragma_update(None, "query_only", refuse)
        .unwrap();
}

/// Has SQLite refuse checkpoints.
pub fn refuse_checkpoints(writer: &mut Writer) {
    use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
    let allow = |context: AuthContext| match context.action {
        AuthAction::Pragma {
            pragma_name: "wal_checkpoint",
            ..
        } => Authorization::Deny,
        _ => Authorization::Allow,
    };
    writer.reader.raw_mut().authorizer(Some(allow)).unwrap();
}

/// The writer of a new database, and a reader.
pub fn pair() -> (Folder, Writer, Reader) {
    let folder = Folder::new();
    let writer = Writer::open(&folder.database()).unwrap();
    let reader = Reader::open(&folder.database()).unwrap();
    (folder, writer, reader)
}

#[test]
fn commits_are_flushed_and_logged_ahead() {
    let (_folder, writer, _reader) = pair();
    let pragma = |name: &str| {
        writer
            .raw()
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
    };
    assert_eq!(pragma("synchronous"), Ok(2), "FULL");
    let mode: String = writer
        .raw()
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn statements_are_prepared_once() {
    let (_folder, _writer, reader) = pair();
    let mut page = reader
        .raw()
        .prepare(crate::store::statements::PAGES[0][0])
        .unwrap();
    for limit in 1..5 {
        assert!(
            page.query((limit, limit))
                .unwrap()
                .next()
                .unwrap()
                .is_none()
        );
    }
    assert_eq!(page.get_status(rusqlite::StatementStatus::RePrepare), 0);
}

#[test]
fn reader_is_refused_by_the_file_too() {
    let (_folder, _writer, reader) = pair();
    assert!(reader.raw().execute("DELETE FROM pets", []).is_err());
}
