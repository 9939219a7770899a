//! The statements of the operator's work on animals: one changed, some deleted.

use rusqlite::{OptionalExtension, ToSql, params};

use super::pets::pet;
use super::{StoreError, Writer};
use crate::model::{Pet, PetStatus};

const SET_STATUS: &str = "UPDATE pets SET status = ?2 WHERE id = ?1 RETURNING id, name, category_id, status";
const DELETE: &str = "DELETE FROM pets WHERE id = ?1";

impl Writer {
    /// Changes the status of an animal in the batch, and hands the animal as it is then to `read`; `None` where
    /// there is none with this id.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn set_status<T>(
        &mut self,
        id: i64,
        status: PetStatus,
        read: impl FnOnce(Pet) -> T,
    ) -> Result<Option<T>, StoreError> {
        self.write(|connection| {
            let mut statement = connection.prepare_cached(SET_STATUS)?;
            statement.query_row(params![id, status], |row| Ok(read(pet(row)?))).optional()
        })
    }

    /// Deletes an animal in the batch; `false` where there is none with this id.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn delete_pet(&mut self, id: i64) -> Result<bool, StoreError> {
        Ok(self.change(DELETE, params![id])? == 1)
    }

    /// Runs a statement within the batch, and returns how many rows it changed.
    fn change(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        self.write(|connection| connection.prepare_cached(sql)?.execute(values))
    }
}
