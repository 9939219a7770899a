//! Mixed load for as long as one likes, with clients that come and go: nothing may grow but the database.

use std::fs::{read_dir, read_to_string};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::KEY;
use crate::random::Random;
use crate::run::has_failed;
use crate::service::Service;
use crate::wire::{Request, Wire};

/// Clients that ask, and connections that only stay until the service closes them.
const CLIENTS: u64 = 16;
const IDLE: usize = 100;
/// The longest that a client rests between two requests.
const REST_MS: u64 = 100;
/// Longer than any request takes.
const LONG_AGO: Duration = Duration::from_secs(30);
/// The samples that are needed to tell growth from chance. The first of them is the warm-up.
const ENOUGH: usize = 10;
/// Creates with an idempotency key before the first minute: the service keeps as many of the newest records in memory.
const RECORDS: u64 = 2 * 65_536;
/// Creates that are sent before a response is read. Fewer than one client may have in memory.
const TOGETHER: u64 = 16;

/// The figures of a minute.
#[derive(Clone, Copy, Debug)]
struct Sample {
    requests: usize,
    failures: usize,
    rss_kib: u64,
    descriptors: u64,
    threads: u64,
    wal_kib: u64,
    log_bytes: u64,
    database_kib: u64,
    create_us: [u64; 2],
    read_us: [u64; 2],
}

/// What the clients met since the last sample.
#[derive(Default)]
struct Met {
    creates_us: Vec<u64>,
    reads_us: Vec<u64>,
    failures: Vec<String>,
}

pub fn run(minutes: u64, seed: u64) -> ExitCode {
    let mut service = Service::new();
    let address = service.start(&["--workers", "1"]);
    fill(address);
    let (met, is_over) = (Mutex::new(Met::default()), AtomicBool::new(false));
    let mut samples = Vec::new();
    println!(
        "minute requests failures  RSS KiB  fds threads  WAL KiB  log B    database KiB create p50 p99 us  read p50 p99 us"
    );
    thread::scope(|scope| {
        for number in 1..=CLIENTS {
            let mut client = Client {
                address,
                random: Random::new(seed, [number, 0]),
                wire: None,
                met: &met,
                number,
                count: 0,
                since: Instant::now(),
            };
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) && !has_failed() {
                    client.act();
                }
            });
        }
        scope.spawn(|| stay(address, &is_over));
        for minute in 1..=minutes {
            let end = Instant::now() + Duration::from_secs(60);
            while Instant::now() < end && !has_failed() {
                thread::sleep(Duration::from_millis(100));
                service.expect_alive();
            }
            let sample = sample(&service, &met);
            println!("{}", sample.line(minute));
            samples.push(sample);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    service.terminate();
    service.succeed(&["check"]);
    let faults = faults(&samples);
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if faults.is_empty() && !has_failed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Makes the service keep as many records of idempotency keys in memory as it ever does.
fn fill(address: SocketAddr) {
    thread::scope(|scope| {
        for client in 1..=CLIENTS {
            scope.spawn(move || {
                let mut wire = Wire::open(address).expect("a connection");
                for batch in 0..RECORDS / CLIENTS / TOGETHER {
                    for number in 0..TOGETHER {
                        let id = format!("fill.{client}.{batch}.{number}");
                        let body = r#"{"name":"Rex","categoryId":1}"#.to_owned();
                        wire.send(&Request::post(KEY, &id, Some(&id), body).bytes());
                    }
                    for _ in 0..TOGETHER {
                        assert_eq!(wire.reply().map(|reply| reply.status), Some(201));
                    }
                }
            });
        }
    });
    println!("{RECORDS} pets with idempotency keys are there");
}

struct Client<'m> {
    address: SocketAddr,
    random: Random,
    wire: Option<Wire>,
    met: &'m Mutex<Met>,
    number: u64,
    count: u64,
    /// When it last had a response.
    since: Instant,
}

impl Client<'_> {
    /// One request, and a rest. Half of the clients keep their connections; the others come anew each time, and leave
    /// now and then before the response.
    fn act(&mut self) {
        thread::sleep(Duration::from_millis(self.random.below(REST_MS)));
        self.count += 1;
        let id = format!("{}.{}", self.number, self.count);
        let (is_create, once) = (self.random.one_in(4), self.random.one_in(2));
        let request = if is_create {
            let body = json!({"name": id, "categoryId": self.count, "status": "available"});
            Request::post(KEY, &id, once.then_some(id.as_str()), body.to_string())
        } else {
            let page = self.random.below(2000);
            let target = match self.random.below(4) {
                0 => "/v1/pets".to_owned(),
                1 => format!("/v1/pets?limit=100&after={page}"),
                2 => format!("/v1/pets?limit=20&status=available&after={page}"),
                _ => "/v1/pets/1".to_owned(),
            };
            Request::get(&target, KEY, &id)
        };
        let Some(mut wire) = self.wire.take().or_else(|| Wire::open(self.address)) else {
            return self.fail("no connection".to_owned());
        };
        let asked = Instant::now();
        wire.send(&request.bytes());
        let comes_anew = self.number.is_multiple_of(2);
        if comes_anew && self.random.one_in(8) {
            return wire.reset();
        }
        let reply = wire.reply();
        let took = asked.elapsed();
        if took > LONG_AGO || self.since.elapsed() > LONG_AGO {
            // The machine was stopped, and the deadlines of the service have passed.
            self.since = Instant::now();
            return;
        }
        self.since = Instant::now();
        let Some(reply) = reply else { return self.fail("no response".to_owned()) };
        let took = took.as_micros() as u64;
        let is_early = self.count < 100 && reply.status == 404;
        if reply.header("X-Request-Id") != Some(id.as_str())
            || ![200, 201].contains(&reply.status) && !is_early
        {
            return self.fail(format!("{reply:.200?}"));
        }
        {
            let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
            if is_create { met.creates_us.push(took) } else { met.reads_us.push(took) }
        }
        if !comes_anew {
            self.wire = Some(wire);
        }
    }

    fn fail(&self, what: String) {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).failures.push(what);
    }
}

