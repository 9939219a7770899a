//! `petstore pet …`: changes pets, without a service.

use petstore::{Inventory, PetIds, PetPatch, PetStatus};

use super::command::{Command, CommandError, CommandResult, Flag, Invocation, usage};
use super::output::{existing, print_to_stderr, report};

pub const COMMANDS: &[Command] = &[
    Command {
        flags: &[
            Flag::with("name", "TEXT", "the new name"),
            Flag::with("category", "ID", "the new category"),
            Flag::with("status", "STATUS", STATUS),
        ],
        ..Command::new(
            "pet set",
            "ID...",
            "change pets, all of them or none, and print them",
            set,
        )
    },
    Command::new(
        "pet status",
        "ID... STATUS",
        "set the status of pets, all or none, and print them; an ID may be a range such as 5..9",
        set_status,
    ),
    Command::new(
        "pet delete",
        "ID...",
        "delete pets, all or none; an ID may be a range such as 5..9",
        delete,
    ),
];

const STATUS: &str = "the new status: available, pending or sold, or none to remove it";

fn set(call: &Invocation) -> CommandResult {
    let mut patch = PetPatch::new();
    patch.name = call.flag("name").map(Into::into);
    patch.category_id = call.read("category", "a 64-bit integer", |text| text.parse().ok())?;
    patch.status = call
        .flag("status")
        .map(|text| status("--status", text))
        .transpose()?;
    if patch == PetPatch::new() {
        return usage("pet set needs --name, --category or --status");
    }
    update(call, &call.operands, &patch)
}

fn set_status(call: &Invocation) -> CommandResult {
    let Some((word, ids)) = call.operands.split_last() else {
        return Ok(());
    };
    let status = status("STATUS", word)?;
    update(call, ids, &PetPatch::new().status(status))
}

/// Changes pets, and prints a line of JSON for each.
fn update(call: &Invocation, words: &[String], patch: &PetPatch) -> CommandResult {
    let ids = ids(words)?;
    let changed = inventory(call)?.update_all(&ids, patch)?;
    // Printing strings and numbers cannot fail.
    let lines = changed
        .iter()
        .filter_map(|pet| serde_json::to_string(pet).ok());
    report(&lines.map(|line| line + "\n").collect::<String>());
    let gone = of_gone(&ids, changed.len());
    if !gone.is_empty() {
        print_to_stderr(&format!("changed {}{gone}\n", changed.len()));
    }
    Ok(())
}

fn delete(call: &Invocation) -> CommandResult {
    let ids = ids(&call.operands)?;
    let deleted = inventory(call)?.delete_all(&ids)?;
    report(&format!("deleted {deleted}{}\n", of_gone(&ids, deleted)));
    Ok(())
}

/// Tells how many ids have no pet, of which only ranges have any.
fn of_gone(ids: &[PetIds], found: usize) -> String {
    let count = |ids: &PetIds| match *ids {
        PetIds::Range(from, to) => i128::from(to) - i128::from(from) + 1,
        _ => 1,
    };
    match ids.iter().map(count).sum::<i128>() - found as i128 {
        0 => String::new(),
        1 => "; 1 id of the range has no pet".to_owned(),
        gone => format!("; {gone} ids of the range have no pet"),
    }
}

/// The pets that the words name: each is an id, or a range such as `5..9`.
fn ids(words: &[String]) -> Result<Vec<PetIds>, CommandError> {
    let parse = |word: &String| {
        let wrong = || CommandError::wrong("ID", "the id of a pet, or a range such as 5..9", word);
        let Some((first, last)) = word.split_once("..") else {
            return word.parse().map(PetIds::One).map_err(|_| wrong());
        };
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(PetIds::Range(first, last)),
            _ => Err(wrong()),
        }
    };
    words.iter().map(parse).collect()
}

fn inventory(call: &Invocation) -> Result<Inventory, CommandError> {
    let mut inventory = Inventory::open(existing(&call.config.database)?)?;
    inventory.change_as(&format!("petstore {}", call.command));
    Ok(inventory)
}

fn status(name: &str, word: &str) -> Result<Option<PetStatus>, CommandError> {
    let wrong = |expected| CommandError::wrong(name, format!("{expected}, or none"), word);
    if word == "none" {
        Ok(None)
    } else {
        word.parse().map(Some).map_err(wrong)
    }
}
