//! The writing service over a real database, without sockets: the responses, counters and log lines of a batch, and the
//! work between batches.

use super::*;
use crate::app::api::router;
use crate::app::endpoint::{ApiError, Code, Operation, Router};
use crate::app::pipeline::Authenticator;
use crate::model::{ApiKey, KeyScope, NewPet, Page, PetQuery};
use crate::ops::keys::secret::digest;
use crate::store::tests::{Folder, refuse_writes, writer_that_keeps_its_log};
use crate::store::{Cause, Reader};
use petstore_base::testing::logged;

const ROWS: &[Operation] = &[
    Operation::new(
        "/good",
        "good",
        Handler::Write("POST", |batch, call| insert(batch, call.request.body)),
    ),
    Operation::new(
        "/v1/good",
        "goodWithKey",
        Handler::Write("POST", |batch, call| insert(batch, call.request.body)),
    ),
    Operation::new(
        "/panic",
        "panic",
        Handler::Write("POST", |batch, call| {
            let _staged = insert(batch, call.request.body)?;
            panic!("after the insert")
        }),
    ),
    Operation::new(
        "/refused",
        "refused",
        Handler::Write("POST", |batch, call| {
            let _staged = insert(batch, call.request.body)?;
            Err(ApiError::new(Code::InvalidMember).into())
        }),
    ),
    Operation::new(
        "/early",
        "early",
        Handler::Write(
            "POST",
            |_, _| Err(ApiError::new(Code::InvalidMember).into()),
        ),
    ),
    Operation::new(
        "/ready",
        "ready",
        Handler::Health {
            read: |_| Ok(()),
            write: |context| Ok(context.takes_writes().map(|()| Response::new(204, b""))?),
            read_only_body: "",
        },
    ),
    Operation::new(
        "/read",
        "read",
        Handler::Get(|_, _| Ok(Response::new(204, b""))),
    ),
    Operation::new(
        "/full",
        "full",
        Handler::Write("POST", |batch, call| {
            let transaction = batch.transaction()?;
            refuse_writes(transaction.writer(), true);
            insert(batch, call.request.body)
        }),
    ),
];

fn insert(batch: &mut BatchWriter, body: &[u8]) -> Result<Staged, Failure> {
    let inserted = batch.insert_pet(&NewPet::from_json(body)?, None)?;
    Ok(Ok(Response::json(201, &inserted.id())))
}

/// The key that [`Bench::ask`] sends to protected paths.
fn secret_key(scope: KeyScope) -> ApiKey {
    let (digest, name) = (digest("secret"), "ci".to_owned());
    ApiKey {
        digest,
        name,
        scope,
        created_at: 0,
        expires_at: None,
        last_used_at: None,
    }
}

struct Bench {
    service: WriteService,
    reader: Reader,
    /// The duration of the last batch's flush.
    flush: Duration,
    folder: Folder,
}

fn bench() -> Bench {
    let folder = Folder::new();
    let store = Writer::open(&folder.database()).unwrap();
    bench_with(store, folder)
}

fn bench_with(store: Writer, folder: Folder) -> Bench {
    let reader = Reader::open(&folder.database()).unwrap();
    bench_of(store, reader, folder)
}

fn bench_of(store: Writer, reader: Reader, folder: Folder) -> Bench {
    let mut service = WriteService::new(store, SharedState::for_tests(Authenticator::default()));
    service.pipeline.router = &Router(&[ROWS]);
    Bench {
        service,
        reader,
        flush: Duration::ZERO,
        folder,
    }
}

