//! `petstore key …`.

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, UNIX_EPOCH};

use petstore::{Error, Expiry, KeyInfo, KeyRing, KeyScope, rfc3339};

use super::command::{Call, Command, Count, DATABASE, Done, Failure, Flag, Operand};
use super::{print, print_soon, say, say_new};

const NAME: Operand = Operand { name: "NAME", count: Count::One };
const FINGERPRINT: Operand = Operand { name: "FINGERPRINT", count: Count::Optional };
const ADMIN: &str = "admin";
const EXPIRES: Flag = Flag { name: "expires", value: Some("DATE"), about: "it is refused from then on" };

pub const COMMANDS: &[Command] = &[
    Command {
        name: "key add",
        operands: &[NAME],
        flags: &[
            EXPIRES,
            Flag { name: "read-only", value: None, about: "it may only read" },
            Flag { name: ADMIN, value: None, about: "it may change the settings of the project as well" },
        ],
        settings: DATABASE,
        about: "make an API key and print it, once",
        run: add,
    },
    Command {
        name: "key list",
        operands: &[],
        flags: &[Flag { name: "json", value: None, about: "as JSON, for programs" }],
        settings: DATABASE,
        about: "list the keys: names, scopes, expiry, last use",
        run: list,
    },
    Command {
        name: "key rotate",
        operands: &[NAME],
        flags: &[
            Flag {
                name: "overlap",
                value: Some("DURATION"),
                about: "for so long both are valid; the old one is refused at once without it",
            },
            EXPIRES,
        ],
        settings: DATABASE,
        about: "make the successor of a key and print it, once; it keeps the expiry without --expires",
        run: rotate,
    },
    Command {
        name: "key revoke",
        operands: &[NAME, FINGERPRINT],
        flags: &[],
        settings: DATABASE,
        about: "refuse a key from now on; all keys of the name, or the one with the fingerprint",
        run: revoke,
    },
];

/// A new key stands alone on its line, so that scripts can take it.
fn add(call: &Call) -> Done {
    let expires_at = match call.flag("expires").map(expiry).transpose()? {
        Some(Expiry::At(at)) => Some(at),
        Some(Expiry::Never | Expiry::Kept) | None => None,
    };
    let scope = match (call.has("read-only"), call.has(ADMIN)) {
        (true, true) => {
            return Err(Failure::Usage("--read-only and --admin exclude each other".to_owned()));
        }
        (true, false) => KeyScope::ReadOnly,
        (false, true) => KeyScope::Admin,
        (false, false) => KeyScope::Full,
    };
    check_output()?;
    let database = &call.config.database;
    let is_new = !database.exists();
    let mut ring = KeyRing::open(database)?;
    print_key(|print| ring.add(call.operand(0), expires_at, scope, print))?;
    if is_new {
        say_new(database);
    }
    Ok(())
}

fn list(call: &Call) -> Done {
    let keys = petstore::api_keys(&call.config.database)?;
    Ok(print(&if call.has("json") { json(&keys) } else { table(&keys) })?)
}

fn rotate(call: &Call) -> Done {
    let overlap = call.flag("overlap").map_or(Ok(Duration::ZERO), duration)?;
    let expiry = call.flag("expires").map_or(Ok(Expiry::Kept), expiry)?;
    check_output()?;
    let mut ring = open(call)?;
    let expires_at = print_key(|print| ring.rotate(call.operand(0), overlap, expiry, print))?;
    if let (Expiry::Kept, Some(at)) = (expiry, expires_at) {
        let at = rfc3339(at);
        say(&format!(
            "the new key expires at {at}, when the old one would have; --expires sets another time"
        ));
    }
    Ok(())
}

/// Refuses to make a key that nobody would see. A closed standard output has become the null device by now: the
/// standard library opens it before `main`.
fn check_output() -> Result<(), Error> {
    let null = std::fs::metadata("/dev/null").map(|null| null.rdev()).ok();
    let out = std::io::stdout().as_fd().try_clone_to_owned();
    let out = out.and_then(|out| File::from(out).metadata()).map(|out| out.rdev()).ok();
    if out.is_none() || out == null {
        return Err("the key would be lost: standard output is closed or /dev/null".to_owned().into());
    }
    Ok(())
}

