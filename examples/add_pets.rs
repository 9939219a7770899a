//! Adds and reads pets without HTTP, and prints how long one takes, for the benchmark: `add_pets DATABASE SECONDS`.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "an example prints, and ends if it is called wrongly"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use petstore::{Error, Inventory, NewPet, PetStatus};

/// Repeats `work` for a time, and prints the median of its durations and how often it was done in a second.
fn measure(
    what: &str,
    seconds: u64,
    mut work: impl FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    let began = Instant::now();
    let mut times = Vec::new();
    while began.elapsed() < Duration::from_secs(seconds) {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64() * 1000.0;
    println!(
        "{what} {median:.3} {:.0}",
        times.len() as f64 / began.elapsed().as_secs_f64()
    );
    Ok(())
}

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [database, seconds] = words.as_slice() else {
        panic!("usage: add_pets DATABASE SECONDS")
    };
    let seconds = seconds.parse().expect("a number of seconds");
    let mut inventory = Inventory::open(Path::new(database))?;
    let rex = NewPet::new("Rex", 3).status(PetStatus::Available);
    let mut last = inventory.add(&rex)?.id;
    measure("add", seconds, || {
        inventory.add(&rex).map(|pet| last = pet.id)
    })?;
    measure("get", seconds, || inventory.get(last).map(drop))
}
