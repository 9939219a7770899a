//! The command line: parse, call the library, print, exit code. Made with the feature `cli`.

mod cli;

use std::process::ExitCode;

use cli::args::{self, Wish};
use cli::command::Failure;
use cli::help;

/// For the executable only: who embeds the library chooses for themselves.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let wish = args::parse(lexopt::Parser::from_env(), |variable| std::env::var_os(variable));
    let done = match wish {
        Ok(Wish::Help(words)) => cli::print(&help::text(&words)).map_err(Failure::from),
        Ok(Wish::Version) => {
            cli::print(concat!("petstore ", env!("CARGO_PKG_VERSION"), "\n")).map_err(Failure::from)
        }
        Ok(Wish::Run(command, call)) => (command.run)(&call),
        Err(line) => Err(Failure::Usage(line)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(line)) => cli::fail(2, &format!("{line} (petstore --help says what there is)")),
        Err(Failure::Failed(error)) => cli::fail(1, &error.to_string()),
    }
}
