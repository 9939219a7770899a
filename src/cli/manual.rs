//! `petstore man` and `petstore completions`: the manual page and the scripts for shells, generated from the
//! tables of commands and settings.

use std::fmt::Write;

use petstore::SETTINGS;

use super::command::{Call, Command, Done, Failure, Takes};
use super::output::print;
use super::{all, help};

pub const COMMANDS: &[Command] = &[
    Command {
        takes: Takes::Only(&[]),
        ..Command::new("man", "", "print the manual page, for man(1)", |_| Ok(print(&page())?))
    },
    Command {
        takes: Takes::Only(&[]),
        ..Command::new("completions", "SHELL", "print the completion script for bash, zsh or fish", complete)
    },
];

fn complete(call: &Call) -> Done {
    let script = match call.operand(0) {
        "bash" => bash(),
        // zsh reads completions for bash (zshcompsys(1), bashcompinit).
        "zsh" => format!("#compdef petstore\nautoload -U +X bashcompinit && bashcompinit\n{}", bash()),
        "fish" => fish(),
        other => return Err(Failure::wrong("SHELL", "bash, zsh or fish", other)),
    };
    Ok(print(&script)?)
}

/// The manual page (man-pages(7)): the help text as it is.
fn page() -> String {
    let text = help::text(&[]).replace('\\', r"\\").replace('-', r"\-");
    // A line that begins with a full stop or an apostrophe would be a request.
    format!(
        ".TH PETSTORE 1 \"\" \"petstore {}\"\n.SH NAME\npetstore \\- {}\n.SH SYNOPSIS\n.nf\n{text}.fi\n",
        env!("CARGO_PKG_VERSION"),
        help::ABOUT,
    )
}

/// The flags that a command takes, without their dashes.
fn flags(command: &'static Command) -> impl Iterator<Item = &'static str> {
    let settings = SETTINGS.iter().map(|setting| setting.flag).filter(|flag| command.takes.includes(flag));
    command.flags.iter().map(|flag| flag.name).chain(settings).chain(["help"])
}

/// The beginnings of commands, such as `domain redirect` or nothing, and which words can follow each.
fn next_words() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut next: Vec<(&str, Vec<&str>)> = Vec::new();
    for command in all() {
        let mut end = 0;
        for word in command.name.split(' ') {
            let begun = &command.name[..end];
            end += word.len() + usize::from(end > 0);
            match next.iter_mut().find(|(known, _)| *known == begun) {
                Some((_, words)) if words.contains(&word) => {}
                Some((_, words)) => words.push(word),
                None => next.push((begun, vec![word])),
            }
        }
    }
    next
}

fn bash() -> String {
    let mut script = "_petstore() {\n    local IFS=' ' line=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\"\n    \
        local word=\"${COMP_WORDS[COMP_CWORD]}\" words=\n    case \"$line\" in\n"
        .to_owned();
    let mut commands: Vec<&Command> = all().collect();
    // The longest name first, as one name may be the beginning of another.
    commands.sort_by_key(|command| std::cmp::Reverse(command.name.len()));
    for command in commands {
        let flags: Vec<String> = flags(command).map(|flag| format!("--{flag}")).collect();
        // Writing to memory cannot fail.
        let _ = writeln!(script, "    '{}'*) words='{}' ;;", command.name, flags.join(" "));
    }
    for (begun, words) in next_words() {
        let flags = if begun.is_empty() { " --help --version" } else { "" };
        let _ = writeln!(script, "    '{begun}') words='{}{flags}' ;;", words.join(" "));
    }
    script
        + "    esac\n    mapfile -t COMPREPLY < <(IFS=$' \\n'; compgen -W \"$words\" -- \"$word\"; \
        [[ $word == -* ]] || compgen -f -- \"$word\")\n}\ncomplete -o filenames -F _petstore petstore\n"
}

/// The function of fish that tells whether one of these words has been typed.
const SEEN: &str = "__fish_seen_subcommand_from";

