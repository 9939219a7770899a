//! `GET /metrics`: the counters, and what is looked at when somebody asks: sizes, keys and domains.

use std::fs;
use std::path::PathBuf;

use super::{AdminContext, Call, Handler, Operation};
use crate::clock::unix_time;
use crate::endpoint::Failure;
use crate::http::Response;
use crate::keys::last_expiries;
use crate::maintenance::last_backup;
use crate::metrics::{LastBackup, Now};
use crate::model::DomainState;
use crate::store::log_of;

/// The text format of Prometheus (`prometheus.io/docs/instrumenting/exposition_formats`).
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub static OPERATIONS: &[Operation] = &[Operation::new("/metrics", "getMetrics", Handler("GET", get))];

fn get(context: &mut AdminContext, _: &Call) -> Result<Response, Failure> {
    Ok(Response::new(200, context.metrics.print(now(context))).header("Content-Type", TEXT_FORMAT))
}

fn now(context: &AdminContext) -> Now {
    let bytes = |path: PathBuf| fs::metadata(path).map_or(0, |file| file.len());
    let disk = rustix::fs::statvfs(&context.database);
    let seconds = unix_time();
    let (blocks, free, size) = disk.map_or((0, 0, 0), |disk| (disk.f_blocks, disk.f_bavail, disk.f_frsize));
    // If the database cannot be read, /readyz reports why.
    let keys = context.store.keys().unwrap_or_default();
    let expiries = last_expiries(&keys).map(|(_, at)| at).filter(|at| *at > seconds);
    let domains = context.store.project().and_then(|project| project.domains()).unwrap_or_default();
    let states: Vec<DomainState> = domains.into_iter().map(|domain| domain.at(seconds).state).collect();
    let counted = |state: &DomainState| (state.as_str(), states.iter().filter(|is| *is == state).count());
    Now {
        database: bytes(context.database.clone()),
        log: bytes(log_of(&context.database)),
        disk: blocks.saturating_mul(size),
        free: free.saturating_mul(size),
        backup: last_backup(&context.database).map(|note| LastBackup {
            at: note.unix_time,
            pets: note.pets,
            is_sound: note.is_sound,
        }),
        key_expiry: expiries.min(),
        domains: DomainState::ALL.iter().map(counted).collect(),
    }
}
