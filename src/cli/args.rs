//! The command line and the environment: what is to be done, or what is wrong with the words.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use jiff::tz::TimeZone;
use lexopt::{Arg, Parser, ValueExt};
use petstore::{Config, SETTINGS};

/// What is to be done.
#[derive(Debug)]
pub enum Command {
    Help,
    Version,
    Serve(Box<Config>),
    /// Print the interface description.
    OpenApi(Box<Config>),
    /// Work on the keys of this database.
    Key(PathBuf, KeyAction),
}

/// What is to be done with a key.
#[derive(Debug, PartialEq)]
pub enum KeyAction {
    /// Make one; it expires at a Unix time in seconds.
    Add {
        name: String,
        expires_at: Option<i64>,
        read_only: bool,
    },
    List,
    /// Make its successor, with both valid meanwhile.
    Rotate {
        name: String,
        overlap: Duration,
    },
    Revoke {
        name: String,
    },
}

/// The help text.
pub fn help() -> String {
    let mut text = "\
petstore: a pet store inventory service over HTTP, on an embedded SQLite database

  petstore [serve]                          serve until SIGTERM or SIGINT
  petstore key add NAME [--expires DATE] [--read-only]
                                            make an API key and print it, once
  petstore key list                         list the keys: names, scopes, expiry
  petstore key rotate NAME --overlap DURATION
                                            make its successor; both are valid meanwhile
  petstore key revoke NAME                  refuse it from now on
  petstore openapi                          print the interface description (OpenAPI 3.1)
  petstore --help | --version

Keys are changed in the database; a running server obeys at once.
DATE is a day such as 2027-01-31 (its start, UTC) or a time such as 2027-01-31T18:00:00Z.
DURATION is such as 30min, 12h or 7d.

Settings, as flags or as environment variables (the flag wins) [default]:
"
    .to_owned();
    for setting in SETTINGS {
        let flag = format!("--{} {}", setting.flag, setting.value);
        let default = if setting.default.is_empty() { "" } else { &format!(" [{}]", setting.default) };
        text += &format!("  {flag:<26} {}\n{:29}{}{default}\n", setting.variable(), "", setting.help);
    }
    text +=
        &format!("  {:<26} PETSTORE_API_KEY\n{:29}one more API key, beside those in the database\n", "", "");
    text += &format!("  {:<26} RUST_LOG\n{:29}what is logged; info adds the access log [warn]\n", "", "");
    text
}

/// Reads the words of the command line; `variable` reads the environment.
///
/// # Errors
/// One line that names the word and says what is expected.
pub fn parse(mut parser: Parser, variable: impl Fn(&str) -> Option<OsString>) -> Result<Command, String> {
    let mut words: Vec<String> = Vec::new();
    let mut settings: Vec<Option<OsString>> = vec![None; SETTINGS.len()];
    let (mut expires, mut overlap, mut read_only) = (None, None, false);
    let say = |error: lexopt::Error| error.to_string();
    while let Some(arg) = parser.next().map_err(say)? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
            Arg::Short('V') | Arg::Long("version") => return Ok(Command::Version),
            Arg::Long("expires") => expires = Some(parser.value().and_then(|v| v.string()).map_err(say)?),
            Arg::Long("overlap") => overlap = Some(parser.value().and_then(|v| v.string()).map_err(say)?),
            Arg::Long("read-only") => read_only = true,
            Arg::Long(flag) => match SETTINGS.iter().position(|setting| setting.flag == flag) {
                Some(place) => {
                    let value = parser.value().map_err(say)?;
                    match &mut settings[place] {
                        Some(values) if SETTINGS[place].is_list => {
                            values.push(",");
                            values.push(value);
                        }
                        setting => *setting = Some(value),
                    }
                }
                None => return Err(format!("unknown flag --{flag}")),
            },
            Arg::Short(flag) => return Err(format!("unknown flag -{flag}")),
            Arg::Value(word) => words.push(word.string().map_err(say)?),
        }
    }
    let is_description = words == ["openapi"];
    if is_description {
        words.clear();
    }
    let action = action(&words, expires.as_deref(), overlap.as_deref(), read_only)?;
    let config = config(&settings, variable)?;
    Ok(match action {
        None if is_description => Command::OpenApi(Box::new(config)),
        None => Command::Serve(Box::new(config)),
        Some(action) => Command::Key(config.database, action),
    })
}

