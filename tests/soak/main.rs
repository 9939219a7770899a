//! The executable held against a model in memory, for as long as one likes: `scripts/soak`.
//!
//! The seed decides every operation of every client, every deed of the operator, and after how many operations it is
//! done. What the system decides, such as which of two threads comes first or where a kill falls, no seed repeats. So
//! a failure comes again with its seed after one run or after a few.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and this one says how far it is"
)]

mod history;
mod keys;
mod model;
mod operator;
mod plan;
mod record;
mod request;
mod round;
mod run;
mod service;
mod visitor;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use support::random::Random;

/// The seed of the life that goes on.
static SEED: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let numbers: Option<Vec<u64>> = std::env::args()
        .skip(1)
        .map(|word| word.parse().ok())
        .collect();
    match numbers.as_deref() {
        Some([minutes]) => hold_against_model(*minutes, fresh_seed()),
        Some([minutes, seed]) => hold_against_model(*minutes, *seed),
        _ => {
            eprintln!("usage: scripts/soak MINUTES [SEED]");
            ExitCode::from(2)
        }
    }
}

/// Any seed, from the time and the process.
fn fresh_seed() -> u64 {
    let now = std::time::UNIX_EPOCH
        .elapsed()
        .map_or(0, |time| time.as_nanos() as u64);
    Random::of_place(now, [u64::from(std::process::id()), 0]).below(1_000_000_000)
}

/// Lives one life after the other, each with a seed of its own.
fn hold_against_model(minutes: u64, first: u64) -> ExitCode {
    let begun = Instant::now();
    let end = begun + Duration::from_secs(60 * minutes);
    report_failures();
    let (mut total, mut lives) = (round::Counts::new(), 0);
    let mut seeds = Random::of_place(first, [0, 0]);
    let mut seed = first;
    while lives == 0 || Instant::now() < end {
        println!("life {} has the seed {seed}", lives + 1);
        SEED.store(seed, Ordering::SeqCst);
        let lived = std::panic::catch_unwind(|| round::live(seed, end));
        let Some(counts) = lived.ok().filter(|_| !run::has_failed()) else {
            return ExitCode::FAILURE;
        };
        counts
            .into_iter()
            .for_each(|(what, count)| *total.entry(what).or_insert(0) += count);
        lives += 1;
        seed = seeds.below(1_000_000_000);
    }
    println!(
        "{lives} lives in {} s, and nothing was wrong",
        begun.elapsed().as_secs()
    );
    total
        .iter()
        .for_each(|(what, count)| println!("{count:9}  {what}"));
    ExitCode::SUCCESS
}

/// Has a failure say how to repeat it and what went before.
fn report_failures() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if run::FAILED.swap(true, Ordering::SeqCst) {
            return;
        }
        usual(info);
        eprintln!("This thread did last:");
        run::recent()
            .iter()
            .for_each(|line| eprintln!("  {line:.400}"));
        eprintln!(
            "The seed of this life is {seed}; to repeat it: scripts/soak 1 {seed}",
            seed = SEED.load(Ordering::SeqCst)
        );
    }));
}
