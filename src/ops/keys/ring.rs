//! Adds, lists, rotates and revokes API keys. A running service applies each change at once: it caches keys only while
//! the database stays unchanged.

use std::path::Path;
use std::time::Duration;

use super::key_store::{KeyChange, KeyStore};
use super::secret::{self, hexadecimal};
use crate::model::{ApiKey, KeyScope};
use crate::store::Reader;
use crate::store::cluster::Cluster;
use petstore_base::clock::{unix_time, warn_if_early};
use petstore_base::error::{Error, ErrorKind, fail};

/// The most tries of a change that somebody else overtakes.
const MOST_TRIES: usize = 5;
/// The longest name of a key, in characters.
const MAX_NAME: usize = 64;

/// The API keys of one database, open for changes.
///
/// ```no_run
/// use petstore::{KeyRing, KeyScope};
///
/// let mut ring = KeyRing::open("pets.db".as_ref())?;
/// ring.add("dashboard", None, KeyScope::ReadOnly, |key| {
///     println!("{key}");
///     Ok(())
/// })?;
/// # Ok::<(), petstore::Error>(())
/// ```
#[derive(Debug)]
pub struct KeyRing {
    store: KeyStore,
}

/// The state of a database's API keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingState {
    /// The database has never had a key.
    New,
    /// At least one key is valid.
    Valid,
    /// There are keys, and all of them have expired.
    Expired,
    /// There were keys, and all of them were revoked.
    Revoked,
}

/// When the successor of a key expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// When the old key would have expired.
    Kept,
    /// Never.
    Never,
    /// At this Unix time, in seconds.
    At(i64),
}

impl KeyRing {
    /// Opens the keys of a database. Creates the database if it does not exist.
    ///
    /// # Errors
    /// The kinds of a database that cannot be opened or created, such as
    /// [`ErrorKind::DatabaseForeign`] or [`ErrorKind::PermissionDenied`].
    pub fn open(database: &Path) -> Result<Self, Error> {
        Ok(Self {
            store: KeyStore::open(database)?,
        })
    }

