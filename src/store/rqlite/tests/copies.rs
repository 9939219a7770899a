//! Copies of the whole database, and their way back.

use super::*;

#[test]
fn copy_is_that_of_a_single_machine_and_comes_back_as_another_database() {
    let (_nodes, path) = cluster(3);
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("Rex")).unwrap();
    writer.commit().unwrap();
    let copy = Whole::of(&path).unwrap();
    let found = crate::store::Snapshot::of_file(&copy).unwrap().differences().unwrap();
    assert_eq!(found.line(), None);
    writer.insert_pet(&new_pet("Tom")).unwrap();
    writer.commit().unwrap();
    crate::store::renew_mark(&copy).unwrap();
    let closed = close(&path).unwrap();
    writer.insert_pet(&new_pet("lost")).unwrap();
    let refused = writer.commit();
    assert!(matches!(refused, Err(StoreError::Unavailable(Cause::Conflict, _))), "{refused:?}");
    closed.load(&copy).unwrap();
    // Both the connection that has seen more, and a new one.
    for session in [&writer.session, &session(&path)] {
        let mut names = Vec::new();
        let every = session.visit_every_pet(|pet| {
            names.push(pet.name.to_owned());
            ControlFlow::Continue(())
        });
        assert_eq!((every, names), (Ok(()), vec!["Rex".to_owned()]));
    }
    let (folder, other) = (copy.parent().unwrap().to_owned(), Whole::of(&path).unwrap());
    drop(copy);
    assert!(!folder.exists() && other.exists(), "two copies at once are two files");
}

/// Sends three creates with keys, and sweeps until nothing is left to do.
fn send_and_sweep(writer: &mut dyn Writes) -> Vec<Outcome> {
    let pets = [("a", "1"), ("b", "2"), ("c", "2")]
        .map(|(name, text)| writer.insert_pet_once(&new_pet(name), &key(text)).unwrap());
    let done = outcomes(&pets, &writer.commit().unwrap());
    assert!((0..99).any(|_| !writer.sweep_retries().unwrap()));
    done
}

#[test]
fn keys_of_creates_move_from_a_file_to_a_cluster_and_back() {
    let (_nodes, path) = cluster(1);
    let folder = crate::testing::Folder::new();
    let (file, back) = (folder.database(), folder.0.join("back.db"));
    let count = "SELECT (SELECT count(*) FROM older_retries), (SELECT count(*) FROM newest_retries)";
    let records = |file: &Path| {
        let file = rusqlite::Connection::open(file).unwrap();
        file.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    // One among the older, and one among the newest.
    let mut single = crate::store::Writer::open(&file).unwrap();
    single.insert_pet_once(&new_pet("a"), &key("1")).unwrap();
    single.commit().unwrap();
    drop(single);
    gather(&mut rusqlite::Connection::open(&file).unwrap(), 7).unwrap();
    let again = [Outcome::Replayed(1), Outcome::Replayed(2), Outcome::Reused];
    let first = [Outcome::Replayed(1), Outcome::Made(2), Outcome::Reused];
    assert_eq!(send_and_sweep(&mut *crate::store::Writer::open(&file).unwrap()), first);
    assert_eq!(records(&file), (1, 1));

    let (before, go_on) = (std::fs::read(&file).unwrap(), &mut |_| ControlFlow::Continue(()));
    crate::restore(&file, &path, go_on).unwrap();
    assert!(before == std::fs::read(&file).unwrap(), "it is the operator's");
    for _ in 0..2 {
        assert_eq!(send_and_sweep(&mut writer(&path)), again);
    }
    let young = "SELECT count(*) FROM older_retries WHERE at BETWEEN unixepoch() - 600 AND unixepoch()";
    assert_eq!(number(&path, young), 2, "for a day from now on");

    crate::backup(&path, &back, go_on).unwrap();
    for _ in 0..2 {
        assert_eq!(send_and_sweep(&mut *crate::store::Writer::open(&back).unwrap()), again);
    }
    let pass = |uptime: i64| {
        let row = "INSERT INTO newest_retries (at, records) VALUES (?1, x'')";
        rusqlite::Connection::open(&back).unwrap().execute(row, [uptime]).unwrap();
        send_and_sweep(&mut *crate::store::Writer::open(&back).unwrap());
        records(&back)
    };
    assert_eq!(pass(86_000), (2, 1), "for a day of its uptime");
    assert_eq!(pass(86_500), (0, 2));
}

#[test]
fn backup_of_an_earlier_version_moves_to_a_cluster_with_its_keys() {
    let (_nodes, path) = cluster(1);
    let folder = crate::testing::Folder::new();
    let old = rusqlite::Connection::open(folder.database()).unwrap();
    STEPS[..4].iter().for_each(|step| old.execute_batch(step).unwrap());
    let rows = "PRAGMA user_version = 4; PRAGMA application_id = 0x50455453; \
        INSERT INTO pets (name, category_id) VALUES ('a', 1)";
    old.execute_batch(rows).unwrap();
    let record = "INSERT INTO retries (key, fingerprint, pet, at) VALUES (?1, ?2, 1, 100)";
    old.execute(record, rusqlite::params![key("1").bytes(), new_pet("a").old_fingerprint()]).unwrap();
    drop(old);
    crate::restore(&folder.database(), &path, &mut |_| ControlFlow::Continue(())).unwrap();
    for second in [Outcome::Made(2), Outcome::Replayed(2)] {
        let done = send_and_sweep(&mut writer(&path));
        assert_eq!(done, [Outcome::Replayed(1), second, Outcome::Reused]);
    }
}

#[test]
fn cluster_that_services_of_an_earlier_version_may_use_is_not_replaced() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("Rex")).unwrap();
    writer.commit().unwrap();
    let folder = crate::testing::Folder::new();
    let (file, go_on) = (folder.database(), &mut |_| ControlFlow::Continue(()));
    crate::backup(&path, &file, go_on).unwrap();
    let newest = number(&path, "SELECT user_version FROM pragma_user_version");
    let trigger = "CREATE TRIGGER cluster_theirs AFTER INSERT ON pets BEGIN SELECT 1; END";
    for change in ["PRAGMA user_version = 1", trigger] {
        run(&path, change);
        let refused = crate::restore(&file, &path, go_on).unwrap_err();
        assert_eq!(refused.kind(), crate::error::ErrorKind::ClusterOutdated, "{change}: {refused}");
        run(&path, &format!("PRAGMA user_version = {newest}"));
        assert_eq!(number(&path, "SELECT count(*) FROM cluster_writers WHERE writer = 'restore'"), 0);
    }
    run(&path, "DROP TRIGGER cluster_theirs");
    crate::restore(&file, &path, go_on).unwrap();
}

