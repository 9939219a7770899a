//! The statements on pets.

use std::ops::ControlFlow;

use rusqlite::{Row, ToSql, params};

use super::rows::{integer, text};
use super::statements::{BY_ID, COUNT, ListStatement, UPDATE};
use super::{Reader, StoreError, Transaction};
use crate::model::{MemberValue, Pet, PetCounts, PetPatch, PetQuery};

const DELETE: &str = "DELETE FROM pets WHERE id = ?1";

/// Reads a row of the id and the columns of a pet.
pub(super) fn pet<'r>(row: &'r Row) -> rusqlite::Result<Pet<'r>> {
    pet_at(row, row.get(0)?, 1)
}

/// Reads the columns of a pet from `column` on; the name stays in the engine's memory. A value that no pet can have is read
/// as none, so that the other pets can be read.
pub(super) fn pet_at<'r>(row: &'r Row, id: i64, column: usize) -> rusqlite::Result<Pet<'r>> {
    let status = row.get_ref(column + 2)?;
    Ok(Pet {
        id,
        name: text(row, column)?,
        category_id: integer(row, column + 1)?.unwrap_or_default(),
        status: status.as_str().ok().and_then(|status| status.parse().ok()),
    })
}

/// The row of [`COUNT`].
pub(super) fn counts(row: &Row) -> rusqlite::Result<PetCounts> {
    let (total, available, pending, sold) = row.try_into()?;
    Ok(PetCounts::new(total, available, pending, sold))
}

impl Transaction<'_> {
    /// Passes the pet with this id to `read`; `None` if there is none.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn pet<T>(&self, id: i64, read: impl FnOnce(Pet) -> T) -> Result<Option<T>, StoreError> {
        self.0.pet(id, read)
    }

    /// Changes a pet in the batch.
    ///
    /// # Errors
    /// If the database cannot be written, or a trigger of another program keeps the pet as it is.
    pub fn update_pet(&mut self, id: i64, patch: &PetPatch) -> Result<(), StoreError> {
        let values = patch
            .values()
            .map(|new| (new.is_some(), new.unwrap_or(MemberValue::None)));
        if !values.iter().any(|(changes, _)| *changes) {
            return Ok(());
        }
        let members = values
            .iter()
            .flat_map(|(changes, new)| [changes as &dyn ToSql, new]);
        let values: Vec<_> = std::iter::once(&id as &dyn ToSql).chain(members).collect();
        let before = self.0.before_change(id)?;
        self.change_pet(UPDATE, &values)?;
        match &before {
            Some(pet) => self.0.record(id, before.as_ref(), Some(&patch.apply(pet))),
            None => Ok(()),
        }
    }

    /// Deletes a pet in the batch.
    ///
    /// # Errors
    /// Those of [`Transaction::update_pet`].
    pub fn delete_pet(&mut self, id: i64) -> Result<(), StoreError> {
        let before = self.0.before_change(id)?;
        self.change_pet(DELETE, params![id])?;
        self.0.record(id, before.as_ref(), None)
    }

    /// Runs a statement that changes one pet.
    fn change_pet(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<(), StoreError> {
        if self.0.change(sql, values)? == 0 {
            return Err(StoreError::Rejected(
                "a trigger of another program keeps the pet as it is".to_owned(),
            ));
        }
        Ok(())
    }
}

impl Reader {
    /// Passes the pet with this id to `read`; `None` if there is none.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn pet<T>(&self, id: i64, read: impl FnOnce(Pet) -> T) -> Result<Option<T>, StoreError> {
        self.first(BY_ID, params![id], |row| Ok(read(pet(row)?)))
    }

    /// Counts the pets. This takes a tenth of a second for a million pets.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn count_pets(&self) -> Result<PetCounts, StoreError> {
        Ok(self
            .first(COUNT, &[], counts)?
            .ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }

    /// Passes the pets of a list to `visit`, one after the other, and one more if more follow, until `visit`
    /// stops.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn visit_pets(
        &self,
        query: &PetQuery,
        mut visit: impl FnMut(Pet) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some(list) = ListStatement::of(query) else {
            return Ok(());
        };
        self.rows(list.sql, &list.values(), &mut |row| Ok(visit(pet(row)?)))
    }
}

#[cfg(test)]
pub(super) mod tests;
