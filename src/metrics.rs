//! What is counted for whoever watches the service, in Prometheus' text format. Knows no other room: each
//! tells it what it sees.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus::{
    Encoder, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

/// Seconds, for what a client waits and what a disk takes.
const SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
/// Requests, up to the most in a batch.
const REQUESTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// Lines that the log could not take.
static DROPPED_LINES: AtomicU64 = AtomicU64::new(0);

/// Tells the metrics of lines that a logger had to drop.
pub fn note_dropped_log_lines(count: u64) {
    DROPPED_LINES.fetch_add(count, Ordering::Relaxed);
}

/// Where each room tells what it sees. Where nobody watches there is nothing behind it, and telling costs
/// nothing.
#[derive(Clone, Default)]
pub struct Metrics(Option<Arc<Meters>>);

struct Meters {
    registry: Registry,
    requests: IntCounterVec,
    responses: IntCounterVec,
    duration: Histogram,
    refusals: IntCounterVec,
    batch: Histogram,
    flush: Histogram,
    failed_writes: IntCounter,
    connections: IntGauge,
    waiting: IntGaugeVec,
    held: IntGauge,
    dropped_lines: IntCounter,
    sizes: IntGaugeVec,
    free_bytes: IntGauge,
    key_expiry: IntGauge,
}

/// What the gate holds at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Levels {
    /// Connections of clients.
    pub connections: usize,
    /// Requests that wait for a lane for reading, and for the one for writing.
    pub reads: usize,
    pub writes: usize,
    /// Bytes held for clients.
    pub held: usize,
}

/// What is looked at when somebody asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Bytes of the database, of its write-ahead log, and free on its disk.
    pub database: u64,
    pub log: u64,
    pub free: u64,
    /// When the first of the valid keys expires: Unix time, seconds.
    pub key_expiry: Option<i64>,
}

impl Metrics {
    /// Meters that count from now on; `budget` is the most bytes held for clients.
    ///
    /// # Errors
    /// Where two meters have one name, which no table here leads to.
    pub fn watched(budget: usize) -> prometheus::Result<Self> {
        let registry = Registry::new_custom(Some("petstore".to_owned()), None)?;
        let counters = |name, help, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counters.clone()))?;
            prometheus::Result::Ok(counters)
        };
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            prometheus::Result::Ok(counter)
        };
        let gauges = |name, help, labels: &[&str]| {
            let gauges = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauges.clone()))?;
            prometheus::Result::Ok(gauges)
        };
        let gauge = |name: &str, help: &str| {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            prometheus::Result::Ok(gauge)
        };
        let histogram = |name, help, buckets: &[f64]| {
            let histogram = Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))?;
            registry.register(Box::new(histogram.clone()))?;
            prometheus::Result::Ok(histogram)
        };
        gauges("build_info", "Always 1; the label says which version runs.", &["version"])?
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        gauge("held_bytes_limit", "The most bytes held for clients.")?.set(to_i64(budget));
        Ok(Self(Some(Arc::new(Meters {
            requests: counters(
                "requests_total",
                "Requests that reached the service, by operation and status.",
                &["operation", "status"],
            )?,
            responses: counters("responses_total", "Responses to clients, by status.", &["status"])?,
            duration: histogram(
                "request_duration_seconds",
                "From the first byte of a request to its response.",
                SECONDS,
            )?,
            refusals: counters("refusals_total", "Requests refused at the gate, by code.", &["code"])?,
            batch: histogram("write_batch_size", "Requests in a batch of the writer.", REQUESTS)?,
            flush: histogram("flush_duration_seconds", "Commits with their flush of the disk.", SECONDS)?,
            failed_writes: counter("failed_writes_total", "Writes that were undone, or never begun.")?,
            connections: gauge("connections", "Connections of clients.")?,
            waiting: gauges("waiting_requests", "Requests that wait for a lane, by its kind.", &["lane"])?,
            held: gauge("held_bytes", "Bytes held for clients.")?,
            dropped_lines: counter("dropped_log_lines_total", "Log lines that nobody took in time.")?,
            sizes: gauges("file_bytes", "Bytes of the database and its write-ahead log.", &["file"])?,
            free_bytes: gauge("disk_free_bytes", "Bytes that the service may still write to the disk.")?,
            key_expiry: gauge(
                "earliest_key_expiry_timestamp_seconds",
                "When the first of the valid keys expires: Unix time; 0: none does.",
            )?,
            registry,
        }))))
    }

    /// The service has answered so many requests. With 0 the counter is there from now on, so that its first count
    /// is seen as an increase (`prometheus.io/docs/practices/instrumentation/#avoid-missing-metrics`).
    pub fn handled(&self, operation: &str, status: u16, count: u64) {
        if let Some(meters) = &self.0 {
            let mut number = itoa::Buffer::new();
            meters.requests.with_label_values(&[operation, number.format(status)]).inc_by(count);
        }
    }

    /// The gate has a response for a client.
    pub fn answered(&self, status: u16, duration: Duration) {
        self.responses(status, 1);
        if let Some(meters) = &self.0 {
            meters.duration.observe(duration.as_secs_f64());
        }
    }

    /// The gate has so many responses with this status. With 0 the counter is there from now on.
    pub fn responses(&self, status: u16, count: u64) {
        if let Some(meters) = &self.0 {
            meters.responses.with_label_values(&[itoa::Buffer::new().format(status)]).inc_by(count);
        }
    }

    /// The gate has refused so many requests by itself. With 0 the counter is there from now on.
    pub fn refused(&self, code: &str, count: u64) {
        if let Some(meters) = &self.0 {
            meters.refusals.with_label_values(&[code]).inc_by(count);
        }
    }

    /// The writer has ended a batch of so many requests; its commit took so long.
    pub fn committed(&self, requests: usize, flush: Duration) {
        if let Some(meters) = &self.0 {
            meters.batch.observe(to_f64(requests));
            meters.flush.observe(flush.as_secs_f64());
        }
    }

    /// So many writes failed and were undone.
    pub fn undone(&self, writes: usize) {
        if let Some(meters) = &self.0 {
            meters.failed_writes.inc_by(u64::try_from(writes).unwrap_or_default());
        }
    }

    /// What the gate holds just now.
    pub fn hold(&self, levels: impl FnOnce() -> Levels) {
        if let Some(meters) = &self.0 {
            let levels = levels();
            meters.connections.set(to_i64(levels.connections));
            meters.waiting.with_label_values(&["read"]).set(to_i64(levels.reads));
            meters.waiting.with_label_values(&["write"]).set(to_i64(levels.writes));
            meters.held.set(to_i64(levels.held));
        }
    }

    /// All of it, in the text format (version 0.0.4); empty where nothing is counted.
    pub fn print(&self, now: Now) -> Vec<u8> {
        let mut text = Vec::new();
        if let Some(meters) = &self.0 {
            let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            meters.sizes.with_label_values(&["database"]).set(bytes(now.database));
            meters.sizes.with_label_values(&["wal"]).set(bytes(now.log));
            meters.free_bytes.set(bytes(now.free));
            meters.key_expiry.set(now.key_expiry.unwrap_or_default());
            let dropped = DROPPED_LINES.load(Ordering::Relaxed);
            meters.dropped_lines.inc_by(dropped.saturating_sub(meters.dropped_lines.get()));
            // Writing to memory cannot fail.
            let _ = TextEncoder::new().encode(&meters.registry.gather(), &mut text);
        }
        text
    }
}

