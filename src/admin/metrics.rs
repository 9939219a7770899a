//! `GET /metrics`: the counters, and what is looked at when somebody asks: sizes, keys and domains.

use std::fs::{self, Metadata};
use std::time::UNIX_EPOCH;

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
    let now = now(context);
    Ok(Response::new(200, context.metrics.print(now)).header("Content-Type", TEXT_FORMAT))
}

fn now(context: &mut AdminContext) -> Now {
    let files = [context.database.clone(), log_of(&context.database)].map(|path| fs::metadata(path).ok());
    let [database, log] = files.each_ref().map(|file| file.as_ref().map_or(0, Metadata::len));
    let disk = rustix::fs::statvfs(&context.database);
    let seconds = unix_time();
    let (blocks, free, size) = disk.map_or((0, 0, 0), |disk| (disk.f_blocks, disk.f_bavail, disk.f_frsize));
    let newest = newest_pet(context, files.iter().flatten());
    // If the database cannot be read, /readyz reports why.
    let keys = context.store.keys().unwrap_or_default();
    let expiries = last_expiries(&keys).map(|(_, at)| at).filter(|at| *at > seconds);
    let domains = context.store.project().and_then(|project| project.domains()).unwrap_or_default();
    let states: Vec<DomainState> = domains.into_iter().map(|domain| domain.at(seconds).state).collect();
    let counted = |state: &DomainState| (state.as_str(), states.iter().filter(|is| *is == state).count());
    Now {
        database,
        log,
        disk: blocks.saturating_mul(size),
        free: free.saturating_mul(size),
        backup: last_backup(&context.database).map(|note| LastBackup {
            at: note.unix_time,
            pets: note.pets,
            is_sound: note.is_sound,
        }),
        key_expiry: expiries.min(),
        domains: DomainState::ALL.iter().map(counted).collect(),
        newest_pet_age: newest.map(|at| (seconds - at).max(0)),
        read_only: context.read_only,
    }
}

/// When the newest pet had come at the latest: when the files had last been written as its id was first seen.
fn newest_pet<'a>(context: &mut AdminContext, files: impl Iterator<Item = &'a Metadata>) -> Option<i64> {
    let id = context.store.last_id().ok().filter(|id| *id > 0)?;
    if let Some((known, at)) = context.newest
        && known == id
    {
        return Some(at);
    }
    // SQLite also makes an empty log for a connection that only reads.
    let written = files.filter(|file| file.len() > 0);
    let written = written.filter_map(|file| file.modified().ok()?.duration_since(UNIX_EPOCH).ok()).max()?;
    let at = i64::try_from(written.as_secs()).ok()?;
    context.newest = Some((id, at));
    Some(at)
}
