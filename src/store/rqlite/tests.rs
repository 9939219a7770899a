//! The engine against real nodes. Needs `RQLITED`: run by `scripts/test.d/cluster`.

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::model::{ApiKey, Caller, Domain, IdempotencyKey, KeyScope, NewPet, Pet, PetStatus, Plan};
use crate::store::engine::{Committed, Inserted, Outcome, Snapshots, Units, Writes};
use crate::store::pets::tests::{all_names, new_pet};
use crate::store::sqlite::retries::sweep::gather;
use crate::store::sqlite::schema::STEPS;
use crate::store::{Cause, MOST_TRIES, StoreError, Whole};
use client::{Statement, Value};
use nodes::Nodes;

/// A cluster of so many nodes without a database, and its address.
fn cluster(count: usize) -> (Nodes, PathBuf) {
    let nodes = Nodes::start(count);
    let path = nodes.address().into();
    (nodes, path)
}

/// A writer. For a client of its own, pass a `turned` path.
fn writer(path: &Path) -> batch::Writer {
    let (client, level) = connect(path).unwrap();
    schema::migrate(&client, path, level).unwrap();
    batch::Writer::new(Session::new(client, level).unwrap())
}

fn session(path: &Path) -> Session {
    let (client, level) = connect(path).unwrap();
    Session::new(client, level).unwrap()
}

/// The address with the hosts in another order, so that another client is made for it.
fn turned(path: &Path) -> PathBuf {
    let text = path.to_str().unwrap().strip_prefix("rqlite://").unwrap();
    let (hosts, rest) = text.split_once('/').unwrap();
    let mut hosts: Vec<&str> = hosts.split(',').collect();
    hosts.rotate_left(1);
    format!("rqlite://{}/{rest}", hosts.join(",")).into()
}

/// As another program would, such as rqlite's shell.
fn run(path: &Path, sql: &str) {
    let (client, _) = connect(path).unwrap();
    let statement = Statement::new(sql.to_owned(), []);
    client.write(&[statement], schema::PATIENCE).unwrap();
}

fn number(path: &Path, sql: &str) -> i64 {
    let (client, level) = connect(path).unwrap();
    let rows = client.read(&[Statement::new(sql.to_owned(), [])], level, schema::PATIENCE).unwrap();
    match rows[0][0][0] {
        Value::Integer(number) => number,
        ref other => panic!("{other:?}"),
    }
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(Caller::extra(), text.as_bytes())
}

fn once(writer: &mut batch::Writer, name: &str, text: &str) -> Inserted {
    writer.insert_pet_once(&new_pet(name), &key(text)).unwrap()
}

fn outcomes(pets: &[Inserted], committed: &Committed) -> Vec<Outcome> {
    pets.iter().map(|pet| pet.outcome(committed).unwrap()).collect()
}

fn api_key(number: u8) -> ApiKey {
    let (digest, name) = ([number; 32], "ci".to_owned());
    ApiKey { digest, name, scope: KeyScope::Full, created_at: 0, expires_at: None, last_used_at: None }
}

#[test]
fn pets_and_keys_are_kept_to_the_letter() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    let names = ["", "a\0b\0", "'; DROP TABLE pets; --", "\u{1f600}\u{202e}\"\\", "?1", "é"];
    let numbers = [i64::MIN, i64::MAX, 0, -1, 1 << 53, (1 << 53) + 1];
    let pets: Vec<Inserted> = (names.iter().zip(numbers).enumerate())
        .map(|(i, (name, category_id))| {
            let status = [None, Some(PetStatus::Sold)][i % 2];
            writer.insert_pet(&NewPet { name: (*name).into(), category_id, status }).unwrap()
        })
        .collect();
    let committed = writer.commit().unwrap();
    let mut session = session(&path);
    for (i, pet) in pets.iter().enumerate() {
        let found =
            session.pet(pet.id(&committed), |pet: Pet| (pet.name.to_owned(), pet.category_id, pet.status));
        let status = [None, Some(PetStatus::Sold)][i % 2];
        assert_eq!(found, Ok(Some((names[i].to_owned(), numbers[i], status))));
    }
    // What is read after a batch is no older.
    Snapshots::begin(&mut session).unwrap();
    Snapshots::end(&mut session).unwrap();
    let writes: &mut dyn Writes = &mut writer;
    writes.transact(|writer| writer.insert_key(&api_key(7))).unwrap();
    assert_eq!(session.key(&[7; 32]), Ok(Some(api_key(7))));
    assert_eq!(session.key(&[8; 32]), Ok(None));
    assert_eq!(session.has_had_keys(), Ok(true));
}

