//! `petstore pet …`: what the HTTP interface leaves to the operator.

use super::command::{Command, CommandError, CommandResult, Invocation};
use super::output::{print, report};

pub const COMMANDS: &[Command] = &[
    Command::new("pet status", "ID STATUS", "make a pet available, pending or sold; print it", set_status),
    Command::new("pet delete", "ID...", "delete pets: all of these or none", delete),
];

fn set_status(call: &Invocation) -> CommandResult {
    let status = call.operand(1);
    let status = status.parse().map_err(|expected| CommandError::wrong("STATUS", expected, status))?;
    let pet = petstore::set_status(&call.config.database, id(call.operand(0))?, status)?;
    Ok(print(&format!("{pet}\n"))?)
}

fn delete(call: &Invocation) -> CommandResult {
    let ids = call.operands.iter().map(|word| id(word)).collect::<Result<Vec<_>, _>>()?;
    let count = petstore::delete_pets(&call.config.database, &ids)?;
    report(&format!("deleted {count}\n"));
    Ok(())
}

fn id(word: &str) -> Result<i64, CommandError> {
    word.parse().map_err(|_| CommandError::wrong("ID", "the id of a pet", word))
}
