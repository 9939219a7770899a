//! Tests of the ring: names, rotations and revocations, alone and against other processes.

use super::*;
use crate::ops::keys::fingerprint;
use crate::store::Writer;
use crate::store::tests::{Folder, refuse_writes};

const NAMED: &str = "ci";

impl KeyRing {
    /// Adds a key and returns it.
    fn added(
        &mut self,
        name: &str,
        expires_at: Option<i64>,
        scope: KeyScope,
    ) -> Result<String, Error> {
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

fn list(ring: &KeyRing) -> Vec<ApiKey> {
    ring.store.keys().unwrap().all
}

fn file(ring: &mut KeyRing) -> &mut Writer {
    match &mut ring.store {
        KeyStore::File(store) => store,
        other => panic!("{other:?}"),
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
    ring.added(NAMED, Some(expires_at), KeyScope::ReadOnly)
        .unwrap();
    assert_eq!(ring.rotated(100, Expiry::Kept).unwrap(), Some(expires_at));
    let keys = list(&ring);
    assert_eq!(keys.len(), 2);
    assert!(
        keys.iter()
            .all(|key| key.scope == KeyScope::ReadOnly && !key.is_expired(unix_time()))
    );
    assert!(keys[0].expires_at.unwrap() <= unix_time() + 100, "{keys:?}");
    assert_eq!(
        keys[1].expires_at,
        Some(expires_at),
        "the newest is the last"
    );
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
    assert_eq!(
        list(&ring)
            .iter()
            .filter(|key| key.expires_at == Some(expires_at))
            .count(),
        1
    );
}

#[test]
fn expired_key_has_a_successor_only_with_a_new_expiry() {
    let (_folder, mut ring) = ring();
    let now = unix_time();
    file(&mut ring)
        .insert_key(&api_key(
            "old",
            NAMED,
            KeyScope::ReadOnly,
            now - 9,
            Some(now - 1),
        ))
        .unwrap();
    file(&mut ring).commit().unwrap();
    assert_eq!(
        ring.rotated(0, Expiry::Kept).unwrap_err().kind(),
        ErrorKind::KeyExpired
    );
    assert_eq!(
        ring.rotated(0, Expiry::At(now)).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    assert_eq!(
        ring.rotated(0, Expiry::At(now + 100)).unwrap(),
        Some(now + 100)
    );
    assert_eq!(ring.rotated(0, Expiry::Never).unwrap(), None);
    assert!(
        list(&ring)
            .iter()
            .all(|key| key.scope == KeyScope::ReadOnly)
    );
}

#[test]
fn one_of_a_name_is_revoked_by_its_fingerprint() {
    let (_folder, mut ring) = ring();
    ring.added(NAMED, None, KeyScope::Full).unwrap();
    ring.rotated(1000, Expiry::Kept).unwrap();
    let [old, new] = &list(&ring)[..] else {
        panic!("two keys")
    };
    for (name, fingerprint) in [
        (NAMED, "x"),
        (NAMED, ""),
        ("other", &fingerprint(&old.digest)[..]),
    ] {
        let refused = ring.revoke(name, Some(fingerprint)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::KeyUnknown, "{fingerprint:?}");
    }
    assert_eq!(
        ring.revoke(NAMED, Some(&fingerprint(&old.digest).to_uppercase()))
            .unwrap(),
        1
    );
    assert_eq!(list(&ring)[0].digest, new.digest);
}

#[test]
fn fingerprint_of_several_keys_revokes_none() {
    let (_folder, mut ring) = ring();
    for number in 1..3 {
        let digest = [number; 32];
        file(&mut ring)
            .insert_key(&ApiKey {
                digest,
                ..api_key("", NAMED, KeyScope::Full, 0, None)
            })
            .unwrap();
        file(&mut ring).commit().unwrap();
    }
    assert_eq!(
        ring.revoke(NAMED, Some("0")).unwrap_err().kind(),
        ErrorKind::KeyAmbiguous
    );
    assert_eq!(list(&ring).len(), 2);
}

#[test]
fn names_are_graphic_ascii_of_a_bounded_length() {
    let (_folder, mut ring) = ring();
    for name in ["a", "a-b_c.d@e:f", &"x".repeat(MAX_NAME)] {
        assert!(ring.added(name, None, KeyScope::Full).is_ok(), "{name}");
    }
    for name in [
        "",
        "a b",
        "a\nb",
        "\u{e9}",
        "a\u{202e}b",
        "-",
        "--x",
        &"x".repeat(MAX_NAME + 1),
    ] {
        let refused = ring.added(name, None, KeyScope::Full).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{name:?}");
    }
}

#[test]
fn key_that_cannot_be_handed_over_is_not_kept() {
    let (_folder, mut ring) = ring();
    let fails = |_: &str| Err(Error::new(ErrorKind::Io, "nobody takes it"));
    assert!(ring.add(NAMED, None, KeyScope::Full, fails).is_err());
    assert_eq!(ring.state().unwrap(), RingState::New);
    ring.added(NAMED, None, KeyScope::Full).unwrap();
    assert!(
        ring.rotate(NAMED, Duration::ZERO, Expiry::Never, fails)
            .is_err()
    );
    assert!(!list(&ring)[0].is_expired(unix_time()));
}

#[test]
fn nobody_else_writes_between_reading_and_keeping() {
    let (folder, mut ring) = ring();
    let mut other = Writer::open(&folder.database()).unwrap();
    other.set_busy_timeout(Duration::ZERO);
    let mut can_others_write = |_: &str| {
        let opened = other.open_transaction();
        other.undo();
        match opened {
            Ok(()) => Err(Error::new(
                ErrorKind::Internal,
                "another process could create the same key",
            )),
            Err(_) => Ok(()),
        }
    };
    ring.add(NAMED, None, KeyScope::Full, &mut can_others_write)
        .unwrap();
    ring.rotate(NAMED, Duration::ZERO, Expiry::Kept, &mut can_others_write)
        .unwrap();
    assert_eq!(other.open_transaction(), Ok(()), "only until then");
}

#[test]
fn failure_of_the_database_is_told_with_its_cause() {
    let (_folder, mut ring) = ring();
    refuse_writes(file(&mut ring), true);
    let said = ring
        .added(NAMED, None, KeyScope::Full)
        .unwrap_err()
        .to_string();
    assert_eq!(
        said,
        "the database can only be read: attempt to write a readonly database"
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
    file(&mut ring)
        .insert_key(&api_key("old", "old", KeyScope::ReadOnly, 0, Some(1)))
        .unwrap();
    file(&mut ring).commit().unwrap();
    assert_eq!(ring.state().unwrap(), RingState::Expired);
}
