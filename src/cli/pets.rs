//! `petstore pet …`: what the HTTP interface leaves to the operator.

use super::command::{Call, Command, Count, DATABASE, Done, Failure, Operand};
use super::output::print;

const ID: Operand = Operand { name: "ID", count: Count::One };
const STATUS: Operand = Operand { name: "STATUS", count: Count::One };

pub const COMMANDS: &[Command] = &[
    Command {
        name: "pet status",
        operands: &[ID, STATUS],
        flags: &[],
        takes: DATABASE,
        about: "set the status of a pet to available, pending or sold, and print the pet",
        run: set_status,
    },
    Command {
        name: "pet delete",
        operands: &[Operand { count: Count::Many, ..ID }],
        flags: &[],
        takes: DATABASE,
        about: "delete pets, all of these or none",
        run: delete,
    },
];

fn set_status(call: &Call) -> Done {
    let status = call.operand(1);
    let status = status
        .parse()
        .map_err(|expected| Failure::Usage(format!("STATUS must be {expected}, not '{status}'")))?;
    let pet = petstore::set_status(&call.config.database, id(call.operand(0))?, status)?;
    Ok(print(&format!("{pet}\n"))?)
}

fn delete(call: &Call) -> Done {
    let ids = call.operands.iter().map(|word| id(word)).collect::<Result<Vec<_>, _>>()?;
    let count = petstore::delete_pets(&call.config.database, &ids)?;
    Ok(print(&format!("deleted {count}\n"))?)
}

fn id(word: &str) -> Result<i64, Failure> {
    word.parse().map_err(|_| Failure::Usage(format!("ID must be the number of a pet, not '{word}'")))
}
