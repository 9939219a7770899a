//! Parses the command line and the environment.

use std::ffi::OsString;

use lexopt::{Arg, Parser, ValueExt};
use petstore::Config;

use super::command::{Command, Invocation};
use super::unknown_variables::meant;
use super::{all, help};

/// The result of parsing a command line.
pub enum Action {
    /// Help about the commands that begin with these words.
    Help(Vec<String>),
    Version,
    Run(&'static Command, Box<Invocation>),
}

/// A fault of the command line.
pub struct Misuse {
    /// One line that names the wrong word and the expected one.
    pub line: String,
    /// The words of the command so far, for its help.
    pub words: Vec<String>,
}

/// Parses the command line; `variable` reads the environment.
pub fn parse(
    parser: Parser,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Action, Misuse> {
    let mut words = Vec::new();
    parse_words(parser, &mut words, variable).map_err(|line| Misuse { line, words })
}

fn parse_words(
    mut parser: Parser,
    words: &mut Vec<String>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Action, String> {
    let mut given = Vec::new();
    let mut after = Vec::new();
    let mut wants_help = false;
    let describe = |error: lexopt::Error| error.to_string();
    loop {
        if let Some(rest) = parser.try_raw_args()
            && rest.peek().is_some_and(|word| word == "--")
        {
            after.extend(rest.skip(1));
            if after.first().is_none_or(|program| program.is_empty())
                && find(words).is_ok_and(|(command, _)| command.name == "serve")
            {
                return Err("-- needs a command".to_owned());
            }
        }
        let Some(arg) = parser.next().map_err(describe)? else {
            break;
        };
        match arg {
            Arg::Short('h') | Arg::Long("help") => wants_help = true,
            Arg::Short('V') | Arg::Long("version") => return Ok(Action::Version),
            Arg::Long(name) => {
                // The flag may belong to the command named so far, or to another one if its words are still to come.
                let named = find(words).ok().map(|(command, _)| command);
                let mut flags = named.into_iter().chain(all()).flat_map(flags_of);
                let Some((flag, has_value)) = flags.find(|(flag, _)| *flag == name) else {
                    let known = all()
                        .flat_map(flags_of)
                        .map(|(flag, _)| flag)
                        .chain(["help", "version"]);
                    let meant =
                        meant(name, known, 2).map(|flag| format!("; did you mean --{flag}?"));
                    return Err(format!(
                        "unknown flag --{name}{}",
                        meant.unwrap_or_default()
                    ));
                };
                let value = if has_value {
                    parser.value().and_then(ValueExt::string)
                } else {
                    Ok(String::new())
                };
                given.push((flag, value.map_err(describe)?));
            }
            Arg::Short(flag) => return Err(format!("unknown flag -{flag}")),
            Arg::Value(word) if words.is_empty() && word == "help" => wants_help = true,
            Arg::Value(word) => words.push(word.string().map_err(describe)?),
        }
    }
    let is_known = all().any(|command| help::is_about(command, words));
    // The beginning of several commands, such as `key`, stands for their help.
    if is_known && (wants_help || given.is_empty() && find(words).is_err()) {
        return Ok(Action::Help(std::mem::take(words)));
    }
    // Only `serve` runs what follows `--`. For other commands, these are operands that may begin with a hyphen.
    let child = if words.is_empty() || *words == ["serve"] {
        std::mem::take(&mut after)
    } else {
        Vec::new()
    };
    for word in after {
        words.push(word.string().map_err(describe)?);
    }
    let (command, operands) = find(words)?;
    check_count(command, &operands)?;
    if let Some((flag, _)) = given
        .iter()
        .find(|(flag, _)| !flags_of(command).any(|(taken, _)| taken == *flag))
    {
        return Err(format!("'{}' does not take --{flag}", command.name));
    }
    let mut call = Invocation {
        command: command.name,
        config: Config::default(),
        settings: Vec::new(),
        operands,
        child,
        flags: given,
    };
    set(command, &mut call, variable)?;
    Ok(Action::Run(command, Box::new(call)))
}

/// Lists the flags of a command, including those of its settings, each with true if it has a value.
fn flags_of(command: &Command) -> impl Iterator<Item = (&'static str, bool)> {
    let flags = command
        .flags
        .iter()
        .map(|flag| (flag.name, flag.value.is_some()));
    flags.chain(
        command
            .settings()
            .map(|setting| (setting.flag, !setting.is_switch())),
    )
}

/// Finds the command at the beginning of the words, and returns it with the words after it.
fn find(words: &[String]) -> Result<(&'static Command, Vec<String>), String> {
    let fits = |command: &&Command| {
        let name = command.name.split(' ');
        name.clone().count() <= words.len()
            && name.zip(words).all(|(expected, word)| expected == word)
    };
    // The longest name wins, since one name may be a prefix of another.
    let found = all().filter(fits).max_by_key(|command| command.name.len());
    match (found, all().next()) {
        (Some(command), _) => Ok((command, words[command.name.split(' ').count()..].to_vec())),
        (None, Some(command)) if words.is_empty() => Ok((command, Vec::new())),
        _ => {
            // Also the beginning of several commands, such as `key`.
            let groups = all()
                .filter_map(|command| command.name.split_once(' '))
                .map(|(group, _)| group);
            let known = all().map(|command| command.name).chain(groups);
            let typed = words.get(..2).unwrap_or(words).join(" ");
            let meant = meant(&typed, known.clone(), 2).or_else(|| meant(words.first()?, known, 2));
            let meant = meant
                .map(|name| format!("; did you mean {name}?"))
                .unwrap_or_default();
            Err(format!("there is no command '{}'{meant}", words.join(" ")))
        }
    }
}

fn check_count(command: &Command, operands: &[String]) -> Result<(), String> {
    let before = command.operands.split("[--").next().unwrap_or_default();
    let expected: Vec<&str> = before.split_whitespace().collect();
    match (expected.get(operands.len()), operands.get(expected.len())) {
        (Some(missing), _) if !missing.starts_with('[') => {
            let missing = missing.trim_end_matches("...");
            Err(format!("{} needs {missing}", command.name))
        }
        (_, Some(word)) if !before.contains("...") => Err(format!("unexpected word '{word}'")),
        _ => Ok(()),
    }
}

/// Rejects the value of a setting with a flaw that a shell or an editor may have left.
fn check(name: &str, value: &str) -> Result<(), String> {
    petstore::flaw(value).map_or(Ok(()), |flaw| Err(format!("{name} {flaw}: {value:?}")))
}

/// Applies the settings of the command: from flags first, then from the environment.
fn set(
    command: &Command,
    call: &mut Invocation,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(), String> {
    let from_environment = |name: String| -> Result<_, String> {
        let Some(value) = variable(&name).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let text = value
            .into_string()
            .map_err(|_| format!("{name} is not UTF-8 text"))?;
        Ok(Some((name, text)))
    };
    for setting in command.settings() {
        let is_this = |(flag, _): &&(&str, String)| *flag == setting.flag;
        let values: Vec<&str> = call
            .flags
            .iter()
            .filter(is_this)
            .map(|(_, value)| value.as_str())
            .collect();
        let (name, text) = match &values[..] {
            [] => match from_environment(setting.variable())? {
                None => continue,
                Some(given) => given,
            },
            // Several values of a list become one text with commas, as in the environment variable.
            _ if setting.is_list => (format!("--{}", setting.flag), values.join(",")),
            [..] if setting.is_switch() => (String::new(), "true".to_owned()),
            [.., last] => (format!("--{}", setting.flag), (*last).to_owned()),
        };
        check(&name, &text)?;
        if let Some(set) = setting.set {
            set(&mut call.config, &text)
                .map_err(|expected| format!("{name} must be {expected}, not '{text}'"))?;
        }
        if !setting.is_switch() || text == "true" {
            call.settings.push((setting.flag, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn parsed(
        words: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<(&'static str, Box<Invocation>), String> {
        let variable = |name: &str| {
            environment
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v.into())
        };
        parse(Parser::from_args(words), variable)
            .map_err(|misuse| misuse.line)
            .map(|action| match action {
                Action::Run(command, call) => (command.name, call),
                Action::Help(_) | Action::Version => panic!("{words:?} asks for no command"),
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
        let config = served(
            &[],
            &[("PETSTORE_TRUSTED_PROXY", "10.0.0.1,10.1.0.0/16,::1")],
        );
        assert_eq!(config.trusted_proxies.len(), 3);
        assert_eq!(
            served(&["--workers", "2", "--workers", "3"], &[]).workers,
            3,
            "the last counts"
        );
    }

    #[test]
    fn no_words_mean_serve() {
        assert_eq!(served(&[], &[]).max_connections, 10_000);
        assert_eq!(
            served(&["serve"], &[]).database,
            PathBuf::from("petstore.db")
        );
    }

    #[test]
    fn flag_wins_over_the_environment() {
        let environment = [("PETSTORE_DATABASE", "a.db"), ("PETSTORE_WORKERS", "3")];
        let config = served(&["--workers=5", "serve"], &environment);
        assert_eq!(
            (config.workers, config.database),
            (5, PathBuf::from("a.db"))
        );
        served(
            &["--workers", "5"],
            &[("PETSTORE_WORKERS", "wrong, and not asked for")],
        );
    }

    #[test]
    fn command_reads_only_the_settings_that_it_takes() {
        let environment = [("PETSTORE_DATABASE", "a.db"), ("PETSTORE_WORKERS", "wrong")];
        let (_, call) = parsed(&["key", "list"], &environment).unwrap();
        assert_eq!(call.config.database, PathBuf::from("a.db"));
        let (_, call) = parsed(
            &["openapi", "--base-url", "https://pets.example/v1"],
            &environment,
        )
        .unwrap();
        assert_eq!(
            call.config.base_url.as_deref(),
            Some("https://pets.example/v1")
        );
        let error = parsed(&["key", "list", "--workers", "2"], &[]).unwrap_err();
        assert!(
            error.contains("--workers") && error.contains("key list"),
            "{error}"
        );
    }

    #[test]
    fn words_and_flags_can_be_mixed() {
        let (name, call) =
            parsed(&["--read-only", "key", "--database=a", "add", "ci"], &[]).unwrap();
        assert_eq!(
            (name, call.operand(0), call.has("read-only")),
            ("key add", "ci", true)
        );
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
            (&["dance"], "'dance'"),
            (&["kye"], "'kye'; did you mean key?"),
            (&["kye", "add", "ci"], "did you mean key add?"),
            (&["key", "rovoke", "ci"], "did you mean key revoke?"),
            (&["bakcup", "a.db"], "did you mean backup?"),
            (
                &["pet", "status1"],
                "'pet status1'; did you mean pet status?",
            ),
            (
                &["--databse", "a"],
                "unknown flag --databse; did you mean --database?",
            ),
            (&["--verison"], "did you mean --version?"),
            (
                &["key", "add", "a", "--expire=never"],
                "did you mean --expires?",
            ),
            (&["serve", "twice"], "twice"),
            (&["openapi", "twice"], "twice"),
            (&["--expires", "2030-01-01"], "--expires"),
            (&["key", "--expires", "never"], "no command 'key'"),
            (&["--frobnicate"], "unknown flag --frobnicate"),
            (&["key", "add"], "NAME"),
            (&["key", "add", "a", "b"], "'b'"),
            (&["key", "list", "b"], "'b'"),
            (&["key", "drop", "a"], "drop"),
            (
                &["man", "--database", "a"],
                "'man' does not take --database",
            ),
            (
                &["completions", "fish", "--database", "a"],
                "'completions' does not take --database",
            ),
            (&["key", "rotate", "a", "--read-only"], "--read-only"),
            (&["import", "a", "b"], "'b'"),
            (&["pet", "delete"], "needs ID"),
            (&["keys", "--help"], "no command 'keys'"),
            (&["key", "lsit", "--help"], "no command 'key lsit'"),
            (&["pet", "status", "1"], "STATUS"),
        ] {
            let error = parsed(words, &[]).unwrap_err();
            assert!(error.contains(named), "{words:?}: {error}");
        }
        let error = parsed(&[], &[("PETSTORE_LISTEN", "nowhere")]).unwrap_err();
        assert!(error.contains("PETSTORE_LISTEN"), "{error}");
        let error = parsed(&[], &[("PETSTORE_LOG_FORMAT", "yaml")]).unwrap_err();
        assert_eq!(
            error,
            "PETSTORE_LOG_FORMAT must be text or json, not 'yaml'"
        );
    }

    #[test]
    fn what_a_shell_or_an_editor_leaves_is_refused_in_every_setting() {
        for setting in petstore::SETTINGS.iter() {
            let flag = format!("--{}", setting.flag);
            let variable = setting.variable();
            for left in [
                "a\r",
                "a\n",
                "\u{feff}a",
                "a ",
                "\ta",
                "a\u{a0}",
                "\"a\"",
                "'a b'",
                "\"",
                "a\u{7f}b",
            ] {
                if !setting.is_switch() {
                    let error = parsed(&[&flag, left], &[]).unwrap_err();
                    assert!(
                        error.starts_with(&format!("{flag} ")) && !error.contains("must be"),
                        "{left:?}: {error}"
                    );
                }
                let error = parsed(&[], &[(&variable, left)]).unwrap_err();
                assert!(
                    error.starts_with(&format!("{variable} ")),
                    "{left:?}: {error}"
                );
            }
            assert!(
                parsed(&[], &[(&variable, "")]).is_ok(),
                "an empty variable counts as not set"
            );
        }
        for title in ["The \"best\" pets", "Pets 'R' us", "'A' and B", "Tim's"] {
            assert_eq!(served(&[], &[("PETSTORE_TITLE", title)]).title, title);
        }
    }

    #[test]
    fn switch_has_a_flag_and_a_variable() {
        let serve = find(&[]).unwrap().0;
        assert!(
            serve.flags.iter().all(|flag| flag.value.is_some()),
            "a switch of serve is a setting"
        );
        for setting in serve.settings().filter(|setting| setting.is_switch()) {
            let name = setting.variable();
            let flag = format!("--{}", setting.flag);
            let (_, call) = parsed(&[&flag], &[(&name, "false")]).unwrap();
            assert!(call.is_on(setting.flag), "the flag wins");
            let is_on =
                |value| parsed(&[], &[(&name, value)]).map(|(_, call)| call.is_on(setting.flag));
            assert_eq!(
                [is_on("true"), is_on("false"), is_on("")],
                [Ok(true), Ok(false), Ok(false)]
            );
            let expected = format!("{name} must be true or false, not 'yes'");
            assert_eq!(is_on("yes"), Err(expected));
        }
        let (_, call) = parsed(&["key", "add", "ci"], &[("PETSTORE_READ_ONLY", "true")]).unwrap();
        assert!(!call.is_on("read-only"), "the key is a full one");
    }
}
