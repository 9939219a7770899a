//! The SQL of a restore: locks the old database (step 2 of `ops/maintenance/restore.rs`), and carries over to the
//! copy what a restore does not turn back: the API keys and the highest ids (step 3).

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params_from_iter};

use super::backup::open_copy;
use super::connection::{cannot_open, connect};
use super::{recorder, schema};
use crate::store::statements::{ADD_SEQUENCE, RAISE_SEQUENCE};
use petstore_base::clock::unix_millis;
use petstore_base::error::{Error, ErrorKind as Kind, fail};

/// As bytes, so that a name that is not UTF-8 is carried over too.
const KEYS: &str = "SELECT id, digest, CAST(name AS BLOB), read_only, is_admin, created_at, expires_at, last_used_at \
    FROM api_keys ORDER BY id";
const INSERT_KEY: &str = "INSERT INTO api_keys \
    (id, digest, name, read_only, is_admin, created_at, expires_at, last_used_at) \
    VALUES (?, ?, CAST(? AS TEXT), ?, ?, ?, ?, ?)";
/// What a project answers for.
const SERVED: &str = "SELECT 'the domain ' || name FROM domains \
    UNION ALL SELECT 'the redirect from ' || source || ' to ' || target FROM redirects";
const HIGHEST: &str = "SELECT max(seq) FROM sqlite_sequence WHERE name = ?1";
/// The tables that never give an id twice.
const NUMBERED: [&str; 3] = ["pets", "api_keys", "deploys"];

/// A database that this process alone has, until this is dropped.
pub struct OldDatabase(Connection);

/// Locks a database, runs a checkpoint and removes SQLite's other files. Nobody else can read or write it as long as the
/// result lives. `None` if it is too damaged; then nothing is changed. Call this while nobody in this process has
/// the database open.
///
/// # Errors
/// If another process uses it, or the disk is full or fails.
pub fn lock_old(path: &Path) -> Result<Option<OldDatabase>, Error> {
    let merged = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|connection| {
        // Without this, SQLite would run a checkpoint when it closes a damaged database.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        if schema::is_foreign(&connection)? {
            return Ok(Err(schema::foreign(path)));
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        // This takes the exclusive lock, runs a checkpoint and removes the log
        // (sqlite.org/pragma.html#pragma_journal_mode).
        let mode: String =
            connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?;
        connection.execute_batch("BEGIN EXCLUSIVE")?;
        Ok(if mode == "delete" {
            Ok(OldDatabase(connection))
        } else {
            Err(used(path))
        })
    });
    match merged {
        Ok(connection) => connection.map(Some),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Ok(None),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Err(used(path)),
            _ => Err(cannot_open(path, error)),
        },
    }
}

/// The API keys of a database after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoredKeys {
    /// Those of the replaced database, so that a key that was revoked after the backup stays revoked. If that database
    /// cannot be read, or is not the one of the backup, those of the backup if it has any.
    Automatic,
    /// Those of the replaced database, whatever the backup is of. If they cannot be read, the restore fails.
    Current,
    /// Those of the backup.
    FromBackup,
}

/// Whether a copy has the keys of the database that it replaces, and the domains and redirects that only the copy has.
type CarriedOver = (bool, Vec<String>);

