use super::*;

pub use petstore_base::testing::Folder;

/// Has SQLite refuse every write, as a file does that may only be read.
pub fn refuse_writes(reader: &Reader, refuse: bool) {
    run(reader, &format!("PRAGMA query_only = {refuse}"));
}

/// A writer that cannot checkpoint its log, as on a disk that fails.
pub fn writer_that_keeps_its_log(path: &std::path::Path) -> Writer {
    let mut writer = Writer::open(path).unwrap();
    sqlite::tests::refuse_checkpoints(&mut writer);
    writer
}

/// Drops the table of the pets, so that reading them fails.
pub fn lose_pets(writer: &Writer) {
    run(writer, "DROP TABLE pets");
}

/// Runs statements as another program would, within the transaction if one is open.
pub fn run(reader: &Reader, sql: &str) {
    sqlite::tests::run(reader, sql);
}

/// The writer of a new database, and a reader.
pub fn pair() -> (Folder, Writer, Reader) {
    let folder = Folder::new();
    let writer = Writer::open(&folder.database()).unwrap();
    let reader = Reader::open(&folder.database()).unwrap();
    (folder, writer, reader)
}