/// What the words ask for; `None`: to serve.
fn action(
    words: &[String],
    expires: Option<&str>,
    overlap: Option<&str>,
    read_only: bool,
) -> Result<Option<KeyAction>, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let action = match words[..] {
        [] | ["serve"] => None,
        ["key", "add", name] => Some(KeyAction::Add {
            name: name.to_owned(),
            expires_at: expires.map(expiry).transpose()?,
            read_only,
        }),
        ["key", "list"] => Some(KeyAction::List),
        ["key", "rotate", name] => {
            let overlap = overlap.ok_or("key rotate needs --overlap DURATION, such as 7d, or 0s for none")?;
            Some(KeyAction::Rotate { name: name.to_owned(), overlap: duration(overlap)? })
        }
        ["key", "revoke", name] => Some(KeyAction::Revoke { name: name.to_owned() }),
        ["key"] => return Err("key needs one of add, list, rotate and revoke".to_owned()),
        ["key", verb @ ("add" | "rotate" | "revoke")] => return Err(format!("key {verb} needs a NAME")),
        ["key", verb, ..] if !["add", "list", "rotate", "revoke"].contains(&verb) => {
            return Err(format!("unknown command 'key {verb}'"));
        }
        ["key", _, .., word] | ["serve", .., word] => return Err(format!("unexpected word '{word}'")),
        [word, ..] => return Err(format!("unknown command '{word}'")),
    };
    let is_add = matches!(action, Some(KeyAction::Add { .. }));
    for (flag, given, fits) in [
        ("--expires", expires.is_some(), is_add),
        ("--read-only", read_only, is_add),
        ("--overlap", overlap.is_some(), matches!(action, Some(KeyAction::Rotate { .. }))),
    ] {
        if given && !fits {
            return Err(format!("{flag} does not belong to this command"));
        }
    }
    Ok(action)
}

/// The settings: flags first, then the environment.
fn config(flags: &[Option<OsString>], variable: impl Fn(&str) -> Option<OsString>) -> Result<Config, String> {
    let mut config = Config::default();
    for (setting, flag) in SETTINGS.iter().zip(flags) {
        let (name, value) = match flag {
            Some(value) => (format!("--{}", setting.flag), Some(value.clone())),
            None => (setting.variable(), variable(&setting.variable())),
        };
        let Some(value) = value else { continue };
        let text = value.to_str().ok_or_else(|| format!("{name} is not UTF-8 text"))?;
        (setting.set)(&mut config, text)
            .map_err(|expected| format!("{name} must be {expected}, not '{text}'"))?;
    }
    if let Some(key) = variable("PETSTORE_API_KEY") {
        // The value itself is not repeated: it is a secret, even a wrong one.
        config.api_key = Some(utf8(&key).ok_or("PETSTORE_API_KEY is not UTF-8 text")?);
    }
    Ok(config)
}

fn utf8(text: &OsStr) -> Option<String> {
    text.to_str().map(str::to_owned)
}

/// A day or a time, as Unix time in seconds.
fn expiry(text: &str) -> Result<i64, String> {
    let day = text.parse::<jiff::civil::Date>().ok().filter(|_| !text.contains('T'));
    let start = day.and_then(|day| day.to_zoned(TimeZone::UTC).ok()).map(|start| start.timestamp());
    start
        .or_else(|| text.parse().ok())
        .map(jiff::Timestamp::as_second)
        .ok_or_else(|| format!("--expires must be such as 2027-01-31 or 2027-01-31T18:00:00Z, not '{text}'"))
}

