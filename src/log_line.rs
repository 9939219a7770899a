//! The threads of a server, and log lines that say which server they are of: in a program that runs several, each has a
//! name, [`Config::log_name`](crate::Config::log_name), which precedes its lines. Knows nothing of what they are about.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::error::Error;

thread_local! {
    /// The server that this thread works for, if that has a name.
    static SERVER: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// While it lives, this thread works for a server of this name.
pub struct WorksFor(Option<Arc<str>>);

impl WorksFor {
    pub fn new(name: Option<&str>) -> Self {
        Self(SERVER.replace(name.map(Arc::from)))
    }
}

impl Drop for WorksFor {
    fn drop(&mut self) {
        SERVER.set(self.0.take());
    }
}

/// Starts a thread that works for the same server as this one.
///
/// # Errors
/// [`ErrorKind::Resources`](crate::ErrorKind::Resources) if the system allows no more.
pub fn start<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Error> {
    let server = SERVER.with_borrow(Clone::clone);
    let work = move || {
        SERVER.set(server);
        work()
    };
    std::thread::Builder::new().name(name.into()).spawn(work).map_err(Error::no_thread)
}

/// What precedes a log line of this thread: the name of its server and a colon, or nothing.
pub struct OfServer;

impl fmt::Display for OfServer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        SERVER.with_borrow(|name| name.iter().try_for_each(|name| write!(f, "{name}: ")))
    }
}

/// Logs a line, as the macros of the crate `log` do, with the name of the server before it.
macro_rules! log_line {
    ($level:ident, target: $target:expr, $($text:tt)+) => {
        log::$level!(target: $target, "{}{}", $crate::log_line::OfServer, format_args!($($text)+))
    };
    ($level:ident, $($text:tt)+) => {
        log::$level!("{}{}", $crate::log_line::OfServer, format_args!($($text)+))
    };
}

pub(crate) use log_line;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_thread_name_the_server_that_it_works_for() {
        let named = || OfServer.to_string();
        assert_eq!(named(), "");
        let one = WorksFor::new(Some("one"));
        assert_eq!(start("of one", named).unwrap().join().unwrap(), "one: ");
        let two = WorksFor::new(Some("two"));
        assert_eq!(named(), "two: ");
        drop(two);
        assert_eq!(named(), "one: ");
        drop(one);
        assert_eq!(named(), "");
    }
}
