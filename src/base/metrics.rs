//! Counters for monitoring, and Prometheus' text format, version 0.0.4
//! (`prometheus.io/docs/instrumenting/exposition_formats`). Each room reports its own events. Counting takes no lock and
//! hashes nothing, except for rare events.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::clock::unix_time;
use super::threads::lock;

/// The bounds of histograms of durations, in seconds.
const SECONDS: &[f64] = &[
    1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
/// The bounds of the histogram of batch sizes, in requests.
const REQUESTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
/// The histograms of durations count nanoseconds; this many make a second.
const NANO: f64 = 1e9;

/// Log lines that the logger dropped.
static DROPPED_LINES: AtomicU64 = AtomicU64::new(0);

/// Counts log lines that the program's logger had to drop, for the metric `petstore_dropped_log_lines_total`.
pub fn note_dropped_log_lines(count: u64) {
    DROPPED_LINES.fetch_add(count, Relaxed);
}

/// The counters of a service, shared by all rooms. If nobody monitors the service there are none, and counting costs
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Option<Arc<Meters>>);

#[derive(Debug)]
struct Meters {
    requests: BTreeMap<&'static str, Statuses>,
    responses: Statuses,
    duration: Histogram,
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    batch: Histogram,
    flush: Histogram,
    failed_writes: AtomicU64,
    levels: Mutex<Levels>,
    budget: usize,
    /// When the service started: Unix time.
    started: i64,
}

/// The levels of the gate at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Levels {
    /// Open connections of clients.
    pub connections: usize,
    /// Requests that wait for a read lane.
    pub reads: usize,
    /// Requests that wait for the write lane.
    pub writes: usize,
    /// Bytes in use for clients.
    pub held: usize,
}

impl Metrics {
    /// Creates counters. `budget` is the most bytes held for clients.
    pub fn watched(budget: usize) -> Self {
        Self(Some(Arc::new(Meters {
            requests: BTreeMap::new(),
            responses: Statuses::default(),
            duration: Histogram::new(SECONDS, NANO),
            refusals: Mutex::default(),
            batch: Histogram::new(REQUESTS, 1.0),
            flush: Histogram::new(SECONDS, NANO),
            failed_writes: AtomicU64::new(0),
            levels: Mutex::default(),
            budget,
            started: unix_time(),
        })))
    }

    /// Counts requests to an operation from now on. Has no effect once the meters are shared.
    pub fn announce(&mut self, operation: &'static str) {
        if let Some(meters) = self.0.as_mut().and_then(Arc::get_mut) {
            meters.requests.insert(operation, Statuses::default());
        }
    }

    /// Counts a request that a worker has handled, if its operation was announced.
    pub fn handled(&self, operation: &str, status: u16) {
        if let Some(meters) = &self.0
            && let Some(statuses) = meters.requests.get(operation)
        {
            statuses.count(status);
        }
    }

    /// Counts a response of the gate to a client, and the time that the client has waited for it.
    pub fn answered(&self, status: u16, duration: Duration) {
        if let Some(meters) = &self.0 {
            meters.responses.count(status);
            meters.duration.observe(nanoseconds(duration));
        }
    }

    /// Counts requests that the gate has rejected, or that failed because the database cannot be used. A `count` of 0
    /// makes the counter appear in the output.
    pub fn refused(&self, code: &'static str, count: u64) {
        if let Some(meters) = &self.0 {
            *lock(&meters.refusals).entry(code).or_default() += count;
        }
    }

    /// Counts a batch of writes: its requests, and the duration of its commit.
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

    /// Sets the levels of the gate.
    pub fn hold(&self, levels: impl FnOnce() -> Levels) {
        if let Some(meters) = &self.0 {
            *lock(&meters.levels) = levels();
        }
    }

    /// Prints the counters; nothing if there are none.
    pub fn print(&self, text: &mut Exposition) {
        let Some(meters) = &self.0 else { return };
        let Levels {
            connections,
            reads,
            writes,
            held,
        } = *lock(&meters.levels);
        text.value("connections", "Open connections of clients.", connections);
        let help = "Requests waiting for a thread, by kind of lane.";
        text.family(
            "waiting_requests",
            help,
            "lane",
            [("read", reads), ("write", writes)],
        );
        text.value("held_bytes", "Bytes in use for clients.", held);
        text.value(
            "held_bytes_limit",
            "Maximum number of bytes for clients.",
            meters.budget,
        );
        let help = "Responses to clients, by status.";
        text.family("responses_total", help, "status", meters.responses.counts());
        let help = "Time from the first byte of a request to its response.";
        text.histogram("request_duration_seconds", help, &meters.duration);
        let help = "Requests refused at the gate, or because the database could not be used or written, by code.";
        text.family("refusals_total", help, "code", &*lock(&meters.refusals));
        let help = "Requests that reached the service, by operation and status.";
        text.begin("requests_total", help);
        for (operation, statuses) in &meters.requests {
            for (status, count) in statuses.counts() {
                let labels = format!("{{operation=\"{operation}\",status=\"{status}\"}}");
                text.sample("requests_total", &labels, count);
            }
        }
        text.histogram(
            "write_batch_size",
            "Requests per batch of writes.",
            &meters.batch,
        );
        let help = "Duration of commits, with their flush to disk.";
        text.histogram("flush_duration_seconds", help, &meters.flush);
        text.value(
            "failed_writes_total",
            "Writes that failed.",
            meters.failed_writes.load(Relaxed),
        );
        let help = "Log lines that were dropped because nobody read them in time.";
        text.value("dropped_log_lines_total", help, DROPPED_LINES.load(Relaxed));
        text.process(
            "start_time_seconds",
            "When the service started: Unix time.",
            meters.started,
        );
    }
}

