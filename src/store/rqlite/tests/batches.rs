//! Batches: the outcomes of their creates and changes, through failures of all kinds.

use super::*;

#[test]
fn creates_of_a_batch_get_their_own_ids_and_repeats_get_those_of_the_first() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.begin().unwrap();
    let pets = [
        once(&mut writer, "a", "1"),
        writer.insert_pet(&new_pet("b"), None).unwrap(),
        once(&mut writer, "a", "1"),
        once(&mut writer, "c", "1"),
        writer.insert_pet(&new_pet("d"), None).unwrap(),
        once(&mut writer, "e", "2"),
    ];
    let committed = writer.commit().unwrap();
    let expected = [
        Outcome::Made(3),
        Outcome::Made(1),
        Outcome::Replayed(3),
        Outcome::Reused,
        Outcome::Made(2),
        Outcome::Made(4),
    ];
    assert_eq!(outcomes(&pets, &committed), expected);
    assert_eq!(all_names(&session(&path)), ["b", "d", "a", "e"]);
    let pets = [
        once(&mut writer, "e", "2"),
        once(&mut writer, "a", "3"),
        once(&mut writer, "x", "1"),
    ];
    let committed = writer.commit().unwrap();
    assert_eq!(
        outcomes(&pets, &committed),
        [Outcome::Replayed(4), Outcome::Made(5), Outcome::Reused]
    );
    assert_eq!(
        number(&path, "SELECT changes FROM cluster_changes"),
        0,
        "creates raise the sequence"
    );
}

#[test]
fn outcome_of_a_batch_is_asked_for_no_longer_than_it_is_sent() {
    let address = pretender(|request| {
        let refused =
            r#"{"results":[{"error":"NOT NULL constraint failed: cluster_batches.is_current"}]}"#;
        (request == 0).then(|| refused.to_owned())
    });
    let client =
        Arc::new(Client::new(client::ClusterAddress::parse(&address).unwrap(), None).unwrap());
    let mut writer = ClusterConnection::new(Session::new(Arc::clone(&client)).unwrap()).unwrap();
    writer.set_busy_timeout(Duration::ZERO);
    let (probed, asked) = requests(&client, || writer.probe());
    assert!(
        matches!(probed, Err(StoreError::Unavailable(Cause::Unknown, _))),
        "{probed:?}"
    );
    assert_eq!(asked, 2);
}

#[test]
fn undone_batch_leaves_nothing() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.begin().unwrap();
    writer.insert_pet(&new_pet("a"), None).unwrap();
    writer.commit().unwrap();
    writer.insert_pet(&new_pet("b"), None).unwrap();
    writer.undo();
    writer.commit().unwrap();
    assert_eq!(all_names(&session(&path)), ["a"]);
    // A change is undone with its batch.
    writer.begin().unwrap();
    writer.insert_key(&api_key(7)).unwrap();
    assert_eq!(writer.written(), 1);
    writer.undo();
    assert_eq!(writer.key(&[7; 32]), Ok(None));
}

#[test]
fn rejected_create_fails_no_other_of_its_batch() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    run(
        &path,
        "CREATE TRIGGER theirs BEFORE INSERT ON pets WHEN new.name = 'bad' BEGIN SELECT raise(ABORT, 'no'); END",
    );
    let pets = ["good", "bad", "fine"]
        .map(|name| writer.insert_pet(&new_pet(name), Some(&key(name))).unwrap());
    let committed = writer.commit().unwrap();
    let done = pets.each_ref().map(|pet| pet.outcome(&committed));
    assert_eq!(
        (&done[0], &done[2]),
        (&Ok(Outcome::Made(1)), &Ok(Outcome::Made(2)))
    );
    assert_eq!(done[1], Err(StoreError::Internal("no".to_owned())));
    assert_eq!(all_names(&session(&path)), ["good", "fine"]);
}

