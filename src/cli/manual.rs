//! `petstore man`, `petstore completions` and `petstore openapi`: the manual page and the scripts for shells, generated
//! from the tables of commands and settings, and the interface description.

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
        ..Command::new("man", "", "print the manual page, for man(1)", |_| Ok(print(&page())?))
    },
    Command {
        takes: Takes::Only(&[]),
        ..Command::new("completions", "SHELL", "print the completion script for bash, zsh or fish", complete)
    },
];

fn complete(call: &Invocation) -> CommandResult {
    let script = match call.operand(0) {
        "bash" => bash(),
        // zsh reads completions for bash (zshcompsys(1), bashcompinit).
        "zsh" => format!("#compdef petstore\nautoload -U +X bashcompinit && bashcompinit\n{}", bash()),
        "fish" => fish(),
        other => return Err(CommandError::wrong("SHELL", "bash, zsh or fish", other)),
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

/// Lists the words that can follow each beginning of a command line. A beginning that ends with `*` is a whole command,
/// and its words are its flags. These come first; then come the beginnings that more words of a command must follow.
fn offers() -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<&Command> = all().collect();
    // The longest name first, since one name may be a prefix of another.
    commands.sort_by_key(|command| std::cmp::Reverse(command.name.len()));
    let flags = |command: &Command| {
        let settings = command.settings().map(|setting| setting.flag);
        let names = command.flags.iter().map(|flag| flag.name).chain(settings).chain(["help"]);
        names.map(|name| format!("--{name}")).collect()
    };
    let mut offers: Vec<(String, Vec<String>)> =
        commands.into_iter().map(|command| (format!("{}*", command.name), flags(command))).collect();
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

fn bash() -> String {
    let mut script = "_petstore() {\n    local IFS=' ' line=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\"\n    \
        local word=\"${COMP_WORDS[COMP_CWORD]}\" words=\n    case \"$line\" in\n"
        .to_owned();
    for (begun, words) in offers() {
        let (pattern, flags) = match begun.strip_suffix('*') {
            Some(name) => (format!("'{name}'*"), ""),
            None => (format!("'{begun}'"), if begun.is_empty() { " --help --version" } else { "" }),
        };
        script += &format!("    {pattern}) words='{}{flags}' ;;\n", words.join(" "));
    }
    script
        + "    esac\n    mapfile -t COMPREPLY < <(IFS=$' \\n'; compgen -W \"$words\" -- \"$word\"; \
        [[ $word == -* ]] || compgen -f -- \"$word\")\n}\ncomplete -o filenames -F _petstore petstore\n"
}

fn fish() -> String {
    let line = |(begun, words): &(String, Vec<String>)| {
        let pattern = format!("*petstore {begun}");
        let seen =
            format!("string match -q '{}' -- (commandline -opc | string join ' ')", pattern.trim_end());
        format!("complete -c petstore -n \"{seen}\" -a '{}'\n", words.join(" "))
    };
    offers().iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore::SETTINGS;

    #[test]
    fn manual_and_completions_have_every_command_and_setting() {
        let page = page();
        let bash = bash();
        let fish = fish();
        for command in all() {
            assert!(page.contains(&format!("petstore {}", command.name)), "{}", command.name);
            assert!(bash.contains(&format!("'{}'*)", command.name)), "{}", command.name);
        }
        for setting in SETTINGS.iter() {
            let flag = setting.flag.replace('-', "\\-");
            assert!(page.contains(&format!("\\-\\-{flag}")), "{}", setting.flag);
            assert!(bash.contains(&format!("--{} ", setting.flag)), "{}", setting.flag);
            assert!(fish.contains(&format!("--{} ", setting.flag)), "{}", setting.flag);
        }
    }

    #[test]
    fn manual_page_is_laid_out_for_man() {
        let page = page();
        let version = env!("CARGO_PKG_VERSION");
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
        // Builds without the site have no domains.
        if offers().iter().any(|(begun, _)| begun == "domain") {
            assert_eq!(offered(&["domain", "redirect", "ad"]), ["add"]);
            assert_eq!(offered(&["domain", "redirect", "add", "--st"]), ["--status", "--staging-url"]);
        }
    }

    #[test]
    fn fish_offers_the_next_word_of_a_command() {
        let fish = fish();
        for (seen, words) in [
            ("petstore pet", "set status delete"),
            ("petstore pet delete*", "--database "),
            ("petstore man*", "--help'"),
        ] {
            let line = format!(
                "complete -c petstore -n \"string match -q '*{seen}' -- (commandline -opc | string join ' ')\" -a '{words}"
            );
            assert!(fish.contains(&line), "{line}\n{fish}");
        }
    }
}