/// The condition of fish under which all of these words have been typed, and no word if these are none.
fn seen(words: &str) -> String {
    if words.is_empty() {
        return "__fish_use_subcommand".to_owned();
    }
    format!("{SEEN} {}", words.replace(' ', &format!("; and {SEEN} ")))
}

fn fish() -> String {
    let mut script = String::new();
    for (begun, words) in next_words() {
        let seen = seen(begun);
        let unless =
            if begun.is_empty() { String::new() } else { format!("; and not {SEEN} {}", words.join(" ")) };
        for word in words {
            let name = format!("{begun} {word}");
            let command = all().find(|command| command.name == name.trim_start());
            let about = command.map(|command| command.about.replace('\'', "\\'")).unwrap_or_default();
            let _ = writeln!(script, "complete -c petstore -n '{seen}{unless}' -a {word} -d '{about}'");
        }
    }
    for command in all() {
        for flag in flags(command) {
            let _ = writeln!(script, "complete -c petstore -n '{}' -l {flag}", seen(command.name));
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_and_completions_have_every_command_and_setting() {
        let (page, bash, fish) = (page(), bash(), fish());
        for command in all() {
            assert!(page.contains(&format!("petstore {}", command.name)), "{}", command.name);
            assert!(bash.contains(&format!("'{}'*)", command.name)), "{}", command.name);
        }
        for setting in SETTINGS {
            let flag = setting.flag.replace('-', "\\-");
            assert!(page.contains(&format!("\\-\\-{flag}")), "{}", setting.flag);
            assert!(bash.contains(&format!("--{} ", setting.flag)), "{}", setting.flag);
            assert!(fish.contains(&format!("-l {}\n", setting.flag)), "{}", setting.flag);
        }
    }

    #[test]
    fn manual_page_is_laid_out_for_man() {
        let (page, version) = (page(), env!("CARGO_PKG_VERSION"));
        assert!(
            page.starts_with(&format!(
                ".TH PETSTORE 1 \"\" \"petstore {version}\"\n.SH NAME\npetstore \\- a "
            ))
        );
        let requests = page.lines().filter(|line| line.starts_with(['.', '\'']));
        assert_eq!(requests.map(|line| &line[1..3]).collect::<String>(), "THSHSHnffi");
    }

    #[test]
    fn bash_completes_words_and_flags() {
        let offered = |words: &[&str]| {
            let script = bash()
                + "COMP_WORDS=(\"$0\" \"$@\") COMP_CWORD=$#; _petstore; printf '%s\\n' \"${COMPREPLY[@]}\"";
            let words = ["-c", &script, "petstore"].into_iter().chain(words.iter().copied());
            let output = std::process::Command::new("bash").args(words).output().unwrap();
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(offered(&["ke"]), ["key"]);
        assert_eq!(offered(&["--v"]), ["--version"]);
        assert_eq!(offered(&["key", "re"]), ["revoke"]);
        assert_eq!(offered(&["key", "add", "ci", "--re"]), ["--read-only"]);
        // Not without the site.
        if next_words().iter().any(|(begun, _)| *begun == "domain") {
            assert_eq!(offered(&["domain", "redirect", "ad"]), ["add"]);
            assert_eq!(offered(&["domain", "redirect", "add", "--st"]), ["--status", "--staging-url"]);
        }
    }

    #[test]
    fn fish_offers_the_next_word_of_a_command() {
        let fish = fish();
        for line in [
            "-n '__fish_use_subcommand' -a key -d ''",
            "-n '__fish_use_subcommand' -a man -d 'print the manual page, for man(1)'",
            "-n '__fish_seen_subcommand_from pet; and not __fish_seen_subcommand_from status delete' -a delete -d 'delete pets: all of these or none'",
            "-n '__fish_seen_subcommand_from pet; and __fish_seen_subcommand_from delete' -l database",
            "-n '__fish_seen_subcommand_from man' -l help",
        ] {
            assert!(fish.contains(&format!("complete -c petstore {line}\n")), "{line}\n{fish}");
        }
        assert_eq!(fish.matches(" -a pet ").count(), 1);
    }
}
