//! A database for unit tests.

use std::borrow::Cow;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};

use crate::config::Hosting;
use crate::database::{Reads, Row, Value, Writes};
use crate::model::{DomainEvent, Plan, Reason};
use crate::project::Project;
use crate::project::error::Refusal;
use crate::project::{DomainView, domains::Occasion, finding::Finding};
use petstore_base::clock::unix_time;
use petstore_base::error::{Error, ErrorKind};
use petstore_base::testing::Folder;

/// A connection without anything between it and SQLite.
pub struct Database(Connection);

impl Database {
    fn open(folder: &Folder) -> Self {
        let connection = Connection::open(folder.database()).unwrap();
        let is_new: bool = connection
            .query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
                row.get(0)
            })
            .unwrap();
        if is_new {
            connection
                .execute_batch(include_str!("../../../../schema.sql"))
                .unwrap();
        }
        Self(connection)
    }
}

struct TestRow<'r>(&'r rusqlite::Row<'r>);

impl Row for TestRow<'_> {
    fn integer(&self, column: usize) -> Option<i64> {
        self.0.get(column).ok()
    }

    fn text(&self, column: usize) -> Option<Cow<'_, str>> {
        self.0
            .get_ref(column)
            .unwrap()
            .as_str()
            .ok()
            .map(Cow::Borrowed)
    }

    fn bytes(&self, column: usize) -> &[u8] {
        self.0
            .get_ref(column)
            .unwrap()
            .as_bytes()
            .unwrap_or_default()
    }
}

fn bound<'v>(values: &'v [Value]) -> impl rusqlite::Params + use<'v> {
    rusqlite::params_from_iter(values.iter().map(|value| {
        ToSqlOutput::Borrowed(match value {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        })
    }))
}

fn failed(error: rusqlite::Error) -> Error {
    Error::new(ErrorKind::Io, error.to_string())
}

impl Reads for Database {
    fn visit(
        &self,
        sql: &str,
        values: &[Value],
        visit: &mut dyn FnMut(&dyn Row),
    ) -> Result<(), Error> {
        let mut statement = self.0.prepare(sql).map_err(failed)?;
        let mut rows = statement.query(bound(values)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            visit(&TestRow(row));
        }
        Ok(())
    }

    fn version(&self) -> i64 {
        self.0
            .query_row("PRAGMA data_version", [], |row| row.get(0))
            .unwrap()
    }
}

impl Writes for Database {
    type Config = ();

    fn open_project((): &()) -> Result<(Self, Hosting), Error> {
        Err(Error::new(ErrorKind::DatabaseMissing, "tests open it"))
    }

    fn is_built_in(path: &str) -> bool {
        ["/docs", "/healthz", "/v1"].contains(&path)
    }

    fn write(&mut self, sql: &str, values: &[Value]) -> Result<usize, Error> {
        self.0.execute(sql, bound(values)).map_err(failed)
    }

    fn within_transaction<T, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.0.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        let done = work(self);
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.0.execute_batch(end).map_err(failed)?;
        done
    }

    fn set_patience(&mut self, patience: Duration) {
        self.0.busy_timeout(patience).unwrap();
    }
}

/// A new database, and two connections to it.
pub fn pair() -> (Folder, Database, Database) {
    let folder = Folder::new();
    let connections = [(); 2].map(|()| Database::open(&folder));
    let [writer, reader] = connections;
    (folder, writer, reader)
}

/// Changes the project in one transaction.
pub fn change(writer: &mut Database, work: impl FnOnce(&mut Database) -> Result<(), Error>) {
    writer.within_transaction(work).unwrap();
}

/// A deployed project with a paid plan and a platform.
pub fn project() -> (Folder, Project<Database>) {
    let folder = Folder::new();
    let hosting = Hosting {
        platform_host: Some("sites.test".to_owned()),
        ..Hosting::default()
    };
    let store = Database::open(&folder);
    let mut project = Project { store, hosting };
    project.set_plan(Plan::Pro).unwrap();
    project.deploy(None).unwrap();
    (folder, project)
}

/// The periodic check of a domain with this result.
pub fn check(
    project: &mut Project<Database>,
    name: &str,
    event: DomainEvent,
    code: &str,
) -> Result<(DomainView, bool), Refusal> {
    let reason = (!code.is_empty()).then(|| Reason {
        code: code.to_owned(),
        message: String::new(),
    });
    project.record(
        name,
        &Finding { event, reason },
        Occasion::Schedule,
        unix_time(),
    )
}

pub fn code<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> &'static str {
    refused.unwrap_err().code.name
}
