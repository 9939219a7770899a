//! `petstore man`, `petstore completions` and `petstore openapi`: the manual page and the scripts for shells, generated
//! from the tables of commands and settings, and the OpenAPI description.

use petstore::{SETTINGS, VARIABLES};

use super::command::{Command, CommandError, CommandResult, Invocation, Takes};
use super::output::print;
use super::{all, help};

pub const COMMANDS: &[Command] = &[
    Command {
        takes: Takes::Only(&["title", "base-url", "staging-url", "experimental"]),
        ..Command::new("openapi", "", "print the OpenAPI description", |call| {
            Ok(print(&petstore::openapi(&call.config))?)
        })
    },
    Command {
        takes: Takes::Only(&[]),
        ..Command::new("man", "", "print the manual page, for man(1)", |_| {
            Ok(print(&page())?)
        })
    },
    Command {
        takes: Takes::Only(&[]),
        ..Command::new(
            "completions",
            "SHELL",
            "print the completion script for bash, zsh or fish",
            complete,
        )
    },
];

fn complete(call: &Invocation) -> CommandResult {
    let script = match call.operand(0) {
        "bash" => bash(&offers()),
        "zsh" => zsh(&offers()),
        "fish" => fish(&offers()),
        other => return Err(CommandError::wrong("SHELL", "bash, zsh or fish", other)),
    };
    Ok(print(&script)?)
}

/// The manual page (`man-pages(7)`), from the tables of commands and settings.
fn page() -> String {
    let mut commands = String::new();
    for command in all() {
        commands += &item(&format!("petstore {}", command.usage()), command.about);
        let flags = command.flags.iter();
        let flags: String = flags.map(|flag| item(&flag.usage(), flag.about)).collect();
        if !flags.is_empty() {
            commands += &format!(".RS\n{flags}.RE\n");
        }
    }
    let (mut options, mut environment) = (String::new(), String::new());
    for setting in SETTINGS {
        let meaning = help::with_default(setting.help, setting.default);
        options += &item(&setting.usage(), &meaning);
        environment += &item(&setting.variable(), &format!("--{}", setting.flag));
    }
    for note in help::NOTES {
        options += &format!(".PP\n{}", fill(note));
    }
    for variable in VARIABLES {
        let meaning = help::with_default(variable.help, variable.default);
        environment += &item(variable.name, &meaning);
    }
    include_str!("petstore.1")
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
        .replace("{{about}}", help::ABOUT)
        .replace("{{commands}}", &commands)
        .replace("{{options}}", &options)
        .replace("{{environment}}", &environment)
}

/// An entry of a list: its name, and below it the text.
fn item(name: &str, text: &str) -> String {
    format!(".TP\n.B {}\n{}", escape(name), fill(text))
}

/// Text in lines of at most 80 bytes, and each sentence on a line of its own.
fn fill(text: &str) -> String {
    let mut lines = vec![String::new()];
    let mut ends = false;
    for word in text.split_whitespace().map(escape) {
        let last = lines.last().map_or(0, String::len);
        if last > 0 && (ends || last + 1 + word.len() > 80) {
            lines.push(String::new());
        }
        ends = word.ends_with(['.', ':', '?']);
        if let Some(line) = lines.last_mut() {
            *line += if line.is_empty() { "" } else { " " };
            *line += &word;
        }
    }
    // A line that begins with a full stop or an apostrophe would be a request.
    lines
        .iter()
        .map(|line| {
            if line.starts_with(['.', '\'']) {
                format!("\\&{line}\n")
            } else {
                format!("{line}\n")
            }
        })
        .collect()
}

/// Escapes what `man(7)` would interpret.
fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// The values that can follow a beginning of a command line; `*` stands for any words.
const VALUES: &[(&str, &str)] = &[
    ("*--format", "ndjson csv"),
    ("*--log-format", "text json"),
    ("restore*--keys", "current from-backup"),
    ("pet set*--status", STATUSES),
    ("pet status *", STATUSES),
    ("completions", "bash zsh fish"),
    ("site plan", "free pro enterprise"),
    ("key rotate", KEY_NAMES),
    ("key revoke", KEY_NAMES),
];
const STATUSES: &str = "available pending sold none";
/// A command of the shell that prints the names of the keys. It leaves out names with characters that `compgen -W` would
/// expand, since it would run a name such as `$(id)`.
const KEY_NAMES: &str =
    r"(petstore key list 2>/dev/null | sed -n '1d;s/^\([A-Za-z0-9._-]*\) .*/\1/p')";

/// A beginning of a command line, and the words that can follow it.
type Offer = (String, Vec<String>);

