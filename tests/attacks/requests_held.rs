//! Attacks by requests that the service must hold until they are complete, or until it is their turn.

use crate::cgroup::Group;
use crate::crowd::Crowd;
use crate::plan::{Reading, Tally, again, once};
use crate::requests::{
    all_but_the_first_byte, announced_body, get_with_body, largest, largest_unfinished,
    long_head_and_one_byte, post_with_wrong_key, unfinished_head,
};
use crate::source_address::many;
use crate::trial::{SPAN, Stage, Trial};

/// Bystanders who ask at the same time.
const BYSTANDERS: usize = 1_000;

/// Requests with bodies that end in a 401, again and again.
#[track_caller]
fn refused_bodies(connections: usize, request: String) {
    Trial::begin().attack(connections, again(request), Reading::AllAndComeAgain, 401);
}

#[test]
fn bodies_with_a_wrong_key_are_bounded_on_600_connections() {
    refused_bodies(600, post_with_wrong_key());
}

#[test]
fn bodies_with_a_wrong_key_are_bounded_on_64_connections() {
    refused_bodies(64, post_with_wrong_key());
}

#[test]
fn bodies_of_reads_are_bounded_on_600_connections() {
    refused_bodies(600, get_with_body());
}

#[test]
fn bodies_of_reads_are_bounded_on_64_connections() {
    refused_bodies(64, get_with_body());
}

/// A request whose response nobody reads, once on each of very many connections.
#[track_caller]
fn sent_and_left(bytes: String) {
    let trial = Trial::begin();
    let mut crowd = Crowd::new(trial.address(), many(9_900), once(bytes), Reading::Nothing);
    crowd.run(SPAN);
    crowd.run_until("all connections", |tally| tally.opened == many(9_900));
    crowd.leave();
    trial.end();
}

#[test]
fn whole_requests_that_wait_are_bounded() {
    sent_and_left(largest());
}

#[test]
fn unfinished_bodies_are_bounded() {
    sent_and_left(largest_unfinished());
}

/// In a container of 64 MiB, if this user may make one; a quarter of it is held for clients.
#[test]
fn unfinished_bodies_do_not_get_a_small_container_killed() {
    let group = Group::new(64);
    // The group is removed after the server has ended.
    let trial = Stage::in_container(group.as_ref()).begin().within_mib(64);
    let mut crowd = Crowd::new(
        trial.address(),
        many(2_000),
        once(largest_unfinished()),
        Reading::Nothing,
    );
    crowd.run(SPAN);
    crowd.leave();
    trial.end();
}

#[test]
fn unfinished_heads_are_bounded() {
    sent_and_left(unfinished_head());
}

#[test]
fn announced_bodies_are_bounded() {
    sent_and_left(announced_body());
}

/// Bystanders that have sent this, whose last byte begins a request, are served whatever 1,900 others send.
/// Everything must happen within the 10 s that a head may take.
#[track_caller]
fn bystanders_are_served(crowds: usize, bytes: &str, whole_requests: usize, large: String) {
    let trial = Trial::begin();
    let new = |_| Crowd::new(trial.address(), BYSTANDERS, once(bytes), Reading::All);
    let mut bystanders: Vec<Crowd> = (0..crowds).map(new).collect();
    for crowd in &mut bystanders {
        crowd.run_until("the bystanders' first bytes", |tally| {
            tally.ended > 0
                || tally.sent == BYSTANDERS && tally.of(200) == BYSTANDERS * whole_requests
        });
    }
    let mut crowd = Crowd::new(trial.address(), many(1_900), once(large), Reading::All);
    crowd.run(SPAN / 2);
    let refused = crowd.leave();
    let answered = BYSTANDERS * (whole_requests + 1);
    for crowd in &mut bystanders {
        crowd.send(once(all_but_the_first_byte()));
        crowd.run_until("the bystanders' answers", |tally| {
            tally.ended > 0 || tally.of(200) == answered
        });
    }
    let tallies: Vec<Tally> = bystanders.into_iter().map(Crowd::leave).collect();
    trial.end();
    refused.expect_refusals_beside(401);
    for tally in tallies {
        assert_eq!((tally.of(200), tally.ended), (answered, 0), "{tally:?}");
    }
}

/// Thousands, in crowds, in addition to 1,900 others.
fn thousands() -> usize {
    (many(9_900) - many(1_900)) / BYSTANDERS
}

#[test]
fn bystanders_do_not_pay_for_unfinished_requests() {
    bystanders_are_served(thousands(), "G", 0, largest_unfinished());
}

#[test]
fn bystanders_do_not_pay_for_requests_that_wait() {
    bystanders_are_served(thousands(), "G", 0, largest());
}

#[test]
fn bystanders_do_not_pay_for_what_is_answered() {
    bystanders_are_served(4, &long_head_and_one_byte(), 1, largest_unfinished());
}
