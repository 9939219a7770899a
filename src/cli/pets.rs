//! `petstore pet …`: changes pets, without a service.

use petstore::{Inventory, PetPatch, PetStatus};

use super::command::{Command, CommandError, CommandResult, Flag, Invocation, usage};
use super::output::{existing, print, report};

pub const COMMANDS: &[Command] = &[
    Command {
        flags: &[
            Flag::with("name", "TEXT", "the new name"),
            Flag::with("category", "ID", "the new category"),
            Flag::with("status", "STATUS", STATUS),
        ],
        ..Command::new("pet set", "ID", "change a pet, and print it", set)
    },
    Command::new(
        "pet status",
        "ID... STATUS",
        "set the status of pets, all of them or none, and print them",
        set_status,
    ),
    Command::new("pet delete", "ID...", "delete pets, all of them or none", delete),
];

const STATUS: &str = "the new status: available, pending or sold, or none to remove it";

fn set(call: &Invocation) -> CommandResult {
    let mut patch = PetPatch::new();
    patch.name = call.flag("name").map(str::to_owned);
    patch.category_id = call.read("category", "a 64-bit integer", |text| text.parse().ok())?;
    patch.status = call.flag("status").map(|text| status("--status", text)).transpose()?;
    if patch == PetPatch::new() {
        return usage("pet set needs --name, --category or --status");
    }
    update(call, &[id(call.operand(0))?], &patch)
}

fn set_status(call: &Invocation) -> CommandResult {
    let Some((word, ids)) = call.operands.split_last() else { return Ok(()) };
    let status = status("STATUS", word)?;
    let ids = ids.iter().map(|word| id(word)).collect::<Result<Vec<_>, _>>()?;
    update(call, &ids, &PetPatch::new().status(status))
}

/// Changes pets, and prints a line of JSON for each.
fn update(call: &Invocation, ids: &[i64], patch: &PetPatch) -> CommandResult {
    let changed = inventory(call)?.update(ids, patch)?;
    // Printing strings and numbers cannot fail.
    let lines = changed.iter().filter_map(|pet| serde_json::to_string(pet).ok());
    Ok(print(&lines.map(|line| line + "\n").collect::<String>())?)
}

fn delete(call: &Invocation) -> CommandResult {
    let ids = call.operands.iter().map(|word| id(word)).collect::<Result<Vec<_>, _>>()?;
    inventory(call)?.delete(&ids)?;
    report(&format!("deleted {}\n", ids.len()));
    Ok(())
}

fn inventory(call: &Invocation) -> Result<Inventory, CommandError> {
    Ok(Inventory::open(existing(&call.config.database)?)?)
}

fn id(word: &str) -> Result<i64, CommandError> {
    word.parse().map_err(|_| CommandError::wrong("ID", "the id of a pet", word))
}

fn status(name: &str, word: &str) -> Result<Option<PetStatus>, CommandError> {
    let wrong = |expected| CommandError::wrong(name, format!("{expected}, or none"), word);
    if word == "none" { Ok(None) } else { word.parse().map(Some).map_err(wrong) }
}