/// Lists the words that can follow each beginning of a command line. A beginning that ends with `*` is a whole command,
/// and its words are its flags. These come first; then come the beginnings that more words of a command must follow.
fn offers() -> Vec<Offer> {
    let mut commands: Vec<&Command> = all().collect();
    // The longest name first, since one name may be a prefix of another.
    commands.sort_by_key(|command| std::cmp::Reverse(command.name.len()));
    let flags = |command: &Command| {
        let settings = command.settings().map(|setting| setting.flag);
        let more = if command.name == "serve" {
            &["help", "version"][..]
        } else {
            &["help"]
        };
        let names = command
            .flags
            .iter()
            .map(|flag| flag.name)
            .chain(settings)
            .chain(more.iter().copied());
        names.map(|name| format!("--{name}")).collect()
    };
    let values = VALUES.iter().map(|(begun, values)| {
        let words = match *values {
            KEY_NAMES => vec![KEY_NAMES.to_owned()],
            values => values.split(' ').map(str::to_owned).collect(),
        };
        ((*begun).to_owned(), words)
    });
    let rows = commands
        .into_iter()
        .map(|command| (format!("{}*", command.name), flags(command)));
    let mut offers: Vec<Offer> = values.chain(rows).collect();
    // The flags of the default command, which needs no word.
    offers.extend(all().take(1).map(|serve| ("-*".to_owned(), flags(serve))));
    for command in all() {
        let mut begun = String::new();
        for word in command.name.split(' ') {
            match offers.iter_mut().find(|(known, _)| *known == begun) {
                Some((_, words)) if words.iter().any(|known| known == word) => {}
                Some((_, words)) => words.push(word.to_owned()),
                None => offers.push((begun.clone(), vec![word.to_owned()])),
            }
            begun = format!("{begun} {word}").trim_start().to_owned();
        }
    }
    offers
}

/// Quotes a text for bash, zsh and fish. They agree on all but quotes and backslashes between single quotes, so these
/// stand outside.
pub fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let quoted = text.chars().map(|c| match c {
        '\'' | '\\' => format!("'\\{c}'"),
        c => c.to_string(),
    });
    format!("'{}'", quoted.collect::<String>())
}

