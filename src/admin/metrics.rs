//! `GET /metrics`: the counters, and gauges of files, backups, keys and domains that are read at each request.

use std::fs;
use std::path::Path;

use rustix::system::uname;

use super::{AdminContext, LastCounts};
use crate::app::endpoint::Failure;
use crate::ops::keys::last_expiries;
use crate::ops::maintenance::last_backup;
use crate::store::cluster::meters;
use crate::store::{StoreError, log_of};
use petstore_base::clock::unix_time;
use petstore_base::files::bytes_after;
use petstore_base::http::{Request, Response, Target};
use petstore_base::metrics::Exposition;
use petstore_hosting::{DomainState, ProjectReads};

/// The text format of Prometheus (`prometheus.io/docs/instrumenting/exposition_formats`).
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The path of the metrics.
pub const PATH: &str = "/metrics";

/// How long the metric shows the expiry of a key without a successor after it has passed, in seconds. Its clients fail
/// from then on, so the alert must not end at once.
const SHOWN_AFTER_EXPIRY: i64 = 7 * 24 * 3600;

pub fn get(context: &mut AdminContext, _: &Request, _: &Target) -> Result<Response, Failure> {
    let mut text = Exposition::default();
    print(context, &mut text);
    print_process(&mut text);
    context.metrics.print(&mut text);
    Ok(Response::new(200, text.into_bytes()).header("Content-Type", TEXT_FORMAT))
}

/// Returns whether a request for this host gets the metrics because the host is the name of this machine, with or
/// without its domain.
pub fn is_served_at(host: &str, target: &Target) -> bool {
    let machine = uname();
    let first = |name: &str| {
        name.split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    target.path == PATH && first(host) == first(machine.nodename().to_str().unwrap_or_default())
}

/// Prints the gauges.
fn print(context: &AdminContext, text: &mut Exposition) {
    let version = [(env!("CARGO_PKG_VERSION"), 1)];
    let help = "Always 1; the label has the version of the service.";
    text.family("build_info", help, "version", version);
    text.value(
        "read_only",
        "1 if the service is read-only, else 0.",
        u8::from(context.read_only),
    );
    let hosts = meters(&context.database);
    if hosts.is_empty() {
        print_files(&context.database, text);
    } else {
        let help = "Requests to a host of the cluster.";
        let requests = hosts.iter().map(|host| (&host.host, host.requests));
        text.family("cluster_requests_total", help, "host", requests);
        let help = "Requests that a host of the cluster did not answer.";
        let failures = hosts.iter().map(|host| (&host.host, host.failures));
        text.family("cluster_failures_total", help, "host", failures);
        let help = "Time that a host of the cluster took to answer.";
        let seconds = hosts
            .iter()
            .map(|host| (&host.host, host.duration.as_secs_f64()));
        text.family("cluster_seconds_total", help, "host", seconds);
    }
    if let Some(note) = last_backup(&context.database) {
        let help = "Whether the check of the last dated backup found it sound: 1, or 0 if not.";
        text.value("last_backup_checked", help, u8::from(note.is_sound));
        text.value(
            "last_backup_pets",
            "Pets in the last sound dated backup.",
            note.pets,
        );
        let help = "When the last sound dated backup was made: Unix time; 0: never.";
        text.value("last_backup_timestamp_seconds", help, note.unix_time);
    }
    let now = unix_time();
    // If the database cannot be read, /readyz reports the cause.
    let note = |error: &StoreError| _ = context.damage.note(error);
    if let Some(counted) = context.counts.as_ref().and_then(LastCounts::read) {
        let help = "Pets in the inventory, by status, when they were last counted.";
        text.family("pets", help, "status", counted.counts.by_word());
        let help = "Time since petstore_pets was exact.";
        text.value("pets_age_seconds", help, counted.age().as_secs_f64());
    }
    (context.refresh)();
    let keys = context.store.keys().inspect_err(note).unwrap_or_default();
    let expiries = last_expiries(&keys)
        .map(|(_, at)| at)
        .filter(|at| *at > now - SHOWN_AFTER_EXPIRY);
    let help = "When the first key without a successor expires, or did in the last week: Unix time; 0: none.";
    text.value(
        "earliest_key_expiry_timestamp_seconds",
        help,
        expiries.min().unwrap_or_default(),
    );
    let domains = context
        .store
        .domains()
        .map_err(StoreError::of_hosting)
        .inspect_err(note)
        .unwrap_or_default();
    let states: Vec<DomainState> = domains
        .into_iter()
        .map(|domain| domain.at(now).state)
        .collect();
    let counted = |state: &DomainState| {
        (
            state.as_str(),
            states.iter().filter(|is| *is == state).count(),
        )
    };
    let counts = DomainState::ALL.iter().map(counted);
    text.family(
        "domains",
        "Custom domains of the project, by state.",
        "state",
        counts,
    );
    let help = "1 if the service has met damage in its database since it started, else 0.";
    text.value(
        "database_damaged",
        help,
        u8::from(context.damage.found().is_err()),
    );
}

/// Prints the memory and the open files of the process; nothing without `/proc`.
fn print_process(text: &mut Exposition) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(bytes) = bytes_after("VmRSS:", &status) {
        let help = "Resident memory of the process.";
        text.process("resident_memory_bytes", help, bytes);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // Without the descriptor that reads the folder.
        text.process(
            "open_fds",
            "Open file descriptors of the process.",
            open.count().saturating_sub(1),
        );
    }
}

/// Prints the sizes of the database, its write-ahead log and their disk, in bytes.
fn print_files(database: &Path, text: &mut Exposition) {
    let length = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let files = [
        ("database", length(database)),
        ("wal", length(&log_of(database))),
    ];
    text.family(
        "file_bytes",
        "Bytes of the database and its write-ahead log.",
        "file",
        files,
    );
    let (free, size) = rustix::fs::statvfs(database).map_or((0, 0), |disk| {
        (
            disk.f_bavail.saturating_mul(disk.f_frsize),
            disk.f_blocks.saturating_mul(disk.f_frsize),
        )
    });
    text.value(
        "disk_free_bytes",
        "Free bytes on the disk that the service can use.",
        free,
    );
    text.value("disk_size_bytes", "Bytes of the disk.", size);
}
