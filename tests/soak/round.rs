//! One life of a database: some rounds of operations, each followed by a verdict, and a drill at the end.

use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

use crate::model::{Model, Place};
use crate::operator::Operator;
use crate::plan::Round;
use crate::run::{Run, has_failed, note};
use crate::visitor::Visitor;
use support::harness::KEY;

/// The rounds of a life, of which the last is the drill.
pub const ROUNDS: u64 = 7;
/// The name by which the key of the environment counts.
const KEY_NAME: &str = "PETSTORE_API_KEY";
/// The part of requests that fail in a drill.
const FAIL: &str = "0.2";

pub type Counts = BTreeMap<String, u64>;

/// Lives a life until it or the time ends; returns what happened how often.
pub fn live(seed: u64, end: Instant) -> Counts {
    let mut total = Counts::new();
    let mut model = new_model();
    let mut operator = Operator::new();
    let mut left = (Vec::new(), Vec::new());
    for number in 1..ROUNDS {
        let round = Round::draw(seed, number, false);
        let run = Run::new(model, false);
        note(format!("round {number}"));
        operator.set_workers(round.workers);
        operator.start(&run);
        operator.keep_changes();
        operator.add_key(&run, "ann", false);
        operator.add_records();
        left = play(&run, &round, number, left, |run| operator.act(run, &round));
        if has_failed() {
            return total;
        }
        operator.end_round(&run, round.ends_by_kill);
        operator.turn(&run, round.turn);
        // The same by Link, from a service that has started again.
        operator.start(&run);
        let mut walker = Visitor::new(&run, format!("walk-{number}"), Vec::new(), Vec::new());
        walker.is_sure = true;
        let met = walker.walk_surely(round.walk_limit).len();
        note(format!("{met} pets"));
        operator.service.kill();
        add(&mut total, run.counts());
        model = run.into_model();
        left = sort(&model, left);
        if Instant::now() >= end {
            return total;
        }
    }
    add(&mut total, drill(seed, operator));
    total
}

/// A service that fails on purpose, with a database of its own.
fn drill(seed: u64, mut operator: Operator) -> Counts {
    let round = Round::draw(seed, ROUNDS, true);
    let run = Run::new(new_model(), true);
    note("the drill".to_owned());
    run.set_address(Some(operator.service.start(&[
        "--ephemeral",
        "--fail",
        FAIL,
    ])));
    play(&run, &round, ROUNDS, (Vec::new(), Vec::new()), |_| ());
    let mut walker = Visitor::new(&run, "walk-of-the-drill".to_owned(), Vec::new(), Vec::new());
    walker.is_sure = true;
    let met = walker.walk_surely(round.walk_limit);
    run.model().settle(&met);
    operator.service.terminate();
    run.counts()
}

fn new_model() -> Model {
    let mut model = Model::default();
    model.keys.add(KEY_NAME, KEY, false);
    model
}

/// Sorts creates with retry keys anew into those that are pending and those that were made, as a restore may have
/// undone some.
fn sort(model: &Model, (pending, made): (Vec<Place>, Vec<Place>)) -> (Vec<Place>, Vec<Place>) {
    let all = made
        .into_iter()
        .chain(pending)
        .filter(|place| !model.intents[*place].retired);
    all.partition(|place| model.intents[*place].made.is_none())
}

/// Lets all clients act, with the operator alongside; returns which creates with retry keys they leave.
fn play(
    run: &Run,
    round: &Round,
    number: u64,
    left: (Vec<Place>, Vec<Place>),
    deeds: impl FnOnce(&Run),
) -> (Vec<Place>, Vec<Place>) {
    let count = round.clients.len();
    let share = |places: &[Place], client: usize| -> Vec<Place> {
        places.iter().skip(client).step_by(count).copied().collect()
    };
    let mut leaves = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        let clients: Vec<_> = round
            .clients
            .iter()
            .enumerate()
            .map(|(client, operations)| {
                let (pending, made) = (share(&left.0, client), share(&left.1, client));
                let visitor = Visitor::new(run, format!("{number}.{client}"), pending, made);
                scope.spawn(move || visitor.act(operations))
            })
            .collect();
        deeds(run);
        for client in clients {
            let (pending, made) = client.join().unwrap_or_default();
            leaves.0.extend(pending);
            leaves.1.extend(made);
        }
    });
    leaves
}

fn add(total: &mut Counts, counts: Counts) {
    counts
        .into_iter()
        .for_each(|(what, count)| *total.entry(what).or_insert(0) += count);
}
