//! The help text, made of the tables of commands and settings.

use petstore::SETTINGS;

use super::command::{self, Command, Count, Operand, Settings};

/// Where what something is for begins.
const COLUMN: usize = 31;

/// What there is; where words are given, about the commands that begin with them.
pub fn text(words: &[String]) -> String {
    let commands: Vec<&Command> = command::all().filter(|command| is_about(command, words)).collect();
    let is_taken = |flag: &str| {
        commands.iter().any(|command| match command.settings {
            Settings::All => true,
            Settings::Only(flags) => flags.contains(&flag),
        })
    };
    let mut text =
        "petstore: a pet store inventory service over HTTP, on an embedded SQLite database\n\n".to_owned();
    commands.iter().for_each(|command| text += &describe(command));
    text += "\nSettings, as flags or as environment variables (the flag counts) [default]:\n";
    for setting in SETTINGS.iter().filter(|setting| is_taken(setting.flag)) {
        let default = if setting.default.is_empty() { "" } else { &format!(" [{}]", setting.default) };
        let list =
            if setting.is_list { "; may be given more than once, the variable has commas" } else { "" };
        text += &row(&format!("--{} {}", setting.flag, setting.value), &setting.variable());
        text += &row("", &format!("{}{list}{default}", setting.help));
    }
    if commands.iter().any(|command| command.settings == Settings::All) {
        for (name, about) in ENVIRONMENT {
            text += &row("", name);
            text += &row("", about);
        }
    }
    text + NOTES
}

/// Whether the help on these words is about the command.
pub fn is_about(command: &Command, words: &[String]) -> bool {
    command.name.split(' ').zip(words).all(|(expected, word)| expected == word)
}

/// What only the environment can set.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("PETSTORE_API_KEY", "one more API key, beside those in the database"),
    ("RUST_LOG", "what is logged: off, error, warn, info (a line for each request) or debug [warn]"),
    (
        "TMPDIR",
        "where the service makes a private folder for its sockets, and import copies its input [/tmp]",
    ),
];

const NOTES: &str = "
DATE is a day such as 2027-01-31 (its start, UTC), a time such as 2027-01-31T18:00:00Z, or never.
FINGERPRINT is the beginning of a key's SHA-256, as key list shows it.
DURATION is such as 30min, 12h or 7d.
Exit codes: 0 after a normal end, 1 after a failure, 2 for a wrong command line.
";

/// What follows the words of a command, with a space before each.
pub fn operands(command: &Command) -> String {
    let operand = |operand: &Operand| match operand.count {
        Count::One => format!(" {}", operand.name),
        Count::Optional => format!(" [{}]", operand.name),
        Count::Many => format!(" {}...", operand.name),
    };
    command.operands.iter().map(operand).collect()
}

fn describe(command: &Command) -> String {
    let mut text = row(&format!("petstore {}{}", command.name, operands(command)), command.about);
    for flag in command.flags {
        let value = flag.value.map(|value| format!(" {value}")).unwrap_or_default();
        text += &row(&format!("    --{}{value}", flag.name), flag.about);
    }
    text
}

/// Two columns; the second begins on a line of its own where the first is too long.
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
        let all = text(&[]);
        for setting in SETTINGS {
            assert!(all.contains(&format!("--{} ", setting.flag)) && all.contains(&setting.variable()));
        }
        for command in command::all() {
            assert!(all.contains(&format!("petstore {}", command.name)), "{}", command.name);
            assert!(command.flags.iter().all(|flag| all.contains(&format!("--{}", flag.name))));
        }
    }

    #[test]
    fn help_on_a_command_is_about_it_alone() {
        let keys = text(&["key".to_owned()]);
        assert!(keys.contains("petstore key add NAME") && keys.contains("--database"));
        assert!(
            !keys.contains("petstore serve") && !keys.contains("--workers") && !keys.contains("RUST_LOG")
        );
    }
}