fn duration(text: &str) -> Result<Duration, String> {
    let span = text.parse::<jiff::Span>().ok();
    span.and_then(|span| span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok())
        .and_then(|duration| Duration::try_from(duration).ok())
        .ok_or_else(|| format!("--overlap must be such as 30min, 12h or 7d, not '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str], environment: &[(&str, &str)]) -> Result<Command, String> {
        let variable = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
        parse(Parser::from_args(words), variable)
    }

    fn served(words: &[&str], environment: &[(&str, &str)]) -> Config {
        match parsed(words, environment) {
            Ok(Command::Serve(config)) => *config,
            other => panic!("{other:?}"),
        }
    }

    fn key(words: &[&str]) -> KeyAction {
        match parsed(words, &[]) {
            Ok(Command::Key(_, action)) => action,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flag_of_a_list_may_be_given_again() {
        let config = served(&["--trusted-proxy", "10.0.0.1", "--trusted-proxy=::1"], &[]);
        assert_eq!(config.trusted_proxies.len(), 2);
        let config = served(&[], &[("PETSTORE_TRUSTED_PROXY", "10.0.0.1,10.1.0.0/16,::1")]);
        assert_eq!(config.trusted_proxies.len(), 3);
    }

    #[test]
    fn description_has_the_addresses_of_the_settings() {
        match parsed(&["openapi", "--base-url", "https://h/v1"], &[]) {
            Ok(Command::OpenApi(config)) => assert_eq!(config.base_url.as_deref(), Some("https://h/v1")),
            other => panic!("{other:?}"),
        }
        assert!(parsed(&["openapi", "twice"], &[]).unwrap_err().contains("openapi"));
    }

    #[test]
    fn nothing_means_serve() {
        assert_eq!(served(&[], &[]).max_connections, 10_000);
        assert_eq!(served(&["serve"], &[]).database, PathBuf::from("petstore.db"));
    }

    #[test]
    fn flag_wins_over_the_environment() {
        let environment =
            [("PETSTORE_DATABASE", "a.db"), ("PETSTORE_WORKERS", "3"), ("PETSTORE_API_KEY", "k")];
        let config = served(&["--workers=5", "serve"], &environment);
        assert_eq!((config.workers, config.database), (5, PathBuf::from("a.db")));
        assert_eq!(config.api_key.as_deref(), Some("k"));
        served(&["--workers", "5"], &[("PETSTORE_WORKERS", "wrong, and not asked for")]);
    }

    #[test]
    fn key_actions_are_read() {
        let name = || "ci".to_owned();
        assert_eq!(
            key(&["key", "add", "ci", "--expires", "1970-01-02", "--read-only"]),
            KeyAction::Add { name: name(), expires_at: Some(86_400), read_only: true }
        );
        assert_eq!(
            key(&["key", "add", "--expires=1970-01-01T01:00:00+01:00", "ci"]),
            KeyAction::Add { name: name(), expires_at: Some(0), read_only: false }
        );
        assert_eq!(key(&["key", "list"]), KeyAction::List);
        assert_eq!(
            key(&["key", "rotate", "ci", "--overlap", "1d 2h"]),
            KeyAction::Rotate { name: name(), overlap: Duration::from_secs(26 * 3600) }
        );
        assert_eq!(key(&["key", "revoke", "ci"]), KeyAction::Revoke { name: name() });
    }

    #[test]
    fn wrong_words_are_named() {
        for (words, named) in [
            (&["--port", "1"][..], "--port"),
            (&["-x"], "-x"),
            (&["--listen"], "--listen"),
            (&["--listen", "nowhere"], "--listen"),
            (&["--workers", "0"], "--workers"),
            (&["dance"], "dance"),
            (&["serve", "twice"], "twice"),
            (&["--expires", "2030-01-01"], "--expires"),
            (&["key"], "add"),
            (&["key", "add"], "NAME"),
            (&["key", "add", "a", "b"], "'b'"),
            (&["key", "list", "b"], "'b'"),
            (&["key", "drop", "a"], "drop"),
            (&["key", "rotate", "a"], "--overlap"),
            (&["key", "rotate", "a", "--overlap", "-1d"], "--overlap"),
            (&["key", "rotate", "a", "--overlap", "1 moon"], "--overlap"),
            (&["key", "rotate", "a", "--overlap", "1d", "--read-only"], "--read-only"),
            (&["key", "add", "a", "--expires", "tomorrow"], "--expires"),
            (&["key", "add", "a", "--expires", "2030-02-31"], "--expires"),
        ] {
            let error = parsed(words, &[]).unwrap_err();
            assert!(error.contains(named), "{words:?}: {error}");
        }
        let error = parsed(&[], &[("PETSTORE_LISTEN", "")]).unwrap_err();
        assert!(error.contains("PETSTORE_LISTEN"), "{error}");
    }

    #[test]
    fn help_names_every_setting() {
        for setting in SETTINGS {
            assert!(help().contains(&format!("--{} ", setting.flag)));
            assert!(help().contains(&setting.variable()));
        }
    }
}
