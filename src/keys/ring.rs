//! The operator's work on API keys: add, list, rotate, revoke. In force at once on a running server,
//! as every request looks its key up in the database.

use std::path::Path;
use std::time::Duration;

use crate::Error;
use crate::keys::{secret, unix_time};
use crate::store::{ApiKey, StoreError, Writer};

/// The longest name of a key, in characters.
const MAX_NAME: usize = 64;

/// The keys of one database.
pub struct KeyRing {
    store: Writer,
}

/// What can be told of a key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyInfo {
    /// What the operator calls it.
    pub name: String,
    /// Whether it may only read.
    pub read_only: bool,
    /// Unix time, seconds.
    pub created_at: i64,
    /// Unix time, seconds, from which it is refused; `None`: never.
    pub expires_at: Option<i64>,
    /// Whether it is refused already.
    pub is_expired: bool,
    /// The first eight hexadecimal digits of the key's SHA-256, which tell keys of one name apart.
    pub fingerprint: String,
}

impl KeyRing {
    /// Opens the keys of a database, which is made where there is none.
    ///
    /// # Errors
    /// Where the file is not ours or cannot be opened.
    pub fn open(database: &Path) -> Result<Self, Error> {
        Ok(Self { store: Writer::open(database)? })
    }

    /// Makes a key and returns it; only its digest is kept. It is refused from `expires_at` on, a Unix
    /// time in seconds.
    ///
    /// # Errors
    /// Where the name is not usable or taken, the time has passed, or the database cannot be written.
    pub fn add(&mut self, name: &str, expires_at: Option<i64>, read_only: bool) -> Result<String, Error> {
        check_name(name)?;
        let now = unix_time();
        if expires_at.is_some_and(|at| at <= now) {
            return Err("the key would have expired already".to_owned().into());
        }
        if self.named(name, now)?.is_some() {
            return Err(format!("there is a key named '{name}' already; rotate or revoke it").into());
        }
        let key = secret::new_key()?;
        self.store.insert_key(&api_key(&key, name, read_only, now, expires_at)).map_err(say)?;
        Ok(key)
    }

    /// Every key, by name, the newest of a name last.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn list(&self) -> Result<Vec<KeyInfo>, Error> {
        let now = unix_time();
        let info = |key: ApiKey| KeyInfo {
            is_expired: key.is_expired(now),
            fingerprint: key.digest[..4].iter().map(|byte| format!("{byte:02x}")).collect(),
            name: key.name,
            read_only: key.read_only,
            created_at: key.created_at,
            expires_at: key.expires_at,
        };
        Ok(self.store.keys().map_err(say)?.into_iter().map(info).collect())
    }

    /// Makes a key that takes the place of the one named, with its scope and expiry. Both are valid
    /// during `overlap`.
    ///
    /// # Errors
    /// Where no valid key has this name, or the database cannot be written.
    pub fn rotate(&mut self, name: &str, overlap: Duration) -> Result<String, Error> {
        let now = unix_time();
        let old =
            self.named(name, now)?.ok_or_else(|| Error(format!("there is no valid key named '{name}'")))?;
        let until = now.saturating_add(i64::try_from(overlap.as_secs()).unwrap_or(i64::MAX));
        let key = secret::new_key()?;
        let new = api_key(&key, name, old.read_only, now, old.expires_at);
        self.store.replace_key(&new, until).map_err(say)?;
        Ok(key)
    }

    /// Deletes the keys of this name and returns how many there were.
    ///
    /// # Errors
    /// Where no key has this name, or the database cannot be written.
    pub fn revoke(&mut self, name: &str) -> Result<usize, Error> {
        match self.store.delete_keys(name).map_err(say)? {
            0 => Err(format!("there is no key named '{name}'").into()),
            count => Ok(count),
        }
    }

    /// Makes a key where the database has none at all.
    pub(crate) fn make_first(&mut self) -> Result<Option<String>, Error> {
        if self.store.keys().map_err(say)?.is_empty() {
            self.add("first", None, false).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The valid key of this name that was made last, and is not on its way out.
    fn named(&self, name: &str, now: i64) -> Result<Option<ApiKey>, Error> {
        let keys = self.store.keys().map_err(say)?;
        Ok(keys.into_iter().rfind(|key| key.name == name && !key.is_expired(now)))
    }
}

fn api_key(key: &str, name: &str, read_only: bool, created_at: i64, expires_at: Option<i64>) -> ApiKey {
    ApiKey { digest: secret::digest(key), name: name.to_owned(), read_only, created_at, expires_at }
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(
            format!("a key's name must have 1 to {MAX_NAME} characters, none of them a control").into()
        );
    }
    Ok(())
}

