//! What the system allows the process (`ulimit`).

use petstore::{Error, ErrorKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit, and returns it.
pub fn raise_open_files() -> Result<usize, Error> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).map_err(|error| {
        let line = format!("cannot raise the limit of open files (ulimit -n): {error}");
        Error::new(ErrorKind::Resources, line).caused_by(error)
    })?;
    Ok(maximum.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX))
}
