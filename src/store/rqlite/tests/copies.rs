//! Copies of the whole database, and their way back.

use super::*;

#[test]
fn copy_is_that_of_a_single_machine_and_comes_back_as_another_database() {
    let (_nodes, path) = cluster(3);
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("Rex"), None).unwrap();
    writer.commit().unwrap();
    let copy = Whole::new(&path).unwrap();
    let found = crate::store::Snapshot::of_file(&copy)
        .unwrap()
        .check()
        .unwrap();
    assert!(
        found.faults.is_empty() && found.foreign.is_empty(),
        "{:?}",
        found.foreign
    );
    writer.insert_pet(&new_pet("Tom"), None).unwrap();
    writer.commit().unwrap();
    let closed = close(&path).unwrap();
    writer.insert_pet(&new_pet("lost"), None).unwrap();
    let refused = writer.commit();
    assert!(
        matches!(refused, Err(StoreError::Unavailable(Cause::Conflict, _))),
        "{refused:?}"
    );
    closed.load(&copy).unwrap();
    // Check the connection that has seen a later revision, and a new one.
    for session in [&*writer, &session(&path)] {
        assert_eq!(all_names(session), ["Rex"]);
    }
    let (folder, other) = (
        copy.parent().unwrap().to_owned(),
        Whole::new(&path).unwrap(),
    );
    drop(copy);
    assert!(
        !folder.exists() && other.exists(),
        "two copies at once are two files"
    );
}

/// Sends three creates with keys.
fn send(writer: &mut Writer) -> Vec<Outcome> {
    let pets = [("a", "1"), ("b", "2"), ("c", "2")]
        .map(|(name, text)| writer.insert_pet(&new_pet(name), Some(&key(text))).unwrap());
    outcomes(&pets, &writer.commit().unwrap())
}

#[test]
fn keys_of_creates_move_from_a_file_to_a_cluster_and_back() {
    let (_nodes, path) = cluster(1);
    let folder = crate::testing::Folder::new();
    let (file, back) = (folder.database(), folder.0.join("back.db"));
    let first = [Outcome::Made(1), Outcome::Made(2), Outcome::Reused];
    let again = [Outcome::Replayed(1), Outcome::Replayed(2), Outcome::Reused];
    assert_eq!(send(&mut crate::store::Writer::open(&file).unwrap()), first);

    let (before, go_on) = (std::fs::read(&file).unwrap(), &|| false);
    crate::restore(&file, &path, crate::RestoredKeys::Automatic, go_on).unwrap();
    assert!(
        before == std::fs::read(&file).unwrap(),
        "it is the operator's"
    );
    assert_eq!(send(&mut writer(&path)), again);

    crate::backup(&path, &back, go_on).unwrap();
    assert_eq!(send(&mut crate::store::Writer::open(&back).unwrap()), again);
}

#[test]
fn empty_cluster_that_a_service_begins_to_use_is_not_replaced() {
    let (_nodes, path) = cluster(1);
    let closed = close(&path).unwrap();
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("Rex"), None).unwrap();
    writer.commit().unwrap();
    let copy = Whole::new(&path).unwrap();
    let refused = closed.load(&copy).unwrap_err();
    assert_eq!(
        refused.kind(),
        crate::base::error::ErrorKind::Conflict,
        "{refused}"
    );
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 1);
}

#[test]
fn interrupted_restore_says_once_that_nothing_was_changed_and_opens_the_cluster() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("Rex"), None).unwrap();
    writer.commit().unwrap();
    let folder = crate::testing::Folder::new();
    let file = folder.database();
    crate::backup(&path, &file, &|| false).unwrap();
    // While the backup is copied, and while the old database is, when the cluster is closed.
    for last in [1, 2] {
        let calls = std::cell::Cell::new(0);
        let refused = crate::restore(&file, &path, crate::RestoredKeys::Automatic, &|| {
            calls.set(calls.get() + 1);
            calls.get() == last
        });
        assert_eq!(
            refused.unwrap_err().to_string(),
            "interrupted; nothing was changed",
            "{last}"
        );
        writer.insert_pet(&new_pet("Tom"), None).unwrap();
        writer.commit().unwrap();
    }
}

#[test]
fn cluster_is_closed_for_half_an_hour_at_most_and_takes_no_database_at_its_end() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    let mut create = || {
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit()
    };
    let closed = close(&path).unwrap();
    assert!(matches!(
        create(),
        Err(StoreError::Unavailable(Cause::Conflict, _))
    ));
    let probed = self::writer(&path).probe();
    assert!(
        matches!(probed, Err(StoreError::Unavailable(Cause::Conflict, _))),
        "{probed:?}"
    );
    let left = number(
        &path,
        "SELECT batch - unixepoch() FROM cluster_writers WHERE writer = 'restore'",
    );
    assert!((1700..=1800).contains(&left), "{left}");
    // Another restore takes over, in case the first was killed. If it was not, it changes nothing and opens nothing.
    let other = close(&path).unwrap();
    let copy = Whole::new(&path).unwrap();
    let refused = closed.load(&copy).unwrap_err();
    assert_eq!(
        refused.kind(),
        crate::base::error::ErrorKind::Conflict,
        "{refused}"
    );
    assert!(create().is_err());
    let closed = other;
    drop(closed);
    assert!(
        create().is_ok(),
        "an interrupted restore keeps nobody from writing"
    );
    let (late, copy) = (
        close(&path).unwrap().begun_earlier(1200),
        Whole::new(&path).unwrap(),
    );
    assert_eq!(
        late.load(&copy).unwrap_err().kind(),
        crate::base::error::ErrorKind::Conflict
    );
    assert!(create().is_ok());
}

#[test]
fn keys_and_ids_of_a_cluster_do_not_go_back_in_time() {
    let (_nodes, path) = cluster(1);
    let folder = crate::testing::Folder::new();
    let (copy, go_on) = (folder.0.join("copy"), &|| false);
    drop(writer(&path));
    let mut ring = crate::KeyRing::open(&path).unwrap();
    ring.add("gone", None, crate::KeyScope::Full, |_| Ok(()))
        .unwrap();
    crate::backup(&path, &copy, go_on).unwrap();
    ring.revoke("gone", None).unwrap();
    assert_eq!(add(&path), [Outcome::Made(1)]);
    for (keys, state, id) in [
        (crate::RestoredKeys::Automatic, crate::RingState::Revoked, 2),
        (crate::RestoredKeys::FromBackup, crate::RingState::Valid, 3),
    ] {
        let restored = crate::restore(&copy, &path, keys, go_on).unwrap();
        assert_eq!(
            restored.has_old_keys,
            keys == crate::RestoredKeys::Automatic
        );
        assert_eq!(crate::KeyRing::open(&path).unwrap().state().unwrap(), state);
        assert_eq!(add(&path), [Outcome::Made(id)]);
    }
}

/// Adds a pet.
fn add(path: &Path) -> Vec<Outcome> {
    let mut writer = writer(path);
    let pet = writer.insert_pet(&new_pet("Rex"), None).unwrap();
    outcomes(&[pet], &writer.commit().unwrap())
}
