//! `petstore openapi`.

use super::command::{Call, Command, Done, Settings};
use super::print;

pub const COMMANDS: &[Command] = &[Command {
    name: "openapi",
    operands: &[],
    flags: &[],
    settings: Settings::Only(&["base-url", "staging-url"]),
    about: "print the interface description (OpenAPI 3.1)",
    run: |call: &Call| -> Done { Ok(print(&petstore::openapi(&call.config))?) },
}];
