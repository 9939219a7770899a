//! `petstore key …`.

use std::path::Path;

use jiff::Timestamp;
use petstore::{Error, KeyInfo, KeyRing};

use super::args::KeyAction;
use super::print;

/// Does it, and prints what came of it: a new key alone on its line, so that scripts can take it.
pub fn run(database: &Path, action: KeyAction) -> Result<(), Error> {
    let is_new = matches!(action, KeyAction::Add { .. });
    if !is_new && !database.exists() {
        return Err(format!("there is no database {}", database.display()).into());
    }
    let mut ring = KeyRing::open(database)?;
    match action {
        KeyAction::Add { name, expires_at, read_only } => {
            let key = ring.add(&name, expires_at, read_only)?;
            print(&format!("{key}\n"))
        }
        KeyAction::List => print(&table(&ring.list()?)),
        KeyAction::Rotate { name, overlap } => {
            let key = ring.rotate(&name, overlap)?;
            print(&format!("{key}\n"))
        }
        KeyAction::Revoke { name } => {
            let count = ring.revoke(&name)?;
            print(&format!("revoked {count}\n"))
        }
    }
}

fn table(keys: &[KeyInfo]) -> String {
    let mut text = row(["NAME", "SCOPE", "CREATED", "EXPIRES", "SHA-256"]);
    for key in keys {
        let scope = if key.read_only { "read-only" } else { "full" };
        let mut expires = key.expires_at.map_or_else(|| "never".to_owned(), time);
        if key.is_expired {
            expires += " (expired)";
        }
        text += &row([&key.name, scope, &time(key.created_at), &expires, &key.fingerprint]);
    }
    text
}

fn row([name, scope, created, expires, digest]: [&str; 5]) -> String {
    format!("{name:<20} {scope:<10} {created:<21} {expires:<31} {digest}\n")
}

fn time(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| "never".to_owned(), |time| time.to_string())
}
