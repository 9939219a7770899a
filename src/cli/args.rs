//! Turns the words of the command line and the environment into a call of a command, or says what is wrong with
//! them.

use std::ffi::{OsStr, OsString};

use lexopt::{Arg, Parser, ValueExt};
use petstore::{Config, SETTINGS, Setting};

use super::command::{Call, Command, Flag, Takes};
use super::program::ProgramSettings;
use super::{all, help};

/// What the words ask for.
pub enum Wish {
    /// Help about the commands that begin with these words.
    Help(Vec<String>),
    Version,
    Run(&'static Command, Box<Call>),
}

/// The flags as they were given, in their order.
#[derive(Default)]
struct Given {
    settings: Vec<(&'static Setting, OsString)>,
    /// Flags of commands.
    own: Vec<(&'static Flag, OsString)>,
}

/// Reads the words of the command line; `variable` reads the environment.
///
/// # Errors
/// One line that names the wrong word and says what is expected.
pub fn parse(mut parser: Parser, variable: impl Fn(&str) -> Option<OsString>) -> Result<Wish, String> {
    let (mut words, mut given, mut wants_help) = (Vec::new(), Given::default(), false);
    let say = |error: lexopt::Error| error.to_string();
    while let Some(arg) = parser.next().map_err(say)? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => wants_help = true,
            Arg::Short('V') | Arg::Long("version") => return Ok(Wish::Version),
            Arg::Long(name) => {
                let name = name.to_owned();
                // A flag of the command named so far comes before the setting of the same name.
                let of_command = find(&words).ok().and_then(|(command, _)| command.flag(&name));
                let setting = || SETTINGS.iter().find(|setting| setting.flag == name);
                match of_command.map_or_else(setting, |_| None) {
                    Some(setting) if setting.value.is_empty() => given.settings.push((setting, "1".into())),
                    Some(setting) => given.settings.push((setting, parser.value().map_err(say)?)),
                    None => {
                        let flag = of_command.or_else(|| all().find_map(|command| command.flag(&name)));
                        let flag = flag.ok_or_else(|| format!("unknown flag --{name}"))?;
                        let value = flag.value.map(|_| parser.value()).transpose().map_err(say)?;
                        given.own.push((flag, value.unwrap_or_default()));
                    }
                }
            }
            Arg::Short(flag) => return Err(format!("unknown flag -{flag}")),
            Arg::Value(word) if words.is_empty() && word == "help" => wants_help = true,
            Arg::Value(word) => words.push(word.string().map_err(say)?),
        }
    }
    if wants_help && all().any(|command| help::is_about(command, &words)) {
        return Ok(Wish::Help(words));
    }
    let (command, operands) = find(&words)?;
    check_count(command, &operands)?;
    let (config, own) = settings(command, &given.settings, variable)?;
    let mut flags = flags(command, given.own)?;
    let text = |value: &OsString| value.to_string_lossy().into_owned();
    flags.extend(given.settings.iter().map(|(setting, value)| (setting.flag, text(value))));
    let call = Call { command: command.name, config, own, flags, operands };
    Ok(Wish::Run(command, Box::new(call)))
}

/// The command that the words begin with, and the words after it.
fn find(words: &[String]) -> Result<(&'static Command, Vec<String>), String> {
    let fits = |command: &&Command| {
        let name = command.name.split(' ');
        name.clone().count() <= words.len() && name.zip(words).all(|(expected, word)| expected == word)
    };
    // The longest name wins, as one name may be the beginning of another.
    let found = all().filter(fits).max_by_key(|command| command.name.len());
    let first = words.first().map_or("", String::as_str);
    match (found, all().next()) {
        (Some(command), _) => Ok((command, words[command.name.split(' ').count()..].to_vec())),
        (None, Some(command)) if words.is_empty() => Ok((command, Vec::new())),
        _ => {
            let begins = |command: &&Command| command.name.split(' ').next() == Some(first);
            let verbs: Vec<&str> =
                all().filter(begins).filter_map(|c| c.name.split_once(' ')).map(|(_, v)| v).collect();
            Err(match (verbs.is_empty(), words.get(1)) {
                (true, _) => format!("unknown command '{first}'"),
                (false, None) => format!("{first} needs one of: {}", verbs.join(", ")),
                (false, Some(verb)) => {
                    format!("unknown command '{first} {verb}'; {first} has: {}", verbs.join(", "))
                }
            })
        }
    }
}

fn check_count(command: &Command, operands: &[String]) -> Result<(), String> {
    let expected: Vec<&str> = command.operands.split_whitespace().collect();
    match (expected.get(operands.len()), operands.get(expected.len())) {
        (Some(missing), _) if !missing.starts_with('[') => {
            let missing = missing.trim_end_matches("...");
            let article = if missing.starts_with(['A', 'E', 'I', 'O']) { "an" } else { "a" };
            Err(format!("{} needs {article} {missing}", command.name))
        }
        (_, Some(word)) if !command.operands.ends_with("...") => Err(format!("unexpected word '{word}'")),
        _ => Ok(()),
    }
}

/// The flags of the command itself.
fn flags(command: &Command, given: Vec<(&Flag, OsString)>) -> Result<Vec<(&'static str, String)>, String> {
    let read = |(flag, value): (&Flag, OsString)| {
        let name = flag.name;
        let flag = command.flag(name).ok_or_else(|| format!("'{}' does not take --{name}", command.name))?;
        Ok((flag.name, value.into_string().map_err(|_| format!("--{name} is not UTF-8 text"))?))
    };
    given.into_iter().map(read).collect()
}

/// The settings that the command takes: flags first, then the environment.
fn settings(
    command: &Command,
    given: &[(&'static Setting, OsString)],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(Config, ProgramSettings), String> {
    if let Some((other, _)) = given.iter().find(|(setting, _)| !command.takes.includes(setting.flag)) {
        return Err(format!("'{}' does not take --{}", command.name, other.flag));
    }
    let (mut config, mut own) = (Config::default(), ProgramSettings::default());
    for setting in SETTINGS.iter().filter(|setting| command.takes.includes(setting.flag)) {
        let is_this = |(other, _): &&(&Setting, _)| other.flag == setting.flag;
        let values: Vec<&OsStr> = given.iter().filter(is_this).map(|(_, value)| value.as_os_str()).collect();
        let (name, value) = match &values[..] {
            [] => (setting.variable(), variable(&setting.variable())),
            // Several values of a list become one text with commas, as in the environment variable.
            [.., last] => {
                let all = if setting.is_list { values.join(",".as_ref()) } else { (*last).to_owned() };
                (format!("--{}", setting.flag), Some(all))
            }
        };
        let Some(value) = value else { continue };
        let text = value.to_str().ok_or_else(|| format!("{name} is not UTF-8 text"))?;
        let done = match setting.set {
            Some(set) => set(&mut config, text),
            None => own.set(setting.flag, text),
        };
        done.map_err(|expected| format!("{name} must be {expected}, not '{text}'"))?;
    }
    if command.takes == Takes::All
        && let Some(key) = variable("PETSTORE_API_KEY")
    {
        // The message does not repeat the value: even a wrong one is a secret.
        config.api_key = Some(key.into_string().map_err(|_| "PETSTORE_API_KEY is not UTF-8 text")?);
    }
    config.join_access();
    Ok((config, own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn parsed(words: &[&str], environment: &[(&str, &str)]) -> Result<(&'static str, Box<Call>), String> {
        let variable = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
        parse(Parser::from_args(words), variable).map(|wish| match wish {
            Wish::Run(command, call) => (command.name, call),
            Wish::Help(_) | Wish::Version => panic!("{words:?} asks for no command"),
        })
    }

    fn served(words: &[&str], environment: &[(&str, &str)]) -> Config {
        let (name, call) = parsed(words, environment).unwrap();
        assert_eq!(name, "serve");
        call.config
    }

    #[test]
    fn list_flag_can_be_given_again() {
        let config = served(&["--trusted-proxy", "10.0.0.1", "--trusted-proxy=::1"], &[]);
        assert_eq!(config.trusted_proxies.len(), 2);
        let config = served(&[], &[("PETSTORE_TRUSTED_PROXY", "10.0.0.1,10.1.0.0/16,::1")]);
        assert_eq!(config.trusted_proxies.len(), 3);
        assert_eq!(served(&["--workers", "2", "--workers", "3"], &[]).workers, 3, "the last counts");
    }

    #[test]
    fn no_words_mean_serve() {
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
    fn command_reads_only_the_settings_that_it_takes() {
        let environment =
            [("PETSTORE_DATABASE", "a.db"), ("PETSTORE_WORKERS", "wrong"), ("PETSTORE_API_KEY", "k")];
        let (_, call) = parsed(&["key", "list"], &environment).unwrap();
        assert_eq!((call.config.database, call.config.api_key), (PathBuf::from("a.db"), None));
        let (_, call) = parsed(&["openapi", "--base-url", "https://pets.example/v1"], &environment).unwrap();
        assert_eq!(call.config.base_url.as_deref(), Some("https://pets.example/v1"));
        let error = parsed(&["key", "list", "--workers", "2"], &[]).unwrap_err();
        assert!(error.contains("--workers") && error.contains("key list"), "{error}");
    }

    #[test]
    fn words_and_flags_can_be_mixed() {
        let (name, call) = parsed(&["--read-only", "key", "--database=a", "add", "ci"], &[]).unwrap();
        assert_eq!((name, call.operand(0), call.has("read-only")), ("key add", "ci", true));
        assert_eq!(call.flag("expires"), None);
    }

    #[test]
    fn operand_can_be_optional_or_repeated() {
        let operands = |words: &[&str]| parsed(words, &[]).unwrap().1.operands;
        assert_eq!(operands(&["import"]), [""; 0]);
        assert_eq!(operands(&["import", "pets.ndjson"]), ["pets.ndjson"]);
        assert_eq!(operands(&["pet", "delete", "1", "2", "3"]), ["1", "2", "3"]);
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
            (&["openapi", "twice"], "twice"),
            (&["--expires", "2030-01-01"], "--expires"),
            (&["key"], "add, list"),
            (&["key", "add"], "NAME"),
            (&["key", "add", "a", "b"], "'b'"),
            (&["key", "list", "b"], "'b'"),
            (&["key", "drop", "a"], "drop"),
            (&["man", "--database", "a"], "'man' does not take --database"),
            (&["completions", "fish", "--database", "a"], "'completions' does not take --database"),
            (&["key", "rotate", "a", "--read-only"], "--read-only"),
            (&["import", "a", "b"], "'b'"),
            (&["pet", "delete"], "needs an ID"),
            (&["keys", "--help"], "unknown command 'keys'"),
            (&["key", "lsit", "--help"], "key has: add, list"),
            (&["pet", "status", "1"], "STATUS"),
        ] {
            let error = parsed(words, &[]).unwrap_err();
            assert!(error.contains(named), "{words:?}: {error}");
        }
        let error = parsed(&[], &[("PETSTORE_LISTEN", "")]).unwrap_err();
        assert!(error.contains("PETSTORE_LISTEN"), "{error}");
    }
}
