//! A cluster of three nodes, two instances and `HAProxy`, with clients that count, while nodes and instances are killed
//! and frozen: `scripts/cluster`.
//!
//! The seed decides what is hit, when and for how long, and what the clients do next. What the system decides, such as
//! which node leads, no seed repeats.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod clients;
mod faults;
mod invariants;
mod setup;

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use serde_json::Value;

use invariants::Tally;
use setup::{INSTANCES, Stage};

/// Clients that create, and clients that list. An instance that is frozen holds about half of them.
const CREATORS: u64 = 6;
const LISTERS: u64 = 6;

fn main() -> ExitCode {
    let numbers: Option<Vec<u64>> = std::env::args()
        .skip(1)
        .map(|word| word.parse().ok())
        .collect();
    let (minutes, seed) = match numbers.as_deref() {
        Some([minutes]) => (
            *minutes,
            std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 % 1_000_000_000,
        ),
        Some([minutes, seed]) => (*minutes, *seed),
        _ => {
            eprintln!("usage: scripts/cluster MINUTES [SEED]");
            return ExitCode::from(2);
        }
    };
    println!("seed {seed}");
    let (stage, tally) = (Stage::new(), Tally::new());
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    std::thread::scope(|scope| {
        let (stage, tally) = (&stage, &tally);
        let mut lookers = Vec::new();
        for i in 0..INSTANCES {
            let (sender, created) = std::sync::mpsc::sync_channel(1);
            scope.spawn(move || clients::look(stage, tally, i, &created));
            lookers.push(sender);
        }
        for i in 0..CREATORS {
            let lookers = lookers.clone();
            scope.spawn(move || clients::create(stage, tally, seed, i, &lookers));
        }
        drop(lookers);
        (0..LISTERS).for_each(|i| drop(scope.spawn(move || clients::list(stage, tally, seed, i))));
        scope.spawn(move || clients::revoke(stage, tally, seed));
        scope.spawn(move || clients::contend(stage, tally, seed));
        scope.spawn(move || faults::befall(scope, stage, tally, seed));
        while Instant::now() < end && tally.all_broken().len() < 20 {
            std::thread::sleep(Duration::from_millis(100));
        }
        tally.ends.store(true, SeqCst);
    });
    stage.nodes.read().unwrap().wait_until_ready();
    check_all(&stage, &tally);
    summary(minutes, seed, &stage, &tally)
}

/// Every pet that was acknowledged is there, once, under its id; and no name is there twice.
fn check_all(stage: &Stage, tally: &Tally) {
    let exported = stage.petstore(&["export"]);
    if !exported.status.success() {
        return tally.broken(format!(
            "export: {}",
            String::from_utf8_lossy(&exported.stderr)
        ));
    }
    let (mut by_id, mut names) = (HashMap::new(), HashMap::<String, i64>::new());
    for line in String::from_utf8(exported.stdout).unwrap().lines() {
        let pet: Value = serde_json::from_str(line).unwrap();
        let (id, name) = (
            pet["id"].as_i64().unwrap(),
            pet["name"].as_str().unwrap().to_owned(),
        );
        if let Some(other) = names.insert(name.clone(), id) {
            tally.broken(format!("doubled: {name} has the ids {other} and {id}"));
        }
        by_id.insert(id, name);
    }
    let acknowledged = tally.acknowledged.lock().unwrap();
    for (id, name) in acknowledged
        .iter()
        .filter(|(id, name)| by_id.get(id) != Some(name))
    {
        tally.broken(format!(
            "lost: {id} {name} was acknowledged, and there is {:?}",
            by_id.get(id)
        ));
    }
    let others = by_id.len() - acknowledged.len().min(by_id.len());
    println!(
        "{} pets, of which {others} were not acknowledged",
        by_id.len()
    );
}

fn summary(minutes: u64, seed: u64, stage: &Stage, tally: &Tally) -> ExitCode {
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(SeqCst);
    println!(
        "{minutes} minutes with the seed {seed}: {} kills and freezes",
        count(&tally.faults)
    );
    println!(
        "creates acknowledged: {}; {} of them replayed",
        tally.creates.summary(),
        count(&tally.replays)
    );
    println!(
        "creates without a key and with an unknown outcome: {}",
        count(&tally.unknown)
    );
    println!(
        "pages listed: {}; {} walks",
        tally.lists.summary(),
        count(&tally.walks)
    );
    println!(
        "lists and gets right after a create, through any instance: {} and {}",
        count(&tally.fresh_lists),
        count(&tally.gets)
    );
    println!("keys revoked: {}", count(&tally.revocations));
    println!(
        "pets that two wanted: {}; {} tries got a 503",
        count(&tally.contended),
        count(&tally.refused)
    );
    let broken = tally.all_broken();
    if broken.is_empty() {
        println!(
            "0 lost, 0 doubled, 0 pages that miss a pet, 0 stale lists, 0 stale keys, 0 pets for two, no pause of {:?}",
            invariants::LONGEST_PAUSE
        );
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "{}",
        stage
            .logs()
            .lines()
            .rev()
            .take(50)
            .collect::<Vec<_>>()
            .join("\n")
    );
    broken.iter().for_each(|line| println!("BROKEN: {line}"));
    println!("to repeat it: scripts/cluster {minutes} {seed}");
    ExitCode::FAILURE
}
