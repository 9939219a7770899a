//! The limits of every attack: it may not use much memory, keep it, or make others wait.

use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cgroup::Group;
use crate::crowd::Crowd;
use crate::innocents::{Answer, Figures, Innocents, Patience};
use crate::plan::{Reading, Source};
use support::harness::{Folder, Server, add_key, after, run};

/// How long an attack lasts.
pub const SPAN: Duration = Duration::from_secs(4);
/// The most resident memory in MiB, whatever happens.
const MOST_MIB: u64 = 256;
/// How soon the descriptors and threads for the attackers are gone after them.
const CLOSED_WITHIN: Duration = Duration::from_secs(15);
/// The most resident memory in MiB after the attackers have gone, and how soon; what it took is printed. What was
/// freed within the last `MIMALLOC_PURGE_DELAY` is returned when a thread looks next: as it frees a page of mimalloc's,
/// or after 10,000 allocations off the fast path (`generic_collect`), for which the innocent clients took up to 25 s.
const AFTERWARDS_MIB: u64 = 64;
const RETURNED_WITHIN: Duration = Duration::from_secs(120);
/// The longest that an innocent client may wait. On an otherwise idle machine that is 1 s; it is printed. The
/// bound is wide: the deadline after which the service itself gives up.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Descriptors for connections of the innocent clients, which come and go.
const FEW_DESCRIPTORS: usize = 8;
/// A name that makes a pet large.
const LARGE_NAME_BYTES: usize = 60_000;

/// A server without clients yet. There is one at a time, because attacks need the machine for themselves.
pub struct Stage {
    pub server: Server,
    alone: MutexGuard<'static, ()>,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// Starts it with more words on the command line.
    pub fn with(words: &[&str]) -> Self {
        Self::changed(|command| command.args(words))
    }

    /// Starts it as in a container of 64 MiB. Without a cgroup, the service does not
    /// see the limit, and nobody is killed, but its memory is bounded all the same.
    pub fn in_container(group: Option<&Group>) -> Self {
        Self::changed(|command| match group {
            Some(group) => after(command, &group.script()),
            None => command.args(["--client-memory", "16MiB"]),
        })
    }

    fn changed(change: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            // As the Dockerfile and petstore.service do.
            server: Server::start_with(|command| change(command.env("MIMALLOC_PURGE_DELAY", "10"))),
            alone,
        }
    }

    /// Makes a read-only key.
    pub fn read_only_key(&self) -> String {
        add_key(&self.server.folder.database(), &["reader", "--read-only"])
    }

    /// Deploys a file of 1.7 MB, which compresses to about half of it.
    pub fn deploy(&self) {
        let mut state = 1_u32;
        let word = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            format!("{:04x}", state >> 16)
        };
        let text: String = std::iter::repeat_with(word).take(425_000).collect();
        let folder = Folder::new();
        std::fs::write(folder.path().join("large.txt"), text).unwrap();
        let words = ["site", "deploy", folder.path().to_str().unwrap()];
        let output = run(&words, &self.server.folder.database());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Fills the first page, for which the innocent clients ask, with small pets, and everything after id 20
    /// with large ones, whose pages end early at 1 MiB.
    pub fn fill(&self) {
        let large = "x".repeat(LARGE_NAME_BYTES);
        self.server
            .fill(std::iter::repeat_n("small", 20).chain(std::iter::repeat_n(large.as_str(), 60)));
    }

    /// Starts the innocent clients.
    pub fn begin(self) -> Trial {
        self.begin_with(Patience::None)
    }

    /// Starts innocent clients that retry if an idle connection was closed to make room.
    pub fn begin_in_full_house(self) -> Trial {
        self.begin_with(Patience::ComeAgain)
    }

    fn begin_with(self, patience: Patience) -> Trial {
        let innocents = Innocents::start(self.server.address, patience);
        let before = open(self.server.pid());
        Trial {
            innocents,
            before,
            server: self.server,
            most_mib: MOST_MIB,
            forgiven: 0.0,
            _alone: self.alone,
        }
    }
}

/// A server with innocent clients, ready to be attacked.
pub struct Trial {
    innocents: Innocents,
    /// Its descriptors and threads before the attack.
    before: [usize; 2],
    server: Server,
    most_mib: u64,
    /// The share of the innocent clients' requests that may fail.
    forgiven: f64,
    _alone: MutexGuard<'static, ()>,
}

