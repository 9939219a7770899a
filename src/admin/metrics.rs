//! `GET /metrics`: the counters, and what is looked at when somebody asks: sizes, keys and domains.

use std::fs::{self, Metadata};
use std::time::UNIX_EPOCH;

use rustix::system::uname;

use super::{AdminContext, Call, Handler, Operation};
use crate::clock::unix_time;
use crate::endpoint::Failure;
use crate::http::host::{is_address, without_port};
use crate::http::{ApiError, Code, Response};
use crate::keys::last_expiries;
use crate::maintenance::last_backup;
use crate::metrics::{Host, LastBackup, Now};
use crate::model::DomainState;
use crate::store::{HostMeter, log_of, meters};

/// The text format of Prometheus (`prometheus.io/docs/instrumenting/exposition_formats`).
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub static OPERATIONS: &[Operation] =
    &[Operation { headers: &[HOST], ..Operation::new("/metrics", "getMetrics", Handler("GET", get)) }];

const HOST: &str = "Host";
/// For so long after a key without a successor has expired, its expiry is still the metric: its clients fail just then,
/// and the alert must not end. Seconds.
const SHOWN_AFTER_EXPIRY: i64 = 7 * 24 * 3600;

fn get(context: &mut AdminContext, call: &Call) -> Result<Response, Failure> {
    let machine = uname();
    let machine = machine.nodename().to_str().unwrap_or_default();
    if !call.header_values(HOST).all(|host| is_own(without_port(host), machine)) {
        let message =
            "Metrics are served at IP addresses, localhost, this machine's name, and names without a dot.";
        return Err(ApiError::with_message(Code::MisdirectedRequest, message).into());
    }
    let now = now(context);
    Ok(Response::new(200, context.metrics.print(now)).header("Content-Type", TEXT_FORMAT))
}

/// Whether a host is this machine, whose name may be followed by its domain. A page of another site that makes its own
/// name resolve to this address (DNS rebinding) needs a name with a dot.
fn is_own(host: &str, machine: &str) -> bool {
    let first = host.split('.').next().unwrap_or_default();
    is_address(host)
        || !host.contains('.')
        || first.eq_ignore_ascii_case(machine.split('.').next().unwrap_or_default())
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
    let expiries = last_expiries(&keys).map(|(_, at)| at).filter(|at| *at > seconds - SHOWN_AFTER_EXPIRY);
    let domains = context.store.domains().unwrap_or_default();
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
        hosts: meters(&context.database).into_iter().map(host).collect(),
    }
}

fn host(meter: HostMeter) -> Host {
    let HostMeter { host, requests, failures, duration } = meter;
    Host { host, requests, failures, seconds: duration.as_secs_f64() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_has_addresses_a_name_and_names_without_a_dot() {
        for host in ["127.0.0.1", "[::1]", "localhost", "petstore", "db7", "DB7.prod.example.net", ""] {
            assert!(is_own(host, "db7.prod.example.net"), "{host}");
        }
        for host in ["evil.example", "db7x.example.net", "127.0.0.1.evil.example"] {
            assert!(!is_own(host, "db7"), "{host}");
        }
    }
}
