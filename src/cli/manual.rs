//! `petstore man` and `petstore completions`: the manual page and the scripts for shells, generated from the
//! tables of commands and settings.

use std::fmt::Write;

use petstore::{SETTINGS, VARIABLES};

use super::all;
use super::command::{Call, Command, Done, Failure, Takes};
use super::output::print;

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

/// The manual page (man-pages(7)).
fn page() -> String {
    let mut page = Page::default();
    page.request(concat!("TH PETSTORE 1 \"\" \"petstore ", env!("CARGO_PKG_VERSION"), "\""));
    page.request("SH NAME");
    page.text(&[roman(
        "petstore - a pet store inventory service over HTTP, with an embedded SQLite database",
    )]);
    page.request("SH COMMANDS");
    for command in all() {
        let name = bold(&format!("petstore {}", command.name));
        page.item(&[name, italic(command.operands)], command.about);
        for flag in command.flags {
            page.request("RS");
            page.item(
                &[bold(&format!("--{}", flag.name)), italic(flag.value.unwrap_or_default())],
                flag.about,
            );
            page.request("RE");
        }
    }
    page.request("SH SETTINGS");
    page.text(&[roman(
        "Each setting can be a flag or an environment variable. If you give both, the flag wins.",
    )]);
    for setting in SETTINGS {
        let mut about = setting.help.to_owned();
        if setting.is_list {
            about += ". Repeat the flag, or list values in the variable with commas";
        }
        about += &default(setting.default);
        let flag = bold(&format!("--{}", setting.flag));
        page.item(&[flag, italic(setting.value), roman(", "), bold(&setting.variable())], &about);
    }
    page.request("SH ENVIRONMENT");
    for [name, help, value] in VARIABLES {
        page.item(&[bold(name)], &format!("{help}{}", default(value)));
    }
    page.request("SH \"EXIT STATUS\"");
    page.text(&[roman("0 after success, 1 after a failure, 2 for a wrong command line.")]);
    page.0
}

/// A default as it follows the help text of a setting; nothing if there is none.
fn default(value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(". Default: {value}") }
}

/// A manual page in the language of man(7).
#[derive(Default)]
struct Page(String);

impl Page {
    fn request(&mut self, words: &str) {
        self.0 += &format!(".{words}\n");
    }

    fn text(&mut self, parts: &[String]) {
        self.0 += &(parts.concat() + "\n");
    }

    /// A tagged paragraph: its head, and a sentence in plain words.
    fn item(&mut self, head: &[String], about: &str) {
        let (first, rest) = about.split_at(about.chars().next().map_or(0, char::len_utf8));
        self.request("TP");
        self.text(head);
        self.text(&[roman(&format!("{}{rest}.", first.to_uppercase()))]);
    }
}

/// Plain text. No text of ours begins with a full stop or an apostrophe, which would make it a request.
fn roman(text: &str) -> String {
    text.replace('\\', r"\\").replace('-', r"\-")
}

fn bold(text: &str) -> String {
    format!(r"\fB{}\fR", roman(text))
}

/// The text and a space before it, if there is any text.
fn italic(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(r"\fI {}\fR", roman(text)) }
}

/// The flags that a command takes, without their dashes.
fn flags(command: &'static Command) -> impl Iterator<Item = &'static str> {
    let settings = SETTINGS.iter().map(|setting| setting.flag).filter(|flag| command.takes.includes(flag));
    command.flags.iter().map(|flag| flag.name).chain(settings).chain(["help"])
}

/// The words of commands that can follow these words, in the order of the table.
fn next_words(begun: &[&str]) -> Vec<&'static str> {
    let mut words = Vec::new();
    for command in all() {
        let mut name = command.name.split(' ');
        let fits = begun.iter().all(|word| name.next() == Some(word));
        if let (true, Some(next)) = (fits, name.next())
            && !words.contains(&next)
        {
            words.push(next);
        }
    }
    words
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
    let firsts = next_words(&[]);
    for first in firsts.iter().filter(|first| !next_words(&[first]).is_empty()) {
        let _ = writeln!(script, "    '{first}') words='{}' ;;", next_words(&[first]).join(" "));
    }
    let _ = writeln!(script, "    '') words='{} --help --version' ;;", firsts.join(" "));
    script
        + "    esac\n    mapfile -t COMPREPLY < <(IFS=$' \\n'; compgen -W \"$words\" -- \"$word\"; \
        [[ $word == -* ]] || compgen -f -- \"$word\")\n}\ncomplete -o filenames -F _petstore petstore\n"
}

fn fish() -> String {
    let mut script = String::new();
    for command in all() {
        let (first, rest) = command.name.split_once(' ').map_or((command.name, None), |(a, b)| (a, Some(b)));
        let seen = command.name.split(' ').map(|word| format!("__fish_seen_subcommand_from {word}"));
        let seen = seen.collect::<Vec<_>>().join("; and ");
        if rest.is_none_or(|rest| next_words(&[first]).first() == Some(&rest)) {
            let _ = writeln!(script, "complete -c petstore -n __fish_use_subcommand -a {first}");
        }
        if let Some(rest) = rest {
            let about = command.about.replace('\'', "\\'");
            let _ = writeln!(
                script,
                "complete -c petstore -n '__fish_seen_subcommand_from {first}' -a {rest} -d '{about}'"
            );
        }
        for flag in flags(command) {
            let _ = writeln!(script, "complete -c petstore -n '{seen}' -l {flag}");
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
        assert!(page.contains("ndjson or csv") && !page.contains("Ndjson"), "names are not changed");
        assert_eq!(next_words(&["key"])[..2], ["add", "list"]);
        assert!(next_words(&["serve"]).is_empty());
    }
}