#[test]
fn create_that_a_trigger_leaves_out_gets_no_id_of_another_pet() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    run(
        &path,
        "CREATE TRIGGER theirs BEFORE INSERT ON pets WHEN new.name = 'bad' BEGIN SELECT raise(IGNORE); END",
    );
    let pets = ["good", "bad", "fine"].map(|name| writer.insert_pet(&new_pet(name), None).unwrap());
    let committed = writer.commit().unwrap();
    let done = pets.each_ref().map(|pet| pet.outcome(&committed));
    assert_eq!(
        (&done[0], &done[2]),
        (&Ok(Outcome::Made(1)), &Ok(Outcome::Made(2)))
    );
    assert!(
        matches!(&done[1], Err(StoreError::Internal(why)) if why.contains("trigger")),
        "{:?}",
        done[1]
    );
    assert_eq!(all_names(&session(&path)), ["good", "fine"]);
    // The same with keys, next to a create without.
    let pets = [None, Some("good"), Some("bad"), Some("fine")].map(|name| match name {
        Some(name) => once(&mut writer, name, name),
        None => writer.insert_pet(&new_pet("plain"), None).unwrap(),
    });
    let committed = writer.commit().unwrap();
    let done = pets.each_ref().map(|pet| pet.outcome(&committed));
    let made = |id| Ok(Outcome::Made(id));
    assert_eq!(
        (&done[0], &done[1], &done[3]),
        (&made(3), &made(4), &made(5))
    );
    assert!(
        matches!(&done[2], Err(StoreError::Internal(why)) if why.contains("trigger")),
        "{:?}",
        done[2]
    );
}

#[test]
fn rejected_change_leaves_no_create_of_its_batch() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    run(
        &path,
        "CREATE TRIGGER theirs BEFORE INSERT ON api_keys BEGIN SELECT raise(ABORT, 'no'); END",
    );
    for name in ["a", "b"] {
        writer.insert_pet(&new_pet(name), None).unwrap();
    }
    assert_eq!(writer.insert_key(&api_key(7)), Ok(()));
    assert_eq!(writer.commit(), Err(StoreError::Internal("no".to_owned())));
    assert_eq!(all_names(&session(&path)), [""; 0]);
}

#[test]
fn only_changes_depend_on_what_others_change_meanwhile() {
    let (_nodes, path) = cluster(1);
    let (mut writer, mut other) = (writer(&path), writer(&path));
    let mut change = |number| {
        other
            .transact(|writer| writer.insert_key(&api_key(number)))
            .unwrap();
    };
    assert_eq!(writer.open_transaction(), Ok(()));
    writer.insert_pet(&new_pet("a"), None).unwrap();
    change(7);
    writer.commit().unwrap();
    assert_eq!(writer.open_transaction(), Ok(()));
    writer.insert_key(&api_key(9)).unwrap();
    change(8);
    let refused = writer.commit();
    assert!(
        matches!(refused, Err(StoreError::Unavailable(Cause::Conflict, _))),
        "{refused:?}"
    );
}

#[test]
fn batch_that_cannot_be_recorded_is_not_unknown() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    run(
        &path,
        "INSERT INTO pets (id, name, category_id) VALUES (9223372036854775807, 'last', 1)",
    );
    for key in [None, Some("1")] {
        match key {
            Some(key) => drop(once(&mut writer, "a", key)),
            None => drop(writer.insert_pet(&new_pet("a"), None).unwrap()),
        }
        let full = writer.commit();
        assert!(
            full.as_ref().is_err_and(|error| !error.is_unknown()),
            "{full:?}"
        );
    }
    run(&path, "DROP TABLE cluster_batches");
    writer.insert_pet(&new_pet("a"), None).unwrap();
    let failed = writer.commit();
    assert!(
        matches!(
            failed,
            Err(StoreError::Unavailable(Cause::SchemaChanged, _))
        ),
        "{failed:?}"
    );
}

#[test]
fn key_sent_through_many_instances_at_once_makes_one_pet() {
    let (_nodes, path) = cluster(1);
    drop(writer(&path));
    let send = |i: usize| {
        let mut writer = writer(&path);
        move || {
            let pets: Vec<_> = (0..20)
                .map(|k| once(&mut writer, "Rex", &k.to_string()))
                .collect();
            writer.insert_pet(&new_pet(&i.to_string()), None).unwrap();
            let committed = writer.commit().unwrap();
            outcomes(&pets, &committed)
        }
    };
    let threads: Vec<_> = (0..4).map(|i| thread::spawn(send(i))).collect();
    let done: Vec<Vec<Outcome>> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    for k in 0..20 {
        let made = done
            .iter()
            .filter(|done| matches!(done[k], Outcome::Made(_)))
            .count();
        let mut ids = done.iter().map(|done| match done[k] {
            Outcome::Made(id) | Outcome::Replayed(id) => id,
            Outcome::Reused => panic!("it is the same create"),
        });
        let id = ids.next().unwrap();
        assert!(made == 1 && ids.all(|other| other == id), "{done:?}");
    }
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 24);
}

