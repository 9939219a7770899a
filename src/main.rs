//! The executable: the allocator and the command line. Built with the feature `cli`.

use std::process::ExitCode;

/// For the executable only: a program that embeds the library chooses its own allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    petstore::main()
}
