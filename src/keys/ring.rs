//! The operator's work on API keys: add, list, rotate, revoke. In force at once on a running server,
//! as every request looks its key up in the database.

use std::path::Path;
use std::time::Duration;

use crate::Error;
use crate::clock::unix_time;
use crate::keys::secret;
use crate::store::{ApiKey, Database, KeyScope, Reader, StoreError, Writer};

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
    /// What a request with it may do.
    pub scope: KeyScope,
    /// Unix time, seconds.
    pub created_at: i64,
    /// Unix time, seconds, from which it is refused; `None`: never.
    pub expires_at: Option<i64>,
    /// Unix time, seconds, of the last request with it, up to a minute late; `None`: never.
    pub last_used_at: Option<i64>,
    /// Whether it is refused already.
    pub is_expired: bool,
    /// The first eight hexadecimal digits of the key's SHA-256, which tell keys of one name apart.
    pub fingerprint: String,
}

/// What a database has in the way of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingState {
    /// It has never had one.
    New,
    /// At least one is valid.
    Valid,
    /// It has some, and all of them have expired.
    Expired,
    /// It had some, and all of them were revoked.
    Revoked,
}

/// Until when the successor of a key is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// As long as the old one would have been.
    Kept,
    /// For ever.
    Never,
    /// Until this Unix time, in seconds.
    At(i64),
}

impl KeyRing {
    /// Opens the keys of a database, which is made where there is none.
    ///
    /// # Errors
    /// Where the file is not ours or cannot be opened.
    pub fn open(database: &Path) -> Result<Self, Error> {
        Ok(Self { store: Writer::open(database)? })
    }

    /// What the database has in the way of keys.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn state(&self) -> Result<RingState, Error> {
        let now = unix_time();
        let keys = self.store.keys().map_err(say)?;
        Ok(match (keys.is_empty(), keys.iter().any(|key| !key.is_expired(now))) {
            (false, true) => RingState::Valid,
            (false, false) => RingState::Expired,
            (true, _) if self.store.has_had_keys().map_err(say)? => RingState::Revoked,
            (true, _) => RingState::New,
        })
    }

    /// Makes a key, hands it over, and then keeps its digest. It is refused from `expires_at` on, a Unix time
    /// in seconds. Nobody else can write to the database while the key is handed over.
    ///
    /// # Errors
    /// Where the name is not usable or taken, the time has passed, the key cannot be handed over, or the
    /// database cannot be written: then there is no such key. A key that was handed over is refused then.
    pub fn add(
        &mut self,
        name: &str,
        expires_at: Option<i64>,
        scope: KeyScope,
        hand_over: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        check_name(name)?;
        let now = unix_time();
        check_expiry(expires_at, now)?;
        self.in_transaction(|ring| {
            if ring.newest(name)?.is_some_and(|key| !key.is_expired(now)) {
                return Err(format!("there is a key named '{name}' already; rotate or revoke it").into());
            }
            let key = secret::new_key()?;
            hand_over(&key)?;
            ring.store.insert_key(&api_key(&key, name, scope, now, expires_at)).map_err(not_kept)
        })
    }

    /// Every key, by name, the newest of a name last.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn list(&self) -> Result<Vec<KeyInfo>, Error> {
        info(&self.store)
    }

    /// Makes a key that takes the place of the newest of this name, with its scope; hands it over, and then
    /// keeps its digest. Both are valid during `overlap`, the old one no longer than it was. Returns from
    /// when on the new one is refused, as Unix time in seconds; `None`: never. Nobody else can write to the
    /// database while the key is handed over.
    ///
    /// # Errors
    /// Where no key has this name, another process rotates it at the same time, the expiry has passed, the key
    /// cannot be handed over, or the database cannot be written: then nothing is changed.
    pub fn rotate(
        &mut self,
        name: &str,
        overlap: Duration,
        expiry: Expiry,
        hand_over: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<Option<i64>, Error> {
        let now = unix_time();
        let known = self.newest(name)?;
        self.in_transaction(|ring| {
            let old = ring.newest(name)?.ok_or_else(|| no_key_named(name))?;
            // What the other process has printed would be refused at once.
            if known.is_none_or(|known| known.digest != old.digest) {
                return Err(format!(
                    "the key named '{name}' was rotated by another process just now; nothing was changed"
                )
                .into());
            }
            let expires_at = match expiry {
                Expiry::Kept if old.is_expired(now) => {
                    return Err(format!(
                        "the key named '{name}' has expired; say with --expires until when its successor is valid"
                    )
                    .into());
                }
                Expiry::Kept => old.expires_at,
                Expiry::Never => None,
                Expiry::At(at) => Some(at),
            };
            check_expiry(expires_at, now)?;
            let until = now.saturating_add(i64::try_from(overlap.as_secs()).unwrap_or(i64::MAX));
            let key = secret::new_key()?;
            hand_over(&key)?;
            let new = api_key(&key, name, old.scope, now, expires_at);
            let replaced = ring.store.expire_keys(name, until).and_then(|()| ring.store.insert_key(&new));
            replaced.map(|()| expires_at).map_err(not_kept)
        })
    }

    /// Deletes the keys of this name and returns how many there were. With the first hexadecimal digits of a
    /// SHA-256 it deletes that key alone.
    ///
    /// # Errors
    /// Where no key has this name, not exactly one of them this SHA-256, or the database cannot be written.
    pub fn revoke(&mut self, name: &str, fingerprint: Option<&str>) -> Result<usize, Error> {
        let keys: Vec<ApiKey> =
            self.store.keys().map_err(say)?.into_iter().filter(|key| key.name == name).collect();
        if keys.is_empty() {
            return Err(no_key_named(name));
        }
        let Some(fingerprint) = fingerprint else { return self.store.delete_keys(name).map_err(say) };
        let wanted = fingerprint.to_ascii_lowercase();
        let fits = |key: &&ApiKey| !wanted.is_empty() && hexadecimal(&key.digest).starts_with(&wanted);
        match &keys.iter().filter(fits).collect::<Vec<_>>()[..] {
            [key] => self.store.delete_key(&key.digest).map(|()| 1).map_err(say),
            [] => Err(format!(
                "no key named '{name}' has a SHA-256 that begins with '{fingerprint}'; petstore key list shows them"
            )
            .into()),
            [_, _, ..] => Err(format!(
                "more than one key named '{name}' has a SHA-256 that begins with '{fingerprint}'; give more digits"
            )
            .into()),
        }
    }

    /// Does a work that reads and writes, as one: no other process writes meanwhile, and where it fails nothing is
    /// changed.
    fn in_transaction<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.store.open_transaction().map_err(|error| {
            self.store.undo();
            Error::from(format!("no key was made: {error}"))
        })?;
        let done = work(self).and_then(|done| self.store.commit().map(|_| done).map_err(not_kept));
        if done.is_err() {
            self.store.undo();
        }
        done
    }

    /// The key of this name that was made last.
    fn newest(&self, name: &str) -> Result<Option<ApiKey>, Error> {
        Ok(self.store.keys().map_err(say)?.into_iter().rfind(|key| key.name == name))
    }
}

