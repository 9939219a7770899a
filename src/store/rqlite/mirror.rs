//! The small tables of the cluster in memory: keys and notes of imports. They are read here, and changes of them are tried
//! out here before they are sent. A cluster has no project: those tables are empty here.

use std::cell::RefCell;
use std::ops::ControlFlow;

use rusqlite::{Connection, ToSql, params_from_iter};

use super::client::{ClusterRows, Statement};
use super::revision::Revision;
use crate::store::StoreError;
use crate::store::rows::{Visit, visit_rows};
use crate::store::sqlite::schema::STEPS;

/// The small tables. The mirror has all their rows. `sqlite_sequence` must be last, because inserts into the others add
/// rows to it.
pub const TABLES: [&str; 3] = ["api_keys", "imports", "sqlite_sequence"];

/// A database in memory.
pub struct Mirror {
    connection: Connection,
    /// The columns of each table.
    columns: Vec<Vec<String>>,
    /// The revision that its rows are from.
    revision: RefCell<Option<Revision>>,
}

impl Mirror {
    /// Creates an empty mirror.
    ///
    /// # Errors
    /// If SQLite cannot make it.
    pub fn new() -> Result<Self, StoreError> {
        let connection = Connection::open_in_memory()?;
        for step in STEPS {
            connection.execute_batch(step)?;
        }
        let columns = |table: &&str| {
            let mut names = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            names
                .query_map([table], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()
        };
        let columns = TABLES
            .iter()
            .map(columns)
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self {
            connection,
            columns,
            revision: RefCell::default(),
        })
    }

    /// Returns `true` if its rows are those of the small tables of this revision.
    pub fn is_of(&self, revision: &Revision) -> bool {
        self.revision
            .borrow()
            .as_ref()
            .is_some_and(|own| own.has_same_small_tables(revision))
    }

    /// The statements for all rows of all tables.
    pub fn selects(&self) -> Vec<Statement> {
        let select = |(table, columns): (&&str, &Vec<String>)| {
            format!("SELECT {} FROM {table}", columns.join(", "))
        };
        TABLES
            .iter()
            .zip(&self.columns)
            .map(select)
            .map(Statement::plain)
            .collect()
    }

    /// Replaces its rows with those of [`selects`](Self::selects).
    ///
    /// # Errors
    /// If they do not fit the schema. The mirror is then empty.
    pub fn fill(&self, tables: &[ClusterRows], revision: &Revision) -> Result<(), StoreError> {
        self.revision.take();
        // Ends a transaction that a panic left open.
        self.roll_back();
        let transaction = self.connection.unchecked_transaction()?;
        // Checked only at the commit, so that the order of the tables does not matter.
        transaction.pragma_update(None, "defer_foreign_keys", true)?;
        for table in TABLES {
            transaction.execute(&format!("DELETE FROM {table}"), [])?;
        }
        for ((table, columns), rows) in TABLES.iter().zip(&self.columns).zip(tables) {
            // Removes the rows that the inserts into other tables added; its own rows come last.
            transaction.execute("DELETE FROM sqlite_sequence", [])?;
            let places = vec!["?"; columns.len()].join(", ");
            let insert = format!(
                "INSERT INTO {table} ({}) VALUES ({places})",
                columns.join(", ")
            );
            let mut insert = transaction.prepare(&insert)?;
            for row in rows {
                insert.execute(params_from_iter(row))?;
            }
        }
        transaction.commit()?;
        self.revision.replace(Some(revision.clone()));
        Ok(())
    }

    /// Passes the rows of a statement to `visit`.
    ///
    /// # Errors
    /// If `visit` rejects one.
    pub fn rows(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        visit: &mut Visit,
    ) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(visit_rows(&mut statement, values, visit)?)
    }

    /// Passes rows that were read from the cluster to `visit`.
    ///
    /// # Errors
    /// If `visit` rejects one.
    pub fn visit(&self, rows: &ClusterRows, visit: &mut Visit) -> Result<(), StoreError> {
        for row in rows {
            let mut flow = ControlFlow::Continue(());
            let values: Vec<&dyn ToSql> = row.iter().map(|value| value as &dyn ToSql).collect();
            self.rows(
                &format!("VALUES ({})", vec!["?"; row.len()].join(", ")),
                &values,
                &mut |row| {
                    flow = visit(row)?;
                    Ok(flow)
                },
            )?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Tries out a change, and returns the number of rows that it changed.
    ///
    /// # Errors
    /// If the schema rejects it.
    pub fn execute(&self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        Ok(self.connection.prepare_cached(sql)?.execute(values)?)
    }

    /// Opens a transaction for changes, unless one is open.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn begin(&self) -> Result<(), StoreError> {
        if self.connection.is_autocommit() {
            self.connection.execute_batch("BEGIN")?;
        }
        Ok(())
    }

    /// Undoes the changes since the transaction began, if one is open.
    pub fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // A rollback in memory cannot fail.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::is_large;
    use super::*;

    /// A table that is neither would always look empty, because reads of it would go to the mirror.
    #[test]
    fn every_table_is_mirrored_or_large_or_of_a_project() {
        let mirror = Mirror::new().unwrap();
        let mut names = mirror
            .connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
            .unwrap();
        let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let names: Vec<String> = names.map(Result::unwrap).collect();
        assert!(
            TABLES
                .iter()
                .all(|table| names.iter().any(|name| name == table))
        );
        let of_a_project = ["project", "deploys", "deploy_files", "domains", "redirects"];
        let is_known = |name: &&String| {
            TABLES.contains(&name.as_str())
                || is_large(name)
                || of_a_project.contains(&name.as_str())
        };
        let others: Vec<&String> = names.iter().filter(|name| !is_known(name)).collect();
        assert_eq!(others, [""; 0]);
    }
}