    /// Returns whether the database has valid keys, and if not, the reason.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn state(&self) -> Result<RingState, Error> {
        let now = unix_time();
        let keys = self.store.keys()?;
        let is_valid = |key: &ApiKey| !key.is_expired(now);
        Ok(match (keys.all.is_empty(), keys.has_ever_had_one) {
            (false, _) if keys.all.iter().any(is_valid) => RingState::Valid,
            (false, _) => RingState::Expired,
            (true, true) => RingState::Revoked,
            (true, false) => RingState::New,
        })
    }

    /// Returns whether a key is valid: it exists and has not expired.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn is_valid(&self, key: &str) -> Result<bool, Error> {
        let (digest, now) = (secret::digest(key), unix_time());
        let keys = self.store.keys()?.all;
        Ok(keys
            .iter()
            .any(|key| key.digest == digest && !key.is_expired(now)))
    }

    /// Creates a key, passes it to `hand_over`, such as to print it, and then stores its digest. The key itself is not
    /// stored.
    ///
    /// The key expires at `expires_at`, a Unix time in seconds; with `None` it never does. No other process can
    /// write to a file during `hand_over`.
    ///
    /// # Errors
    /// [`ErrorKind::KeyExists`] if a valid key has this name, [`ErrorKind::Conflict`] if a cluster gets another key with
    /// this name during `hand_over`, [`ErrorKind::InvalidInput`] if the name is
    /// unusable or the expiry is in the past, the error of `hand_over`, or the kinds of a database that cannot
    /// be written. The database is unchanged then, and a key that was handed over is not valid.
    pub fn add(
        &mut self,
        name: &str,
        expires_at: Option<i64>,
        scope: KeyScope,
        hand_over: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        check_name(name)?;
        let added = self.create(name, hand_over, |olds, now| match olds.last() {
            Some(key) if !key.is_expired(now) => fail(
                ErrorKind::KeyExists,
                format!("there is already a key named '{name}'"),
            ),
            _ => Ok((scope, expires_at, None)),
        });
        added.map(drop)
    }

    /// Creates a key, passes it to `hand_over`, stores its digest, and returns when it expires. `plan` gets the keys of the
    /// same name, and returns the scope, the expiry, and when those keys expire.
    fn create(
        &mut self,
        name: &str,
        hand_over: impl FnOnce(&str) -> Result<(), Error>,
        plan: impl FnOnce(&[&ApiKey], i64) -> Result<(KeyScope, Option<i64>, Option<i64>), Error>,
    ) -> Result<Option<i64>, Error> {
        let now = unix_time();
        warn_if_early(now);
        let key = secret::new_key()?;
        let (mut is_handed_over, mut expiry) = (false, None);
        let created = self.store.change(|keys| {
            let olds = named(keys, name);
            let (scope, expires_at, others_expire_at) = plan(&olds, now)?;
            if expires_at.is_some_and(|at| at <= now) {
                let line = "the expiry of the key is in the past";
                return fail(ErrorKind::InvalidInput, line);
            }
            expiry = expires_at;
            is_handed_over = true;
            hand_over(&key)?;
            let until = others_expire_at.iter();
            Ok(KeyChange {
                expired: until
                    .flat_map(|at| olds.iter().map(|old| (old.digest, *at)))
                    .collect(),
                added: Some(api_key(&key, name, scope, now, expires_at)),
                deleted: Vec::new(),
            })
        });
        created.map_err(|error| match error.kind() {
            _ if !is_handed_over => error,
            // Somebody may have seen the key already.
            ErrorKind::OutcomeUnknown => error.context("the new key may be valid, or not"),
            _ => error.context("the new key is not valid"),
        })?;
        Ok(expiry)
    }

    /// Adds an existing key, which [`new_api_key`](crate::new_api_key) or an earlier [`add`](Self::add) has created. It
    /// gets full scope and never expires. Other keys with this name stay valid.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if petstore cannot have created the key or the name is unusable, and the kinds of a
    /// database that cannot be written.
    pub fn adopt(&mut self, name: &str, key: &str) -> Result<(), Error> {
        if !secret::is_like_a_key(key) {
            return fail(
                ErrorKind::InvalidInput,
                "it is not an API key that petstore has made",
            );
        }
        check_name(name)?;
        let key = api_key(key, name, KeyScope::Full, unix_time(), None);
        self.change_again(|_| {
            Ok(KeyChange {
                added: Some(key.clone()),
                ..KeyChange::default()
            })
        })
    }

    /// Creates the successor of the newest key of this name, with its scope, passes it to `hand_over`, and then
    /// stores its digest.
    ///
    /// Both keys are valid during `overlap`, unless the old one expires earlier. No other process can write to a
    /// file during `hand_over`. Returns the expiry of the successor, in seconds of Unix time; `None`: it never
    /// expires.
    ///
    /// # Errors
    /// [`ErrorKind::KeyUnknown`] if no key has this name, [`ErrorKind::KeyExpired`] for [`Expiry::Kept`] if the
    /// old key has expired, [`ErrorKind::Conflict`] as for [`add`](Self::add), [`ErrorKind::InvalidInput`] if the expiry is in the past, the error of `hand_over`, or the kinds of a database
    /// that cannot be written. The database is unchanged then, and a key that was handed over is not valid.
    pub fn rotate(
        &mut self,
        name: &str,
        overlap: Duration,
        expiry: Expiry,
        hand_over: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<Option<i64>, Error> {
        // A key that a full disk would refuse is not handed over.
        self.store.probe()?;
        self.create(name, hand_over, |olds, now| {
            let old = olds.last().ok_or_else(|| no_key_named(name))?;
            let expires_at = match expiry {
                Expiry::Kept if old.is_expired(now) => {
                    let line =
                        format!("the key named '{name}' has expired, so its expiry cannot be kept");
                    return fail(ErrorKind::KeyExpired, line);
                }
                Expiry::Kept => old.expires_at,
                Expiry::Never => None,
                Expiry::At(at) => Some(at),
            };
            let until = now.saturating_add(i64::try_from(overlap.as_secs()).unwrap_or(i64::MAX));
            Ok((old.scope, expires_at, Some(until)))
        })
    }

    /// Deletes every key with this name, or only the one whose SHA-256 digest begins with the hexadecimal digits of
    /// `fingerprint`. Returns the number of deleted keys. If no key has this name, `name` may be the
    /// [`fingerprint`](crate::fingerprint) of a key: another program may have written a name that nobody can type.
    ///
    /// # Errors
    /// [`ErrorKind::KeyUnknown`] if there is no such key, [`ErrorKind::KeyAmbiguous`] if more than one key with this
    /// name matches the fingerprint, or the kinds of a database that cannot be written.
    pub fn revoke(&mut self, name: &str, fingerprint: Option<&str>) -> Result<usize, Error> {
        let mut count = 0;
        self.change_again(|keys| {
            let deleted = to_revoke(keys, name, fingerprint)?;
            count = deleted.len();
            Ok(KeyChange {
                deleted,
                ..KeyChange::default()
            })
        })?;
        Ok(count)
    }

    /// Changes keys, and tries again if somebody else has just changed keys with the same name.
    fn change_again(
        &mut self,
        mut decide: impl FnMut(&[ApiKey]) -> Result<KeyChange, Error>,
    ) -> Result<(), Error> {
        for _ in 1..MOST_TRIES {
            match self.store.change(&mut decide) {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                done => return done,
            }
        }
        self.store.change(decide)
    }
}