/// A counter for each status.
#[derive(Debug)]
struct Statuses(Box<[AtomicU64]>);

impl Default for Statuses {
    fn default() -> Self {
        Self((0..600).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Statuses {
    fn count(&self, status: u16) {
        if let Some(count) = self.0.get(usize::from(status)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Returns the statuses counted so far, and always 500 and 503: alerts watch them, and an alert only sees the first
    /// one as an increase if there was a 0 before
    /// (`prometheus.io/docs/practices/instrumentation/#avoid-missing-metrics`).
    fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.0.iter().map(|count| count.load(Relaxed)).enumerate();
        counts.filter(|(status, count)| *count > 0 || [500, 503].contains(status))
    }
}

/// Counts of values by size: one for each bound, and one for larger values.
#[derive(Debug)]
struct Histogram {
    /// The upper bounds, in the unit of the metric. A value divided by `scale` has this unit.
    bounds: &'static [f64],
    scale: f64,
    buckets: Vec<AtomicU64>,
    sum: AtomicU64,
}

impl Histogram {
    fn new(bounds: &'static [f64], scale: f64) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self {
            bounds,
            scale,
            buckets,
            sum: AtomicU64::new(0),
        }
    }

    fn observe(&self, value: u64) {
        let scaled = value as f64 / self.scale;
        let i = self.bounds.partition_point(|bound| *bound < scaled);
        self.buckets[i].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }
}

/// The text format. Labels need no escapes: this program chooses their values.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a counter, whose name says so, or a gauge.
    fn begin(&mut self, name: &str, help: &str) {
        let is_counter = name.ends_with("_total");
        self.head(name, if is_counter { "counter" } else { "gauge" }, help);
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to memory cannot fail.
        let _ = writeln!(
            self.0,
            "# HELP petstore_{name} {help}\n# TYPE petstore_{name} {kind}"
        );
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "petstore_{name}{labels} {value}");
    }

    /// Prints a metric with a value for each value of a label.
    pub fn family<L: Display, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (L, V)>,
    ) {
        self.begin(name, help);
        for (of, value) in values {
            self.sample(name, &format!("{{{label}=\"{of}\"}}"), value);
        }
    }

    /// Prints a gauge of the process, with the name that it has for every program
    /// (`prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics`).
    pub fn process(&mut self, name: &str, help: &str, value: impl Display) {
        let name = format!("process_{name}");
        let _ = writeln!(
            self.0,
            "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
        );
    }

    /// Prints a metric with one value.
    pub fn value(&mut self, name: &str, help: &str, value: impl Display) {
        self.begin(name, help);
        self.sample(name, "", value);
    }

    /// Prints a histogram. Each bucket includes those below it.
    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let bounds = histogram
            .bounds
            .iter()
            .map(f64::to_string)
            .chain(["+Inf".to_owned()]);
        let mut count = 0;
        for (bucket, bound) in histogram.buckets.iter().zip(bounds) {
            count += bucket.load(Relaxed);
            self.sample(
                &format!("{name}_bucket"),
                &format!("{{le=\"{bound}\"}}"),
                count,
            );
        }
        let sum = histogram.sum.load(Relaxed) as f64 / histogram.scale;
        self.sample(&format!("{name}_sum"), "", sum);
        self.sample(&format!("{name}_count"), "", count);
    }

    /// The whole text.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(metrics: &Metrics) -> String {
        let mut text = Exposition::default();
        metrics.print(&mut text);
        text.0
    }

    #[test]
    fn reported_events_are_printed() {
        let mut metrics = Metrics::watched(7);
        metrics.announce("listPets");
        metrics.handled("listPets", 200);
        metrics.handled("listPets", 200);
        metrics.answered(200, Duration::from_millis(3));
        metrics.answered(200, Duration::from_secs(11));
        metrics.refused("uri_too_long", 1);
        metrics.refused("overloaded", 0);
        metrics.committed(5, Duration::from_millis(1));
        metrics.undone(2);
        metrics.hold(|| Levels {
            connections: 3,
            reads: 1,
            writes: 2,
            held: 4,
        });
        note_dropped_log_lines(9);
        for _ in 0..2 {
            let text = printed(&metrics);
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
                "petstore_connections 3",
                "petstore_waiting_requests{lane=\"write\"} 2",
                "petstore_held_bytes 4",
                "petstore_held_bytes_limit 7",
                "petstore_dropped_log_lines_total 9",
            ] {
                assert!(text.lines().any(|found| found == line), "{line}: {text}");
            }
        }
    }

    #[test]
    fn bucket_holds_values_up_to_its_bound() {
        let histogram = Histogram::new(&[1.0, 2.0], 10.0);
        [10, 11, 20, 21]
            .iter()
            .for_each(|value| histogram.observe(*value));
        assert_eq!(
            [0, 1, 2].map(|i| histogram.buckets[i].load(Relaxed)),
            [1, 2, 1]
        );
    }

    #[test]
    fn nobody_watching_costs_nothing() {
        let metrics = Metrics::default();
        metrics.handled("listPets", 200);
        metrics.hold(|| panic!("nobody asks"));
        assert_eq!(printed(&metrics), "");
    }
}