#[test]
fn creates_of_a_batch_get_their_own_ids_and_repeats_get_those_of_the_first() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.begin(Units::Joined).unwrap();
    let pets = [
        once(&mut writer, "a", "1"),
        writer.insert_pet(&new_pet("b")).unwrap(),
        once(&mut writer, "a", "1"),
        once(&mut writer, "c", "1"),
        writer.insert_pet(&new_pet("d")).unwrap(),
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
    assert_eq!((outcomes(&pets, &committed), committed.replays), (expected.to_vec(), 1));
    assert_eq!(all_names(&session(&path)), ["b", "d", "a", "e"]);
    let pets = [once(&mut writer, "e", "2"), once(&mut writer, "a", "3"), once(&mut writer, "x", "1")];
    let committed = writer.commit().unwrap();
    assert_eq!(outcomes(&pets, &committed), [Outcome::Replayed(4), Outcome::Made(5), Outcome::Reused]);
    assert_eq!(number(&path, "SELECT changes FROM cluster_changes"), 0, "creates raise the sequence");
}

/// A server at this address that answers each request with this body, or hangs up.
pub fn pretender(answer: impl Fn(usize) -> Option<String> + Send + 'static) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("rqlite://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (request, stream) in listener.incoming().enumerate() {
            let (mut stream, mut asked, mut buffer) = (stream.unwrap(), Vec::new(), [0; 4096]);
            // The end of a list of statements.
            while !asked.ends_with(b"]") {
                let count = stream.read(&mut buffer).unwrap();
                asked.extend_from_slice(&buffer[..count]);
            }
            let Some(body) = answer(request) else { continue };
            let head = "HTTP/1.1 200 OK\r\nX-Rqlite-Version: v9.4.0\r\nConnection: close\r\nContent-Length:";
            stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn outcome_of_a_batch_is_asked_for_no_longer_than_it_is_sent() {
    let address = pretender(|request| {
        let refused = r#"{"results":[{"error":"NOT NULL constraint failed: cluster_writers.is_current"}]}"#;
        (request == 0).then(|| refused.to_owned())
    });
    let client = Arc::new(Client::new(client::Address::parse(&address).unwrap(), None).unwrap());
    let mut writer = batch::Writer::new(Session::new(Arc::clone(&client), Level::Linearizable).unwrap());
    writer.be_patient(Duration::ZERO);
    let (probed, asked) = requests(&client, || writer.probe());
    assert!(matches!(probed, Err(StoreError::Unavailable(Cause::Unknown, _))), "{probed:?}");
    assert_eq!(asked, 2);
}

#[test]
fn refused_unit_leaves_nothing_and_an_undone_batch_neither() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.begin(Units::Joined).unwrap();
    for (name, keep) in [("a", true), ("b", false), ("c", true)] {
        writer.begin_unit().unwrap();
        writer.insert_pet(&new_pet(name)).unwrap();
        assert!(keep || writer.undo_unit());
    }
    writer.commit().unwrap();
    writer.insert_pet(&new_pet("d")).unwrap();
    writer.undo();
    writer.commit().unwrap();
    assert_eq!(all_names(&session(&path)), ["a", "c"]);
    // A change is undone with its batch.
    writer.begin(Units::Joined).unwrap();
    writer.begin_unit().unwrap();
    writer.change("UPDATE project SET plan = 'pro'", &[]).unwrap();
    assert!(!writer.undo_unit());
    writer.undo();
    assert_eq!(writer.session.project().plan(), Ok(Plan::Free));
}

