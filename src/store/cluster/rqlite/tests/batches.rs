//! Batches: the outcomes of their parts, through failures of all kinds.

use super::*;
use crate::store::cluster::Revision;

#[test]
fn creates_of_a_batch_get_their_own_ids_and_repeats_get_those_of_the_first() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    let work = [
        once("a", "1"),
        create("b"),
        once("a", "1"),
        once("c", "1"),
        create("d"),
        once("e", "2"),
    ];
    let expected = [made(3), made(1), replayed(3), REUSED, made(2), made(4)];
    assert_eq!(commit(&mut cluster, &work), expected);
    assert_eq!(all_names(&path), ["b", "d", "a", "e"]);
    let work = [once("e", "2"), once("a", "3"), once("x", "1")];
    assert_eq!(commit(&mut cluster, &work), [replayed(4), made(5), REUSED]);
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
    let client = Arc::new(
        Client::new(
            petstore_cluster::ClusterAddress::parse(&address).unwrap(),
            None,
        )
        .unwrap(),
    );
    let mut cluster = Cluster::new(Arc::clone(&client)).unwrap();
    cluster.set_patience(Some(Duration::ZERO));
    let (probed, asked) = requests(&client, || cluster.probe());
    assert!(probed.is_err_and(|error| error.is_unknown()));
    assert_eq!(asked, 2);
}

fn rejected(why: &str) -> StoreError {
    StoreError::Rejected(why.to_owned())
}

#[test]
fn rejected_create_fails_no_other_of_its_batch() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    run(
        &path,
        "CREATE TRIGGER theirs BEFORE INSERT ON pets WHEN new.name = 'bad' BEGIN SELECT raise(ABORT, 'no'); END",
    );
    let pets = ["good", "bad", "fine"].map(|name| once(name, name));
    let done = cluster.commit(&pets).unwrap();
    assert_eq!(done, [Ok(made(1)), Err(rejected("no")), Ok(made(2))]);
    assert_eq!(all_names(&path), ["good", "fine"]);
    assert_eq!(
        cluster.commit_all(&[create("x"), create("bad")]),
        Err(rejected("no"))
    );
    assert_eq!(all_names(&path), ["good", "fine"]);
}

#[test]
fn create_that_a_trigger_leaves_out_gets_no_id_of_another_pet() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    run(
        &path,
        "CREATE TRIGGER theirs BEFORE INSERT ON pets WHEN new.name = 'bad' BEGIN SELECT raise(IGNORE); END",
    );
    let left_out = || Err(rejected(request::LEFT_OUT));
    let done = cluster
        .commit(&["good", "bad", "fine"].map(create))
        .unwrap();
    assert_eq!(done, [Ok(made(1)), left_out(), Ok(made(2))]);
    assert_eq!(all_names(&path), ["good", "fine"]);
    // The same with keys, next to a create without.
    let work = [
        create("plain"),
        once("good", "good"),
        once("bad", "bad"),
        once("fine", "fine"),
    ];
    let done = cluster.commit(&work).unwrap();
    assert_eq!(done, [Ok(made(3)), Ok(made(4)), left_out(), Ok(made(5))]);
}

#[test]
fn rejected_key_leaves_no_create_of_its_batch() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    run(
        &path,
        "CREATE TRIGGER theirs BEFORE INSERT ON api_keys BEGIN SELECT raise(ABORT, 'no'); END",
    );
    let key = Work::AddKey {
        key: api_key(7),
        newest: None,
    };
    let work = [create("a"), create("b"), key];
    assert_eq!(cluster.commit_all(&work), Err(rejected("no")));
    assert_eq!(all_names(&path), [""; 0]);
}

