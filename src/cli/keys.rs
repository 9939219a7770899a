//! `petstore key …`: add, list, rotate and revoke API keys.

use petstore::{ApiKey, Error, Expiry, Json, KeyRing, KeyScope, fingerprint, rfc3339, unix_time};

use super::command::{CREATE, Command, CommandResult, Flag, Invocation, usage};
use super::output::{self, existing, moment, past, print, print_error, report};

const DATE: &str =
    "a date such as 2027-01-31 or 2027-01-31T18:00:00Z, a time span such as 30d, or never";
const EXPIRES: Flag = Flag::with("expires", "DATE", "when the key expires");

pub const COMMANDS: &[Command] = &[
    Command {
        flags: &[
            EXPIRES,
            Flag::new("read-only", "the key can only read"),
            Flag::new("admin", "the key can also change the project settings"),
            CREATE,
        ],
        ..Command::new(
            "key add",
            "NAME",
            "create an API key and print it; it is not shown again",
            add,
        )
    },
    Command {
        flags: &[Flag::new("json", "print JSON, for programs")],
        ..Command::new(
            "key list",
            "",
            "list the keys with their scopes, expiry and last use (stored once an hour)",
            list,
        )
    },
    Command {
        flags: &[
            Flag::with(
                "overlap",
                "DURATION",
                "how long the old key stays valid [0s]",
            ),
            EXPIRES,
        ],
        ..Command::new(
            "key rotate",
            "NAME",
            "replace a key, and print the new one; its expiry stays",
            rotate,
        )
    },
    Command::new(
        "key revoke",
        "NAME [FINGERPRINT]",
        "revoke the keys of this name, or one of them",
        revoke,
    ),
];

fn add(call: &Invocation) -> CommandResult {
    let expires_at = match call.read("expires", DATE, expiry)? {
        Some(Expiry::At(at)) => Some(at),
        Some(Expiry::Never | Expiry::Kept) | None => None,
    };
    let scope = match (call.has("read-only"), call.has("admin")) {
        (true, true) => {
            return usage("--read-only and --admin cannot be combined");
        }
        (true, false) => KeyScope::ReadOnly,
        (false, true) => KeyScope::Admin,
        (false, false) => KeyScope::Full,
    };
    let database = call.writable()?;
    let mut ring = KeyRing::open(database)?;
    let name = call.operand(0);
    let key = create(&mut ring, name, expires_at, scope)?;
    if let Err(error) = print(&format!("{key}\n")) {
        ring.revoke(name, None)?;
        return Err(error.context("the key was not created").into());
    }
    tell_expiry(expires_at, "");
    Ok(())
}

fn list(call: &Invocation) -> CommandResult {
    let keys = petstore::api_keys(&call.config.database)?;
    print(&if call.has("json") {
        json(&keys)
    } else {
        table(&keys)
    })?;
    if keys
        .iter()
        .any(|key| key.created_at.max(key.last_used_at.unwrap_or(0)) > unix_time())
    {
        print_error(
            "a time later than now is not shown: the clock was wrong, so check when keys expire",
        );
    }
    Ok(())
}

fn rotate(call: &Invocation) -> CommandResult {
    let duration = |text: &str| humantime::parse_duration(text).ok();
    let overlap = call
        .read("overlap", "a duration such as 30min, 12h or 7d", duration)?
        .unwrap_or_default();
    let expiry = call.read("expires", DATE, expiry)?.unwrap_or(Expiry::Kept);
    // If the new key cannot be printed, the old one stays valid.
    let expires_at = open(call)?.rotate(call.operand(0), overlap, expiry, |key| {
        print(&format!("{key}\n"))
    })?;
    let like = match expiry {
        Expiry::Kept => ", like the old one; --expires sets another time",
        _ => "",
    };
    tell_expiry(expires_at, like);
    Ok(())
}