#[test]
fn start_names_what_the_schema_lacks_and_takes_what_others_made() {
    let (_nodes, path) = cluster(1);
    drop(open_for_service(&path, 1).unwrap());
    run(&path, "CREATE TABLE theirs (x)");
    run(&path, "CREATE TRIGGER theirs_too BEFORE INSERT ON pets BEGIN SELECT 1; END");
    drop(open_for_service(&path, 1).unwrap());
    run(&path, "DROP INDEX pets_by_status");
    let refused = open_for_service(&path, 1).err().unwrap().to_string();
    assert!(refused.contains("the index pets_by_status is missing"), "{refused}");
    assert!(refused.contains("CREATE INDEX pets_by_status"), "{refused}");
}

#[test]
fn create_that_is_refused_fails_no_other_of_its_batch() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    run(
        &path,
        "CREATE TRIGGER theirs BEFORE INSERT ON pets WHEN new.name = 'bad' BEGIN SELECT raise(ABORT, 'no'); END",
    );
    let pets =
        ["good", "bad", "fine"].map(|name| writer.insert_pet_once(&new_pet(name), &key(name)).unwrap());
    let committed = writer.commit().unwrap();
    let done = pets.each_ref().map(|pet| pet.outcome(&committed));
    assert_eq!((&done[0], &done[2]), (&Ok(Outcome::Made(1)), &Ok(Outcome::Made(2))));
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
    let pets = ["good", "bad", "fine"].map(|name| writer.insert_pet(&new_pet(name)).unwrap());
    let committed = writer.commit().unwrap();
    let done = pets.each_ref().map(|pet| pet.outcome(&committed));
    assert_eq!((&done[0], &done[2]), (&Ok(Outcome::Made(1)), &Ok(Outcome::Made(2))));
    assert!(matches!(&done[1], Err(StoreError::Internal(why)) if why.contains("trigger")), "{:?}", done[1]);
    assert_eq!(all_names(&session(&path)), ["good", "fine"]);
    // The same with keys, next to a create without.
    let pets = [None, Some("good"), Some("bad"), Some("fine")].map(|name| match name {
        Some(name) => once(&mut writer, name, name),
        None => writer.insert_pet(&new_pet("plain")).unwrap(),
    });
    let committed = writer.commit().unwrap();
    let done = pets.each_ref().map(|pet| pet.outcome(&committed));
    let made = |id| Ok(Outcome::Made(id));
    assert_eq!((&done[0], &done[1], &done[3]), (&made(3), &made(4), &made(5)));
    assert!(matches!(&done[2], Err(StoreError::Internal(why)) if why.contains("trigger")), "{:?}", done[2]);
}

#[test]
fn change_that_is_refused_leaves_no_create_of_its_batch() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    run(&path, "CREATE TRIGGER theirs BEFORE UPDATE ON project BEGIN SELECT raise(ABORT, 'no'); END");
    for name in ["a", "b"] {
        writer.insert_pet(&new_pet(name)).unwrap();
    }
    assert_eq!(writer.change("UPDATE project SET plan = 'pro'", &[]), Ok(1));
    assert_eq!(writer.commit(), Err(StoreError::Internal("no".to_owned())));
    assert_eq!(all_names(&session(&path)), [""; 0]);
}

#[test]
fn only_changes_depend_on_what_others_change_meanwhile() {
    let (_nodes, path) = cluster(1);
    let (mut writer, mut other) = (writer(&path), writer(&path));
    let mut change = || {
        let other: &mut dyn Writes = &mut other;
        other.change_project(|project| project.set_plan(Plan::Pro)).unwrap();
    };
    assert_eq!(writer.try_begin(), Ok(true));
    writer.insert_pet(&new_pet("a")).unwrap();
    change();
    writer.commit().unwrap();
    assert_eq!(writer.try_begin(), Ok(true));
    writer.execute("UPDATE project SET plan = 'free'", &[]).unwrap();
    change();
    let refused = writer.commit();
    assert!(matches!(refused, Err(StoreError::Unavailable(Cause::Conflict, _))), "{refused:?}");
}

