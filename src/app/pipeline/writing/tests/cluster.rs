//! The batches of a service, with a real node. Needs `RQLITED`: run by `scripts/test.d/cluster`.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use super::*;
use crate::model::PetPatch;
use crate::store::tests::Nodes;

thread_local! {
    /// The number of times that [`TRIED`] was handled.
    static TRIES: Cell<usize> = const { Cell::new(0) };
    /// Another writer, and how often it changes the pet of `/changed` before the commit.
    static FASTER: RefCell<Option<(Writer, usize)>> = const { RefCell::new(None) };
    /// The cluster that [`TRIED`] freezes, after the batch has asked it and before the commit.
    static FROZEN: RefCell<Option<Nodes>> = const { RefCell::new(None) };
}

const TRIED: &[Operation] = &[
    Operation::new("/v1/tried", "tried", Handler::Write("POST", try_to_insert)),
    Operation::new(
        "/tried",
        "triedByAnyone",
        Handler::Write("POST", try_to_insert),
    ),
    Operation::new("/changed", "changed", Handler::Write("POST", try_to_change)),
];

fn try_to_insert<'r>(
    batch: &mut BatchWriter,
    call: &crate::app::endpoint::Call<'r>,
) -> Result<Staged<'r>, Failure> {
    TRIES.set(TRIES.get() + 1);
    assert!(TRIES.get() < 9, "it is tried without end");
    FROZEN.with_borrow(|nodes| nodes.iter().for_each(|nodes| nodes.freeze(0)));
    insert(batch, call.request.body)
}

fn try_to_change<'r>(
    batch: &mut BatchWriter,
    _: &crate::app::endpoint::Call<'r>,
) -> Result<Staged<'r>, Failure> {
    TRIES.set(TRIES.get() + 1);
    let patch = PetPatch {
        category_id: Some(TRIES.get() as i64),
        ..PetPatch::default()
    };
    let changed = batch.transaction()?.update_pet(1, &patch)?;
    FASTER.with_borrow_mut(|faster| match faster {
        Some((other, times)) if TRIES.get() <= *times => {
            let patch = PetPatch {
                category_id: Some(-(TRIES.get() as i64)),
                ..PetPatch::default()
            };
            other.transact(|other| other.transaction()?.update_pet(1, &patch).map(drop))
        }
        _ => Ok(()),
    })?;
    Ok(Box::new(move |committed| {
        changed.check(committed)?;
        Ok(Response::new(204, b""))
    }))
}

/// The service of a cluster that has written a pet, and another writer.
fn bench() -> (Nodes, Bench, Writer) {
    let nodes = Nodes::start(1);
    let path: PathBuf = nodes.address().into();
    let mut other = Writer::open(&path).unwrap();
    other
        .transact(|writer| writer.insert_key(&secret_key(KeyScope::Full)))
        .unwrap();
    let mut bench = bench_of(
        Writer::open(&path).unwrap(),
        Reader::open(&path).unwrap(),
        Folder::new(),
    );
    bench.service.pipeline.router = &Router(&[ROWS, TRIED]);
    assert_eq!(bench.ask(&["/v1/tried"]), [201]);
    TRIES.set(0);
    (nodes, bench, other)
}

#[test]
fn batch_knows_what_another_instance_has_changed() {
    let (_nodes, mut bench, mut other) = bench();
    other.delete_keys(&other.keys().unwrap()).unwrap();
    let got = bench.ask(&["/v1/tried", "/tried", "/early", "/tried"]);
    assert_eq!(got, [401, 201, 400, 201]);
    assert_eq!(TRIES.get(), 2);
    assert_eq!(bench.kept(), ["/v1/tried", "/tried", "/tried"]);
}

#[test]
fn change_that_another_instance_overtakes_is_handled_again() {
    let (_nodes, mut bench, other) = bench();
    FASTER.set(Some((other, 3)));
    let lines = logged(|| {
        assert_eq!(
            bench.ask(&["/changed", "/early", "/tried"]),
            [204, 400, 201]
        );
    });
    assert!(lines.is_empty(), "{lines:?}");
    assert_eq!(
        TRIES.get(),
        4,
        "both together, then the change alone, twice"
    );
    assert_eq!(bench.kept(), ["/v1/tried", "/tried"]);
    TRIES.set(0);
    FASTER.with_borrow_mut(|faster| faster.as_mut().unwrap().1 = usize::MAX);
    let begun = Instant::now();
    assert_eq!(
        bench.ask(&["/changed"]),
        [503],
        "another instance is always faster"
    );
    assert!(TRIES.get() > 2 && begun.elapsed() >= CONTENDS_FOR);
}

#[test]
fn batch_that_may_have_been_carried_out_is_not_handled_again() {
    let (nodes, mut bench, _) = bench();
    FROZEN.set(Some(nodes));
    let lines = logged(|| assert_eq!(bench.ask(&["/tried"]), [503]));
    assert_eq!(TRIES.get(), 1);
    assert!(
        lines
            .last()
            .unwrap()
            .contains("the outcome of 1 write is unknown"),
        "{lines:?}"
    );
}

#[test]
fn request_down_the_wrong_lane_takes_no_create_with_it() {
    let (_nodes, mut bench, _) = bench();
    assert_eq!(
        bench.ask(&["/tried", "/read", "/tried", "/early"]),
        [201, 500, 201, 400]
    );
    assert_eq!(bench.kept(), ["/v1/tried", "/tried", "/tried"]);
}
