//! Access to the store for a handler that writes.

use std::sync::Arc;

use super::{Outcome, StoreError, Writer};
use crate::model::{IdempotencyKey, NewPet};

/// One request's access to the writer. It only adds pets. To read or change anything, a handler opens a
/// [`Transaction`]: until the commit, no other process can then change what the handler has read.
pub struct BatchWriter<'w> {
    writer: &'w mut Writer,
    /// The number of writes of earlier requests in the batch.
    written_before: usize,
}

impl<'w> BatchWriter<'w> {
    /// Gives one request access to the writer.
    pub fn new(writer: &'w mut Writer) -> Self {
        let written_before = writer.written();
        Self {
            writer,
            written_before,
        }
    }

    /// Sets whose changes the following ones are: the name of the API key.
    pub fn change_as(&mut self, key: Option<Arc<str>>) {
        self.writer.change_as(key);
    }

    /// Adds a pet, unless a create with this key was carried out before.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_pet(
        &mut self,
        new: &NewPet,
        key: Option<&IdempotencyKey>,
    ) -> Result<Outcome, StoreError> {
        self.writer.insert_pet(new, key)
    }

    /// Opens the transaction, to read and then to write.
    ///
    /// # Errors
    /// If another process holds its lock until the busy timeout, or the database cannot be written.
    pub fn transaction(&mut self) -> Result<Transaction<'_>, StoreError> {
        self.writer.transaction()
    }

    /// Returns whether the batch must be undone if the request fails.
    pub fn must_undo(&self) -> bool {
        self.writer.written() > self.written_before
    }
}

/// An open transaction. It reads, and changes within the batch, which it cannot end. Each file of statements adds its
/// own.
#[allow(
    missing_debug_implementations,
    reason = "a connection says nothing of use"
)]
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
        let mut batch = BatchWriter::new(&mut writer);
        batch.transaction().unwrap();
        let mut other = Writer::open(&folder.database()).unwrap();
        other.set_busy_timeout(std::time::Duration::ZERO);
        assert!(other.open_transaction().is_err());
    }

    #[test]
    fn batch_must_be_undone_if_the_request_has_written() {
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        let mut first = BatchWriter::new(&mut writer);
        assert!(!first.must_undo());
        first.insert_pet(&NewPet::new("a", 1), None).unwrap();
        assert!(first.must_undo());
        assert!(!BatchWriter::new(&mut writer).must_undo());
    }
}
