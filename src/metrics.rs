//! What the service counts for whoever monitors it, in Prometheus' text format, version 0.0.4
//! (`prometheus.io/docs/instrumenting/exposition_formats`). Knows no other room: each reports what it sees.
//! Counting takes no lock and hashes nothing, except for refusals, which are rare.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Seconds, for how long a client waits and a disk takes.
const SECONDS: &[f64] =
    &[1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Requests, up to the most in a batch.
const REQUESTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
/// The histograms of durations count nanoseconds.
const NANO: f64 = 1e9;

/// Log lines that the logger dropped.
static DROPPED_LINES: AtomicU64 = AtomicU64::new(0);

/// Counts log lines that the program's logger had to drop, for the metric `petstore_dropped_log_lines_total`.
pub fn note_dropped_log_lines(count: u64) {
    DROPPED_LINES.fetch_add(count, Relaxed);
}

/// The meters that each room reports to. If nobody monitors the service there are none, and a report costs
/// nothing.
#[derive(Clone, Default)]
pub struct Metrics(Option<Arc<Meters>>);

struct Meters {
    /// By operation: a dozen, so that comparing names is cheaper than hashing one.
    requests: Vec<(&'static str, Statuses)>,
    responses: Statuses,
    duration: Histogram,
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    batch: Histogram,
    flush: Histogram,
    failed_writes: AtomicU64,
    replays: AtomicU64,
    connections: AtomicU64,
    waiting_reads: AtomicU64,
    waiting_writes: AtomicU64,
    held: AtomicU64,
    budget: usize,
}

/// What the gate holds at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Levels {
    /// Open connections of clients.
    pub connections: usize,
    /// Requests that wait for a lane for reading, and for the one for writing.
    pub reads: usize,
    pub writes: usize,
    /// Bytes in use for clients.
    pub held: usize,
}

/// What is looked at when somebody asks.
#[derive(Clone, Debug, Default)]
pub struct Now {
    /// Bytes of the database, of its write-ahead log, of its disk, and free on that disk.
    pub database: u64,
    pub log: u64,
    pub disk: u64,
    pub free: u64,
    /// `None`: nobody has made a dated backup yet.
    pub backup: Option<LastBackup>,
    /// When the first of the keys without a successor expires, or did within the last week: Unix time, seconds.
    pub key_expiry: Option<i64>,
    /// How many domains of the project are in each state.
    pub domains: Vec<(&'static str, usize)>,
    /// Seconds since the newest pet came; `None`: there never was one.
    pub newest_pet_age: Option<i64>,
    /// Whether the service only reads.
    pub read_only: bool,
    /// The hosts of a cluster; none if the database is a file.
    pub hosts: Vec<Host>,
}

/// What was asked of one host of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Its name and port.
    pub host: String,
    pub requests: u64,
    /// Requests that it did not answer.
    pub failures: u64,
    /// How long all of them took.
    pub seconds: f64,
}

/// The last dated backup.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastBackup {
    /// When the last sound one was made: Unix time, seconds; 0: never.
    pub at: i64,
    /// The pets in it.
    pub pets: u64,
    /// Whether the last one of all was sound.
    pub is_sound: bool,
}

impl Metrics {
    /// Meters that count from now on; `budget` is the most bytes held for clients.
    pub fn watched(budget: usize) -> Self {
        Self(Some(Arc::new(Meters {
            requests: Vec::new(),
            responses: Statuses::new(),
            duration: Histogram::new(SECONDS, NANO),
            refusals: Mutex::default(),
            batch: Histogram::new(REQUESTS, 1.0),
            flush: Histogram::new(SECONDS, NANO),
            failed_writes: AtomicU64::new(0),
            replays: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            waiting_reads: AtomicU64::new(0),
            waiting_writes: AtomicU64::new(0),
            held: AtomicU64::new(0),
            budget,
        })))
    }

    /// Prints a counter for an operation and a status from the start, so that its first count is seen as an
    /// increase (`prometheus.io/docs/practices/instrumentation/#avoid-missing-metrics`). Has no effect once the
    /// meters are shared; an operation that was never announced is not counted.
    pub fn announce(&mut self, operation: &'static str, status: u16) {
        let Some(meters) = self.0.as_mut().and_then(Arc::get_mut) else { return };
        let requests = &mut meters.requests;
        let i = requests.iter().position(|(name, _)| *name == operation).unwrap_or_else(|| {
            requests.push((operation, Statuses::new()));
            requests.len() - 1
        });
        requests[i].1.add(status, 0);
    }

