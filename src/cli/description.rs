//! `petstore openapi`.

use super::command::{Call, Command, Done, Takes};
use super::output::print;

pub const COMMANDS: &[Command] = &[Command {
    name: "openapi",
    operands: &[],
    flags: &[],
    takes: Takes::Only(&["base-url", "staging-url"]),
    about: "print the interface description (OpenAPI 3.1)",
    run: |call: &Call| -> Done { Ok(print(&petstore::openapi(&call.config))?) },
}];