#[test]
fn batch_that_cannot_be_recorded_is_not_unknown() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    run(
        &path,
        "INSERT INTO pets (id, name, category_id) VALUES (9223372036854775807, 'last', 1)",
    );
    for work in [create("a"), once("a", "1")] {
        let full = cluster.commit(&[work]);
        assert!(
            matches!(full, Err(StoreError::Internal(_))),
            "no rule of another program, and known: {full:?}"
        );
    }
    run(&path, "DROP TABLE cluster_batches");
    let failed = cluster.commit(&[create("a")]);
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
    drop(open(&path));
    let send = |i: usize| {
        let mut cluster = open(&path);
        move || {
            let mut work: Vec<Work> = (0..20).map(|k: u32| once("Rex", &k.to_string())).collect();
            work.push(create(&i.to_string()));
            commit(&mut cluster, &work)
        }
    };
    let threads: Vec<_> = (0..4).map(|i| thread::spawn(send(i))).collect();
    let done: Vec<Vec<Done>> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    for k in 0..20 {
        let outcomes = done.iter().map(|done| match done[k] {
            Done::Created(outcome) => outcome,
            other => panic!("{other:?}"),
        });
        let outcomes: Vec<Outcome> = outcomes.collect();
        let id = outcomes[0].id();
        let made = |outcome: &&Outcome| matches!(outcome, Outcome::Made(_));
        assert!(
            outcomes.iter().filter(made).count() == 1
                && outcomes.iter().all(|outcome| outcome.id() == id),
            "{done:?}"
        );
    }
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 24);
}

#[test]
fn repeated_request_returns_the_same_and_adds_nothing_twice() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    for _ in 0..2 {
        commit(&mut cluster, &[once("early", "0")]);
    }
    // The first response is lost.
    let work = [once("a", "1"), create("b"), once("early", "0")];
    let [first, again] = cluster.deliver_twice(&work);
    assert_eq!(first, again);
    assert_eq!(first, [made(3), made(2), replayed(1)].map(Ok));
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 3);
}

#[test]
fn request_that_a_node_forwards_late_is_rejected() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    let late = cluster.request_only(&[create("a")]);
    commit(&mut cluster, &[create("b")]);
    let client = connect(&path).unwrap();
    let sent = client.write(&late, schema::PATIENCE);
    assert!(
        matches!(sent, Err(petstore_cluster::ClusterFailure::Statement(0, _))),
        "{sent:?}"
    );
    assert_eq!(all_names(&path), ["b"]);
}

#[test]
fn batch_with_an_unknown_outcome_reports_it_and_its_keys_resolve_it() {
    let (nodes, path) = cluster(3);
    let mut cluster = open(&path);
    commit(&mut cluster, &[once("before", "0")]);
    cluster.begin().unwrap();
    (0..3).for_each(|i| nodes.freeze(i));
    cluster.set_patience(Some(Duration::ZERO));
    let failed = cluster.commit(&[once("Rex", "1")]);
    assert!(
        failed.as_ref().is_err_and(StoreError::is_unknown),
        "{failed:?}"
    );
    let begun = cluster.begin();
    assert!(
        matches!(begun, Err(StoreError::Unavailable(Cause::Unreachable, _))),
        "{begun:?}"
    );
    (0..3).for_each(|i| nodes.thaw(i));
    nodes.wait_until_ready();
    cluster.set_patience(None);
    commit(&mut cluster, &[once("Rex", "1")]);
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 2);
}

#[test]
fn batch_asks_once_and_sends_all_its_work_in_one_request() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    let client = Arc::clone(&cluster.client);
    let send = |cluster: &mut Cluster, name: &str, old: Option<&Pet<'static>>| {
        let mut work = vec![create(name), once(name, name)];
        work.extend(old.map(|old| Work::Change {
            old: old.clone(),
            new: None,
        }));
        cluster.begin().unwrap();
        commit(cluster, &work)
    };
    let (done, asked) = requests(&client, || send(&mut cluster, "a", None));
    assert_eq!(done, [made(1), made(2)]);
    assert_eq!(asked, 3, "and the ages of the keys");
    let old = new_pet("a").with_id(1);
    let (done, asked) = requests(&client, || send(&mut cluster, "b", Some(&old)));
    assert_eq!(
        (&done[..], asked),
        (&[made(3), made(4), Done::Changed][..], 2)
    );
    assert_eq!(all_names(&path), ["a", "b", "b"]);
}