impl Trial {
    pub fn begin() -> Self {
        Stage::new().begin()
    }

    /// Sets another bound on the resident memory.
    pub fn within_mib(self, most_mib: u64) -> Self {
        Self { most_mib, ..self }
    }

    /// Allows one in `count` of the innocent clients' requests to be refused.
    pub fn forgiving_one_in(self, count: u32) -> Self {
        Self {
            forgiven: f64::from(count).recip(),
            ..self
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Has a crowd attack, and checks what it has done. Who reads gets this status, or orderly refusals.
    #[track_caller]
    pub fn attack(self, connections: usize, source: Source, reading: Reading, status: u16) {
        let mut crowd = Crowd::new(self.address(), connections, source, reading);
        crowd.run_to(SPAN, status);
        let tally = crowd.leave();
        self.end();
        if reading.is_eager() {
            tally.expect(status);
        }
    }

    /// Checks what the attackers have done, just after they have closed.
    #[track_caller]
    pub fn end(self) {
        let closed = Instant::now();
        let is_closed = comes_true(CLOSED_WITHIN, || {
            let now = open(self.server.pid());
            now[0] <= self.before[0] + FEW_DESCRIPTORS && now[1] <= self.before[1]
        });
        let (mut highest, mut afterwards) = (0, 0);
        let is_returned = comes_true(RETURNED_WITHIN, || {
            (highest, afterwards) = resident_mib(self.server.pid()).expect("a server that lives");
            afterwards < AFTERWARDS_MIB
        });
        let took = closed.elapsed();
        let answers = self.innocents.stop();
        let figures = Figures::of(&answers);
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default();
        eprintln!(
            "{name}: {figures}; {highest} MiB, and {afterwards} MiB {} ms later",
            took.as_millis()
        );

        let mut faults = Vec::new();
        if highest >= self.most_mib {
            faults.push(format!(
                "{highest} MiB resident, and {} are too many",
                self.most_mib
            ));
        }
        if !is_returned {
            faults.push(format!(
                "{afterwards} MiB resident {RETURNED_WITHIN:?} afterwards"
            ));
        }
        if !is_closed {
            faults.push(format!(
                "more than the {:?} descriptors and threads from before {CLOSED_WITHIN:?} afterwards",
                self.before
            ));
        }
        if figures.max > LONGEST_WAIT {
            let longest = answers
                .iter()
                .max_by_key(|answer| answer.waited)
                .map(|answer| answer.what);
            faults.push(format!(
                "an innocent waited, for {}: {figures}",
                longest.unwrap_or_default()
            ));
        }
        let failed = answers
            .iter()
            .filter(|answer| answer.failure.is_some())
            .count();
        if failed as f64 > self.forgiven * answers.len() as f64 {
            faults.extend(
                failures(&answers).map(|failures| format!("innocents were not served: {failures}")),
            );
        }
        assert!(faults.is_empty(), "{}", faults.join("; "));
    }
}

/// How often innocent clients got which failure; `None` if there was none.
fn failures(answers: &[Answer]) -> Option<String> {
    let mut counts = BTreeMap::new();
    for answer in answers {
        if let Some(failure) = &answer.failure {
            *counts.entry((answer.what, failure)).or_insert(0) += 1;
        }
    }
    (!counts.is_empty()).then(|| format!("{counts:?} of {}", answers.len()))
}

/// Whether a condition holds before its time is up. What ends the wait is what is judged: measured again, it would
/// count whoever has come since.
fn comes_true(within: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + within;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How many descriptors and threads a process has.
fn open(pid: u32) -> [usize; 2] {
    ["fd", "task"].map(|what| read_dir(format!("/proc/{pid}/{what}")).map_or(0, Iterator::count))
}

/// The peak of the resident memory and its present value, in MiB. The system records the peak, so none is
/// missed. `None` if the process has ended.
fn resident_mib(pid: u32) -> Option<(u64, u64)> {
    let status = read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(name))?
            .trim();
        value.strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some((field("VmHWM:")? / 1024, field("VmRSS:")? / 1024))
}