#[test]
fn empty_cluster_that_a_service_begins_to_use_is_not_replaced() {
    let (_nodes, path) = cluster(1);
    let closed = close(&path).unwrap();
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("Rex")).unwrap();
    writer.commit().unwrap();
    let copy = Whole::of(&path).unwrap();
    let refused = closed.load(&copy).unwrap_err();
    assert_eq!(refused.kind(), crate::error::ErrorKind::Conflict, "{refused}");
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 1);
}

#[test]
fn interrupted_restore_says_once_that_nothing_was_changed_and_opens_the_cluster() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("Rex")).unwrap();
    writer.commit().unwrap();
    let folder = crate::testing::Folder::new();
    let file = folder.database();
    crate::backup(&path, &file, &mut |_| ControlFlow::Continue(())).unwrap();
    // While the backup is copied, and while the old database is, when the cluster is closed.
    for last in [1, 2] {
        let mut calls = 0;
        let refused = crate::restore(&file, &path, &mut |_| {
            calls += 1;
            if calls == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(refused.unwrap_err().to_string(), "interrupted; nothing was changed", "{last}");
        writer.insert_pet(&new_pet("Tom")).unwrap();
        writer.commit().unwrap();
    }
}

#[test]
fn cluster_is_closed_for_half_an_hour_at_most_and_takes_no_database_at_its_end() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    let mut create = || {
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.commit()
    };
    let closed = close(&path).unwrap();
    assert!(matches!(create(), Err(StoreError::Unavailable(Cause::Conflict, _))));
    let probed = self::writer(&path).probe();
    assert!(matches!(probed, Err(StoreError::Unavailable(Cause::Conflict, _))), "{probed:?}");
    let left = number(&path, "SELECT batch - unixepoch() FROM cluster_writers WHERE writer = 'restore'");
    assert!((1700..=1800).contains(&left), "{left}");
    // Another restore takes over, in case the first was killed. If it was not, it changes nothing and opens nothing.
    let other = close(&path).unwrap();
    let copy = Whole::of(&path).unwrap();
    let refused = closed.load(&copy).unwrap_err();
    assert_eq!(refused.kind(), crate::error::ErrorKind::Conflict, "{refused}");
    assert!(create().is_err());
    let closed = other;
    drop(closed);
    assert!(create().is_ok(), "an interrupted restore keeps nobody from writing");
    let (late, copy) = (close(&path).unwrap().begun_earlier(1200), Whole::of(&path).unwrap());
    assert_eq!(late.load(&copy).unwrap_err().kind(), crate::error::ErrorKind::Conflict);
    assert!(create().is_ok());
}