/// Makes a key that is printed. Its line ends once the key is valid, so that whoever reads lines does not take
/// it sooner, or where a person reads on.
fn print_key<T>(
    make: impl FnOnce(&mut dyn FnMut(&str) -> Result<(), Error>) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut is_printed = false;
    let made = make(&mut |key| print_soon(key).inspect(|()| is_printed = true));
    if made.is_ok() || is_printed && std::io::stdout().is_terminal() {
        // The key itself has been taken.
        let _ = print("\n");
    }
    made
}

fn revoke(call: &Call) -> Done {
    let fingerprint = call.operands.get(1).map(String::as_str);
    let count = open(call)?.revoke(call.operand(0), fingerprint)?;
    Ok(print(&format!("revoked {count}\n"))?)
}

/// The keys of a database that is there.
fn open(call: &Call) -> Result<KeyRing, Failure> {
    let database = &call.config.database;
    if !database.exists() {
        return Err(format!("there is no database {}", database.display()).into());
    }
    Ok(KeyRing::open(database)?)
}

/// A day, a time, or never.
fn expiry(text: &str) -> Result<Expiry, Failure> {
    if text == "never" {
        return Ok(Expiry::Never);
    }
    let midnight = format!("{text}T00:00:00Z");
    let time = humantime::parse_rfc3339(&midnight).or_else(|_| humantime::parse_rfc3339(text)).ok();
    let seconds = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs());
    seconds.and_then(|seconds| i64::try_from(seconds).ok()).map(Expiry::At).ok_or_else(|| {
        Failure::Usage(format!(
            "--expires must be such as 2027-01-31 or 2027-01-31T18:00:00Z, or never, not '{text}'"
        ))
    })
}

fn duration(text: &str) -> Result<Duration, Failure> {
    humantime::parse_duration(text)
        .map_err(|_| Failure::Usage(format!("--overlap must be such as 30min, 12h or 7d, not '{text}'")))
}

fn table(keys: &[KeyInfo]) -> String {
    let mut rows = vec![["NAME", "SCOPE", "CREATED", "EXPIRES", "LAST USED", "SHA-256"].map(str::to_owned)];
    for key in keys {
        let end = if key.is_expired { " (expired)" } else { "" };
        let (expires, last_used) = (time_or_never(key.expires_at) + end, time_or_never(key.last_used_at));
        let (name, scope) = (key.name.clone(), key.scope.as_str().to_owned());
        rows.push([name, scope, rfc3339(key.created_at), expires, last_used, key.fingerprint.clone()]);
    }
    super::table(&rows)
}

/// One key in the list for programs. Times are as in the table; null: never.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    name: &'a str,
    scope: &'static str,
    created_at: String,
    expires_at: Option<String>,
    is_expired: bool,
    last_used_at: Option<String>,
    fingerprint: &'a str,
}

impl<'a> From<&'a KeyInfo> for Listed<'a> {
    fn from(key: &'a KeyInfo) -> Self {
        Self {
            name: &key.name,
            scope: key.scope.as_str(),
            created_at: rfc3339(key.created_at),
            expires_at: key.expires_at.map(rfc3339),
            is_expired: key.is_expired,
            last_used_at: key.last_used_at.map(rfc3339),
            fingerprint: &key.fingerprint,
        }
    }
}

/// An array with an object for each key.
fn json(keys: &[KeyInfo]) -> String {
    // Plain structs cannot fail.
    serde_json::to_string(&keys.iter().map(Listed::from).collect::<Vec<_>>()).unwrap_or_default() + "\n"
}

fn time_or_never(seconds: Option<i64>) -> String {
    seconds.map_or_else(|| "never".to_owned(), rfc3339)
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
        assert_eq!((at("2027-01-31T18:00:00Z"), at("never")), (Some(1_801_418_400), None));
        assert_eq!(duration("1d 2h").unwrap(), Duration::from_secs(26 * 3600));
    }

    #[test]
    fn what_is_no_time_is_named() {
        let said = |failure| match failure {
            Failure::Usage(line) => line,
            Failure::Failed(error) => panic!("{error}"),
        };
        for text in ["tomorrow", "2030-02-31", "2030-02-03T00:00:00+02:00", ""] {
            assert!(said(expiry(text).unwrap_err()).contains("--expires"), "{text}");
        }
        for text in ["-1d", "1 moon", ""] {
            assert!(said(duration(text).unwrap_err()).contains("--overlap"), "{text}");
        }
    }
}
