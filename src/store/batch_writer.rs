//! Access to the store for a handler that writes.

use super::{Cause, Inserted, StoreError, Writer};
use crate::model::{IdempotencyKey, NewPet};

/// One request's access to the writer. It only adds pets. To read or change anything, a handler opens a
/// [`Transaction`]: until the commit, no other process can then change what the handler has read.
pub struct BatchWriter<'w> {
    writer: &'w mut Writer,
    /// The number of writes of earlier requests in the batch.
    written_before: usize,
    /// True if the engine carries out the writes of a batch only at the commit, as the cluster's does.
    is_deferred: bool,
    /// True if the request needs a batch of its own.
    needs_own_batch: bool,
}

impl<'w> BatchWriter<'w> {
    /// Gives one request access to the writer. `is_deferred`: reads do not see the batch's own writes.
    pub fn new(writer: &'w mut Writer, is_deferred: bool) -> Self {
        let written_before = writer.written();
        Self {
            writer,
            written_before,
            is_deferred,
            needs_own_batch: false,
        }
    }

    /// Adds a pet, unless a create with this key was carried out before.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_pet(
        &mut self,
        new: &NewPet,
        key: Option<&IdempotencyKey>,
    ) -> Result<Inserted, StoreError> {
        self.writer.insert_pet(new, key)
    }

    /// Opens the transaction, to read and then to write.
    ///
    /// # Errors
    /// If another process holds its lock until the busy timeout, or the database cannot be written. [`Cause::Conflict`]
    /// if reads would not see earlier writes of the batch; the pipeline then gives each request a batch of its own.
    pub fn transaction(&mut self) -> Result<Transaction<'_>, StoreError> {
        if self.is_deferred && self.writer.written() > 0 {
            self.needs_own_batch = true;
            let detail = "the batch has writes that this request cannot see";
            return Err(StoreError::Unavailable(Cause::Conflict, detail.to_owned()));
        }
        self.writer.transaction()
    }

    /// Returns whether the batch must be undone if the request fails.
    pub fn must_undo(&self) -> bool {
        self.needs_own_batch || self.writer.written() > self.written_before
    }
}

/// An open transaction. It reads, and changes within the batch, which it cannot end. Each file of statements adds its
/// own.
pub struct Transaction<'w>(pub(super) &'w mut Writer);

#[cfg(test)]
impl Transaction<'_> {
    /// The connection, for tests.
    pub fn writer(&self) -> &Writer {
        self.0
    }
}

impl Writer {
    /// Opens the transaction if it is not open yet.
    ///
    /// # Errors
    /// Fails for the reasons of [`Writer::open_transaction`].
    pub fn transaction(&mut self) -> Result<Transaction<'_>, StoreError> {
        self.open_transaction()?;
        Ok(Transaction(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::Folder;

    #[test]
    fn request_that_reads_is_under_the_lock() {
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        let mut batch = BatchWriter::new(&mut writer, false);
        batch.transaction().unwrap();
        let mut other = Writer::open(&folder.database()).unwrap();
        other.set_busy_timeout(std::time::Duration::ZERO);
        assert!(other.open_transaction().is_err());
    }

    #[test]
    fn request_reads_nothing_behind_writes_that_it_cannot_see() {
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        for (is_deferred, must_undo) in [(false, false), (true, true)] {
            assert!(
                BatchWriter::new(&mut writer, is_deferred)
                    .transaction()
                    .is_ok(),
                "it is the first"
            );
            BatchWriter::new(&mut writer, is_deferred)
                .insert_pet(&NewPet::new("a", 1), None)
                .unwrap();
            let mut second = BatchWriter::new(&mut writer, is_deferred);
            assert_eq!(second.transaction().is_err(), must_undo);
            assert_eq!(second.must_undo(), must_undo);
            writer.undo();
        }
    }
}
