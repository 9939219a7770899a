//! Attacks by responses that are not read, or that are large or many.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cgroup::Group;
use crate::crowd::Crowd;
use crate::plan::{Reading, Source, again, once};
use crate::requests::{WRONG_KEY, bundle, deployed_file, description, large_page, unknown_path};
use crate::trial::{SPAN, Stage, Trial};
use support::client::get;

/// The number of different pages without a pet.
const EMPTY_PAGES: usize = 500_000;
/// A cursor that is beyond every pet.
const BEYOND: usize = 1_000_000;
/// Pages asked for in one piece.
const PAGES: usize = 32;

/// The holder of a read-only key asks for pages of 1 MiB.
#[track_caller]
fn large_pages(connections: usize, pipelined: usize, reading: Reading) {
    let stage = Stage::new();
    stage.fill();
    let request = large_page(&stage.read_only_key());
    let trial = stage.begin();
    let source = if reading.is_eager() {
        again(request)
    } else {
        once(request.repeat(pipelined))
    };
    trial.attack(connections, source, reading, 200);
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

#[test]
fn pages_of_2000_fast_readers_hold_up_nobody() {
    large_pages(2_000, 1, Reading::AllAndComeAgain);
}

/// The holder of a read-only key asks for large pages on 2,000 connections, while 64 others send requests
/// meant to mislead the service about the cost of a page: `small`, with different numbers.
#[track_caller]
fn large_pages_beside(small: fn(key: &str, number: usize) -> String) {
    let stage = Stage::new();
    stage.fill();
    let key = stage.read_only_key();
    let page = large_page(&key);
    let trial = stage.begin();
    let mut number = 0;
    let deceit: Source = Box::new(move |_| {
        let piece: String = (number..number + PAGES)
            .map(|number| small(&key, number))
            .collect();
        number += PAGES;
        Some(Arc::from(piece.into_bytes()))
    });
    let mut deceivers = Crowd::new(trial.address(), 64, deceit, Reading::AllAndComeAgain);
    let mut readers = Crowd::new(
        trial.address(),
        2_000,
        again(page),
        Reading::AllAndComeAgain,
    );
    let end = Instant::now() + SPAN;
    while Instant::now() < end {
        deceivers.run(SPAN / 800);
        readers.run(SPAN / 800);
    }
    readers.run_to(Duration::ZERO, 200);
    let (small, large) = (deceivers.leave(), readers.leave());
    trial.end();
    assert!(
        small.statuses.keys().all(|status| *status < 500),
        "{small:?}"
    );
    large.expect(200);
}

#[test]
fn pages_beside_ever_new_paths_hold_up_nobody() {
    large_pages_beside(|_, number| get(&format!("/nope{number}"), WRONG_KEY));
}

#[test]
fn pages_beside_ever_new_targets_hold_up_nobody() {
    large_pages_beside(|_, number| get(&format!("/v1/pets?x={number}"), WRONG_KEY));
}

#[test]
fn pages_beside_ever_new_empty_pages_hold_up_nobody() {
    large_pages_beside(|key, number| get(&format!("/v1/pets?after={}", BEYOND + number), key));
}

/// The same page, with a wrong key and with another method.
#[test]
fn pages_beside_refusals_of_the_same_page_hold_up_nobody() {
    large_pages_beside(|_, number| match number % 2 {
        0 => large_page(WRONG_KEY),
        _ => large_page(WRONG_KEY).replacen("GET", "OPTIONS", 1),
    });
}

/// A stranger repeats this request.
#[track_caller]
fn pipelined(request: &str, status: u16, connections: usize, reading: Reading) {
    Trial::begin().attack(connections, again(bundle(request)), reading, status);
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

/// A stranger asks for a large file that the operator has deployed.
#[track_caller]
fn deployed_files(coding: &str, connections: usize, reading: Reading) {
    let stage = Stage::new();
    stage.deploy();
    stage.begin().attack(
        connections,
        again(bundle(&deployed_file(coding))),
        reading,
        200,
    );
}

#[test]
fn deployed_file_plain_holds_up_nobody() {
    deployed_files("identity", 64, Reading::AllAndComeAgain);
}

#[test]
fn deployed_file_compressed_holds_up_nobody() {
    deployed_files("gzip", 64, Reading::AllAndComeAgain);
}

#[test]
fn deployed_file_that_nobody_takes_is_bounded() {
    deployed_files("identity", 2_000, Reading::Nothing);
}

/// In a container of 64 MiB, if this user may make one.
#[test]
fn deployed_file_does_not_get_a_small_container_killed() {
    let group = Group::new(64);
    // The group is removed after the server has ended.
    let stage = Stage::in_container(group.as_ref());
    stage.deploy();
    let source = again(bundle(&deployed_file("identity")));
    stage
        .begin()
        .within_mib(64)
        .attack(2_000, source, Reading::Nothing, 200);
}

#[test]
fn deployed_file_for_slow_readers_is_bounded() {
    deployed_files("identity", 2_000, Reading::Sips);
}

#[test]
fn empty_pages_leave_nothing_behind() {
    let stage = Stage::new();
    let key = stage.read_only_key();
    let trial = stage.begin().within_mib(64);
    let mut after = BEYOND;
    let pages: Source = Box::new(move |_| {
        let piece: String = (after..after + PAGES)
            .map(|n| get(&format!("/v1/pets?after={n}"), &key))
            .collect();
        after += PAGES;
        Some(Arc::from(piece.into_bytes()))
    });
    let mut crowd = Crowd::new(trial.address(), 16, pages, Reading::AllAndComeAgain);
    crowd.run_until("very many empty pages", |tally| {
        tally.of(200) >= EMPTY_PAGES
    });
    let tally = crowd.leave();
    trial.end();
    tally.expect(200);
}
