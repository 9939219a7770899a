//! `petstore openapi`.

use super::command::{Call, Command, Done, Takes};
use super::output::print;

pub const COMMANDS: &[Command] = &[Command {
    takes: Takes::Only(&["base-url", "staging-url"]),
    ..Command::new("openapi", "", "print the OpenAPI description", run)
}];

fn run(call: &Call) -> Done {
    Ok(print(&petstore::openapi(&call.config))?)
}