/// Gives a copy the highest ids of the database that it replaces, so that none is given again, and its keys. A copy of
/// another database stays as it is, unless it needs the keys. If the old database is damaged, it warns of the parts
/// that cannot be read, and carries over the others; it carries over keys only if the identity can be read.
///
/// # Errors
/// If the copy cannot be written, or the keys that it must have cannot be read.
pub fn carry_over(
    old: Option<&OldDatabase>,
    copy: &Path,
    whose: RestoredKeys,
) -> Result<CarriedOver, Error> {
    let old = old.map(|OldDatabase(connection)| connection);
    let old_keys = match old {
        Some(old) => rows(old, KEYS).map_err(|error| error.to_string()),
        None => Err("there is no database that can be read".to_owned()),
    };
    if let (RestoredKeys::Current, Err(why)) = (whose, &old_keys) {
        let line = format!(
            "the current API keys cannot be read: {why}; without --keys current, those of the backup are used"
        );
        return fail(Kind::DatabaseDamaged, line);
    }
    let Some(old) = old else {
        return Ok(CarriedOver::default());
    };
    let identity = schema::identity(old);
    let write = || -> rusqlite::Result<CarriedOver> {
        let mut copy = open_copy(copy)?;
        // The schema of a copy is code of whoever made it.
        copy.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        copy.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
        let is_of = schema::identity(&copy)?;
        let is_other = identity
            .as_ref()
            .is_ok_and(|identity| identity.is_none() || *identity != is_of);
        let is_wanted = match whose {
            RestoredKeys::Current => true,
            RestoredKeys::FromBackup => false,
            RestoredKeys::Automatic => !is_other || rows(&copy, KEYS)?.is_empty(),
        };
        if is_other && !is_wanted {
            return Ok(CarriedOver::default());
        }
        let served_again = served_again(old, &copy);
        let transaction = copy.transaction()?;
        let keys = match identity {
            _ if !is_wanted => None,
            Err(error) if whose == RestoredKeys::Automatic => Some(Err(error.to_string())),
            _ => Some(old_keys),
        };
        let warn =
            |error: &_| log::warn!("the API keys of the old database cannot be read: {error}");
        let keys = keys.and_then(|keys| keys.inspect_err(warn).ok());
        if let Some(keys) = &keys {
            transaction.execute("DELETE FROM api_keys", [])?;
            for key in keys {
                transaction.execute(INSERT_KEY, params_from_iter(key))?;
            }
        }
        for table in NUMBERED {
            if let Some(id) = highest(old, table) {
                transaction.execute(RAISE_SEQUENCE, (id, table))?;
                transaction.execute(ADD_SEQUENCE, (id, table))?;
            }
        }
        transaction.commit()?;
        Ok((keys.is_some(), served_again))
    };
    write().map_err(|error| cannot_open(copy, error))
}

/// If changes are recorded, begins the record of a copy anew, after the ids of both histories, so that no id is another
/// change than before. The setting of the database that it replaces stays.
///
/// # Errors
/// If the copy cannot be written.
pub fn renew_changes(old: Option<&OldDatabase>, copy: &Path) -> Result<(), Error> {
    let old = old.map(|OldDatabase(connection)| connection);
    let recorded = |database: &Connection| {
        let row = database.query_row(recorder::RECORDED, [], |row| row.try_into());
        row.optional()
    };
    let write = || -> rusqlite::Result<()> {
        let copy = open_copy(copy)?;
        let of_copy: Option<(Option<i64>, i64)> = recorded(&copy)?;
        // A database that cannot be read has recorded fewer changes than this.
        let unknown = Some((None, unix_millis().saturating_mul(1000)));
        let known = old.and_then(|old| recorded(old).ok());
        let of_old = known.unwrap_or(unknown);
        if of_copy.is_none() && of_old.is_none() {
            return Ok(());
        }
        let (seconds_of_copy, newest_of_copy) = of_copy.unwrap_or_default();
        let (_, newest) = of_old.unwrap_or_default();
        let seconds = known
            .flatten()
            .map_or(seconds_of_copy, |(seconds, _)| seconds);
        let from = newest.max(newest_of_copy).saturating_add(1);
        copy.execute(recorder::KEEP, (seconds, from)).map(drop)
    };
    write().map_err(|error| cannot_open(copy, error))
}

/// The domains and redirects of a copy that the database does not have any more; none if they cannot be read.
fn served_again(old: &Connection, copy: &Connection) -> Vec<String> {
    let now = schema::texts::<1>(old, SERVED, []);
    let mut again = schema::texts(copy, SERVED, []).unwrap_or_default();
    again.retain(|line| now.as_ref().is_ok_and(|now| !now.contains(line)));
    again.concat()
}

/// The highest id that a table has given; `None` if it has given none, or that cannot be read.
fn highest(old: &Connection, table: &str) -> Option<i64> {
    old.query_row(HIGHEST, [table], |row| row.get(0)).unwrap_or_else(|error| {
        // At least those that are still there.
        let sql = format!("SELECT max(id) FROM {table}");
        let there: Option<i64> = old.query_row(&sql, [], |row| row.get(0)).ok().flatten();
        let above = there.map(|id| format!(" above {id}")).unwrap_or_default();
        log::warn!("the highest id of {table} in the old database cannot be read, so ids{above} may be given again: {error}");
        there
    })
}

fn rows(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut select = connection.prepare(sql)?;
    let columns = select.column_count();
    let row = |row: &rusqlite::Row| (0..columns).map(|column| row.get(column)).collect();
    select.query_map([], row)?.collect()
}

fn used(path: &Path) -> Error {
    Error::new(
        Kind::DatabaseLocked,
        format!("another process uses the database {}", path.display()),
    )
}