#[test]
fn repeated_request_returns_the_same_and_adds_nothing_twice() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    for _ in 0..2 {
        once(&mut writer, "early", "0");
        writer.commit().unwrap();
    }
    once(&mut writer, "a", "1");
    writer.insert_pet(&new_pet("b"), None).unwrap();
    once(&mut writer, "early", "0");
    // The first response is lost.
    let [first, again] = connection_mut(&mut writer).deliver_twice();
    let expected = [Outcome::Made(3), Outcome::Made(2), Outcome::Replayed(1)].map(Ok);
    assert_eq!(first, again);
    assert_eq!(first.creates, expected);
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 3);
}

#[test]
fn request_that_a_node_forwards_late_is_rejected() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("a"), None).unwrap();
    let late = connection_mut(&mut writer).request_only();
    writer.insert_pet(&new_pet("b"), None).unwrap();
    writer.commit().unwrap();
    let client = connect(&path).unwrap();
    let sent = client.write(&late, schema::PATIENCE);
    assert!(
        matches!(sent, Err(client::ClusterFailure::Statement(0, _))),
        "{sent:?}"
    );
    assert_eq!(all_names(&session(&path)), ["b"]);
}

#[test]
fn batch_with_an_unknown_outcome_reports_it_and_its_keys_resolve_it() {
    let (nodes, path) = cluster(3);
    let mut writer = writer(&path);
    once(&mut writer, "before", "0");
    writer.commit().unwrap();
    writer.begin().unwrap();
    once(&mut writer, "Rex", "1");
    (0..3).for_each(|i| nodes.freeze(i));
    writer.set_busy_timeout(Duration::ZERO);
    let failed = writer.commit();
    assert!(
        matches!(failed, Err(StoreError::Unavailable(Cause::Unknown, _))),
        "{failed:?}"
    );
    // A batch that cannot even begin is not sent, so its outcome is known.
    let begun = writer.begin();
    assert!(
        matches!(begun, Err(StoreError::Unavailable(Cause::Unreachable, _))),
        "{begun:?}"
    );
    assert_eq!(writer.insert_pet(&new_pet("Tom"), None).err(), begun.err());
    assert!(writer.commit().is_ok(), "nothing is sent");
    (0..3).for_each(|i| nodes.thaw(i));
    nodes.wait_until_ready();
    writer.set_busy_timeout(crate::store::BUSY_TIMEOUT);
    once(&mut writer, "Rex", "1");
    writer.commit().unwrap();
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 2);
}

#[test]
fn batch_asks_once_and_sends_its_creates_in_one_request() {
    let (_nodes, path) = cluster(1);
    let (mut writer, mut other) = (writer(&path), writer(&path));
    let client = std::sync::Arc::clone(&connection(&writer).reader.client);
    let create = |writer: &mut Writer, name: &str| {
        writer.begin().unwrap();
        let known = writer.key(&[7; 32]).unwrap().is_some();
        let pets = [
            writer.insert_pet(&new_pet(name), None).unwrap(),
            once(writer, name, name),
        ];
        (known, outcomes(&pets, &writer.commit().unwrap()))
    };
    let made = |id| vec![Outcome::Made(id), Outcome::Made(id + 1)];
    assert_eq!(
        requests(&client, || create(&mut writer, "a")),
        ((false, made(1)), 4),
        "and reads the mirror, and the ages of the keys"
    );
    assert_eq!(
        requests(&client, || create(&mut writer, "b")),
        ((false, made(3)), 2)
    );
    // A key of another instance is known to the next batch.
    other
        .transact(|writer| writer.insert_key(&api_key(7)))
        .unwrap();
    assert_eq!(create(&mut writer, "c"), (true, made(5)));
    other.delete_keys(&[api_key(7)]).unwrap();
    assert_eq!(create(&mut writer, "d"), (false, made(7)));
    // A change does not ask again, and is checked against what was read since the batch began.
    writer.begin().unwrap();
    let change = |writer: &mut Writer| {
        writer
            .open_transaction()
            .and_then(|()| writer.insert_key(&api_key(9)))
    };
    assert_eq!(requests(&client, || change(&mut writer)), (Ok(()), 0));
    other
        .transact(|writer| writer.insert_key(&api_key(8)))
        .unwrap();
    assert_eq!(
        writer.commit().map_err(|error| error.is_conflict()),
        Err(true)
    );
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 8);
}