    /// Prints a counter for responses with a status from the start, as [`Metrics::announce`] does.
    pub fn announce_response(&self, status: u16) {
        if let Some(meters) = &self.0 {
            meters.responses.add(status, 0);
        }
    }

    /// Counts a request that the service has answered.
    pub fn handled(&self, operation: &str, status: u16) {
        if let Some(meters) = &self.0
            && let Some((_, statuses)) = meters.requests.iter().find(|(name, _)| *name == operation)
        {
            statuses.add(status, 1);
        }
    }

    /// Counts a response of the gate to a client, and how long the client has waited for it.
    pub fn answered(&self, status: u16, duration: Duration) {
        if let Some(meters) = &self.0 {
            meters.responses.add(status, 1);
            meters.duration.observe(nanoseconds(duration));
        }
    }

    /// Counts requests that the gate has refused by itself, or the service for want of its database. With 0 the counter is printed from now on.
    pub fn refused(&self, code: &'static str, count: u64) {
        if let Some(meters) = &self.0 {
            *meters.refusals.lock().unwrap_or_else(PoisonError::into_inner).entry(code).or_default() += count;
        }
    }

    /// Counts a batch that the writer has ended: its requests, and how long its commit took.
    pub fn committed(&self, requests: usize, flush: Duration) {
        if let Some(meters) = &self.0 {
            meters.batch.observe(requests as u64);
            meters.flush.observe(nanoseconds(flush));
        }
    }

    /// Counts writes that failed and were undone.
    pub fn undone(&self, writes: usize) {
        if let Some(meters) = &self.0 {
            meters.failed_writes.fetch_add(writes as u64, Relaxed);
        }
    }

    /// Counts creates that had been carried out before.
    pub fn replayed(&self, creates: usize) {
        if let Some(meters) = &self.0 {
            meters.replays.fetch_add(creates as u64, Relaxed);
        }
    }

    /// Sets what the gate holds just now.
    pub fn hold(&self, levels: impl FnOnce() -> Levels) {
        if let Some(meters) = &self.0 {
            let levels = levels();
            meters.connections.store(levels.connections as u64, Relaxed);
            meters.waiting_reads.store(levels.reads as u64, Relaxed);
            meters.waiting_writes.store(levels.writes as u64, Relaxed);
            meters.held.store(levels.held as u64, Relaxed);
        }
    }

    /// Prints all metrics, by name; nothing if nothing is counted.
    pub fn print(&self, now: Now) -> Vec<u8> {
        let mut text = Text(String::new());
        if let Some(meters) = &self.0 {
            meters.print(now, &mut text);
        }
        text.0.into_bytes()
    }
}