#[test]
fn batch_that_cannot_be_recorded_is_not_unknown() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    run(&path, "INSERT INTO pets (id, name, category_id) VALUES (9223372036854775807, 'last', 1)");
    for key in [None, Some("1")] {
        match key {
            Some(key) => drop(once(&mut writer, "a", key)),
            None => drop(writer.insert_pet(&new_pet("a")).unwrap()),
        }
        let full = writer.commit();
        assert!(matches!(full, Err(StoreError::Unavailable(Cause::NoIds, _))), "{full:?}");
    }
    run(&path, "DROP TABLE cluster_writers");
    writer.insert_pet(&new_pet("a")).unwrap();
    let failed = writer.commit();
    assert!(matches!(failed, Err(StoreError::Unavailable(Cause::SchemaChanged, _))), "{failed:?}");
}

#[test]
fn key_sent_through_many_instances_at_once_makes_one_pet() {
    let (_nodes, path) = cluster(1);
    drop(writer(&path));
    let send = |i: usize| {
        let mut writer = writer(&path);
        move || {
            let pets: Vec<_> = (0..20).map(|k| once(&mut writer, "Rex", &k.to_string())).collect();
            writer.insert_pet(&new_pet(&i.to_string())).unwrap();
            let committed = writer.commit().unwrap();
            outcomes(&pets, &committed)
        }
    };
    let threads: Vec<_> = (0..4).map(|i| thread::spawn(send(i))).collect();
    let done: Vec<Vec<Outcome>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    for k in 0..20 {
        let made = done.iter().filter(|done| matches!(done[k], Outcome::Made(_))).count();
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
fn request_that_is_sent_again_tells_the_same_and_doubles_nothing() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    for _ in 0..2 {
        once(&mut writer, "early", "0");
        writer.commit().unwrap();
    }
    once(&mut writer, "a", "1");
    writer.insert_pet(&new_pet("b")).unwrap();
    once(&mut writer, "early", "0");
    // As if the first answer was lost.
    let [first, again] = writer.deliver_twice();
    let expected = [Outcome::Made(3), Outcome::Made(2), Outcome::Replayed(1)].map(Ok);
    assert_eq!((&first[..], &again[..]), (&expected[..], &expected[..]));
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 3);
}

#[test]
fn request_that_a_node_sends_on_late_is_refused() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("a")).unwrap();
    let late = writer.request_only();
    writer.insert_pet(&new_pet("b")).unwrap();
    writer.commit().unwrap();
    let (client, _) = connect(&path).unwrap();
    let sent = client.write(&late, schema::PATIENCE);
    assert!(matches!(sent, Err(client::Failure::Statement(0, _))), "{sent:?}");
    assert_eq!(all_names(&session(&path)), ["b"]);
}

#[test]
fn batch_whose_outcome_nobody_knows_says_so_and_its_keys_resolve_it() {
    let (nodes, path) = cluster(3);
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("before")).unwrap();
    writer.commit().unwrap();
    writer.begin(Units::Joined).unwrap();
    once(&mut writer, "Rex", "1");
    (0..3).for_each(|i| nodes.freeze(i));
    writer.be_patient(Duration::ZERO);
    let failed = writer.commit();
    assert!(matches!(failed, Err(StoreError::Unavailable(Cause::Unknown, _))), "{failed:?}");
    // A batch that cannot even begin is not sent, so its outcome is known.
    let begun = writer.begin(Units::Joined);
    assert!(matches!(begun, Err(StoreError::Unavailable(Cause::Unreachable, _))), "{begun:?}");
    assert_eq!(writer.insert_pet(&new_pet("Tom")).err(), begun.err());
    assert!(writer.commit().is_ok(), "nothing is sent");
    (0..3).for_each(|i| nodes.thaw(i));
    nodes.wait_until_ready();
    writer.be_patient(crate::store::BUSY_TIMEOUT);
    once(&mut writer, "Rex", "1");
    writer.commit().unwrap();
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 2);
}