#[test]
fn keys_are_changed_whole_or_not_at_all_and_meet_no_change_of_another_instance() {
    let (_nodes, path) = cluster(1);
    let (mut one, mut other) = (writer(&path), writer(&path));
    one.transact(|keys| {
        keys.insert_key(&api_key(1))?;
        // The writer itself sees the change before it is sent.
        assert_eq!(keys.key(&[1; 32])?, Some(api_key(1)));
        keys.expire_key(&[1; 32], 5)
    })
    .unwrap();
    assert_eq!(other.key(&[1; 32]).unwrap().unwrap().expires_at, Some(5));
    let refused = one.transact(|keys| {
        keys.insert_key(&api_key(2))?;
        Err::<(), _>(StoreError::Internal("refused".to_owned()))
    });
    assert!(refused.is_err());
    assert_eq!(one.key(&[2; 32]), Ok(None));
    // The first try meets a change of another instance, and the second does not.
    let mut tries = 0;
    one.transact(|keys| {
        tries += 1;
        if tries == 1 {
            other.transact(|keys| keys.insert_key(&api_key(3)))?;
        }
        keys.insert_key(&api_key(if keys.key(&[3; 32])?.is_some() { 4 } else { 5 }))
    })
    .unwrap();
    let digests: Vec<u8> = one
        .keys()
        .unwrap()
        .iter()
        .map(|key| key.digest[0])
        .collect();
    assert_eq!((tries, digests), (2, vec![1, 3, 4]));
    // Another instance is faster a few times, and then always.
    let mut tries = 0;
    let mut change = |faster: usize| {
        tries = 0;
        one.transact(|keys| {
            tries += 1;
            if tries <= faster {
                other.transact(|keys| keys.expire_key(&[3; 32], 9))?;
            }
            keys.expire_key(&[4; 32], 9)
        })
    };
    assert_eq!(change(15), Ok(()));
    let start = Instant::now();
    let refused = change(usize::MAX);
    assert!(
        matches!(refused, Err(StoreError::Unavailable(Cause::Conflict, _))),
        "{refused:?}"
    );
    assert!(tries > 1 && start.elapsed() >= crate::store::writer::CONTENDS_FOR);
}

#[test]
fn changes_of_a_batch_share_its_request_with_creates() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    for name in ["a", "b", "c"] {
        writer.insert_pet(&new_pet(name), None).unwrap();
    }
    writer.commit().unwrap();
    // Reads the mirror.
    writer.begin().unwrap();
    let client = Arc::clone(&connection(&writer).reader.client);
    let rename = |name: &'static str| PetPatch {
        name: Some(name.into()),
        ..PetPatch::default()
    };
    let (committed, asked) = requests(&client, || {
        writer.begin().unwrap();
        writer.announce_pets([1, 2, 3, 4].into_iter());
        let mut transaction = writer.transaction().unwrap();
        let name = |transaction: &Transaction, id| {
            transaction.pet(id, |pet| pet.name.into_owned()).unwrap()
        };
        let mut changes = vec![
            transaction.update_pet(1, &rename("A")).unwrap(),
            transaction.delete_pet(2).unwrap(),
        ];
        // Each sees those before it.
        assert_eq!(name(&transaction, 1).as_deref(), Some("A"));
        assert_eq!(name(&transaction, 2), None);
        assert_eq!(name(&transaction, 4), None);
        changes.push(transaction.update_pet(1, &rename("AA")).unwrap());
        let created = writer.insert_pet(&new_pet("d"), None).unwrap();
        let committed = writer.commit().unwrap();
        assert_eq!(outcomes(&[created], &committed), [Outcome::Made(4)]);
        changes
            .iter()
            .map(|change| change.check(&committed))
            .collect::<Vec<_>>()
    });
    assert_eq!(
        (committed, asked),
        (vec![Ok(()); 3], 3),
        "the revision, the pets, the batch"
    );
    assert_eq!(all_names(&session(&path)), ["AA", "c", "d"]);
}

