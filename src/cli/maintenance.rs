//! `petstore backup`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use petstore::{Error, Progress};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use super::command::{Call, Command, Count, DATABASE, Done, Operand};
use super::print;
use super::progress::Bar;

pub const COMMANDS: &[Command] = &[Command {
    name: "backup",
    operands: &[Operand { name: "FILE", count: Count::One }],
    flags: &[],
    settings: DATABASE,
    about: "copy the database into a new file; the service may run",
    run: backup,
}];

fn backup(call: &Call) -> Done {
    let file = call.operand(0);
    let size = watched(|on_progress| petstore::backup(&call.config.database, file.as_ref(), on_progress))?;
    Ok(print(&format!("{file} is complete: {size} bytes\n"))?)
}

/// Does a work that shows how far it is and that a signal ends before its time. A second signal ends it at once.
fn watched<T>(
    work: impl FnOnce(&mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<T, Error>,
) -> Result<T, Error> {
    let is_ending = Arc::new(AtomicBool::new(false));
    let watch = || {
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            flag::register_conditional_default(signal, Arc::clone(&is_ending))?;
            flag::register(signal, Arc::clone(&is_ending))?;
        }
        // A file that may not grow further (ulimit -f) is a failed write.
        flag::register(SIGXFSZ, Arc::default())
    };
    watch().map_err(|error| format!("cannot watch signals: {error}"))?;
    let mut bar = Bar::new();
    work(&mut |progress| {
        bar.show(progress);
        if is_ending.load(Ordering::SeqCst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}