#[test]
fn key_is_added_only_after_the_newest_of_its_name_and_all_with_it() {
    let (_nodes, path) = cluster(1);
    let (mut one, mut other) = (open(&path), open(&path));
    add_key(&mut one, api_key(1));
    let add = |number, newest: Option<u8>| Work::AddKey {
        key: api_key(number),
        newest: newest.map(|number| [number; 32]),
    };
    for newest in [None, Some(2)] {
        let work = [Work::ExpireKey([1; 32], 5), add(2, newest)];
        let refused = one.commit_all(&work);
        assert!(
            refused.as_ref().is_err_and(StoreError::is_overtaken),
            "{refused:?}"
        );
    }
    one.begin().unwrap();
    assert_eq!(one.keys().unwrap().all, [api_key(1)]);
    let work = [Work::ExpireKey([1; 32], 5), add(2, Some(1))];
    assert_eq!(one.commit_all(&work), Ok(vec![Done::Changed; 2]));
    let of_another_name = Work::AddKey {
        key: ApiKey {
            name: "other".to_owned(),
            ..api_key(3)
        },
        newest: None,
    };
    other.commit_all(&[of_another_name]).unwrap();
    other.begin().unwrap();
    let keys = other.keys().unwrap().all;
    let found: Vec<_> = keys
        .iter()
        .map(|key| (key.digest[0], key.expires_at))
        .collect();
    assert_eq!(found, [(1, Some(5)), (2, None), (3, None)]);
    // All keys of a name are deleted, or none: there may be a newer one.
    let delete = |number, newest| Work::DeleteKey {
        digest: [number; 32],
        newest: [newest; 32],
    };
    for work in [[delete(1, 1), delete(2, 1)], [delete(1, 2), delete(9, 2)]] {
        let refused = one.commit_all(&work);
        assert!(
            refused.as_ref().is_err_and(StoreError::is_overtaken),
            "{refused:?}"
        );
    }
    one.commit_all(&[delete(1, 2), delete(2, 2)]).unwrap();
    assert_eq!(digests(&mut one), [3]);
}

#[test]
fn change_of_a_pet_that_another_instance_has_changed_fails_alone_or_with_all() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    commit(&mut cluster, &["a", "b", "c"].map(create));
    let pet = |id: i64, name: &str| new_pet(name).with_id(id);
    let sold = |id: i64, name: &str| Pet {
        status: Some(PetStatus::Sold),
        ..pet(id, name)
    };
    let sell = |id: i64, name: &str| Work::Change {
        old: pet(id, name),
        new: Some(sold(id, name)),
    };
    run(&path, "UPDATE pets SET category_id = 7 WHERE id = 1");
    let delete = Work::Change {
        old: pet(1, "a"),
        new: None,
    };
    let work = [sell(1, "a"), sell(2, "b"), create("d"), delete];
    let [first, again] = cluster.deliver_twice(&work);
    assert_eq!(first, again, "the first response may be lost");
    let expected = [Done::Overtaken, Done::Changed, made(4), Done::Overtaken];
    assert_eq!(first, expected.map(Ok));
    assert_eq!(
        number(&path, "SELECT count(*) FROM pets WHERE status = 'sold'"),
        1
    );
    // Each sees those before it.
    let renamed = Work::Change {
        old: pet(3, "c"),
        new: Some(pet(3, "C")),
    };
    let back = Work::Change {
        old: pet(3, "C"),
        new: Some(pet(3, "c")),
    };
    assert_eq!(commit(&mut cluster, &[renamed, back]), [Done::Changed; 2]);
    // All or none.
    let refused = cluster.commit_all(&[sell(3, "c"), create("x"), sell(2, "b")]);
    assert!(
        refused.as_ref().is_err_and(StoreError::is_overtaken),
        "{refused:?}"
    );
    assert_eq!(all_names(&path), ["a", "b", "c", "d"]);
    let done = cluster.commit_all(&[sell(3, "c"), sell(4, "d")]);
    assert_eq!(done, Ok(vec![Done::Changed; 2]));
    assert_eq!(
        number(&path, "SELECT count(*) FROM pets WHERE status = 'sold'"),
        3
    );
}