fn to_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn to_f64(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::MAX, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_printed() {
        let metrics = Metrics::watched(7).unwrap();
        metrics.handled("listPets", 200, 1);
        metrics.handled("listPets", 200, 1);
        metrics.handled("listPets", 503, 0);
        metrics.answered(200, Duration::from_millis(3));
        metrics.responses(503, 0);
        metrics.refused("uri_too_long", 1);
        metrics.refused("overloaded", 0);
        metrics.committed(5, Duration::from_millis(1));
        metrics.undone(2);
        metrics.hold(|| Levels { connections: 3, reads: 1, writes: 2, held: 4 });
        note_dropped_log_lines(9);
        let now = Now { database: 10, log: 11, free: 12, key_expiry: Some(13) };
        for _ in 0..2 {
            let text = String::from_utf8(metrics.print(now)).unwrap();
            for line in [
                "petstore_requests_total{operation=\"listPets\",status=\"200\"} 2",
                "petstore_requests_total{operation=\"listPets\",status=\"503\"} 0",
                "petstore_responses_total{status=\"200\"} 1",
                "petstore_responses_total{status=\"503\"} 0",
                "petstore_refusals_total{code=\"overloaded\"} 0",
                "petstore_request_duration_seconds_bucket{le=\"0.005\"} 1",
                "petstore_refusals_total{code=\"uri_too_long\"} 1",
                "petstore_write_batch_size_bucket{le=\"8\"} 1",
                "petstore_flush_duration_seconds_count 1",
                "petstore_failed_writes_total 2",
                "petstore_connections 3",
                "petstore_waiting_requests{lane=\"write\"} 2",
                "petstore_held_bytes 4",
                "petstore_held_bytes_limit 7",
                "petstore_dropped_log_lines_total 9",
                "petstore_file_bytes{file=\"wal\"} 11",
                "petstore_disk_free_bytes 12",
                "petstore_earliest_key_expiry_timestamp_seconds 13",
                "petstore_build_info{version=\"1.0.0\"} 1",
            ] {
                assert!(text.lines().any(|found| found == line), "{line}: {text}");
            }
        }
    }

    #[test]
    fn nobody_watching_costs_nothing() {
        let metrics = Metrics::default();
        metrics.handled("listPets", 200, 1);
        metrics.hold(|| panic!("nobody asks"));
        assert_eq!(metrics.print(Now::default()), b"");
    }
}
