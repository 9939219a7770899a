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
        assert!(page.contains("ndjson or csv") && !page.contains("Ndjson"), "names are not changed");
    }

    #[test]
    fn manual_page_is_laid_out_for_man() {
        let (page, version) = (page(), env!("CARGO_PKG_VERSION"));
        let begin = format!(
            r#".TH PETSTORE 1 "" "petstore {version}"
.SH NAME
petstore \- a pet store inventory service over HTTP, with an embedded SQLite database
.SH COMMANDS
.TP
\fBpetstore serve\fR
Run the service until SIGTERM or SIGINT; this is the default command.
.RS
.TP
\fB\-\-read\-only\fR
Never write to the database; creates get 503 read_only.
.RE
"#
        );
        assert!(page.starts_with(&begin), "{page}");
        for item in [
            "\n.RS\n.TP\n\\fB\\-\\-expires\\fR\\fI DATE\\fR\nWhen the key expires.\n.RE\n",
            "\n.TP\n\\fB\\-\\-workers\\fR\\fI NUMBER\\fR, \\fBPETSTORE_WORKERS\\fR\n",
            ". Default: petstore.db.\n.TP\n",
            "\n.TP\n\\fBPETSTORE_API_KEY\\fR\nAn additional API key.\n.TP\n",
        ] {
            assert!(page.contains(item), "{item}");
        }
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