#[test]
fn import_is_noted_once_unless_again_and_ids_are_kept_only_by_the_first_pets() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    let note = |ids, again| Work::NoteImport {
        input: [7; 32],
        ids,
        again,
    };
    let kept = [
        Work::CreateAs(new_pet("a").with_id(5)),
        Work::CreateAs(new_pet("b").with_id(-2)),
        note(Some((-2, 5)), false),
    ];
    cluster.commit_all(&kept).unwrap();
    assert_eq!(all_names(&path), ["b", "a"]);
    let is_overtaken = |sent: Result<Vec<Done>, StoreError>| {
        assert!(
            sent.as_ref().is_err_and(StoreError::is_overtaken),
            "{sent:?}"
        );
    };
    is_overtaken(cluster.commit_all(&[create("c"), note(None, false)]));
    let other = Work::CreateAs(new_pet("d").with_id(9));
    is_overtaken(cluster.commit_all(&[other, note(Some((9, 9)), true)]));
    let work = [create("c"), create("d"), note(None, true)];
    let done = cluster.commit_all(&work);
    assert_eq!(done, Ok(vec![made(6), made(7), Done::Changed]));
    cluster.begin().unwrap();
    let (noted, last) = cluster.imported(&[7; 32]).unwrap();
    assert_eq!((noted.unwrap().ids, last), ((6, 7), 7));
}

#[test]
fn old_records_of_creates_go_and_young_ones_stay() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    commit(&mut cluster, &[once("first", "0")]);
    let records = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) \
        INSERT INTO retries SELECT i - 10, unhex(format('%032x', i)), zeroblob(16), \
        unixepoch() - CASE WHEN i % 2 THEN 86000 ELSE 86500 END FROM n";
    run(&path, records);
    commit(&mut cluster, &[once("a", "1"), once("b", "2")]);
    assert_eq!(
        number(&path, "SELECT count(*) FROM retries WHERE pet < 0"),
        2
    );
    assert_eq!(
        number(&path, "SELECT count(*) FROM retries WHERE pet > 0"),
        3
    );
    // A key that is old enough is a new one.
    run(&path, "DELETE FROM retries WHERE pet < 0");
    run(&path, "UPDATE retries SET at = at - 86500 WHERE pet = 1");
    assert_eq!(commit(&mut cluster, &[once("other", "0")]), [made(4)]);
}

#[test]
fn key_is_remembered_by_an_instance_whose_clock_is_a_day_ahead() {
    let (_nodes, path) = cluster(1);
    commit(&mut open(&path), &[once("a", "1")]);
    // Seen from there, the clock of the next instance is 25 hours ahead.
    run(&path, "UPDATE retries SET at = at - 90000");
    let mut ahead = open(&path);
    for name in ["b", "c", "d"] {
        commit(&mut ahead, &[once(name, name)]);
    }
    assert_eq!(commit(&mut open(&path), &[once("a", "1")]), [replayed(1)]);
}

#[test]
fn probe_goes_through_the_quorum() {
    let (mut nodes, path) = cluster(3);
    let mut cluster = open(&path);
    let leader = nodes.leader();
    assert_eq!(cluster.probe(), Ok(()));
    (0..3).filter(|i| *i != leader).for_each(|i| nodes.kill(i));
    assert_eq!(cluster.probe(), Ok(()), "what it found a moment ago");
    thread::sleep(Duration::from_secs(1));
    cluster.set_patience(Some(Duration::ZERO));
    assert!(cluster.probe().is_err());
}

#[test]
fn answer_without_a_revision_is_another_schema() {
    let refused = connection::revision(&Vec::new());
    assert!(refused.is_err_and(|error| !error.passes()));
    assert_ne!(
        Revision::default(),
        Revision {
            seq: 1,
            ..Revision::default()
        }
    );
}