/// Keeps connections that never ask, and replaces one each moment, so that each lasts for a while.
fn stay(address: SocketAddr, is_over: &AtomicBool) {
    let mut idle = std::collections::VecDeque::new();
    while !is_over.load(Ordering::SeqCst) && !has_failed() {
        idle.extend(Wire::open(address));
        if idle.len() > IDLE {
            idle.pop_front();
        }
        thread::sleep(Duration::from_millis(800));
    }
}

fn sample(service: &Service, met: &Mutex<Met>) -> Sample {
    let met = std::mem::take(&mut *met.lock().unwrap_or_else(PoisonError::into_inner));
    met.failures.iter().take(3).for_each(|failure| eprintln!("failed: {failure}"));
    let pid = service.pid();
    let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
    };
    let size = |name: &str| std::fs::metadata(service.path().join(name)).map_or(0, |file| file.len());
    Sample {
        requests: met.creates_us.len() + met.reads_us.len(),
        failures: met.failures.len(),
        rss_kib: field("VmRSS:"),
        descriptors: read_dir(format!("/proc/{pid}/fd")).map_or(0, |files| files.count() as u64),
        threads: field("Threads:"),
        wal_kib: size("pets.db-wal") / 1024,
        log_bytes: size("service.log"),
        database_kib: size("pets.db") / 1024,
        create_us: percentiles(met.creates_us),
        read_us: percentiles(met.reads_us),
    }
}

/// The median, and what 99 of 100 do not exceed.
fn percentiles(mut times: Vec<u64>) -> [u64; 2] {
    times.sort_unstable();
    [50, 99].map(|percent| times.get(times.len() * percent / 100).copied().unwrap_or_default())
}

impl Sample {
    fn line(&self, minute: u64) -> String {
        let Self {
            requests, failures, rss_kib, descriptors, threads, wal_kib, log_bytes, database_kib, ..
        } = self;
        let ([c50, c99], [r50, r99]) = (self.create_us, self.read_us);
        format!(
            "{minute:6} {requests:8} {failures:8} {rss_kib:8} {descriptors:4} {threads:7} {wal_kib:8} {log_bytes:6} \
             {database_kib:13} {c50:10} {c99:6} {r50:12} {r99:6}"
        )
    }
}

/// What has grown from the first third after the warm-up to the last third. Each bound has room for what a shared
/// machine does to a minute: the middle one of a third counts.
fn faults(samples: &[Sample]) -> Vec<String> {
    let failed: usize = samples.iter().map(|sample| sample.failures).sum();
    let mut faults = Vec::new();
    if failed > 0 {
        faults.push(format!("{failed} requests failed"));
    }
    if samples.len() < ENOUGH {
        println!("{} minutes are too few to tell growth from chance; {ENOUGH} are enough", samples.len());
        return faults;
    }
    let settled = &samples[samples.len() / ENOUGH..];
    let third = settled.len() / 3;
    let middle = |part: &[Sample], of: fn(&Sample) -> u64| {
        let mut values: Vec<u64> = part.iter().map(of).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    /// What it is, the figure, and what may come on top of a tenth.
    type Row = (&'static str, fn(&Sample) -> u64, u64);
    let rows: [Row; 7] = [
        ("resident memory in KiB", |sample| sample.rss_kib, 2048),
        ("descriptors", |sample| sample.descriptors, 8),
        ("threads", |sample| sample.threads, 0),
        ("write-ahead log in KiB", |sample| sample.wal_kib, 4096),
        ("log in bytes", |sample| sample.log_bytes, 1024),
        ("p99 of creates in us", |sample| sample.create_us[1], 20_000),
        ("p99 of reads in us", |sample| sample.read_us[1], 20_000),
    ];
    for (what, of, slack) in rows {
        let (before, after) = (middle(&settled[..third], of), middle(&settled[settled.len() - third..], of));
        println!("{what}: {before} in the first third, {after} in the last");
        if after > before + before / 10 + slack {
            faults.push(format!("{what} grew from {before} to {after}"));
        }
    }
    faults
}