/// Every key of a database that is there, by name, the newest of a name last. Nothing is changed, and no lock of
/// another process is waited for.
///
/// # Errors
/// Where the database is not there, not ours or cannot be read.
pub fn keys(database: &Path) -> Result<Vec<KeyInfo>, Error> {
    let store = Reader::open_existing(database)?;
    info(&store)
}

fn info(store: &Database) -> Result<Vec<KeyInfo>, Error> {
    let now = unix_time();
    let info = |key: ApiKey| KeyInfo {
        is_expired: key.is_expired(now),
        fingerprint: hexadecimal(&key.digest[..4]),
        name: key.name,
        scope: key.scope,
        created_at: key.created_at,
        expires_at: key.expires_at,
        last_used_at: key.last_used_at,
    };
    Ok(store.keys().map_err(say)?.into_iter().map(info).collect())
}

fn api_key(key: &str, name: &str, scope: KeyScope, created_at: i64, expires_at: Option<i64>) -> ApiKey {
    let (digest, name) = (secret::digest(key), name.to_owned());
    ApiKey { digest, name, scope, created_at, expires_at, last_used_at: None }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A name stands in header fields, log lines and columns, and must not look like a flag.
fn check_name(name: &str) -> Result<(), Error> {
    let is_graphic = name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_graphic && (1..=MAX_NAME).contains(&name.len()) && !name.starts_with('-') {
        return Ok(());
    }
    Err(format!(
        "a key's name must have 1 to {MAX_NAME} letters, digits and signs of ASCII, no spaces, and no '-' in front"
    )
    .into())
}

fn check_expiry(expires_at: Option<i64>, now: i64) -> Result<(), Error> {
    if expires_at.is_some_and(|at| at <= now) {
        return Err("the key would have expired already; give a later --expires".to_owned().into());
    }
    Ok(())
}

fn no_key_named(name: &str) -> Error {
    Error::from(format!("there is no key named '{name}'"))
}

fn say(error: StoreError) -> Error {
    Error::from(error.to_string())
}

fn not_kept(error: StoreError) -> Error {
    Error::from(format!("the new key is not valid: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{Folder, refuse_writes};
    use std::sync::Barrier;

    const NAMED: &str = "ci";

    impl KeyRing {
        /// Adds a key and returns it.
        fn added(&mut self, name: &str, expires_at: Option<i64>, scope: KeyScope) -> Result<String, Error> {
            let mut key = String::new();
            self.add(name, expires_at, scope, |new| {
                key.push_str(new);
                Ok(())
            })?;
            Ok(key)
        }

        fn rotated(&mut self, overlap: u64, expiry: Expiry) -> Result<Option<i64>, Error> {
            self.rotate(NAMED, Duration::from_secs(overlap), expiry, |_| Ok(()))
        }
    }

    fn ring() -> (Folder, KeyRing) {
        let folder = Folder::new();
        let ring = KeyRing::open(&folder.database()).unwrap();
        (folder, ring)
    }

    #[test]
    fn rotated_key_keeps_its_scope_and_leaves_in_time() {
        let (_folder, mut ring) = ring();
        let expires_at = unix_time() + 1000;
        ring.added(NAMED, Some(expires_at), KeyScope::ReadOnly).unwrap();
        assert_eq!(ring.rotated(100, Expiry::Kept).unwrap(), Some(expires_at));
        let keys = ring.list().unwrap();
        assert_eq!(keys.len(), 2);
        assert!(keys.iter().all(|key| key.scope == KeyScope::ReadOnly && !key.is_expired));
        assert!(keys[0].expires_at.unwrap() <= unix_time() + 100, "{keys:?}");
        assert_eq!(keys[1].expires_at, Some(expires_at), "the newest is the last");
        assert_eq!(ring.revoke(NAMED, None).unwrap(), 2);
    }

    #[test]
    fn rotating_twice_in_a_second_keeps_the_expiry() {
        let (_folder, mut ring) = ring();
        let expires_at = unix_time() + 1000;
        ring.added(NAMED, Some(expires_at), KeyScope::Full).unwrap();
        for _ in 0..5 {
            ring.rotated(10, Expiry::Kept).unwrap();
        }
        assert_eq!(ring.list().unwrap().iter().filter(|key| key.expires_at == Some(expires_at)).count(), 1);
    }

    #[test]
    fn rotating_without_overlap_ends_the_old_key() {
        let (_folder, mut ring) = ring();
        ring.added(NAMED, None, KeyScope::Full).unwrap();
        ring.rotated(0, Expiry::Kept).unwrap();
        assert_eq!(ring.list().unwrap().iter().filter(|key| key.is_expired).count(), 1);
    }

    #[test]
    fn expired_key_has_a_successor_only_with_a_new_expiry() {
        let (_folder, mut ring) = ring();
        let now = unix_time();
        ring.store.insert_key(&api_key("old", NAMED, KeyScope::ReadOnly, now - 9, Some(now - 1))).unwrap();
        assert!(ring.rotated(0, Expiry::Kept).unwrap_err().to_string().contains("--expires"));
        assert!(ring.rotated(0, Expiry::At(now)).unwrap_err().to_string().contains("expired already"));
        assert_eq!(ring.rotated(0, Expiry::At(now + 100)).unwrap(), Some(now + 100));
        assert_eq!(ring.rotated(0, Expiry::Never).unwrap(), None);
        assert!(ring.list().unwrap().iter().all(|key| key.scope == KeyScope::ReadOnly));
    }

    #[test]
    fn one_of_a_name_is_revoked_by_its_fingerprint() {
        let (_folder, mut ring) = ring();
        ring.added(NAMED, None, KeyScope::Full).unwrap();
        ring.rotated(1000, Expiry::Kept).unwrap();
        let [old, new] = &ring.list().unwrap()[..] else { panic!("two keys") };
        for (name, fingerprint) in [(NAMED, "x"), (NAMED, ""), ("other", &old.fingerprint[..])] {
            assert!(ring.revoke(name, Some(fingerprint)).is_err(), "{fingerprint:?}");
        }
        assert_eq!(ring.revoke(NAMED, Some(&old.fingerprint.to_uppercase())).unwrap(), 1);
        assert_eq!(ring.list().unwrap()[0].fingerprint, new.fingerprint);
    }

    #[test]
    fn fingerprint_of_several_keys_revokes_none() {
        let (_folder, mut ring) = ring();
        for number in 1..3 {
            let digest = [number; 32];
            ring.store.insert_key(&ApiKey { digest, ..api_key("", NAMED, KeyScope::Full, 0, None) }).unwrap();
        }
        assert!(ring.revoke(NAMED, Some("0")).unwrap_err().to_string().contains("more than one"));
        assert_eq!(ring.list().unwrap().len(), 2);
    }

    #[test]
    fn unusable_requests_are_refused() {
        let (_folder, mut ring) = ring();
        ring.added(NAMED, None, KeyScope::Full).unwrap();
        assert!(ring.added(NAMED, None, KeyScope::Full).unwrap_err().to_string().contains("already"));
        assert!(
            ring.added("old", Some(unix_time()), KeyScope::Full).unwrap_err().to_string().contains("expired")
        );
        assert!(ring.rotate("nobody", Duration::ZERO, Expiry::Kept, |_| Ok(())).is_err());
        assert!(ring.revoke("nobody", None).is_err());
    }

    #[test]
    fn names_are_graphic_ascii_of_a_bounded_length() {
        let (_folder, mut ring) = ring();
        for name in ["a", "a-b_c.d@e:f", &"x".repeat(MAX_NAME)] {
            assert!(ring.added(name, None, KeyScope::Full).is_ok(), "{name}");
        }
        for name in ["", "a b", "a\nb", "\u{e9}", "a\u{202e}b", "-", "--x", &"x".repeat(MAX_NAME + 1)] {
            assert!(ring.added(name, None, KeyScope::Full).is_err(), "{name:?}");
        }
    }

    #[test]
    fn key_that_cannot_be_handed_over_is_not_kept() {
        let (_folder, mut ring) = ring();
        let fails = |_: &str| Err(Error::from("nobody takes it".to_owned()));
        assert!(ring.add(NAMED, None, KeyScope::Full, fails).is_err());
        assert_eq!(ring.state().unwrap(), RingState::New);
        ring.added(NAMED, None, KeyScope::Full).unwrap();
        assert!(ring.rotate(NAMED, Duration::ZERO, Expiry::Never, fails).is_err());
        assert!(!ring.list().unwrap()[0].is_expired);
    }

    #[test]
    fn nobody_else_writes_between_reading_and_keeping() {
        let (folder, mut ring) = ring();
        let mut other = Writer::open(&folder.database()).unwrap();
        let mut can_others_write = |_: &str| match other.try_begin().unwrap() {
            true => Err(Error::from("another process could make the same key".to_owned())),
            false => Ok(()),
        };
        ring.add(NAMED, None, KeyScope::Full, &mut can_others_write).unwrap();
        ring.rotate(NAMED, Duration::ZERO, Expiry::Kept, &mut can_others_write).unwrap();
        assert!(other.try_begin().unwrap(), "only until then");
    }

    #[test]
    fn of_rotations_at_the_same_time_one_succeeds_and_the_others_hand_over_nothing() {
        let (folder, mut ring) = ring();
        let old = ring.added(NAMED, None, KeyScope::Full).unwrap();
        let all_are_there = Barrier::new(4);
        let rotate = || {
            let mut ring = KeyRing::open(&folder.database()).unwrap();
            let mut key = String::new();
            all_are_there.wait();
            let hand_over = |new: &str| {
                key.push_str(new);
                Ok(())
            };
            let rotated = ring.rotate(NAMED, Duration::ZERO, Expiry::Kept, hand_over);
            (key, rotated.map_err(|error| error.to_string()))
        };
        let ended = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(rotate));
            threads.map(|thread| thread.join().unwrap())
        });
        let mut made = vec![old];
        for (key, rotated) in ended {
            match rotated {
                Ok(_) => made.push(key),
                Err(said) => assert!(key.is_empty() && said.contains("rotated by another process"), "{said}"),
            }
        }
        let keys = ring.store.keys().unwrap();
        assert_eq!(keys.len(), made.len(), "what was handed over is kept");
        assert_eq!(keys.iter().filter(|key| !key.is_expired(unix_time())).count(), 1);
    }

    #[test]
    fn failure_of_the_database_is_told_with_its_cause() {
        let (_folder, mut ring) = ring();
        refuse_writes(&ring.store, true);
        let said = ring.added(NAMED, None, KeyScope::Full).unwrap_err().to_string();
        assert_eq!(
            said,
            "no key was made: the database can only be read: attempt to write a readonly database"
        );
    }

    #[test]
    fn database_remembers_that_it_had_keys() {
        let (_folder, mut ring) = ring();
        assert_eq!(ring.state().unwrap(), RingState::New);
        ring.added(NAMED, None, KeyScope::Full).unwrap();
        assert_eq!(ring.state().unwrap(), RingState::Valid);
        ring.revoke(NAMED, None).unwrap();
        assert_eq!(ring.state().unwrap(), RingState::Revoked);
        ring.store.insert_key(&api_key("old", "old", KeyScope::ReadOnly, 0, Some(1))).unwrap();
        assert_eq!(ring.state().unwrap(), RingState::Expired);
    }
}
