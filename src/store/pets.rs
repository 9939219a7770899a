//! The statements on pets.

use std::ops::ControlFlow;

use rusqlite::{Row, ToSql, params};

use super::reader::{Engine, on_engine};
use super::rows::{integer, text};
use super::sqlite::FileConnection;
use super::statements::{BY_ID, PAGES, UPDATE};
use super::{Changed, Reader, StoreError, Transaction};
use crate::model::{MemberValue, Pet, PetCounts, PetPatch, PetQuery};

/// Counts all pets, and those with each status. It reads the pages of the table in order, which is fast, and each entry
/// of an index.
pub(super) const COUNT: &str = "SELECT count(*), (SELECT count(*) FROM pets WHERE status = 'available'), \
    (SELECT count(*) FROM pets WHERE status = 'pending'), (SELECT count(*) FROM pets WHERE status = 'sold') FROM pets NOT INDEXED";
const DELETE: &str = "DELETE FROM pets WHERE id = ?1";

/// Passes a row of the id and the columns of a pet to `read`; the name stays in the engine's memory. A value that no
/// pet can have is read as none, so that the other pets can be read.
pub(super) fn pet<T>(row: &Row, read: impl FnOnce(Pet) -> T) -> rusqlite::Result<T> {
    let name = text(row, 1)?;
    let status = row.get_ref(3)?;
    Ok(read(Pet {
        id: row.get(0)?,
        name,
        category_id: integer(row, 2)?.unwrap_or_default(),
        status: status.as_str().ok().and_then(|status| status.parse().ok()),
    }))
}

/// The row of [`COUNT`].
pub(super) fn counts(row: &Row) -> rusqlite::Result<PetCounts> {
    let (total, available, pending, sold) = row.try_into()?;
    // A value that no pet can have counts as none.
    let unset = total - available - pending - sold;
    Ok(PetCounts {
        available,
        pending,
        sold,
        unset,
        total,
    })
}

impl Transaction<'_> {
    /// Passes the pet with this id to `read`; `None` if there is none.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn pet<T>(&self, id: i64, read: impl FnOnce(Pet) -> T) -> Result<Option<T>, StoreError> {
        on_engine!(&self.0.reader.engine, it => it.pet_to_change(id, read))
    }

    /// Changes a pet in the batch.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn update_pet(&mut self, id: i64, patch: &PetPatch) -> Result<Changed, StoreError> {
        on_engine!(&mut self.0.reader.engine, it => it.update_pet(id, patch))
    }

    /// Deletes a pet in the batch.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn delete_pet(&mut self, id: i64) -> Result<Changed, StoreError> {
        on_engine!(&mut self.0.reader.engine, it => it.delete_pet(id))
    }
}

/// The methods of [`Transaction`], which describes them.
impl FileConnection {
    fn pet_to_change<T>(
        &self,
        id: i64,
        read: impl FnOnce(Pet) -> T,
    ) -> Result<Option<T>, StoreError> {
        let mut read = Some(read);
        let mut found = None;
        self.rows(BY_ID, params![id], &mut |row| {
            found = read.take().map(|read| pet(row, read)).transpose()?;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    fn update_pet(&mut self, id: i64, patch: &PetPatch) -> Result<Changed, StoreError> {
        let values = patch
            .values()
            .map(|new| (new.is_some(), new.unwrap_or(MemberValue::None)));
        if !values.iter().any(|(changes, _)| *changes) {
            return Ok(Changed::Now);
        }
        let members = values
            .iter()
            .flat_map(|(changes, new)| [changes as &dyn ToSql, new]);
        let values: Vec<_> = std::iter::once(&id as &dyn ToSql).chain(members).collect();
        self.change_pet(UPDATE, &values)
    }

    fn delete_pet(&mut self, id: i64) -> Result<Changed, StoreError> {
        self.change_pet(DELETE, params![id])
    }

    /// Runs a statement that changes one pet.
    fn change_pet(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<Changed, StoreError> {
        if self.change(sql, values)? == 0 {
            return Err(StoreError::Rejected(
                "a trigger of another program keeps the pet as it is".to_owned(),
            ));
        }
        Ok(Changed::Now)
    }
}

impl Reader {
    /// Passes the pet with this id to `read`; `None` if there is none.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn pet<T>(&self, id: i64, read: impl FnOnce(Pet) -> T) -> Result<Option<T>, StoreError> {
        self.first(BY_ID, params![id], |row| pet(row, read))
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
        let Some(first) = query.page.first() else {
            return Ok(());
        };
        let (filters, rows) = (query.filters(), query.page.rows());
        let is_set =
            |(n, filter): (usize, &Option<MemberValue>)| usize::from(filter.is_some()) << n;
        let set: usize = filters.iter().enumerate().map(is_set).sum();
        let mut values: Vec<&dyn ToSql> =
            filters.iter().flatten().map(|value| value as _).collect();
        values.extend([&first as &dyn ToSql, &rows]);
        self.rows(PAGES[set], &values, &mut |row| pet(row, &mut visit))
    }
}

#[cfg(test)]
pub(super) mod tests;