impl Meters {
    fn print(&self, now: Now, text: &mut Text) {
        text.family("build_info", "gauge", "Always 1; the label has the version of the service.");
        text.sample("build_info", &[("version", &env!("CARGO_PKG_VERSION"))], 1);
        type Count = fn(&Host) -> f64;
        let of_hosts: [(&str, &str, Count); 3] = [
            ("cluster_failures_total", "Requests that a host of the cluster did not answer.", |it| {
                it.failures as f64
            }),
            ("cluster_requests_total", "Requests to a host of the cluster.", |it| it.requests as f64),
            ("cluster_seconds_total", "Time that a host of the cluster took to answer.", |it| it.seconds),
        ];
        for (name, help, count) in of_hosts.into_iter().filter(|_| !now.hosts.is_empty()) {
            text.family(name, "counter", help);
            now.hosts.iter().for_each(|host| text.sample(name, &[("host", &host.host)], count(host)));
        }
        text.gauge("connections", "Open connections of clients.", self.connections.load(Relaxed));
        if now.hosts.is_empty() {
            text.gauge("disk_free_bytes", "Free bytes on the disk that the service can use.", now.free);
            text.gauge("disk_size_bytes", "Bytes of the disk.", now.disk);
        }
        text.family("domains", "gauge", "Custom domains of the project, by state.");
        for (state, count) in &now.domains {
            text.sample("domains", &[("state", state)], count);
        }
        let dropped = DROPPED_LINES.load(Relaxed);
        text.counter(
            "dropped_log_lines_total",
            "Log lines that were dropped because nobody read them in time.",
            dropped,
        );
        let help =
            "When the first key without a successor expires, or did in the last week: Unix time; 0: none.";
        text.gauge("earliest_key_expiry_timestamp_seconds", help, now.key_expiry.unwrap_or_default());
        let failed = self.failed_writes.load(Relaxed);
        text.counter("failed_writes_total", "Writes that failed.", failed);
        if now.hosts.is_empty() {
            text.family("file_bytes", "gauge", "Bytes of the database and its write-ahead log.");
            text.sample("file_bytes", &[("file", &"database")], now.database);
            text.sample("file_bytes", &[("file", &"wal")], now.log);
        }
        self.flush.print("flush_duration_seconds", "Duration of commits, with their flush to disk.", text);
        text.gauge("held_bytes", "Bytes in use for clients.", self.held.load(Relaxed));
        text.gauge("held_bytes_limit", "Maximum number of bytes for clients.", self.budget);
        if let Some(LastBackup { at, pets, is_sound }) = now.backup {
            let help = "Whether the check of the last dated backup found it sound: 1, or 0 if not.";
            text.gauge("last_backup_checked", help, u8::from(is_sound));
            text.gauge("last_backup_pets", "Pets in the last sound dated backup.", pets);
            let help = "When the last sound dated backup was made: Unix time; 0: never.";
            text.gauge("last_backup_timestamp_seconds", help, at);
        }
        if let Some(age) = now.newest_pet_age {
            text.gauge("newest_pet_age_seconds", "Seconds since the newest pet appeared, at least.", age);
        }
        text.gauge("read_only", "1 if the service is read-only, else 0.", u8::from(now.read_only));
        text.family(
            "refusals_total",
            "counter",
            "Requests refused at the gate, or because the database could not be used or written, by code.",
        );
        for (code, count) in &*self.refusals.lock().unwrap_or_else(PoisonError::into_inner) {
            text.sample("refusals_total", &[("code", code)], count);
        }
        let help = "Creates that repeated an earlier one with the same Idempotency-Key.";
        text.counter("replayed_creates_total", help, self.replays.load(Relaxed));
        let help = "Time from the first byte of a request to its response.";
        self.duration.print("request_duration_seconds", help, text);
        let help = "Requests that reached the service, by operation and status.";
        text.family("requests_total", "counter", help);
        for (operation, statuses) in &self.requests {
            for (status, count) in statuses.counts() {
                text.sample("requests_total", &[("operation", operation), ("status", &status)], count);
            }
        }
        text.family("responses_total", "counter", "Responses to clients, by status.");
        for (status, count) in self.responses.counts() {
            text.sample("responses_total", &[("status", &status)], count);
        }
        text.family("waiting_requests", "gauge", "Requests waiting for a thread, by kind of lane.");
        text.sample("waiting_requests", &[("lane", &"read")], self.waiting_reads.load(Relaxed));
        text.sample("waiting_requests", &[("lane", &"write")], self.waiting_writes.load(Relaxed));
        self.batch.print("write_batch_size", "Requests per batch of writes.", text);
    }
}

/// A counter for each status. Each cell holds its count plus 1, or 0 if the status was never named, so that it
/// is not printed.
struct Statuses(Box<[AtomicU64]>);

impl Statuses {
    fn new() -> Self {
        Self((0..600).map(|_| AtomicU64::new(0)).collect())
    }

    fn add(&self, status: u16, count: u64) {
        if let Some(cell) = self.0.get(usize::from(status)) {
            // If another thread has named it meanwhile, that is as good.
            if cell.load(Relaxed) == 0 {
                let _ = cell.compare_exchange(0, 1, Relaxed, Relaxed);
            }
            cell.fetch_add(count, Relaxed);
        }
    }

    fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.0.iter().map(|cell| cell.load(Relaxed).checked_sub(1));
        counts.enumerate().filter_map(|(status, count)| Some((status, count?)))
    }
}

/// Counts of values by how large they are: one for each bound, and one for what is above all of them.
struct Histogram {
    /// In the unit of the metric, which is `scale` units of the values.
    bounds: &'static [f64],
    scale: f64,
    buckets: Vec<AtomicU64>,
    sum: AtomicU64,
}

impl Histogram {
    fn new(bounds: &'static [f64], scale: f64) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, scale, buckets, sum: AtomicU64::new(0) }
    }

