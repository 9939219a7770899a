//! The command line: parse, call the library, print, exit code. Made with the feature `cli`.

mod cli;

use std::process::ExitCode;

use cli::args::{self, Command};

/// For the executable only: who embeds the library chooses for themselves.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = match args::parse(lexopt::Parser::from_env(), |variable| std::env::var_os(variable)) {
        Ok(command) => command,
        Err(line) => return cli::fail(2, &format!("{line} (petstore --help says what there is)")),
    };
    let done = match command {
        Command::Help => cli::print(&args::help()),
        Command::Version => cli::print(concat!("petstore ", env!("CARGO_PKG_VERSION"), "\n")),
        Command::OpenApi(config) => cli::print(&petstore::openapi(&config)),
        Command::Serve(config) => cli::serve::run(*config),
        Command::Key(database, action) => cli::keys::run(&database, action),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => cli::fail(1, &error.to_string()),
    }
}
