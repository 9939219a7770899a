//! A disk that fills up within a batch. Whichever statement meets it, even one that only reads, the batch fails as a whole:
//! what was refused is not there.
//!
//! Files that may not grow stand for the disk. The limit is one of the process, so it has a process of its own.

use std::fs;
use std::ops::ControlFlow;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::pets::tests::new_pet;
use super::tests::{pair, run};
use super::{Reader, StoreError, Writer};
use crate::model::{ApiKey, Caller, IdempotencyKey, KeyScope, Page, PetPatch, PetQuery, PetStatus};
use petstore_hosting::ProjectReads;

/// Set in the process that has the limit.
const IS_ALONE: &str = "PETSTORE_TEST_IS_ALONE";
/// The pets of the database, of which the first are changed before the disk is full.
const PETS: i64 = 60;
const CHANGED: i64 = 30;
/// The last of them, which nothing has read or written before.
const OTHER: i64 = PETS;
const SOLD: PetPatch = PetPatch {
    name: None,
    category_id: None,
    status: Some(Some(PetStatus::Sold)),
};

type Case = (&'static str, fn(&mut Writer) -> Result<(), StoreError>);

/// Statements that need a page which is not in the cache.
const CASES: &[Case] = &[
    ("read a pet", |writer| {
        writer.transaction()?.pet(OTHER, |_| ()).map(drop)
    }),
    ("list pets", |writer| {
        let page = Page::ascending(1, Some(OTHER - 1));
        writer.visit_pets(&PetQuery::all(page), |_| ControlFlow::Continue(()))
    }),
    ("count pets", |writer| writer.count_pets().map(drop)),
    ("read the highest id", |writer| writer.last_id().map(drop)),
    ("find a retry", |writer| insert(writer, Some("1"))),
    ("read a key", |writer| writer.key(&key().digest).map(drop)),
    ("read keys", |writer| writer.keys().map(drop)),
    ("read the progress of an import", |writer| {
        writer.import(&[1; 32]).map(drop)
    }),
    ("read domains", |writer| hosting(writer.domains()).map(drop)),
    ("read the plan", |writer| hosting(writer.plan()).map(drop)),
    ("insert a pet", |writer| insert(writer, None)),
    ("update a pet", |writer| {
        writer.transaction()?.update_pet(OTHER, &SOLD).map(drop)
    }),
    ("delete a pet", |writer| {
        writer.transaction()?.delete_pet(OTHER).map(drop)
    }),
    ("insert a pet with its id", |writer| {
        writer.insert_pet_as(PETS + 9, &new_pet("a"))
    }),
    ("insert a key", |writer| {
        writer.insert_key(&ApiKey {
            digest: [2; 32],
            ..key()
        })
    }),
    ("note the use of a key", |writer| {
        writer.record_uses(&[(key().digest, 5)], 5)
    }),
    ("expire a key", |writer| writer.expire_key(&key().digest, 5)),
    ("note an import", |writer| {
        writer.note_import(&[2; 32], (1, 1))
    }),
    ("reserve ids", |writer| writer.reserve_ids(1000)),
    ("set the plan", |writer| {
        let plan = "UPDATE project SET plan = 'pro'";
        hosting(writer.write_for_hosting(plan, &[])).map(drop)
    }),
    ("add a domain", |writer| add_domain(writer, "b.test")),
];

fn key() -> ApiKey {
    let (name, scope) = ("ci".to_owned(), KeyScope::Full);
    ApiKey {
        digest: [1; 32],
        name,
        scope,
        created_at: 0,
        expires_at: None,
        last_used_at: None,
    }
}

fn insert(writer: &mut Writer, key: Option<&str>) -> Result<(), StoreError> {
    let key = key.map(|key| IdempotencyKey::new(Caller::extra(), key.as_bytes()));
    writer.insert_pet(&new_pet("Rex"), key.as_ref()).map(drop)
}

/// All that the cases could change.
fn state(reader: &Reader) -> String {
    let all = "SELECT json_array(
        (SELECT json_group_array(id || ':' || length(name) || ':' || ifnull(status, '')) FROM pets),
        (SELECT json_group_array(name || ifnull(expires_at, '') || ifnull(last_used_at, '')) FROM api_keys),
        (SELECT json_group_array(pet) FROM retries), (SELECT json_group_array(at) FROM imports),
        (SELECT json_group_array(name) FROM domains), (SELECT plan FROM project),
        (SELECT json_group_array(name || seq) FROM sqlite_sequence))";
    reader.one(all).unwrap()
}

fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(
        Resource::Fsize,
        Rlimit {
            current: bytes.or(maximum),
            maximum,
        },
    )
    .unwrap();
}

#[test]
fn batch_fails_whole_whichever_statement_meets_a_full_disk() {
    if std::env::var_os(IS_ALONE).is_some() {
        return meet_a_full_disk();
    }
    // Without the signal that a process gets when a file may not grow further.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap());
    let name = concat!(
        module_path!(),
        "::batch_fails_whole_whichever_statement_meets_a_full_disk"
    );
    shell
        .args(["--exact", name.split_once("::").unwrap().1, "--nocapture"])
        .env(IS_ALONE, "1");
    let output = shell.output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{out}{err}"
    );
}

/// The error of the connection that hosting has asked.
fn hosting<T>(done: Result<T, petstore_base::error::Error>) -> Result<T, StoreError> {
    done.map_err(StoreError::of_hosting)
}