/// Says when a new key expires: `6m` are minutes, and not months.
fn tell_expiry(expires_at: Option<i64>, more: &str) {
    if let Some(at) = expires_at {
        print_error(&format!("the key expires at {}{more}", rfc3339(at)));
    }
}

/// Creates a key, and returns it once the database has its digest.
pub fn create(
    ring: &mut KeyRing,
    name: &str,
    expires_at: Option<i64>,
    scope: KeyScope,
) -> Result<String, Error> {
    let mut key = String::new();
    ring.add(name, expires_at, scope, |made| {
        made.clone_into(&mut key);
        Ok(())
    })?;
    Ok(key)
}

fn revoke(call: &Invocation) -> CommandResult {
    let fingerprint = call.operands.get(1).map(String::as_str);
    let count = open(call)?.revoke(call.operand(0), fingerprint)?;
    report(&format!("revoked {count}\n"));
    Ok(())
}

/// Opens the keys of an existing database.
fn open(call: &Invocation) -> Result<KeyRing, Error> {
    KeyRing::open(existing(&call.config.database)?)
}

/// Reads a day, a time, a time span from now, or `never`.
fn expiry(text: &str) -> Option<Expiry> {
    if text == "never" {
        return Some(Expiry::Never);
    }
    if let Ok(span) = humantime::parse_duration(text) {
        return unix_time()
            .checked_add(i64::try_from(span.as_secs()).ok()?)
            .map(Expiry::At);
    }
    moment(text).map(|millis| Expiry::At(millis / 1000))
}

fn table(keys: &[ApiKey]) -> String {
    let mut rows = vec![
        [
            "NAME",
            "SCOPE",
            "CREATED",
            "EXPIRES",
            "LAST USED",
            "SHA-256",
        ]
        .map(str::to_owned),
    ];
    for key in keys {
        let end = if key.is_expired(unix_time()) {
            " (expired)"
        } else {
            ""
        };
        let or_never = |text: Option<String>| text.unwrap_or_else(|| "never".to_owned());
        rows.push([
            key.name.clone(),
            key.scope.as_str().to_owned(),
            past(key.created_at),
            or_never(key.expires_at.map(rfc3339)) + end,
            or_never(key.last_used_at.map(past)),
            fingerprint(&key.digest),
        ]);
    }
    output::table(&rows)
}

/// Returns an array with an object for each key. Times have the form of RFC 3339; null means never, or an unknown time.
fn json(keys: &[ApiKey]) -> String {
    let object = |key: &ApiKey| {
        Json::from_iter([
            ("name", key.name.as_str().into()),
            ("scope", key.scope.as_str().into()),
            ("createdAt", petstore::past(key.created_at).into()),
            ("expiresAt", key.expires_at.map(rfc3339).into()),
            ("isExpired", key.is_expired(unix_time()).into()),
            (
                "lastUsedAt",
                key.last_used_at.and_then(petstore::past).into(),
            ),
            ("fingerprint", fingerprint(&key.digest).into()),
        ])
    };
    format!("{}\n", keys.iter().map(object).collect::<Json>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_read() {
        let at = |text| match expiry(text).unwrap() {
            Expiry::At(at) => Some(at),
            Expiry::Never | Expiry::Kept => None,
        };
        assert_eq!(at("1970-01-02"), Some(86_400));
        assert_eq!(at("1970-01-01T00:00:01.5Z"), Some(1));
        assert_eq!(rfc3339(at("9999-12-31").unwrap()), "9999-12-31T00:00:00Z");
        assert_eq!(
            (at("2027-01-31T18:00:00Z"), at("never")),
            (Some(1_801_418_400), None)
        );
        let month = unix_time() + 30 * 86_400;
        assert!((month..month + 60).contains(&at("30d").unwrap()));
    }

    #[test]
    fn wrong_times_are_rejected() {
        for text in ["tomorrow", "30", "-1d", "999999999999y", "2030-02-31", ""] {
            assert_eq!(expiry(text), None, "{text}");
        }
    }
}
