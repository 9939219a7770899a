//! Kills and freezes nodes and instances, at random and overlapping.

use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::Scope;
use std::time::{Duration, Instant};

use crate::invariants::Tally;
use crate::setup::{INSTANCES, Stage};
use support::random::Random;

/// The nodes and instances that are down now.
#[derive(Default)]
struct Hit {
    nodes: Vec<usize>,
    instances: Vec<usize>,
}

/// Does harm until the end, and waits until all is well again.
pub fn befall<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stage: &'scope Stage,
    tally: &'scope Tally,
    seed: u64,
) {
    let mut random = Random::of_place(seed, [4, 0]);
    let hit: &Mutex<Hit> = Box::leak(Box::default());
    while !tally.ends() {
        std::thread::sleep(Duration::from_millis(500 + random.below(4000)));
        let duration = Duration::from_millis(200 + random.below(8000));
        let (kills, draw) = (random.one_in(2), random.bits() as usize);
        if random.one_in(4) {
            let i = draw % INSTANCES;
            let mut now = hit.lock().unwrap();
            // One of them serves.
            if now.instances.is_empty() {
                now.instances.push(i);
                scope.spawn(move || hit_instance(stage, tally, hit, i, kills, duration));
            }
            continue;
        }
        // Every other time the leader, which costs most.
        let leader = random
            .one_in(2)
            .then(|| stage.nodes.read().unwrap().leader_now())
            .flatten();
        let i = leader.unwrap_or(draw % 3);
        let mut now = hit.lock().unwrap();
        let takes_quorum = !now.nodes.is_empty();
        if now.nodes.contains(&i) || now.nodes.len() > 1 || takes_quorum && !random.one_in(3) {
            continue;
        }
        now.nodes.push(i);
        let duration = if takes_quorum {
            duration.min(Duration::from_secs(3))
        } else {
            duration
        };
        if takes_quorum {
            tally.quorum(false);
        }
        drop(now);
        scope.spawn(move || hit_node(stage, tally, hit, i, kills, duration));
    }
}

fn hit_instance(
    stage: &Stage,
    tally: &Tally,
    hit: &Mutex<Hit>,
    i: usize,
    kills: bool,
    duration: Duration,
) {
    tally.faults.fetch_add(1, SeqCst);
    tally.say(&format!(
        "{} instance {i} for {duration:?}",
        if kills { "kill" } else { "freeze" }
    ));
    if kills {
        stage.kill_instance(i);
        std::thread::sleep(duration);
        stage.start_instance(i);
    } else {
        stage.signal_instance(i, "STOP");
        std::thread::sleep(duration);
        stage.signal_instance(i, "CONT");
    }
    hit.lock().unwrap().instances.retain(|other| *other != i);
}

fn hit_node(
    stage: &Stage,
    tally: &Tally,
    hit: &Mutex<Hit>,
    i: usize,
    kills: bool,
    duration: Duration,
) {
    tally.faults.fetch_add(1, SeqCst);
    let role = if stage.nodes.read().unwrap().leader_now() == Some(i) {
        " (the leader)"
    } else {
        ""
    };
    tally.say(&format!(
        "{} node {i}{role} for {duration:?}",
        if kills { "kill" } else { "freeze" }
    ));
    if kills {
        stage.nodes.write().unwrap().kill(i);
        std::thread::sleep(duration);
        stage.nodes.write().unwrap().start_node(i);
    } else {
        stage.nodes.read().unwrap().freeze(i);
        std::thread::sleep(duration);
        stage.nodes.read().unwrap().thaw(i);
    }
    // It counts as hit until it has caught up, so that what is acknowledged is never on nodes that are hit alone.
    let begun = Instant::now();
    while !stage.nodes.read().unwrap().is_ready(i) {
        if begun.elapsed() > Duration::from_secs(60) {
            tally.broken(format!("node {i} did not come back within a minute"));
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut now = hit.lock().unwrap();
    now.nodes.retain(|other| *other != i);
    if now.nodes.len() == 1 || now.nodes.is_empty() {
        tally.quorum(true);
    }
}
