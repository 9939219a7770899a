//! The pets by status, for scrapes. A scrape shows the last counts and waits for no count: the worker of the write lane,
//! which has little to do, counts after it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::store::{Counted, Reader, StoreError};
use petstore_base::threads::lock;

/// Counts the pets. It gets the connection of the worker.
pub type Count = Box<dyn FnMut(&mut Reader) -> Result<Counted, StoreError> + Send>;

/// The time between two counts, at least.
pub const EVERY: Duration = Duration::from_secs(1);

/// The last counts, shared by the workers of the admin address.
#[derive(Clone, Default)]
pub struct LastCounts(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    last: Option<Counted>,
    /// True if they were shown.
    is_read: bool,
}

impl LastCounts {
    /// Returns the last counts, and lets the next ones be made.
    pub fn read(&self) -> Option<Counted> {
        let mut state = lock(&self.0);
        state.is_read = true;
        state.last
    }

    /// Counts, if there are no counts yet or the last ones were shown.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn refresh(&self, count: &mut Count, store: &mut Reader) -> Result<(), StoreError> {
        let is_wanted = |state: &State| state.is_read || state.last.is_none();
        if is_wanted(&lock(&self.0)) {
            let counted = count(store)?;
            *lock(&self.0) = State {
                last: Some(counted),
                is_read: false,
            };
        }
        Ok(())
    }
}
