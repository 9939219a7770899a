//! Work that is one transaction: all of it is on disk afterwards, or nothing has changed.

use super::{StoreError, Writer};

impl Writer {
    /// Runs reads and writes in one transaction: afterwards all of it is on disk, or nothing has changed.
    ///
    /// # Errors
    /// The error of the work, or if the database cannot be written.
    pub fn transact<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.transact_or(E::from, work)
    }

    /// [`Writer::transact`] for work with errors of its own. `failed` makes one of that of the transaction.
    ///
    /// # Errors
    /// See [`Writer::transact`].
    pub fn transact_or<T, E>(
        &mut self,
        failed: impl Fn(StoreError) -> E,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        // Work that panicked has left its transaction open.
        self.undo();
        let opened = self.check_path().and_then(|()| self.open_transaction());
        let done = opened.map_err(&failed).and_then(|()| work(self));
        let done = done.inspect_err(|_| self.undo())?;
        self.commit().map_err(failed)?;
        Ok(done)
    }
}