    fn observe(&self, value: u64) {
        let scaled = value as f64 / self.scale;
        let i = self.bounds.partition_point(|bound| *bound < scaled);
        self.buckets[i].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// Prints the buckets, each with those below it.
    fn print(&self, name: &str, help: &str, text: &mut Text) {
        text.family(name, "histogram", help);
        let bounds = self.bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        let mut count = 0;
        for (bucket, bound) in self.buckets.iter().zip(bounds) {
            count += bucket.load(Relaxed);
            text.sample(&format!("{name}_bucket"), &[("le", &bound)], count);
        }
        text.sample(&format!("{name}_sum"), &[], self.sum.load(Relaxed) as f64 / self.scale);
        text.sample(&format!("{name}_count"), &[], count);
    }
}

/// The text format. Labels need no escapes: their values are names of this program's own.
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to memory cannot fail.
        let _ = writeln!(self.0, "# HELP petstore_{name} {help}\n# TYPE petstore_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "petstore_{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_printed() {
        let mut metrics = Metrics::watched(7);
        metrics.announce("listPets", 503);
        metrics.handled("listPets", 200);
        metrics.handled("listPets", 200);
        metrics.answered(200, Duration::from_millis(3));
        metrics.answered(200, Duration::from_secs(11));
        metrics.announce_response(503);
        metrics.refused("uri_too_long", 1);
        metrics.refused("overloaded", 0);
        metrics.committed(5, Duration::from_millis(1));
        metrics.undone(2);
        metrics.replayed(17);
        metrics.hold(|| Levels { connections: 3, reads: 1, writes: 2, held: 4 });
        note_dropped_log_lines(9);
        let backup = Some(LastBackup { at: 14, pets: 15, is_sound: true });
        let domains = vec![("active", 14), ("dns_changed", 0)];
        let now = Now {
            database: 10,
            log: 11,
            disk: 16,
            free: 12,
            key_expiry: Some(13),
            backup,
            domains,
            newest_pet_age: Some(15),
            read_only: true,
            hosts: Vec::new(),
        };
        for _ in 0..2 {
            let text = String::from_utf8(metrics.print(now.clone())).unwrap();
            for line in [
                "petstore_requests_total{operation=\"listPets\",status=\"200\"} 2",
                "petstore_requests_total{operation=\"listPets\",status=\"503\"} 0",
                "petstore_responses_total{status=\"200\"} 2",
                "petstore_responses_total{status=\"503\"} 0",
                "petstore_refusals_total{code=\"overloaded\"} 0",
                "# HELP petstore_request_duration_seconds Time from the first byte of a request to its response.",
                "# TYPE petstore_request_duration_seconds histogram",
                "petstore_request_duration_seconds_bucket{le=\"0.00025\"} 0",
                "petstore_request_duration_seconds_bucket{le=\"0.0025\"} 0",
                "petstore_request_duration_seconds_bucket{le=\"0.005\"} 1",
                "petstore_request_duration_seconds_bucket{le=\"10\"} 1",
                "petstore_request_duration_seconds_bucket{le=\"+Inf\"} 2",
                "petstore_request_duration_seconds_sum 11.003",
                "petstore_refusals_total{code=\"uri_too_long\"} 1",
                "petstore_write_batch_size_bucket{le=\"4\"} 0",
                "petstore_write_batch_size_bucket{le=\"8\"} 1",
                "petstore_write_batch_size_sum 5",
                "petstore_flush_duration_seconds_count 1",
                "petstore_failed_writes_total 2",
                "petstore_replayed_creates_total 17",
                "petstore_connections 3",
                "petstore_waiting_requests{lane=\"write\"} 2",
                "petstore_held_bytes 4",
                "petstore_held_bytes_limit 7",
                "petstore_dropped_log_lines_total 9",
                "petstore_file_bytes{file=\"wal\"} 11",
                "petstore_disk_free_bytes 12",
                "petstore_disk_size_bytes 16",
                "petstore_last_backup_timestamp_seconds 14",
                "petstore_last_backup_pets 15",
                "petstore_last_backup_checked 1",
                "petstore_earliest_key_expiry_timestamp_seconds 13",
                "petstore_domains{state=\"active\"} 14",
                "petstore_newest_pet_age_seconds 15",
                "petstore_read_only 1",
                "petstore_domains{state=\"dns_changed\"} 0",
                "petstore_build_info{version=\"1.0.0\"} 1",
            ] {
                assert!(text.lines().any(|found| found == line), "{line}: {text}");
            }
        }
    }

    #[test]
    fn bucket_holds_what_is_as_large_as_its_bound() {
        let histogram = Histogram::new(&[1.0, 2.0], 10.0);
        [10, 11, 20, 21].iter().for_each(|value| histogram.observe(*value));
        assert_eq!([0, 1, 2].map(|i| histogram.buckets[i].load(Relaxed)), [1, 2, 1]);
    }

    #[test]
    fn nobody_watching_costs_nothing() {
        let metrics = Metrics::default();
        metrics.handled("listPets", 200);
        metrics.hold(|| panic!("nobody asks"));
        assert_eq!(metrics.print(Now::default()), b"");
    }
}