impl Bench {
    /// Sends all requests in one batch, and returns the statuses.
    fn ask(&mut self, targets: &[&str]) -> Vec<u16> {
        let bodies: Vec<String> = targets
            .iter()
            .map(|target| format!(r#"{{"name":"{target}","categoryId":1}}"#))
            .collect();
        let requests: Vec<Request> = targets
            .iter()
            .zip(&bodies)
            .map(|(target, body)| {
                let method = if target.starts_with("/rea") {
                    "GET"
                } else {
                    "POST"
                };
                let key = target
                    .starts_with("/v1/")
                    .then_some(("Authorization", "Bearer secret"));
                Request {
                    id: "-",
                    method,
                    target,
                    headers: key.into_iter().collect(),
                    body: body.as_bytes(),
                }
            })
            .collect();
        let mut responses = Vec::new();
        self.flush = self.service.answer(&requests, &mut responses);
        responses.iter().map(|response| response.status).collect()
    }

    fn counted(&self, sample: &str) -> Option<String> {
        self.service.pipeline.shared.counted(sample)
    }

    /// Returns the size of the write-ahead log, in bytes.
    fn log(&self) -> u64 {
        std::fs::metadata(self.folder.0.join("pets.db-wal"))
            .unwrap()
            .len()
    }

    fn kept(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        let all = PetQuery::all(Page::ascending(1000, None));
        self.reader
            .visit_pets(&all, |pet| {
                names.push(pet.name.into_owned());
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        names
    }
}

#[test]
fn what_is_refused_is_not_written_by_a_batch_that_goes_on() {
    let mut bench = bench();
    let asked = [
        "/good", "/panic", "/good", "/refused", "/early", "/good", "/panic",
    ];
    assert_eq!(bench.ask(&asked), [201, 500, 201, 400, 400, 201, 500]);
    assert_eq!(bench.kept(), ["/good", "/good", "/good"]);
    assert_eq!(bench.ask(&["/good"]), [201]);
    assert_eq!(bench.ask(&["/panic"]), [500]);
    assert_eq!(bench.kept().len(), 4);
}

#[test]
fn pet_that_a_trigger_of_another_program_refuses_leaves_nothing_and_the_others_stay() {
    for when in ["BEFORE", "AFTER"] {
        for how in [
            "RAISE(ABORT, 'no')",
            "RAISE(FAIL, 'no')",
            "RAISE(ROLLBACK, 'no')",
            "json('{')",
            "abs(-9223372036854775808)",
        ] {
            let mut bench = bench();
            let trigger = format!(
                "CREATE TRIGGER theirs {when} INSERT ON pets WHEN NEW.name LIKE '%bad' BEGIN SELECT {how}; END"
            );
            crate::store::tests::run(&bench.service.context.store, &trigger);
            let asked = ["/good", "/good?bad", "/good", "/good?bad", "/good"];
            assert_eq!(bench.ask(&asked), [201, 409, 201, 409, 201], "{when} {how}");
            assert_eq!(bench.ask(&["/good?bad"]), [409]);
            assert_eq!(bench.ask(&["/ready"]), [204]);
            assert_eq!(bench.kept(), ["/good", "/good", "/good"], "{when} {how}");
        }
    }
}

#[test]
fn rule_that_counts_at_the_commit_costs_the_pet_that_breaks_it_alone() {
    let mut bench = bench();
    let rule = "CREATE TABLE theirs (name REFERENCES names (name) DEFERRABLE INITIALLY DEFERRED);
        CREATE TABLE names (name PRIMARY KEY); INSERT INTO names VALUES ('/good');
        CREATE TRIGGER rule AFTER INSERT ON pets BEGIN INSERT INTO theirs VALUES (NEW.name); END";
    crate::store::tests::run(&bench.service.context.store, rule);
    assert_eq!(bench.ask(&["/good", "/good?bad", "/good"]), [201, 409, 201]);
    assert_eq!(bench.ask(&["/good?bad"]), [409]);
    assert_eq!(bench.ask(&["/ready"]), [204]);
    assert_eq!(bench.kept(), ["/good", "/good"]);
}

#[test]
fn request_down_the_wrong_lane_is_500() {
    let mut bench = bench();
    assert_eq!(bench.ask(&["/read", "/good"]), [500, 201]);
    // Also if each request has a batch of its own.
    assert_eq!(bench.ask(&["/panic", "/good", "/read"]), [500, 201, 500]);
    assert_eq!(bench.kept(), ["/good", "/good"]);
}

#[test]
fn create_without_the_right_key_reaches_no_operation() {
    let mut bench = bench();
    bench
        .service
        .pipeline
        .shared
        .count(&["goodWithKey", "none"]);
    assert_eq!(bench.ask(&["/v1/good"]), [401]);
    bench
        .service
        .context
        .store
        .insert_key(&secret_key(KeyScope::ReadOnly))
        .unwrap();
    bench.service.context.store.commit().unwrap();
    assert_eq!(bench.ask(&["/v1/good", "/v1/good"]), [403, 403]);
    let count = |status: u16| {
        bench.counted(&format!(
            "requests_total{{operation=\"none\",status=\"{status}\"}}"
        ))
    };
    assert_eq!(
        [401, 403].map(count),
        ["1", "2"].map(|count| Some(count.to_owned()))
    );
    assert_eq!(bench.kept(), [""; 0]);
}

#[test]
fn failed_commit_fails_what_was_written_and_nothing_else() {
    let mut bench = bench();
    refuse_writes(&bench.service.context.store, true);
    assert_eq!(
        bench.ask(&["/good", "/early", "/good", "/nowhere"]),
        [503, 400, 503, 404]
    );
    assert_eq!(bench.ask(&["/ready"]), [503]);
    refuse_writes(&bench.service.context.store, false);
    assert_eq!(bench.kept(), [""; 0]);
    assert_eq!(bench.ask(&["/good"]), [201]);
}

#[test]
fn readiness_comes_back_with_the_first_write_that_works() {
    let mut bench = bench();
    bench.service.pipeline.router = router(false);
    let mut ready_after = |cause| {
        let failed = StoreError::Unavailable(cause, "as if just seen".to_owned());
        bench.service.context.hold(Err(failed));
        bench.ask(&["/readyz"])
    };
    assert_eq!(ready_after(Cause::Locked), [200], "another process writes");
    assert_eq!(
        ready_after(Cause::Full),
        [503],
        "nothing has been written since"
    );
    bench.service.pipeline.router = &Router(&[ROWS]);
    assert_eq!(bench.ask(&["/good"]), [201]);
    bench.service.pipeline.router = router(false);
    assert_eq!(bench.ask(&["/readyz"]), [200]);
}

#[test]
fn flush_is_told_where_there_was_one() {
    let mut bench = bench();
    bench.ask(&["/early"]);
    assert_eq!(bench.flush, Duration::ZERO);
    bench.ask(&["/good"]);
    assert_ne!(bench.flush, Duration::ZERO);
}

#[test]
fn end_keeps_when_keys_were_last_used() {
    let mut bench = bench();
    let key = secret_key(KeyScope::Full);
    bench.service.context.store.insert_key(&key).unwrap();
    bench.service.context.store.commit().unwrap();
    bench
        .service
        .pipeline
        .shared
        .authenticator
        .uses
        .note(key.digest, 7);
    bench.service.stop();
    assert_eq!(bench.reader.keys().unwrap()[0].last_used_at, Some(7));
}

#[test]
fn end_leaves_nothing_in_the_log_of_the_store() {
    let mut bench = bench();
    bench.ask(&["/good"]);
    assert_ne!(bench.log(), 0);
    bench.service.stop();
    assert_eq!(bench.log(), 0);
}

#[test]
fn failed_writes_are_counted_and_named_in_one_line() {
    let why = "attempt to write a readonly database";
    let batch = |what: &str| format!("ERROR {what}: the database can only be read: {why}");
    for (asked, failed, told) in [
        (&["/full", "/early", "/nowhere"][..], "1", vec![]),
        (
            &["/good", "/full", "/early"],
            "2",
            vec![batch("request -: 1 write failed and was undone")],
        ),
        (
            &["/good", "/good", "/full"],
            "3",
            vec![batch("requests -, -: 2 writes failed and were undone")],
        ),
    ] {
        let mut bench = bench();
        bench.service.pipeline.shared.count(&[]);
        let lines = logged(|| drop(bench.ask(asked)));
        assert_eq!(
            bench.counted("failed_writes_total").as_deref(),
            Some(failed),
            "{asked:?}"
        );
        assert_eq!(
            lines,
            [told, vec![format!("ERROR request -: full: {why}")]].concat()
        );
    }
}

#[test]
fn failure_is_logged_once_even_if_its_batch_is_handled_again() {
    let mut bench = bench();
    let lines = logged(|| assert_eq!(bench.ask(&["/panic", "/good", "/read"]), [500, 201, 500]));
    let expected = [
        "panic: panicked",
        "read: the request came down the wrong lane",
    ];
    assert_eq!(
        lines,
        expected.map(|what| format!("ERROR request -: {what}"))
    );
}

#[test]
fn writes_that_may_have_been_carried_out_are_not_said_to_be_undone() {
    let fates = [1, 2].map(|writes| [true, false].map(|is_unknown| fate(writes, is_unknown)));
    let expected = [
        [
            "the outcome of 1 write is unknown",
            "1 write failed and was undone",
        ],
        [
            "the outcome of 2 writes is unknown",
            "2 writes failed and were undone",
        ],
    ];
    assert_eq!(fates, expected);
}

#[test]
fn batch_without_a_write_is_not_counted_and_needs_no_rest() {
    let mut bench = bench();
    bench.service.pipeline.shared.count(&[]);
    let batches = "write_batch_size_count";
    bench.ask(&["/early", "/nowhere"]);
    assert_eq!(
        (bench.counted(batches).as_deref(), bench.service.rests_at),
        (Some("0"), None)
    );
    assert!(
        bench
            .service
            .rest()
            .is_some_and(|pause| !pause.is_zero() && pause <= QUIET)
    );
    let before = Instant::now();
    bench.ask(&["/early", "/good"]);
    assert_eq!(bench.counted(batches).as_deref(), Some("1"));
    assert!(bench.service.rests_at.unwrap() >= before + LONG_QUIET);
}

#[test]
fn log_is_renewed_once_nothing_was_written_for_a_while() {
    let mut bench = bench();
    bench.ask(&["/good"]);
    let short = bench.service.rests_at.unwrap();
    while !bench.service.context.store.has_long_log() {
        bench.ask(&["/good"; 100]);
    }
    let at = bench.service.rests_at.unwrap();
    assert!(at < short, "a long log does not wait for an hour");
    assert_eq!(bench.service.rest_at(at - QUIET), Some(QUIET));
    let long = bench.log();
    // An open snapshot prevents the checkpoint.
    bench.reader.begin().unwrap();
    let lines = logged(|| assert_eq!(bench.service.rest_at(at), Some(QUIET)));
    assert!(
        lines[0].starts_with("DEBUG the write-ahead log stays for now: "),
        "{lines:?}"
    );
    assert_eq!(bench.service.rests_at, Some(at + QUIET));
    bench.reader.end().unwrap();
    assert_eq!(bench.service.rest_at(at + QUIET), Some(QUIET));
    assert_eq!(bench.service.rests_at, None);
    // It has the first page and that of the identity: the next commit need not flush a header first.
    let page_and_headers = 2 * (4096 + 24) + 32;
    assert_eq!(bench.log(), page_and_headers, "{long} before");
    assert!(!bench.service.context.store.has_long_log());
}

#[test]
fn failing_disk_is_told_once_while_the_log_stays() {
    let folder = Folder::new();
    let mut bench = bench_with(writer_that_keeps_its_log(&folder.database()), folder);
    bench.ask(&["/good"]);
    let at = bench.service.rests_at.unwrap();
    let lines = logged(|| _ = bench.service.rest_at(at));
    assert!(
        lines[0].starts_with("WARN the write-ahead log stays for now: the database has a schema"),
        "{lines:?}"
    );
    assert_eq!(bench.service.rests_at, None, "until something is written");
}

#[test]
fn lost_database_is_not_told_as_a_log_that_stays() {
    let mut bench = bench();
    bench.ask(&["/good"]);
    let losses = bench.service.pipeline.shared.losses();
    std::fs::remove_file(bench.folder.database()).unwrap();
    let at = bench.service.rests_at.unwrap();
    let lines = logged(|| _ = bench.service.rest_at(at));
    assert!(
        lines.iter().all(|line| !line.starts_with("WARN ")),
        "{lines:?}"
    );
    assert!(losses.try_recv().unwrap().is_lost());
}
