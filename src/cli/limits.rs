//! What the system allows the process (`ulimit`).

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

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

/// Makes the process get by with the limit of its address space (`ulimit -v`). If the limit leaves room for what a
/// service uses, but not for what the allocators reserve, the program starts again in the same process and tells them:
/// they read the environment only at the start. `exec` keeps the process id and the sockets that were passed.
///
/// # Errors
/// [`ErrorKind::Resources`] if a service could meet the limit at any time: an allocation that fails ends the process,
/// and a thread that is missing leaves requests without a response.
pub fn fit_address_space(workers: usize) -> Result<(), Error> {
    let Some(limit) = getrlimit(Resource::As).current else { return Ok(()) };
    let need = |(whole, each): (u64, u64)| whole + each * u64::try_from(workers).unwrap_or_default();
    if limit >= need(RESERVED) {
        return Ok(());
    }
    if limit < need(USED) {
        let [limit, used] = [limit, need(USED)].map(|bytes| bytes.div_ceil(MIB));
        let message = format!(
            "the address space is limited to {limit} MiB (ulimit -v), and the service needs {used} MiB"
        );
        return Err(Error::new(ErrorKind::Resources, message));
    }
    let missing: Vec<&str> = FRUGAL.into_iter().filter(|name| env::var_os(name).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let again = |program| {
        let mut words = env::args_os();
        let name = words.next().unwrap_or_else(|| "petstore".into());
        Command::new(program).arg0(name).args(words).envs(missing.iter().map(|name| (name, "1"))).exec()
    };
    let error = env::current_exe().map_or_else(|error| error, again);
    let set = missing.join("=1 and ");
    Err(Error::io(format!("the address space is limited (ulimit -v), and {set}=1 cannot be set"), error))
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