fn add_domain(writer: &mut Writer, name: &str) -> Result<(), StoreError> {
    let add = "INSERT INTO domains (name, state, since, added_at, is_primary) VALUES (?1, 'pending_dns', 0, 0, 0)";
    hosting(writer.write_for_hosting(add, &[name.into()])).map(drop)
}

fn meet_a_full_disk() {
    let (folder, mut writer, reader) = pair();
    for _ in 0..PETS {
        writer
            .insert_pet(&new_pet(&"x".repeat(20_000)), None)
            .unwrap();
    }
    insert(&mut writer, Some("0")).unwrap();
    writer.insert_key(&key()).unwrap();
    add_domain(&mut writer, "a.test").unwrap();
    writer.note_import(&[1; 32], (1, 1)).unwrap();
    writer.commit().unwrap();
    let before = state(&reader);
    let log = folder.0.join("pets.db-wal");
    for (what, statement) in CASES {
        for writes_on in [true, false] {
            run(&writer, "PRAGMA cache_size = 1000");
            writer.checkpoint().unwrap();
            writer.begin().unwrap();
            for id in 1..=CHANGED {
                writer.transaction().unwrap().update_pet(id, &SOLD).unwrap();
            }
            // From here on, a page that is read takes the place of a changed one, which must be written first.
            run(&writer, "PRAGMA cache_size = 10");
            limit_files(Some(fs::metadata(&log).unwrap().len()));
            let met = statement(&mut writer).expect_err(what);
            assert!(matches!(met, StoreError::Unavailable(..)), "{what}: {met}");
            limit_files(None);
            // The disk has room again, but what was written before is gone.
            if writes_on {
                assert_eq!(insert(&mut writer, None), Err(met.clone()), "{what}");
                assert_eq!(insert(&mut writer, Some("2")), Err(met.clone()), "{what}");
            }
            assert_eq!(writer.commit(), Err(met), "{what}");
            assert_eq!(state(&reader), before, "{what}");
        }
    }
    insert(&mut writer, None).unwrap();
    writer.commit().unwrap();
    assert_ne!(state(&reader), before);
}

/// Interrupts every statement from now on, or none.
fn interrupt_all(writer: &mut Writer, yes: bool) {
    let connection = writer.reader.raw_mut();
    connection
        .progress_handler(1, yes.then_some(|| true))
        .unwrap();
}

/// Ways to end a transaction without a full disk.
const ENDS: &[Case] = &[
    ("a trigger", |writer| {
        let refuse = "CREATE TRIGGER refuses BEFORE INSERT ON domains BEGIN SELECT RAISE (ROLLBACK, 'refused'); END";
        run(writer, refuse);
        add_domain(writer, "a.test")
    }),
    ("an interrupt", |writer| {
        interrupt_all(writer, true);
        let interrupted = insert(writer, None);
        interrupt_all(writer, false);
        interrupted
    }),
    ("a statement that reports nothing", |writer| {
        run(writer, "ROLLBACK");
        Err(StoreError::Internal(
            "SQLite has ended the transaction".to_owned(),
        ))
    }),
];

#[test]
fn batch_fails_whole_however_its_transaction_ends() {
    let (_folder, mut writer, reader) = pair();
    insert(&mut writer, None).unwrap();
    writer.commit().unwrap();
    let before = state(&reader);
    for (what, end) in ENDS {
        for writes_on in [true, false] {
            insert(&mut writer, None).unwrap();
            let met = end(&mut writer).expect_err(what);
            if writes_on {
                assert_eq!(insert(&mut writer, None), Err(met.clone()), "{what}");
            }
            assert_eq!(writer.commit(), Err(met), "{what}");
            assert_eq!(state(&reader), before, "{what}");
        }
    }
}

#[test]
fn transaction_that_could_not_be_rolled_back_is_not_committed() {
    let (_folder, mut writer, reader) = pair();
    let before = state(&reader);
    let left = "BEGIN; INSERT INTO pets (name, category_id) VALUES ('refused', 1)";
    run(&writer, left);
    writer.commit().unwrap();
    assert_eq!(state(&reader), before);
    run(&writer, left);
    insert(&mut writer, None).unwrap();
    writer.commit().unwrap();
    assert_eq!(reader.count_pets().unwrap().total, 1);
}

#[test]
fn failed_trial_of_the_disk_leaves_no_pet() {
    let probed = |body: &str| {
        let (_folder, mut writer, reader) = pair();
        let before = state(&reader);
        let rule = format!("CREATE TRIGGER rule AFTER INSERT ON pets BEGIN {body}; END");
        run(&writer, &rule);
        let probed = writer.probe();
        assert_eq!(state(&reader), before, "{body}");
        probed
    };
    assert!(probed("DELETE FROM gone").is_err());
    // The disk has nothing against it.
    for how in ["ABORT", "FAIL", "ROLLBACK"] {
        assert_eq!(probed(&format!("SELECT RAISE ({how}, 'refused')")), Ok(()));
    }
}

#[test]
#[should_panic(expected = "outside a transaction of the writer: DELETE FROM pets")]
fn statement_that_writes_runs_only_within_a_transaction() {
    let (_folder, mut writer, _reader) = pair();
    let _ = writer.change("DELETE FROM pets", &[]);
    // Not even there through the functions that read.
    let _ = writer.rows("DELETE FROM pets", &[], &mut |_| {
        Ok(ControlFlow::Continue(()))
    });
}