/// How many requests some work takes.
fn requests<T>(client: &client::Client, work: impl FnOnce() -> T) -> (T, u64) {
    let asked = || client.meters().iter().map(|meter| meter.requests).sum::<u64>();
    let before = asked();
    (work(), asked() - before)
}

#[test]
fn batch_of_creates_is_one_request_and_is_refused_if_a_key_has_changed() {
    let (_nodes, path) = cluster(1);
    let (mut writer, mut other) = (writer(&path), writer(&path));
    let client = std::sync::Arc::clone(&writer.session.client);
    let create = |writer: &mut batch::Writer, name: &str| {
        writer.begin(Units::Joined).unwrap();
        let pets = [writer.insert_pet(&new_pet(name)).unwrap(), once(writer, name, name)];
        writer.commit().map(|committed| outcomes(&pets, &committed))
    };
    assert_eq!(
        requests(&client, || create(&mut writer, "a")),
        (Ok(vec![Outcome::Made(1), Outcome::Made(2)]), 3)
    );
    for (name, id) in [("b", 3), ("c", 5)] {
        let made = vec![Outcome::Made(id), Outcome::Made(id + 1)];
        assert_eq!(requests(&client, || create(&mut writer, name)), (Ok(made), 1));
    }
    writer.begin(Units::Joined).unwrap();
    let pets = ["f", "g"].map(|name| once(&mut writer, name, name));
    let made = requests(&client, || outcomes(&pets, &writer.commit().unwrap()));
    assert_eq!(made, (vec![Outcome::Made(7), Outcome::Made(8)], 1));
    // A read asks once, and what is known by the version stays known if only pets have come.
    let version = writer.session.data_version();
    writer.begin(Units::Joined).unwrap();
    let read = || [7, 8].map(|i| writer.session.key(&[i; 32]).unwrap());
    assert_eq!(requests(&client, read), ([None, None], 1));
    writer.commit().unwrap();
    assert_eq!(writer.session.data_version(), version);
    let other: &mut dyn Writes = &mut other;
    other.transact(|writer| writer.insert_key(&api_key(7))).unwrap();
    let is_conflict = |error: StoreError| error.is_conflict();
    assert_eq!(create(&mut writer, "d").map_err(is_conflict), Err(true));
    assert_eq!(create(&mut writer, "d"), Ok(vec![Outcome::Made(9), Outcome::Made(10)]));
    // What is read is fresh, and what was decided before it may not be.
    other.delete_key(&[7; 32]).unwrap();
    writer.begin(Units::Joined).unwrap();
    assert_eq!(writer.session.key(&[7; 32]), Ok(None));
    writer.insert_pet(&new_pet("e")).unwrap();
    assert_eq!(writer.commit().map_err(is_conflict), Err(true));
    // Also if a change follows, which is checked against what is read from there on.
    writer.begin(Units::Joined).unwrap();
    writer.commit().unwrap();
    other.transact(|writer| writer.insert_key(&api_key(7))).unwrap();
    writer.begin(Units::Joined).unwrap();
    writer.insert_pet(&new_pet("e")).unwrap();
    assert_eq!(writer.session.key(&[7; 32]), Ok(Some(api_key(7))));
    writer.open_transaction().unwrap();
    (&mut writer as &mut dyn Writes).insert_key(&api_key(9)).unwrap();
    assert_eq!(writer.commit().map_err(is_conflict), Err(true));
    // The same without creates.
    writer.begin(Units::Joined).unwrap();
    writer.commit().unwrap();
    other.transact(|writer| writer.insert_key(&api_key(8))).unwrap();
    writer.begin(Units::Joined).unwrap();
    assert_eq!(writer.commit().map_err(is_conflict), Err(true));
    assert_eq!(number(&path, "SELECT count(*) FROM pets"), 10);
}

