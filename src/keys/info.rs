//! The list of keys for the operator, and what stands for a key there.

use std::path::Path;

use crate::error::Error;
use crate::model::{ApiKey, Digest};
use crate::store::Reader;

/// Lists every API key of an existing database, by name, the newest of a name last.
///
/// Changes nothing, and waits for no lock of another process.
///
/// ```no_run
/// for key in petstore::api_keys("pets.db".as_ref())? {
///     println!("{} {} {}", petstore::fingerprint(&key.digest), key.name, key.scope.as_str());
/// }
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::DatabaseMissing`](crate::ErrorKind::DatabaseMissing) and the other kinds of a database that
/// cannot be opened or read.
pub fn keys(database: &Path) -> Result<Vec<ApiKey>, Error> {
    Ok(Reader::open_existing(database)?.keys()?)
}

/// The first eight hexadecimal digits of a key's SHA-256 digest, which tell apart keys of one name.
pub fn fingerprint(digest: &Digest) -> String {
    hexadecimal(digest)[..8].to_owned()
}

/// Prints a digest as 64 hexadecimal digits.
pub(super) fn hexadecimal(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
