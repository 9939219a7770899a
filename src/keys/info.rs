//! What an operator may see of a key: everything but the key itself.

use std::path::Path;

use crate::clock::unix_time;
use crate::error::Error;
use crate::model::{ApiKey, Digest, KeyScope};
use crate::store::{Database, Reader};

/// An API key as a list shows it, without the key itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyInfo {
    /// The name that the operator gave it.
    pub name: String,
    /// What a request with the key may do.
    pub scope: KeyScope,
    /// When the key was created, in seconds of Unix time.
    pub created_at: i64,
    /// When the key expires, in seconds of Unix time; `None`: never.
    pub expires_at: Option<i64>,
    /// When a request last used the key, in seconds of Unix time and up to a minute late; `None`: never.
    pub last_used_at: Option<i64>,
    /// Whether the key has expired.
    pub is_expired: bool,
    /// The first eight hexadecimal digits of the key's SHA-256 digest, which tell apart keys of one name.
    pub fingerprint: String,
}

/// Lists every API key of an existing database, by name, the newest of a name last.
///
/// Changes nothing, and waits for no lock of another process.
///
/// ```no_run
/// for key in petstore::api_keys("pets.db".as_ref())? {
///     println!("{} {} {}", key.fingerprint, key.name, key.scope.as_str());
/// }
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::DatabaseMissing`](crate::ErrorKind::DatabaseMissing) and the other kinds of a database that
/// cannot be opened or read.
pub fn keys(database: &Path) -> Result<Vec<KeyInfo>, Error> {
    list(&*Reader::open_existing(database)?)
}

/// Lists every key of an open database.
pub(super) fn list(store: &Database) -> Result<Vec<KeyInfo>, Error> {
    let now = unix_time();
    let info = |key: ApiKey| KeyInfo {
        is_expired: key.is_expired(now),
        fingerprint: fingerprint(&key.digest),
        name: key.name,
        scope: key.scope,
        created_at: key.created_at,
        expires_at: key.expires_at,
        last_used_at: key.last_used_at,
    };
    Ok(store.keys()?.into_iter().map(info).collect())
}

/// The first eight hexadecimal digits of a digest.
pub fn fingerprint(digest: &Digest) -> String {
    hexadecimal(digest)[..8].to_owned()
}

/// Prints a digest as 64 hexadecimal digits.
pub(super) fn hexadecimal(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