#[test]
fn reads_of_a_batch_are_one_request() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    for i in 0..9 {
        writer.insert_pet(&new_pet(&i.to_string())).unwrap();
    }
    writer.commit().unwrap();
    let mut session = session(&path);
    let client = std::sync::Arc::clone(&session.client);
    let name = |session: &Session, id| session.pet(id, |pet| pet.name.to_owned());
    Snapshots::begin(&mut session).unwrap();
    assert!(session.put_off());
    session.bound_rows(Some(1));
    for id in [1, 2, 2, 10] {
        assert_eq!(name(&session, id).map_err(|error| error.passes()), Err(false));
        assert!(session.has_put_off() && !session.has_put_off());
    }
    session.bound_rows(Some(2));
    assert_eq!(name(&session, 3), Ok(Some("2".to_owned())), "only single rows are put off");
    session.bound_rows(Some(1));
    (100..225).for_each(|id| assert!(name(&session, id).is_err()));
    assert_eq!(requests(&client, || session.read_put_off()).1, 1, "128 pets");
    let read = || [1, 2, 10, 224].map(|id| name(&session, id).unwrap());
    assert_eq!(requests(&client, read), ([Some("0".to_owned()), Some("1".to_owned()), None, None], 0));
    assert_eq!(requests(&client, || name(&session, 5)), (Ok(Some("4".to_owned())), 1));
    Snapshots::end(&mut session).unwrap();
    run(&path, "DELETE FROM pets WHERE id = 1");
    Snapshots::begin(&mut session).unwrap();
    assert_eq!(name(&session, 1), Ok(None), "a batch takes nothing over");
}

#[test]
fn reads_that_fail_together_wait_for_the_cluster_once() {
    let (mut nodes, path) = cluster(1);
    drop(writer(&path));
    let mut session = session(&path);
    let client = std::sync::Arc::clone(&session.client);
    Snapshots::begin(&mut session).unwrap();
    session.put_off();
    session.bound_rows(Some(1));
    assert!((1..9).all(|id| session.pet(id, |_| ()).is_err()));
    nodes.kill(0);
    session.read_put_off();
    let read = || (1..9).all(|id| session.pet(id, |_| ()).is_err_and(|error| error.passes()));
    assert_eq!(requests(&client, read), (true, 0));
}

#[test]
fn cluster_that_is_away_is_waited_for_once() {
    let (mut nodes, path) = cluster(1);
    let (mut writer, mut session) = (writer(&path), session(&path));
    let client = Arc::clone(&session.client);
    let asked = || client.meters().iter().map(|meter| meter.requests).sum::<u64>();
    Snapshots::begin(&mut session).unwrap();
    let before = session.data_version();
    nodes.kill(0);
    // At the end of a service, one try must do.
    let tries = asked();
    writer.be_patient(Duration::ZERO);
    assert!(writer.probe().is_err() && asked() == tries + 1);
    let failed = Snapshots::begin(&mut session);
    assert_ne!(session.data_version(), before, "nothing is known by it");
    assert!(matches!(failed, Err(StoreError::Unavailable(Cause::Unreachable, _))), "{failed:?}");
    let tries = asked();
    assert_eq!((session.begin(), asked()), (failed, tries), "the next batch does not wait behind it");
    nodes.start_node(0);
    nodes.wait_until_ready();
    // It is tried again once the second is over.
    let deadline = Instant::now() + crate::testing::PATIENCE;
    let mut failures = 2;
    while let Err(error) = session.begin() {
        assert!(Instant::now() < deadline, "{error}");
        failures += 1;
        thread::sleep(Duration::from_millis(200));
    }
    for _ in 0..failures {
        run(&path, "UPDATE project SET plan = 'pro'");
        session.begin().unwrap();
        assert_ne!(session.data_version(), before);
    }
}

