//! Counts of what happened, and the invariants that must hold.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// The longest time without a success while a quorum is there: a few seconds, and more on a busy machine.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// A create that was acknowledged, by its id: its name.
pub type Acknowledged = HashMap<i64, String>;

pub struct Tally {
    begun: Instant,
    pub acknowledged: Mutex<Acknowledged>,
    pub creates: Flow,
    pub lists: Flow,
    /// Creates without a key whose outcome nobody knows.
    pub unknown: AtomicU64,
    pub replays: AtomicU64,
    pub gets: AtomicU64,
    pub walks: AtomicU64,
    pub fresh_lists: AtomicU64,
    pub revocations: AtomicU64,
    /// Pets that a client of each instance wanted to change.
    pub contended: AtomicU64,
    /// Changes of them that were refused through no fault of the client.
    pub refused: AtomicU64,
    pub faults: AtomicU64,
    /// True if less than a quorum runs, or ran until just now.
    without_quorum: AtomicBool,
    /// When there was a quorum again, in milliseconds since the beginning.
    quorum_since: AtomicU64,
    broken: Mutex<Vec<String>>,
    pub ends: AtomicBool,
}

/// A kind of request of all clients together.
#[derive(Default)]
pub struct Flow {
    pub count: AtomicU64,
    last: AtomicU64,
    longest: AtomicU64,
}

impl Tally {
    pub fn new() -> Self {
        Self {
            begun: Instant::now(),
            acknowledged: Mutex::default(),
            creates: Flow::default(),
            lists: Flow::default(),
            unknown: AtomicU64::new(0),
            replays: AtomicU64::new(0),
            gets: AtomicU64::new(0),
            walks: AtomicU64::new(0),
            fresh_lists: AtomicU64::new(0),
            revocations: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            without_quorum: AtomicBool::new(false),
            quorum_since: AtomicU64::new(0),
            broken: Mutex::default(),
            ends: AtomicBool::new(false),
        }
    }

    pub fn milliseconds(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    /// Says that a promise is broken.
    pub fn broken(&self, what: String) {
        eprintln!(
            "[{:7.1} s] BROKEN: {what}",
            self.begun.elapsed().as_secs_f64()
        );
        self.broken.lock().unwrap().push(what);
    }

    pub fn all_broken(&self) -> Vec<String> {
        self.broken.lock().unwrap().clone()
    }

    pub fn say(&self, what: &str) {
        println!("[{:7.1} s] {what}", self.begun.elapsed().as_secs_f64());
    }

    /// Counts a success. The time since the one before is a pause, unless there was no quorum.
    pub fn succeeded(&self, flow: &Flow, what: &str) {
        let now = self.milliseconds();
        let before = flow
            .last
            .swap(now, SeqCst)
            .max(self.quorum_since.load(SeqCst));
        if flow.count.fetch_add(1, SeqCst) == 0 || self.without_quorum.load(SeqCst) {
            return;
        }
        let pause = now.saturating_sub(before);
        flow.longest.fetch_max(pause, SeqCst);
        let said = || format!("no {what} succeeded for {pause} ms");
        match Duration::from_millis(pause) {
            long if long > LONGEST_PAUSE => self.broken(said()),
            long if long > LONGEST_PAUSE / 2 => self.say(&said()),
            _ => {}
        }
    }

    pub fn quorum(&self, is_there: bool) {
        if is_there {
            self.quorum_since.store(self.milliseconds(), SeqCst);
        }
        self.without_quorum.store(!is_there, SeqCst);
    }

    pub fn acknowledge(&self, id: i64, name: &str) {
        if let Some(other) = self
            .acknowledged
            .lock()
            .unwrap()
            .insert(id, name.to_owned())
            && other != name
        {
            self.broken(format!("the id {id} was given to {other} and to {name}"));
        }
    }

    pub fn ends(&self) -> bool {
        self.ends.load(SeqCst)
    }
}

impl Flow {
    pub fn summary(&self) -> String {
        format!(
            "{}, with a longest pause of {:.1} s",
            self.count.load(SeqCst),
            self.longest.load(SeqCst) as f64 / 1000.0
        )
    }
}
