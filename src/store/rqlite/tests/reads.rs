//! Reads: how fresh they are, how many requests they take, and how they fail.

use super::*;

#[test]
fn announced_gets_of_a_batch_are_one_request() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    for i in 0..9 {
        writer.insert_pet(&new_pet(&i.to_string()), None).unwrap();
    }
    writer.commit().unwrap();
    let mut session = session(&path);
    let client = Arc::clone(&connection(&session).reader.client);
    let name = |session: &Reader, id| session.pet(id, |pet| pet.name.into_owned());
    session.begin().unwrap();
    session.announce_pets([7, 1, 2, 2, 10].into_iter().chain(100..200));
    // The request for 7 ended before its read.
    let read = || [1, 2, 2, 10, 158].map(|id| name(&session, id).unwrap());
    let pets = [Some("0"), Some("1"), Some("1"), None, None].map(|name| name.map(str::to_owned));
    assert_eq!(requests(&client, read), (pets, 1), "64 pets");
    assert_eq!(
        requests(&client, || name(&session, 159)),
        (Ok(None), 1),
        "the others"
    );
    assert_eq!(requests(&client, || name(&session, 199)), (Ok(None), 0));
    assert_eq!(
        requests(&client, || name(&session, 5)),
        (Ok(Some("4".to_owned())), 1)
    );
    session.end().unwrap();
    run(&path, "DELETE FROM pets WHERE id = 1");
    session.begin().unwrap();
    assert_eq!(name(&session, 1), Ok(None), "a batch takes nothing over");
}

#[test]
fn reads_that_fail_together_wait_for_the_cluster_once() {
    let (mut nodes, path) = cluster(1);
    drop(writer(&path));
    let mut session = session(&path);
    let client = Arc::clone(&connection(&session).reader.client);
    session.begin().unwrap();
    session.announce_pets(1..9);
    nodes.kill(0);
    let read = |id| session.pet(id, |_| ()).is_err_and(|error| error.passes());
    assert!(read(1));
    assert_eq!(requests(&client, || (2..9).all(read)), (true, 0));
}

#[test]
fn cluster_that_is_away_is_waited_for_once() {
    let (mut nodes, path) = cluster(1);
    let (mut writer, mut session) = (writer(&path), session(&path));
    let client = Arc::clone(&connection(&session).reader.client);
    let asked = || {
        client
            .meters()
            .iter()
            .map(|meter| meter.requests)
            .sum::<u64>()
    };
    session.begin().unwrap();
    let before = session.data_version();
    nodes.kill(0);
    // At the end of a service, there is only one try.
    let tries = asked();
    writer.set_busy_timeout(Duration::ZERO);
    assert!(writer.probe().is_err() && asked() == tries + 1);
    let failed = session.begin();
    assert_ne!(session.data_version(), before, "nothing is known by it");
    assert!(
        matches!(failed, Err(StoreError::Unavailable(Cause::Unreachable, _))),
        "{failed:?}"
    );
    let tries = asked();
    assert_eq!(
        (session.begin(), asked()),
        (failed, tries),
        "the next batch does not wait behind it"
    );
    nodes.start_node(0);
    nodes.wait_until_ready();
    // The next try comes a second later.
    let deadline = Instant::now() + crate::testing::PATIENCE;
    let mut failures = 2;
    while let Err(error) = session.begin() {
        assert!(Instant::now() < deadline, "{error}");
        failures += 1;
        thread::sleep(Duration::from_millis(200));
    }
    for i in 0..failures {
        run(
            &path,
            &format!("INSERT INTO imports VALUES (randomblob(32), {i}, 1, 1)"),
        );
        session.begin().unwrap();
        assert_ne!(session.data_version(), before);
    }
}

#[test]
fn nobody_reads_an_old_list_or_an_old_key_through_any_instance() {
    let (_nodes, path) = cluster(3);
    let mut writers = [
        writer(&path),
        writer(&turned(&path)),
        writer(&turned(&turned(&path))),
    ];
    let mut readers = [
        session(&path),
        session(&turned(&path)),
        session(&turned(&turned(&path))),
    ];
    for round in 0_u8..20 {
        for i in 0..3 {
            let pet = writers[i].insert_pet(&new_pet("Rex"), None).unwrap();
            let id = pet.id(&writers[i].commit().unwrap());
            let key = api_key(round * 3 + i as u8);
            writers[i]
                .transact(|writer| writer.insert_key(&key))
                .unwrap();
            for reader in &mut readers {
                reader.begin().unwrap();
                assert_eq!(reader.pet(id, |pet| pet.id), Ok(Some(id)), "round {round}");
                assert_eq!(reader.last_id(), Ok(id));
                assert_eq!(reader.key(&key.digest), Ok(Some(key.clone())));
                reader.end().unwrap();
            }
            writers[(i + 1) % 3]
                .delete_keys(std::slice::from_ref(&key))
                .unwrap();
            for reader in &mut readers {
                reader.begin().unwrap();
                assert_eq!(reader.key(&key.digest), Ok(None), "it was revoked");
                reader.end().unwrap();
            }
        }
    }
}

#[test]
fn every_change_makes_a_new_version_even_of_other_programs() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("Rex"), None).unwrap();
    writer.insert_pet(&new_pet("Tom"), None).unwrap();
    writer.commit().unwrap();
    let mut session = session(&path);
    let mut version = {
        session.begin().unwrap();
        session.data_version()
    };
    for sql in [
        "INSERT INTO pets (name, category_id) VALUES ('a', 1)",
        "UPDATE pets SET name = 'x' WHERE id = 1",
        "DELETE FROM pets WHERE id = 1",
        "INSERT INTO pets (id, name, category_id) VALUES (1, 'back', 1)",
        "INSERT OR REPLACE INTO pets (id, name, category_id) VALUES (2, 'other', 1)",
        "INSERT INTO api_keys (digest, name, read_only, created_at) VALUES (randomblob(32), 'ci', 0, 0)",
        "UPDATE api_keys SET expires_at = 1",
        "DELETE FROM api_keys",
        "INSERT INTO imports VALUES (randomblob(32), 0, 1, 1)",
    ] {
        run(&path, sql);
        session.end().unwrap();
        session.begin().unwrap();
        assert_ne!(session.data_version(), version, "{sql}");
        version = session.data_version();
    }
    run(
        &path,
        "INSERT INTO api_keys (digest, name, read_only, created_at) VALUES (zeroblob(32), 'ci', 0, 0)",
    );
    session.begin().unwrap();
    version = session.data_version();
    run(&path, "UPDATE api_keys SET last_used_at = 1");
    session.begin().unwrap();
    assert_eq!(session.data_version(), version, "nothing has changed");
}