#[test]
fn nobody_reads_an_old_list_or_an_old_key_through_any_instance() {
    let (_nodes, path) = cluster(3);
    let mut writers = [writer(&path), writer(&turned(&path)), writer(&turned(&turned(&path)))];
    let mut readers = [session(&path), session(&turned(&path)), session(&turned(&turned(&path)))];
    for round in 0_u8..20 {
        for i in 0..3 {
            let pet = writers[i].insert_pet(&new_pet("Rex")).unwrap();
            let id = pet.id(&writers[i].commit().unwrap());
            let key = api_key(round * 3 + i as u8);
            let writes: &mut dyn Writes = &mut writers[i];
            writes.transact(|writer| writer.insert_key(&key)).unwrap();
            for reader in &mut readers {
                Snapshots::begin(reader).unwrap();
                assert_eq!(reader.pet(id, |pet| pet.id), Ok(Some(id)), "round {round}");
                assert_eq!(reader.last_id(), Ok(id));
                assert_eq!(reader.key(&key.digest), Ok(Some(key.clone())));
                Snapshots::end(reader).unwrap();
            }
            let writes: &mut dyn Writes = &mut writers[(i + 1) % 3];
            writes.delete_key(&key.digest).unwrap();
            for reader in &mut readers {
                Snapshots::begin(reader).unwrap();
                assert_eq!(reader.key(&key.digest), Ok(None), "it was revoked");
                Snapshots::end(reader).unwrap();
            }
        }
    }
}

#[test]
fn every_change_makes_another_version_also_those_of_other_programs() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    writer.insert_pet(&new_pet("Rex")).unwrap();
    writer.insert_pet(&new_pet("Tom")).unwrap();
    writer.commit().unwrap();
    let session = session(&path);
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
        "UPDATE project SET plan = 'pro'",
        "INSERT INTO api_keys (digest, name, read_only, created_at) VALUES (randomblob(32), 'ci', 0, 0)",
        "UPDATE api_keys SET expires_at = 1",
        "DELETE FROM api_keys",
        "INSERT INTO domains VALUES ('a.test', 'active', 0, NULL, NULL, 0, NULL, 1)",
        "INSERT INTO redirects VALUES ('a.test', 'b.test', 301)",
    ] {
        run(&path, sql);
        session.end();
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

#[test]
fn project_is_changed_whole_or_not_at_all_and_meets_no_change_of_another_instance() {
    let (_nodes, path) = cluster(1);
    let (mut one, mut other) = (writer(&path), writer(&path));
    let (one, other): (&mut dyn Writes, &mut dyn Writes) = (&mut one, &mut other);
    let domain = |name: &str| Domain::new(name.to_owned(), 5);
    one.change_project(|project| {
        project.put_domain(&domain("a.test"))?;
        // What was put is there, before it is sent.
        assert_eq!(project.domain("a.test")?, Some(domain("a.test")));
        project.set_primary("a.test")
    })
    .unwrap();
    assert_eq!(other.project().primary().unwrap().as_deref(), Some("a.test"));
    let refused = one.change_project(|project| {
        project.set_plan(Plan::Pro)?;
        Err::<(), _>(StoreError::Internal("refused".to_owned()))
    });
    assert!(refused.is_err());
    assert_eq!(one.project().plan().unwrap(), Plan::Free);
    // The first try meets a change of another instance, and the second does not.
    let mut tries = 0;
    one.change_project(|project| {
        tries += 1;
        if tries == 1 {
            other.change_project(|project| project.put_domain(&domain("c.test")))?;
        }
        project.put_domain(&domain(if project.domain("c.test")?.is_some() { "after.test" } else { "b.test" }))
    })
    .unwrap();
    let names: Vec<String> = one.project().domains().unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!((tries, names), (2, ["a.test", "after.test", "c.test"].map(str::to_owned).to_vec()));
    // Another instance is always faster.
    let mut tries = 0;
    let refused = one.change_project(|project| {
        tries += 1;
        assert!(tries <= MOST_TRIES);
        other.change_project(|project| project.set_plan(Plan::Free))?;
        project.set_plan(Plan::Pro)
    });
    assert!(matches!(refused, Err(StoreError::Unavailable(Cause::Conflict, _))), "{refused:?}");
    assert_eq!((tries, one.project().plan().unwrap()), (MOST_TRIES, Plan::Free));
}

#[test]
fn deploy_comes_whole_with_its_files() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    let writer: &mut dyn Writes = &mut writer;
    let content: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let file = crate::model::SiteFile {
        path: "/a.bin".to_owned(),
        content_type: "text/plain".to_owned(),
        content: content.clone(),
        gzip: None,
        tag: "t".to_owned(),
    };
    for _ in 0..2 {
        let deploy = writer.change_project(|project| project.add_deploy()).unwrap();
        assert!(writer.change_project(|project| project.add_file(deploy, &file)).unwrap());
        assert!(writer.change_project(|project| project.go_live(deploy, 9)).unwrap());
    }
    writer.change_project(|project| project.keep_deploys(1)).unwrap();
    let session = session(&path);
    let found = session.project().file("/a.bin", "").unwrap().unwrap();
    assert_eq!((found.length, session.project().content(&found, false).unwrap()), (100_000, content));
    let deploys = session.project().deploys().unwrap();
    assert_eq!((deploys.len(), deploys[0].id, deploys[0].files, deploys[0].is_live), (1, 2, 1, true));
}

