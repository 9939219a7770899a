//! Attacks by responses that nobody takes, or that are large or many.

use std::sync::Arc;

use crate::client::get;
use crate::crowd::Crowd;
use crate::plan::{Reading, Source, again, once};
use crate::requests::{bundle, description, large_page, unknown_path};
use crate::trial::{SPAN, Stage, Trial};

/// Different pages in all, of which none has an animal.
const EMPTY_PAGES: usize = 500_000;
/// A cursor that is beyond every animal.
const BEYOND: usize = 1_000_000;
/// Pages asked for in one piece.
const PAGES: usize = 32;

/// Who may read asks for pages of 1 MiB.
#[track_caller]
fn large_pages(connections: usize, pipelined: usize, reading: Reading) {
    let stage = Stage::new();
    stage.fill();
    let request = large_page(&stage.read_only_key());
    let trial = stage.begin();
    let source = if reading.is_eager() { again(request) } else { once(request.repeat(pipelined)) };
    let mut crowd = Crowd::new(trial.address(), connections, source, reading);
    crowd.run(SPAN);
    let tally = crowd.leave();
    trial.end();
    if reading.is_eager() {
        tally.expect(200);
    }
}

#[test]
fn pages_that_nobody_takes_are_bounded() {
    large_pages(120, 8, Reading::Nothing);
}

#[test]
fn pages_of_slow_readers_are_bounded() {
    large_pages(2_000, 1, Reading::Sips);
}

#[test]
fn pages_of_fast_readers_are_bounded() {
    large_pages(16, 1, Reading::AllAndComeAgain);
}

/// A stranger asks this again and again.
#[track_caller]
fn pipelined(request: &str, status: u16, connections: usize, reading: Reading) {
    let trial = Trial::begin();
    let mut crowd = Crowd::new(trial.address(), connections, again(bundle(request)), reading);
    crowd.run(SPAN);
    let tally = crowd.leave();
    trial.end();
    if reading.is_eager() {
        tally.expect(status);
    }
}

#[test]
fn pipelined_404s_of_one_connection_hold_up_nobody() {
    pipelined(&unknown_path(), 404, 1, Reading::AllAndComeAgain);
}

#[test]
fn pipelined_404s_of_64_connections_hold_up_nobody() {
    pipelined(&unknown_path(), 404, 64, Reading::AllAndComeAgain);
}

#[test]
fn pipelined_404s_that_nobody_takes_are_bounded() {
    pipelined(&unknown_path(), 404, 2_000, Reading::Nothing);
}

#[test]
fn pipelined_descriptions_hold_up_nobody() {
    pipelined(&description(), 200, 64, Reading::AllAndComeAgain);
}

#[test]
fn descriptions_that_nobody_takes_are_bounded() {
    pipelined(&description(), 200, 2_000, Reading::Nothing);
}

#[test]
fn empty_pages_leave_nothing_behind() {
    let stage = Stage::new();
    let key = stage.read_only_key();
    let trial = stage.begin().within_mib(64);
    let mut after = BEYOND;
    let pages: Source = Box::new(move |_| {
        let piece: String =
            (after..after + PAGES).map(|n| get(&format!("/v1/pets?after={n}"), &key)).collect();
        after += PAGES;
        Some(Arc::from(piece.into_bytes()))
    });
    let mut crowd = Crowd::new(trial.address(), 16, pages, Reading::AllAndComeAgain);
    crowd.run_until("very many empty pages", |tally| tally.of(200) >= EMPTY_PAGES);
    let tally = crowd.leave();
    trial.end();
    tally.expect(200);
}
