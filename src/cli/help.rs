//! The help text, generated from the tables of commands and settings.

use petstore::{SETTINGS, Setting, VARIABLES};

use super::all;
use super::command::{Command, Flag, Takes};

/// The purpose of the program.
pub const ABOUT: &str = "a pet store inventory over HTTP, with an embedded SQLite database";
/// The column in which the explanations begin.
const COLUMN: usize = 31;

/// Returns the help text about the commands that begin with these words; about all commands if there are no words.
pub fn text(words: &[String]) -> String {
    let commands: Vec<&Command> = all().filter(|command| is_about(command, words)).collect();
    let mut text = format!("petstore: {ABOUT}\n\n");
    commands
        .iter()
        .for_each(|command| text += &describe(command));
    let is_taken = |setting: &&Setting| {
        commands
            .iter()
            .any(|command| command.settings().any(|taken| taken.flag == setting.flag))
    };
    let settings: Vec<&Setting> = SETTINGS.iter().filter(is_taken).collect();
    if !settings.is_empty() {
        text += "\nSettings, as flags or environment variables (the flag wins) [default]:\n";
    }
    for setting in settings {
        let list = if setting.is_list {
            "; repeat the flag, or list values in the variable with commas"
        } else {
            ""
        };
        text += &row(&setting.usage(), &setting.variable());
        let help = format!("{}{list}", setting.help);
        text += &row("", &with_default(&help, setting.default));
    }
    if commands.iter().any(|command| command.takes == Takes::All) {
        for variable in VARIABLES {
            text += &row("", variable.name);
            text += &row("", &with_default(variable.help, variable.default));
        }
    }
    let is_used = |note: &&&str| {
        note.split(' ')
            .next()
            .is_some_and(|word| text.contains(word))
    };
    let notes: String = NOTES
        .iter()
        .filter(is_used)
        .map(|note| format!("{note}\n"))
        .collect();
    format!("{text}\n{notes}Exit codes: 0 success, 1 failure, 2 wrong command line.\n")
}

/// Returns whether help about these words includes the command.
pub fn is_about(command: &Command, words: &[String]) -> bool {
    command
        .name
        .split(' ')
        .zip(words)
        .all(|(expected, word)| expected == word)
}

/// Notes on placeholders. A note is printed if its first word is in the help text.
pub const NOTES: &[&str] = &[
    "DATE is a day such as 2027-01-31 (its start in UTC), a time such as 2027-01-31T18:00:00Z, a DURATION from now, or never.",
    "FINGERPRINT is the beginning of a key's SHA-256 digest, as key list shows it.",
    "DURATION is a time span such as 30min, 12h or 7d.",
];

fn describe(command: &Command) -> String {
    let flag = |flag: &Flag| row(&format!("    {}", flag.usage()), flag.about);
    let command_row = row(&format!("petstore {}", command.usage()), command.about);
    std::iter::once(command_row)
        .chain(command.flags.iter().map(flag))
        .collect()
}

/// The help text of a setting with its default, if it has one.
pub fn with_default(help: &str, default: &str) -> String {
    if default.is_empty() {
        help.to_owned()
    } else {
        format!("{help} [{default}]")
    }
}

/// Prints two columns. If the first is too long, the second begins on a line of its own.
fn row(left: &str, right: &str) -> String {
    if left.len() + 4 > COLUMN {
        format!("  {left}\n{:COLUMN$}{right}\n", "")
    } else {
        format!("  {left:<width$}{right}\n", width = COLUMN - 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_command_and_setting() {
        let whole = text(&[]);
        for setting in SETTINGS.iter() {
            assert!(
                whole.contains(&format!("--{} ", setting.flag))
                    && whole.contains(&setting.variable())
            );
        }
        for command in all() {
            assert!(
                whole.contains(&format!("petstore {}", command.name)),
                "{}",
                command.name
            );
            assert!(
                command
                    .flags
                    .iter()
                    .all(|flag| whole.contains(&format!("--{}", flag.name)))
            );
        }
    }

    #[test]
    fn commands_that_create_no_database_do_not_say_so() {
        for words in ["backup", "check", "restore", "export"] {
            let help = text(&[words.to_owned()]);
            assert!(
                help.contains("serve creates it if it does not exist"),
                "{help}"
            );
        }
    }

    #[test]
    fn help_about_a_command_leaves_out_the_others() {
        let keys = text(&["key".to_owned()]);
        let expected = "\
petstore: a pet store inventory over HTTP, with an embedded SQLite database

  petstore key add NAME        create an API key and print it; it is not shown again
      --expires DATE           when the key expires
      --read-only              the key can only read
      --admin                  the key can also change the project settings
      --create                 create the database if it does not exist
  petstore key list            list the keys with their scopes, expiry and last use (stored once an hour)
      --json                   print JSON, for programs
  petstore key rotate NAME     replace a key, and print the new one; its expiry stays
      --overlap DURATION       how long the old key stays valid [0s]
      --expires DATE           when the key expires
  petstore key revoke NAME [FINGERPRINT]
                               revoke the keys of this name, or one of them

Settings, as flags or environment variables (the flag wins) [default]:
  --database FILE              PETSTORE_DATABASE
                               the SQLite file; serve creates it if it does not exist, and so do import and key add with --create";
        let notes = format!(
            "\n\n{}\nExit codes: 0 success, 1 failure, 2 wrong command line.\n",
            NOTES.join("\n")
        );
        assert!(
            keys.starts_with(expected) && keys.ends_with(&notes),
            "{keys}"
        );
        let list = text(&["key".to_owned(), "list".to_owned()]);
        assert!(NOTES.iter().all(|note| !list.contains(note)), "{list}");
        let add = text(&["key".to_owned(), "add".to_owned()]);
        assert!(
            add.ends_with(&format!(
                "\n\n{}\nExit codes: 0 success, 1 failure, 2 wrong command line.\n",
                NOTES[0]
            )),
            "{add}"
        );
        assert!(keys.contains(" [petstore.db]\n"), "{keys}");
        assert!(
            !keys.contains("--workers") && !keys.contains("RUST_LOG"),
            "{keys}"
        );
    }

    #[test]
    fn first_column_is_followed_by_two_spaces_or_a_new_line() {
        assert_eq!(
            row("--twenty-seven-letters-long", "x"),
            "  --twenty-seven-letters-long  x\n"
        );
        let below = format!("  --twenty-eight-letters-long!\n{:31}x\n", "");
        assert_eq!(row("--twenty-eight-letters-long!", "x"), below);
    }
}