#[test]
fn change_of_a_pet_that_another_instance_has_changed_fails_alone_or_with_all() {
    let (_nodes, path) = cluster(1);
    let (mut writer, mut other) = (writer(&path), writer(&path));
    for name in ["a", "b"] {
        writer.insert_pet(&new_pet(name), None).unwrap();
    }
    writer.commit().unwrap();
    let sold = PetPatch {
        status: Some(Some(PetStatus::Sold)),
        ..PetPatch::default()
    };
    let overtake = |other: &mut Writer, category_id| {
        let patch = PetPatch {
            category_id: Some(category_id),
            ..PetPatch::default()
        };
        other
            .transact(|other| other.transaction()?.update_pet(1, &patch).map(drop))
            .unwrap();
    };
    writer.begin().unwrap();
    let mut transaction = writer.transaction().unwrap();
    let changes = [1, 2].map(|id| transaction.update_pet(id, &sold).unwrap());
    writer.insert_pet(&new_pet("c"), None).unwrap();
    overtake(&mut other, 7);
    let [first, again] = connection_mut(&mut writer).deliver_twice();
    assert_eq!(first, again, "the first response may be lost");
    assert_eq!(first.fits, [false, true]);
    drop(changes);
    assert_eq!(
        number(&path, "SELECT count(*) FROM pets WHERE status = 'sold'"),
        1
    );
    // All or none: the second try meets no other instance.
    let mut tries = 0;
    writer
        .transact(|writer| {
            tries += 1;
            let mut transaction = writer.transaction()?;
            for id in [2, 1] {
                let _ = transaction.update_pet(id, &sold)?;
            }
            if tries == 1 {
                overtake(&mut other, 8);
            }
            Ok::<_, StoreError>(())
        })
        .unwrap();
    assert_eq!(tries, 2);
    assert_eq!(
        number(
            &path,
            "SELECT count(*) FROM pets WHERE status = 'sold' AND category_id IN (1, 8)"
        ),
        2
    );
}

#[test]
fn old_records_of_creates_go_and_young_ones_stay() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    once(&mut writer, "first", "0");
    writer.commit().unwrap();
    let records = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) \
        INSERT INTO retries SELECT i - 10, unhex(format('%032x', i)), zeroblob(16), \
        unixepoch() - CASE WHEN i % 2 THEN 86000 ELSE 86500 END FROM n";
    run(&path, records);
    writer.insert_pet(&new_pet("a"), Some(&key("1"))).unwrap();
    writer.insert_pet(&new_pet("b"), Some(&key("2"))).unwrap();
    writer.commit().unwrap();
    assert_eq!(
        number(&path, "SELECT count(*) FROM retries WHERE pet < 0"),
        2
    );
    assert_eq!(
        number(&path, "SELECT count(*) FROM retries WHERE pet > 0"),
        3
    );
    // A key that is old enough is a new one.
    run(&path, "UPDATE retries SET at = at - 86500 WHERE pet = 1");
    writer
        .insert_pet(&new_pet("other"), Some(&key("0")))
        .unwrap();
    assert!(writer.commit().unwrap().outcomes[0].is_ok());
}

#[test]
fn key_is_remembered_by_an_instance_whose_clock_is_a_day_ahead() {
    let (_nodes, path) = cluster(1);
    let mut before = writer(&path);
    once(&mut before, "a", "1");
    before.commit().unwrap();
    // Seen from there, the clock of the next instance is 25 hours ahead.
    run(&path, "UPDATE retries SET at = at - 90000");
    let mut ahead = writer(&path);
    for name in ["b", "c", "d"] {
        once(&mut ahead, name, name);
        ahead.commit().unwrap();
    }
    let mut next = writer(&path);
    let again = once(&mut next, "a", "1");
    let committed = next.commit().unwrap();
    assert_eq!(outcomes(&[again], &committed), [Outcome::Replayed(1)]);
}

#[test]
fn probe_goes_through_the_quorum() {
    let (mut nodes, path) = cluster(3);
    let mut writer = writer(&path);
    assert_eq!(writer.probe(), Ok(()));
    (0..3)
        .filter(|i| *i != nodes.leader())
        .collect::<Vec<_>>()
        .into_iter()
        .for_each(|i| nodes.kill(i));
    assert_eq!(writer.probe(), Ok(()), "what it found a moment ago");
    thread::sleep(Duration::from_secs(1));
    writer.set_busy_timeout(Duration::ZERO);
    assert!(writer.probe().is_err());
}