fn say(error: StoreError) -> Error {
    Error(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{Folder, refuse_writes};

    #[test]
    fn rotated_key_keeps_its_scope_and_leaves_in_time() {
        let folder = Folder::new();
        let mut ring = KeyRing::open(&folder.database()).unwrap();
        let expires_at = unix_time() + 1000;
        let old = ring.add("ci", Some(expires_at), true).unwrap();
        let new = ring.rotate("ci", Duration::from_secs(100)).unwrap();
        let keys = ring.list().unwrap();
        assert_ne!(old, new);
        assert_eq!(keys.len(), 2);
        assert!(keys.iter().all(|key| key.read_only && !key.is_expired));
        let ends: Vec<_> = keys.iter().map(|key| key.expires_at.unwrap()).collect();
        assert!(ends.contains(&expires_at), "{ends:?}");
        assert!(ends.iter().any(|end| *end <= unix_time() + 100), "{ends:?}");
        assert_eq!(ring.revoke("ci").unwrap(), 2);
    }

    #[test]
    fn rotating_twice_in_a_second_keeps_the_expiry() {
        let folder = Folder::new();
        let mut ring = KeyRing::open(&folder.database()).unwrap();
        let expires_at = unix_time() + 1000;
        ring.add("ci", Some(expires_at), false).unwrap();
        for _ in 0..5 {
            ring.rotate("ci", Duration::from_secs(10)).unwrap();
        }
        assert_eq!(ring.list().unwrap().iter().filter(|key| key.expires_at == Some(expires_at)).count(), 1);
    }

    #[test]
    fn rotating_without_overlap_ends_the_old_key() {
        let folder = Folder::new();
        let mut ring = KeyRing::open(&folder.database()).unwrap();
        ring.add("ci", None, false).unwrap();
        ring.rotate("ci", Duration::ZERO).unwrap();
        assert_eq!(ring.list().unwrap().iter().filter(|key| key.is_expired).count(), 1);
    }

    #[test]
    fn unusable_requests_are_refused() {
        let folder = Folder::new();
        let mut ring = KeyRing::open(&folder.database()).unwrap();
        ring.add("ci", None, false).unwrap();
        assert!(ring.add("ci", None, false).unwrap_err().to_string().contains("already"));
        assert!(ring.add("", None, false).is_err());
        assert!(ring.add("a\nb", None, false).is_err());
        assert!(ring.add("old", Some(unix_time()), false).unwrap_err().to_string().contains("expired"));
        assert!(ring.rotate("nobody", Duration::ZERO).is_err());
        assert!(ring.revoke("nobody").is_err());
    }

    #[test]
    fn names_are_bounded_in_characters() {
        let folder = Folder::new();
        let mut ring = KeyRing::open(&folder.database()).unwrap();
        assert!(ring.add(&"\u{e9}".repeat(MAX_NAME), None, false).is_ok());
        assert!(ring.add(&"x".repeat(MAX_NAME + 1), None, false).is_err());
    }

    #[test]
    fn failure_of_the_database_is_told_with_its_cause() {
        let folder = Folder::new();
        let mut ring = KeyRing::open(&folder.database()).unwrap();
        refuse_writes(&ring.store, true);
        let said = ring.add("ci", None, false).unwrap_err().to_string();
        assert_eq!(said, "the database can only be read: attempt to write a readonly database");
    }

    #[test]
    fn first_key_is_made_once() {
        let folder = Folder::new();
        let mut ring = KeyRing::open(&folder.database()).unwrap();
        assert!(ring.make_first().unwrap().is_some());
        assert!(ring.make_first().unwrap().is_none());
    }
}