/// The digests of the keys to revoke: see [`KeyRing::revoke`].
fn to_revoke(
    keys: &[ApiKey],
    name: &str,
    fingerprint: Option<&str>,
) -> Result<Vec<[u8; 32]>, Error> {
    let mut found = named(keys, name);
    if found.is_empty() {
        let is_it = |key: &&ApiKey| secret::fingerprint(&key.digest) == name;
        found = keys.iter().filter(is_it).collect();
    }
    if found.is_empty() {
        return Err(no_key_named(name));
    }
    if let Some(fingerprint) = fingerprint {
        let wanted = fingerprint.to_ascii_lowercase();
        found.retain(|key| !wanted.is_empty() && hexadecimal(&key.digest).starts_with(&wanted));
        let kind = if found.is_empty() {
            ErrorKind::KeyUnknown
        } else {
            ErrorKind::KeyAmbiguous
        };
        if found.len() != 1 {
            let line = format!(
                "there are {} keys named '{name}' with a SHA-256 digest that begins with '{wanted}'",
                found.len()
            );
            return fail(kind, line);
        }
    }
    Ok(found.into_iter().map(|key| key.digest).collect())
}

/// Lists every API key of an existing database, sorted by name and then by age, the newest last.
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
/// [`ErrorKind::DatabaseMissing`] and the other kinds of a database that
/// cannot be opened or read.
pub fn keys(database: &Path) -> Result<Vec<ApiKey>, Error> {
    if let Some(mut cluster) = Cluster::at_existing(database)? {
        cluster.begin()?;
        return Ok(cluster.keys()?.all);
    }
    Ok(Reader::open_existing(database)?.keys()?)
}

/// The keys of this name, the newest last.
fn named<'k>(keys: &'k [ApiKey], name: &str) -> Vec<&'k ApiKey> {
    keys.iter().filter(|key| key.name == name).collect()
}

fn api_key(
    key: &str,
    name: &str,
    scope: KeyScope,
    created_at: i64,
    expires_at: Option<i64>,
) -> ApiKey {
    let (digest, name) = (secret::digest(key), name.to_owned());
    ApiKey {
        digest,
        name,
        scope,
        created_at,
        expires_at,
        last_used_at: None,
    }
}

/// Checks a name, which appears in header fields, log lines and tables, and must not look like a flag.
fn check_name(name: &str) -> Result<(), Error> {
    let is_graphic = name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_graphic && (1..=MAX_NAME).contains(&name.len()) && !name.starts_with('-') {
        return Ok(());
    }
    let line = format!(
        "the name of a key must be 1 to {MAX_NAME} printable ASCII characters without spaces, the first of them not '-'"
    );
    fail(ErrorKind::InvalidInput, line)
}

fn no_key_named(name: &str) -> Error {
    Error::new(
        ErrorKind::KeyUnknown,
        format!("there is no key named '{name}'"),
    )
}

#[cfg(test)]
mod tests;
