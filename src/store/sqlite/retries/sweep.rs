//! The tables of the records: writes what a transaction adds, moves a generation, and removes what is old enough. Each
//! create does its share of this, and a service at rest does more.

use rusqlite::{Connection, OptionalExtension, params};

use super::memory::{Key, Stage, records};
use super::{KEPT, Retries};

const LOAD: &str = "SELECT id, at, records FROM newest_retries ORDER BY id";
/// No row takes the id of an earlier one, whatever somebody has deleted.
const KEEP: &str = "INSERT INTO newest_retries (id, at, records)
    VALUES (max(?1, (SELECT coalesce(max(id), 0) FROM newest_retries)) + 1, ?2, ?3)";
/// After a crash, the record may be there already.
const MOVE: &str = "REPLACE INTO older_retries (key, fingerprint, pet, at) VALUES (?1, ?2, ?3, ?4)";
/// Looks at the oldest only, so that its cost does not depend on how many there are.
const REMOVE_ROWS: &str =
    "DELETE FROM newest_retries WHERE id < (SELECT max(id) FROM newest_retries) AND id IN
    (SELECT id FROM (SELECT id, at FROM newest_retries ORDER BY id LIMIT ?1) WHERE id <= ?2 OR at < ?3)
    RETURNING id, records";
const END: &str = "SELECT key FROM older_retries WHERE key >= ?1 ORDER BY key LIMIT 1 OFFSET ?2";
const REMOVE: &str = "DELETE FROM older_retries WHERE key >= ?1 AND key < ?2 AND at < ?3";

/// The time between two searches for old records, in seconds.
pub const PAUSE: i64 = 3600;
/// How many records move with each one that is added. So a generation has moved before the next one is complete.
const MOVED: u32 = 2;
/// How many records are looked at with each one that is added, to remove the old ones. So the table shrinks under any
/// load.
const LOOKED_AT: u32 = 16;

/// Where the search for records that are old enough is.
#[derive(Debug, PartialEq)]
pub enum Search {
    /// Nowhere, until this uptime.
    Until(i64),
    /// Among the newest, for those from before this uptime.
    Newest(i64),
    /// Among the older, for those from before this uptime. It continues at this key.
    Older(i64, Key),
}

/// Moves every record to the older ones, and gives all of them this time. An engine that counts the time in another way
/// then keeps them for as long as new ones.
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "a cluster counts in Unix time"))]
pub fn gather(connection: &mut Connection, at: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let mut retries = Retries::new();
    // All of them move.
    retries.memory.generation = 1;
    retries.load(&transaction)?;
    for (key, record) in retries.memory.next(u32::MAX) {
        let values = params![key, record.fingerprint, record.pet, record.at];
        transaction.prepare_cached(MOVE)?.execute(values)?;
    }
    transaction.execute("DELETE FROM newest_retries", [])?;
    transaction.execute("UPDATE older_retries SET at = ?1", [at])?;
    transaction.commit()
}

impl Retries {
    /// Reads the newest records of earlier services, once.
    pub fn load(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.before.is_some() {
            return Ok(());
        }
        let (mut loaded, mut last_row, mut before) = (Vec::new(), 0, 0);
        let mut statement = connection.prepare(LOAD)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            (last_row, before) = (row.get(0)?, row.get(1)?);
            loaded.extend(records(row.get_ref(2)?.as_blob()?, before));
        }
        self.memory.load(loaded, last_row);
        self.before = Some(before);
        Ok(())
    }

    /// Writes what the open transaction has added, and does its share of the sweep.
    pub fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let added = self.memory.added();
        if added == 0 {
            return Ok(());
        }
        let values = params![self.memory.last_row, self.uptime(), self.memory.row()];
        self.memory.last_row = connection.prepare_cached(KEEP)?.insert(values)?;
        self.sweep(connection, added)
    }

    /// Whether there is something to sweep.
    pub fn is_due(&self) -> bool {
        *self.memory.stage() != Stage::Growing
            || !matches!(self.search, Search::Until(at) if self.uptime() < at)
    }

    /// Moves and removes some records in the open transaction: the share of so many that are added.
    pub fn sweep(&mut self, connection: &Connection, share: u32) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(MOVE)?;
        for (key, record) in self.memory.next(share.saturating_mul(MOVED)) {
            statement.execute(params![key, record.fingerprint, record.pet, record.at])?;
        }
        let now = self.uptime();
        match self.search {
            Search::Until(at) if now >= at => self.search = Search::Newest(now - KEPT),
            Search::Until(_) => {}
            Search::Newest(before) => {
                if !self.remove_rows(connection, share, before)? {
                    self.search = Search::Older(before, Key::default());
                }
                return Ok(());
            }
            Search::Older(before, from) => {
                let end = self.remove(connection, share, before, from)?;
                self.search = end.map_or(Search::Until(now + PAUSE), |end| Search::Older(before, end));
            }
        }
        self.remove_rows(connection, share, i64::MIN).map(drop)
    }

    /// Removes some of the oldest rows, if they have moved or are from before this uptime. Returns whether there may be
    /// more.
    fn remove_rows(&mut self, connection: &Connection, share: u32, before: i64) -> rusqlite::Result<bool> {
        let moved = match self.memory.stage() {
            Stage::Moved(row) => *row,
            _ if before == i64::MIN => return Ok(false),
            _ => 0,
        };
        // More than are added.
        let most = share.saturating_add(1);
        let mut statement = connection.prepare_cached(REMOVE_ROWS)?;
        let mut rows = statement.query(params![most, moved, before])?;
        let mut removed = 0;
        while let Some(row) = rows.next()? {
            removed += 1;
            if row.get::<_, i64>(0)? > moved {
                self.memory.forget(row.get_ref(1)?.as_blob()?);
            }
        }
        if removed < most {
            self.memory.removed();
        }
        Ok(removed == most)
    }

    /// Removes those of some older records that are from before this uptime. Returns the key at which the next begin.
    fn remove(
        &self,
        connection: &Connection,
        share: u32,
        before: i64,
        from: Key,
    ) -> rusqlite::Result<Option<Key>> {
        let mut end = connection.prepare_cached(END)?;
        let end =
            end.query_row(params![from, share.saturating_mul(LOOKED_AT)], |row| row.get(0)).optional()?;
        // This comes after every key.
        let to = end.as_ref().map_or(&[0xff; 17][..], |end: &Key| end);
        connection.prepare_cached(REMOVE)?.execute(params![from, to, before])?;
        Ok(end)
    }
}
