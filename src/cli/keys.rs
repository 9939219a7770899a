//! `petstore key …`.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use petstore::{KeyInfo, KeyRing};

use super::command::{Call, Command, Count, DATABASE, Done, Failure, Flag, Operand};
use super::print;

const NAME: &[Operand] = &[Operand { name: "NAME", count: Count::One }];
const EXPIRES: Flag = Flag { name: "expires", value: Some("DATE"), about: "it is refused from then on" };

pub const COMMANDS: &[Command] = &[
    Command {
        name: "key add",
        operands: NAME,
        flags: &[EXPIRES, Flag { name: "read-only", value: None, about: "it may only read" }],
        settings: DATABASE,
        about: "make an API key and print it, once",
        run: add,
    },
    Command {
        name: "key list",
        operands: &[],
        flags: &[],
        settings: DATABASE,
        about: "list the keys: names, scopes, expiry",
        run: list,
    },
    Command {
        name: "key rotate",
        operands: NAME,
        flags: &[Flag {
            name: "overlap",
            value: Some("DURATION"),
            about: "for so long both are valid; the old one is refused at once without it",
        }],
        settings: DATABASE,
        about: "make the successor of a key and print it, once",
        run: rotate,
    },
    Command {
        name: "key revoke",
        operands: NAME,
        flags: &[],
        settings: DATABASE,
        about: "refuse a key from now on",
        run: revoke,
    },
];

/// A new key stands alone on its line, so that scripts can take it.
fn add(call: &Call) -> Done {
    let expires_at = call.flag("expires").map(expiry).transpose()?;
    let key =
        KeyRing::open(&call.config.database)?.add(call.operand(0), expires_at, call.has("read-only"))?;
    Ok(print(&format!("{key}\n"))?)
}

fn list(call: &Call) -> Done {
    Ok(print(&table(&open(call)?.list()?))?)
}

fn rotate(call: &Call) -> Done {
    let overlap = call.flag("overlap").map_or(Ok(Duration::ZERO), duration)?;
    let key = open(call)?.rotate(call.operand(0), overlap)?;
    Ok(print(&format!("{key}\n"))?)
}

fn revoke(call: &Call) -> Done {
    let count = open(call)?.revoke(call.operand(0))?;
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

/// A day or a time, as Unix time in seconds.
fn expiry(text: &str) -> Result<i64, Failure> {
    let day = text.parse::<jiff::civil::Date>().ok().filter(|_| !text.contains('T'));
    let start = day.and_then(|day| day.to_zoned(TimeZone::UTC).ok()).map(|start| start.timestamp());
    start.or_else(|| text.parse().ok()).map(Timestamp::as_second).ok_or_else(|| {
        Failure::Usage(format!("--expires must be such as 2027-01-31 or 2027-01-31T18:00:00Z, not '{text}'"))
    })
}

fn duration(text: &str) -> Result<Duration, Failure> {
    let span = text.parse::<jiff::Span>().ok();
    span.and_then(|span| span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok())
        .and_then(|duration| Duration::try_from(duration).ok())
        .ok_or_else(|| Failure::Usage(format!("--overlap must be such as 30min, 12h or 7d, not '{text}'")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_read() {
        assert_eq!(expiry("1970-01-02").unwrap(), 86_400);
        assert_eq!(expiry("1970-01-01T01:00:00+01:00").unwrap(), 0);
        assert_eq!(duration("1d 2h").unwrap(), Duration::from_secs(26 * 3600));
    }

    #[test]
    fn what_is_no_time_is_named() {
        let said = |failure| match failure {
            Failure::Usage(line) => line,
            Failure::Failed(error) => panic!("{error}"),
        };
        for text in ["tomorrow", "2030-02-31", ""] {
            assert!(said(expiry(text).unwrap_err()).contains("--expires"), "{text}");
        }
        for text in ["-1d", "1 moon", ""] {
            assert!(said(duration(text).unwrap_err()).contains("--overlap"), "{text}");
        }
    }
}
