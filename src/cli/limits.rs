//! What the system allows the process (`ulimit`).

use petstore::{Error, ErrorKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const MIB: u64 = 1024 * 1024;
/// The address space that a service needs, and each worker in addition. Nearly all of it is only reserved: 1 GiB by
/// mimalloc, and 64 MiB by glibc for each thread, but nothing by musl.
const RESERVED: (u64, u64) =
    if cfg!(target_env = "musl") { (1344 * MIB, 16 * MIB) } else { (3072 * MIB, 256 * MIB) };
/// What it needs if these variables keep both from reserving so much.
const USED: (u64, u64) = (320 * MIB, 16 * MIB);
const FRUGAL: [&str; 2] = ["MALLOC_ARENA_MAX", "MIMALLOC_ARENA_RESERVE"];

/// Refuses a limit of the address space that the service could meet at any time: an allocation that fails ends the
/// process, and a thread that is missing leaves requests without a response.
///
/// # Errors
/// [`ErrorKind::Resources`].
pub fn check_address_space(workers: usize) -> Result<(), Error> {
    let Some(limit) = getrlimit(Resource::As).current else { return Ok(()) };
    let need = |(whole, each): (u64, u64)| whole + each * u64::try_from(workers).unwrap_or_default();
    let is_frugal = FRUGAL.iter().all(|name| std::env::var_os(name).is_some());
    if limit >= need(if is_frugal { USED } else { RESERVED }) {
        return Ok(());
    }
    let [limit, reserved, used] = [limit, need(RESERVED), need(USED)].map(|bytes| bytes.div_ceil(MIB));
    let message = format!(
        "the process may have too little address space (ulimit -v): {limit} MiB, and {reserved} MiB are needed, \
         or {used} MiB with MALLOC_ARENA_MAX=1 and MIMALLOC_ARENA_RESERVE=1 in the environment"
    );
    Err(Error::new(ErrorKind::Resources, message))
}

/// Raises the soft limit of open files to the hard limit, and returns it.
pub fn raise_open_files() -> Result<usize, Error> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).map_err(|error| {
        let line = format!("cannot raise the limit of open files (ulimit -n): {error}");
        Error::new(ErrorKind::Resources, line).caused_by(error)
    })?;
    Ok(maximum.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX))
}
