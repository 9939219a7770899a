//! Reads: how fresh they are, how many requests they take, and how they fail.

use super::*;

#[test]
fn pets_of_a_batch_are_few_requests() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    let all: Vec<Work> = (0..9).map(|i| create(&i.to_string())).collect();
    commit(&mut cluster, &all);
    cluster.begin().unwrap();
    let client = Arc::clone(&cluster.client);
    let ids: Vec<i64> = [7, 1, 2, 10].into_iter().chain(100..160).collect();
    let (pets, asked) = requests(&client, || cluster.pets(&ids).unwrap());
    let mut found: Vec<(i64, &str)> = pets.iter().map(|(id, pet)| (*id, &*pet.name)).collect();
    found.sort_unstable();
    assert_eq!(found, [(1, "0"), (2, "1"), (7, "6")]);
    assert_eq!(asked, 1, "64 pets");
    let more: Vec<i64> = (1..=65).collect();
    assert_eq!(
        requests(&client, || cluster.pets(&more).unwrap().len()),
        (9, 2)
    );
    assert_eq!(
        requests(&client, || cluster.pets(&[]).unwrap().len()),
        (0, 0)
    );
}

#[test]
fn cluster_that_is_away_is_waited_for_once() {
    let (mut nodes, path) = cluster(1);
    let (mut writer, mut reader) = (open(&path), open(&path));
    let client = Arc::clone(&reader.client);
    let asked = || {
        client
            .meters()
            .iter()
            .map(|meter| meter.requests)
            .sum::<u64>()
    };
    reader.begin().unwrap();
    nodes.kill(0);
    // At the end of a service, there is only one try.
    let tries = asked();
    writer.set_patience(Some(Duration::ZERO));
    assert!(writer.probe().is_err() && asked() == tries + 1);
    let failed = reader.begin();
    assert!(
        matches!(failed, Err(StoreError::Unavailable(Cause::Unreachable, _))),
        "{failed:?}"
    );
    let tries = asked();
    assert_eq!(
        (reader.begin(), asked()),
        (failed, tries),
        "the next batch does not wait behind it"
    );
    nodes.start_node(0);
    nodes.wait_until_ready();
    // The next try comes a second later.
    let deadline = Instant::now() + petstore_base::testing::PATIENCE;
    while let Err(error) = reader.begin() {
        assert!(Instant::now() < deadline, "{error}");
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn nobody_reads_an_old_list_or_an_old_key_through_any_instance() {
    let (_nodes, path) = cluster(3);
    let paths = || [path.clone(), turned(&path), turned(&turned(&path))];
    let mut writers = paths().map(|path| open(&path));
    let mut readers = paths().map(|path| open(&path));
    for round in 0_u8..20 {
        for i in 0..3 {
            let [Done::Created(made)] = commit(&mut writers[i], &[create("Rex")])[..] else {
                panic!("it is one pet")
            };
            let digest = round * 3 + i as u8;
            add_key(&mut writers[i], api_key(digest));
            for reader in &mut readers {
                assert!(pet(reader, made.id()).is_some(), "round {round}");
                assert_eq!(reader.imported(&[]).unwrap(), (None, made.id()));
                assert_eq!(digests(reader), [digest]);
            }
            let (digest, newest) = ([digest; 32], [digest; 32]);
            let delete = Work::DeleteKey { digest, newest };
            writers[(i + 1) % 3].commit_all(&[delete]).unwrap();
            for reader in &mut readers {
                assert_eq!(digests(reader), [0; 0], "it was revoked");
            }
        }
    }
}

#[test]
fn every_change_makes_a_new_revision_even_of_other_programs() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    commit(&mut cluster, &[create("Rex"), create("Tom")]);
    let mut before = cluster.begin().unwrap();
    for (sql, changes_keys) in [
        (
            "INSERT INTO pets (name, category_id) VALUES ('a', 1)",
            false,
        ),
        ("UPDATE pets SET name = 'x' WHERE id = 1", true),
        ("DELETE FROM pets WHERE id = 1", true),
        (
            "INSERT INTO pets (id, name, category_id) VALUES (1, 'back', 1)",
            true,
        ),
        (
            "INSERT OR REPLACE INTO pets (id, name, category_id) VALUES (2, 'other', 1)",
            true,
        ),
        (
            "INSERT INTO api_keys (digest, name, read_only, created_at) VALUES (randomblob(32), 'ci', 0, 0)",
            true,
        ),
        ("UPDATE api_keys SET expires_at = 1", true),
        ("DELETE FROM api_keys", true),
    ] {
        run(&path, sql);
        let after = cluster.begin().unwrap();
        assert!(after != before && after.has_all_of(&before), "{sql}");
        assert_eq!(after.has_keys_of(&before), !changes_keys, "{sql}");
        before = after;
    }
    run(
        &path,
        "INSERT INTO api_keys (digest, name, read_only, created_at) VALUES (zeroblob(32), 'ci', 0, 0)",
    );
    before = cluster.begin().unwrap();
    run(&path, "UPDATE api_keys SET last_used_at = 1");
    assert_eq!(cluster.begin(), Ok(before), "nothing has changed");
}