/// Quotes each word of a list, which a shell takes apart when it completes.
fn quote_all(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

/// The cases of bash and zsh, which set `offered` by the words before the cursor, in `line`.
fn cases(offers: &[Offer]) -> String {
    let mut cases =
        "    [[ -z $line && $word == -* ]] && line=-\n    case \"$line\" in\n".to_owned();
    for (begun, words) in offers {
        let parts: Vec<String> = begun.split('*').map(quote).collect();
        let words = if words == &[KEY_NAMES] {
            format!("\"${KEY_NAMES}\"")
        } else {
            quote(&quote_all(words))
        };
        cases += &format!("    {}) offered={words} ;;\n", parts.join("*"));
    }
    cases + "    esac\n"
}

fn bash(offers: &[Offer]) -> String {
    include_str!("completions.bash").replace("{{cases}}", &cases(offers))
}

/// As a file of `$fpath`, the script itself is the function of the first Tab (zshcompsys(1)).
fn zsh(offers: &[Offer]) -> String {
    include_str!("completions.zsh").replace("{{cases}}", &cases(offers))
}

fn fish(offers: &[Offer]) -> String {
    let line = |(begun, words): &Offer| {
        let pattern = format!("*petstore {begun}");
        // A flag without a command is told by the word that is typed; elsewhere, that word does not count.
        let line = if begun == "-*" {
            "(commandline -pc)"
        } else {
            "(commandline -opc | string join ' ')"
        };
        let seen = format!("string match -q {} -- {line}", quote(pattern.trim_end()));
        let words = if words == &[KEY_NAMES] {
            KEY_NAMES.to_owned()
        } else {
            quote_all(words)
        };
        format!(
            "complete -c petstore -n {} -a {}\n",
            quote(&seen),
            quote(&words)
        )
    };
    offers.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_and_completions_have_every_command_and_setting() {
        let page = page();
        let (bash, fish) = (bash(&offers()), fish(&offers()));
        for command in all() {
            assert!(
                page.contains(&format!("petstore {}", command.name)),
                "{}",
                command.name
            );
            assert!(
                bash.contains(&format!("{}*'')", quote(command.name))),
                "{}",
                command.name
            );
        }
        for setting in SETTINGS.iter() {
            let flag = setting.flag.replace('-', "\\-");
            assert!(page.contains(&format!("\\-\\-{flag}")), "{}", setting.flag);
            assert!(
                bash.contains(&format!("--{} ", setting.flag)),
                "{}",
                setting.flag
            );
            assert!(
                fish.contains(&format!("--{} ", setting.flag)),
                "{}",
                setting.flag
            );
        }
    }

    #[test]
    fn manual_page_is_laid_out_for_man() {
        let page = page();
        let sections: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix(".SH "))
            .collect();
        let expected = "NAME SYNOPSIS DESCRIPTION COMMANDS OPTIONS ENVIRONMENT FILES EXIT STATUS EXAMPLES SEE ALSO";
        assert_eq!(sections.join(" "), expected);
        assert!(
            page.lines().all(|line| (1..=80).contains(&line.len())),
            "{page}"
        );
        let requests = page.lines().filter(|line| line.starts_with(['.', '\'']));
        let known = [".TH ", ".SH ", ".TP", ".B ", ".BR ", ".PP", ".RS", ".RE"];
        assert!(
            requests
                .clone()
                .all(|line| known.iter().any(|known| line.starts_with(known))),
            "{page}"
        );
    }

    #[test]
    fn text_of_the_manual_page_is_no_request() {
        assert_eq!(fill("a b. .c"), "a b.\n\\&.c\n");
        assert_eq!(escape(r"a\b-c"), r"a\eb\-c");
    }

    #[test]
    fn values_are_those_of_the_help_text() {
        let help = help::text(&[]);
        // Builds without the site have no plans.
        let is_fixed = |(begun, values): &&(&str, &str)| {
            *values != KEY_NAMES && (cfg!(feature = "site") || *begun != "site plan")
        };
        for (_, values) in VALUES.iter().filter(is_fixed) {
            assert!(
                values.split(' ').all(|value| help.contains(value)),
                "{values}"
            );
        }
    }

    /// What a shell prints, line by line; `None` if it is not installed.
    fn lines_of(shell: &[&str], script: &str, words: &[&str]) -> Option<Vec<String>> {
        let output = std::process::Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", script, "petstore"])
            .args(words)
            .output();
        let printed = String::from_utf8(output.ok()?.stdout).unwrap();
        Some(printed.lines().map(str::to_owned).collect())
    }

    /// What bash offers for the last of these words.
    fn bash_offers(offers: &[Offer], words: &[&str]) -> Vec<String> {
        let keys =
            r#"petstore() { printf '%s\n' 'NAME SCOPE' '$(echo injected) full' 'shop full'; }"#;
        let complete =
            r#"COMP_WORDS=("$0" "$@") COMP_CWORD=$#; _petstore; printf '%s\n' "${COMPREPLY[@]}""#;
        let script = format!("{}{keys}\n{complete}", bash(offers));
        lines_of(&["bash"], &script, words).unwrap()
    }

    #[test]
    fn shells_offer_a_word_as_it_is() {
        let odd = r#"it's "$(echo run)" $HOME `id` \n \; & * ~ {a,b} #"#.to_owned();
        let words = ["plain".to_owned(), odd, r"\".to_owned()];
        let offers = [("a 'b'".to_owned(), words.to_vec())];
        assert_eq!(bash_offers(&offers, &["a", "'b'", ""])[..3], words);
        // Of zsh's completion system, what the script calls.
        let stubs =
            r#"compdef() { :; }; _files() { return 1; }; compadd() { shift; print -rl -- "$@"; }"#;
        let complete = r#"words=(petstore "$@") CURRENT=$(($# + 1)); _petstore"#;
        let script = format!("{stubs}\n{}{complete}", zsh(&offers));
        if let Some(offered) = lines_of(&["zsh", "-f"], &script, &["a", "'b'", ""]) {
            assert_eq!(offered, words);
        }
        let script = format!("{}complete -C \"petstore a \\'b\\' \"", fish(&offers));
        if let Some(offered) = lines_of(&["fish", "-N"], &script, &[]) {
            for word in words {
                assert!(offered.contains(&word), "{word}: {offered:?}");
            }
        }
    }

    #[test]
    fn bash_completes_words_and_flags() {
        let offered = |words: &[&str]| bash_offers(&offers(), words);
        assert_eq!(offered(&["ke"]), ["key"]);
        assert_eq!(offered(&["--v"]), ["--version"]);
        assert_eq!(offered(&["key", "re"]), ["revoke"]);
        assert_eq!(offered(&["key", "add", "ci", "--re"]), ["--read-only"]);
        assert_eq!(offered(&["--lis"]), ["--listen"]);
        assert_eq!(offered(&["--listen", "80", "--work"]), ["--workers"]);
        assert_eq!(offered(&["export", "--format", "n"]), ["ndjson"]);
        assert_eq!(offered(&["--log-format", "j"]), ["json"]);
        assert_eq!(offered(&["pet", "status", "1", "so"]), ["sold"]);
        assert_eq!(offered(&["completions", "f"]), ["fish"]);
        assert_eq!(offered(&["key", "revoke", "sho"]), ["shop"]);
        assert_eq!(
            offered(&["key", "revoke", "inj"]),
            [""],
            "no key name is run"
        );
        // Builds without the site have no domains.
        if offers().iter().any(|(begun, _)| begun == "domain") {
            assert_eq!(offered(&["domain", "redirect", "ad"]), ["add"]);
            assert_eq!(
                offered(&["domain", "redirect", "add", "--st"]),
                ["--status", "--staging-url"]
            );
        }
    }

    #[test]
    fn fish_offers_the_next_word_of_a_command() {
        let fish = fish(&offers());
        for (seen, words) in [
            ("petstore pet", "'set status delete'"),
            ("petstore pet delete*", "'--database --help'"),
            ("petstore man*", "--help"),
        ] {
            let seen = format!("string match -q '*{seen}' -- (commandline -opc | string join ' ')");
            let line = format!("complete -c petstore -n {} -a {words}\n", quote(&seen));
            assert!(fish.contains(&line), "{line}\n{fish}");
        }
    }
}
