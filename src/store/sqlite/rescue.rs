//! Saves a database whose file was deleted or replaced, as only open connections have it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::config::DbConfig;

use super::{Cause, FileConnection, StoreError};
use crate::base::clock::{rfc3339, unix_time};

impl FileConnection {
    /// Copies a database whose file was deleted to a new name. Call this as the writer closes.
    pub fn rescue(&mut self) {
        let Err(StoreError::Unavailable(Cause::Moved, _)) = self.reader.watch.check_now() else { return };
        self.undo();
        // The log stays as it is, and may be needed.
        let _ = self.reader.raw().set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        if self.reader.watch.is_deleted() {
            let path = &self.reader.watch.files[0].path;
            let time = rfc3339(unix_time()).replace(':', "-");
            let target = path.with_added_extension(format!("rescued-{time}"));
            let name = path.display();
            let copy = target.display();
            match self.save(&target) {
                Ok(()) => log::error!("{name} is gone; all that it held is in {copy}"),
                Err(error) => log::error!("{name} is gone, and what it held is lost: {copy}: {error}"),
            }
        }
    }

    fn save(&self, target: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
        let saved = self.raw().execute("VACUUM INTO ?1", [target.to_str()]);
        saved.inspect_err(|_| drop(fs::remove_file(target)))?;
        Ok(file.sync_all()?)
    }
}
