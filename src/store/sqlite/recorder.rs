//! Records changes, if the operator has asked for it: each in the transaction in which the [`Writer`] makes it. What a trigger
//! of another program makes of a change is not recorded.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::params;

use super::{Reader, StoreError, Writer};
use crate::model::{ChangesKept, Pet};
use crate::store::idempotency::share;
use crate::store::rows::integer;
use petstore_base::clock::unix_millis;

/// The members of [`ChangesKept`]: `seconds` and `newest`, `from` and `oldest`.
pub const RECORDED: &str = "SELECT seconds, max(from_id, ifnull((SELECT max(id) FROM changes), 0)), from_id, \
    ifnull((SELECT min(id) FROM changes), from_id + 1) FROM changes_kept WHERE id = 1";
/// Sets for how many seconds changes are kept, and after which id the record is whole.
pub const KEEP: &str = "REPLACE INTO changes_kept (id, seconds, from_id) VALUES (1, ?1, ?2)";
const RECORD: &str = "INSERT INTO changes (id, at, key, pet, old_name, old_category_id, old_status, name, category_id, status) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
/// Removes those of the oldest `?1` changes that were made before `?2`, except for the last one.
const FORGET: &str = "DELETE FROM changes \
    WHERE id < min((SELECT min(id) FROM changes) + ?1, (SELECT max(id) FROM changes)) AND at < ?2";

/// How a writer records changes.
#[derive(Default)]
pub struct Recorder {
    /// What the record has; `None`: that is not known. Of its ids, the last one is kept current.
    pub known: Option<ChangesKept>,
    /// The name of the API key, or the command, that changes pets.
    key: Option<Arc<str>>,
    /// The changes that the batch has recorded.
    pub added: usize,
}

impl Reader {
    /// What the record of changes has.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn changes_kept(&self) -> Result<ChangesKept, StoreError> {
        let kept = self.first(RECORDED, &[], |row| {
            Ok(ChangesKept {
                seconds: integer(row, 0)?,
                newest: integer(row, 1)?.unwrap_or_default(),
                from: integer(row, 2)?.unwrap_or_default(),
                oldest: integer(row, 3)?.unwrap_or_default(),
            })
        })?;
        Ok(kept.unwrap_or_default())
    }
}

impl Writer {
    /// Sets whose changes the following ones are: the name of the API key, or the command.
    pub fn change_as(&mut self, key: Option<Arc<str>>) {
        self.recorder.key = key;
    }

    /// Records changes from now on, and keeps each for this time at least; `None`: records no more. Within the open
    /// transaction, it removes those that are older, and returns their number.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn keep_changes(&mut self, keep: Option<Duration>) -> Result<usize, StoreError> {
        self.open_transaction()?;
        self.recorder.known = None;
        let kept = self.changes_kept()?;
        let from = match kept.seconds {
            Some(_) => kept.from,
            None if kept.newest == 0 && self.last_id()? == 0 => 0,
            // The changes before, or since it was turned off, are missing.
            None => kept.newest.saturating_add(1),
        };
        let seconds = keep.map(|keep| i64::try_from(keep.as_secs()).unwrap_or(i64::MAX));
        self.change(KEEP, params![seconds, from])?;
        let Some(seconds) = seconds else {
            return Ok(0);
        };
        self.change(FORGET, params![i64::MAX / 2, too_old(seconds)])
    }

    /// The pet with this id before it changes; `None` if there is none, or changes are not recorded.
    pub(in crate::store) fn before_change(
        &mut self,
        id: i64,
    ) -> Result<Option<Pet<'static>>, StoreError> {
        if self.records_changes()? {
            self.pet(id, |pet| pet.into_owned())
        } else {
            Ok(None)
        }
    }

    /// Records in the batch what a pet was, and what it is now.
    pub(in crate::store) fn record(
        &mut self,
        id: i64,
        before: Option<&Pet>,
        after: Option<&Pet>,
    ) -> Result<(), StoreError> {
        if before == after || !self.records_changes()? {
            return Ok(());
        }
        let kept = self.recorder.known.unwrap_or_default();
        // Only a damaged database has no further id.
        let Some(newest) = kept.newest.checked_add(1) else {
            return Ok(());
        };
        let (at, key) = (unix_millis(), self.recorder.key.clone());
        let [
            (old_name, old_category_id, old_status),
            (name, category_id, status),
        ] = [before, after].map(|pet| match pet {
            Some(pet) => (Some(&*pet.name), Some(pet.category_id), pet.status),
            None => (None, None, None),
        });
        let values = params![
            newest,
            at,
            key.as_deref(),
            id,
            old_name,
            old_category_id,
            old_status,
            name,
            category_id,
            status
        ];
        self.change(RECORD, values)?;
        self.recorder.added += 1;
        self.recorder.known = Some(ChangesKept { newest, ..kept });
        Ok(())
    }

    /// Returns whether changes are recorded, within the open transaction. If no other connection has written since the batch
    /// before, that is known.
    fn records_changes(&mut self) -> Result<bool, StoreError> {
        let kept = match self.recorder.known {
            Some(kept) => kept,
            None => self.changes_kept()?,
        };
        self.recorder.known = Some(kept);
        Ok(kept.seconds.is_some())
    }

    /// Removes some changes that are old enough, within the open transaction.
    pub(in crate::store) fn forget_changes(&mut self) -> Result<(), StoreError> {
        let added = self.recorder.added;
        let seconds = self.recorder.known.and_then(|kept| kept.seconds);
        if let Some(seconds) = seconds
            && added > 0
        {
            self.change(FORGET, params![share(added), too_old(seconds)])?;
        }
        Ok(())
    }
}

/// The time before which changes are removed, in milliseconds of Unix time.
fn too_old(seconds: i64) -> i64 {
    unix_millis().saturating_sub(seconds.saturating_mul(1000))
}