#[test]
fn instances_that_start_at_once_make_one_schema() {
    let (_nodes, path) = cluster(3);
    let start = |path: PathBuf| thread::spawn(move || drop(writer(&path)));
    let paths = [path.clone(), turned(&path), turned(&turned(&path)), path.clone()];
    paths.map(start).into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(number(&path, "SELECT count(*) FROM project"), 1);
    assert_eq!(number(&path, "SELECT count(*) FROM cluster_changes"), 1);
    let (client, level) = connect(&path).unwrap();
    assert!(schema::is_current(&client, &path, level).unwrap());
}

#[test]
fn database_of_another_program_or_of_a_later_version_is_refused_and_left() {
    let (_nodes, path) = cluster(1);
    run(&path, "CREATE TABLE theirs (x)");
    assert_eq!(open_writer(&path).err().unwrap().kind(), crate::error::ErrorKind::DatabaseForeign);
    assert_eq!(number(&path, "SELECT count(*) FROM sqlite_schema"), 1);
    run(&path, "DROP TABLE theirs");
    assert_eq!(open_reader(&path).err().unwrap().kind(), crate::error::ErrorKind::DatabaseMissing);
    drop(open_writer(&path).unwrap());
    run(&path, "CREATE TRIGGER cluster_theirs AFTER INSERT ON pets BEGIN SELECT 1; END");
    let refused = open_writer(&path).err().unwrap().to_string();
    assert!(refused.contains("cluster_"), "{refused}");
    run(&path, "PRAGMA user_version = 99");
    assert_eq!(open_writer(&path).err().unwrap().kind(), crate::error::ErrorKind::DatabaseNewer);
}

#[test]
fn old_records_of_creates_go_and_young_ones_stay() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    let records = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) \
        INSERT INTO older_retries SELECT unhex(format('%032x', i)), zeroblob(16), i, unixepoch() - CASE WHEN i % 5 THEN 86000 ELSE 86500 END FROM n";
    run(&path, records);
    assert!((0..9).any(|_| !writer.sweep_retries().unwrap()));
    assert_eq!(number(&path, "SELECT count(*) FROM older_retries"), 2000);
    assert_eq!(writer.sweep_retries(), Ok(false));
}

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

#[test]
fn probe_goes_through_the_quorum() {
    let (mut nodes, path) = cluster(3);
    let mut writer = writer(&path);
    assert_eq!(writer.probe(), Ok(()));
    (0..3).filter(|i| *i != nodes.leader()).collect::<Vec<_>>().into_iter().for_each(|i| nodes.kill(i));
    assert_eq!(writer.probe(), Ok(()), "what it found a moment ago");
    thread::sleep(Duration::from_secs(1));
    writer.be_patient(Duration::ZERO);
    assert!(writer.probe().is_err());
}

#[test]
fn connections_of_a_process_share_a_client_and_what_it_has_counted() {
    let (_nodes, path) = cluster(1);
    let asked = || -> u64 { crate::store::meters(&path).iter().map(|meter| meter.requests).sum() };
    for _ in 0..2 {
        let (client, _) = connect(&path).unwrap();
        assert!(Arc::ptr_eq(&client, &connect(&path).unwrap().0));
        let before = asked();
        number(&path, "SELECT 1");
        assert_eq!(asked(), before + 1);
    }
    assert_eq!(meters(Path::new("rqlite://")).len(), 0, "it is no address");
}
