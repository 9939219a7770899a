//! What a command is. Each file of `cli/` owns its rows; the parser and the help text read them, so that
//! nothing is said twice.

use petstore::{Config, Error};

use super::{description, keys, maintenance, manual, pets, project, serve, transfer};

/// Every command, in the order of the help text. The first is meant where none is named.
pub const COMMANDS: &[&[Command]] = &[
    serve::COMMANDS,
    keys::COMMANDS,
    maintenance::COMMANDS,
    pets::COMMANDS,
    transfer::COMMANDS,
    project::SITE,
    project::DOMAINS,
    description::COMMANDS,
    manual::COMMANDS,
];

/// One command of the program.
pub struct Command {
    /// Its words, such as `key add`.
    pub name: &'static str,
    /// What follows the words.
    pub operands: &'static [Operand],
    pub flags: &'static [Flag],
    /// The settings that it takes, by their flags.
    pub settings: Settings,
    /// What it does, in one line.
    pub about: &'static str,
    pub run: fn(&Call) -> Done,
}

/// Which settings a command takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settings {
    /// All of them, and the API key of the environment.
    All,
    /// These, by their flags.
    Only(&'static [&'static str]),
}

/// The setting of a command that works on a database.
pub const DATABASE: Settings = Settings::Only(&["database"]);

/// Those of a command that needs none.
pub const NO_SETTINGS: Settings = Settings::Only(&[]);

/// A word that follows the command.
pub struct Operand {
    pub name: &'static str,
    pub count: Count,
}

/// How often an operand is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    One,
    /// Once or not at all; only the last operand.
    Optional,
    /// Once or more; only the last operand.
    Many,
}

/// A flag of one command. The same name takes a value everywhere, or nowhere; but where it is that of a setting
/// which the command does not take, it is the command's own once the command is named.
pub struct Flag {
    pub name: &'static str,
    /// What stands for the value in the help text; `None`: it has none.
    pub value: Option<&'static str>,
    pub about: &'static str,
}

/// How a command ended.
pub type Done = Result<(), Failure>;

/// Why a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The words are wrong: exit code 2.
    Usage(String),
    /// It could not be done: exit code 1.
    Failed(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<String> for Failure {
    fn from(line: String) -> Self {
        Self::Failed(line.into())
    }
}

/// One call of a command: the words that were given, all of which it knows.
#[derive(Debug)]
pub struct Call {
    pub config: Config,
    pub operands: Vec<String>,
    pub flags: Vec<(&'static str, String)>,
}

impl Call {
    /// The operand at a place; empty where it may be left out, and was.
    pub fn operand(&self, place: usize) -> &str {
        self.operands.get(place).map_or("", String::as_str)
    }

    /// The value of a flag; the last, where it is given twice.
    pub fn flag(&self, name: &str) -> Option<&str> {
        self.flags.iter().rfind(|(flag, _)| *flag == name).map(|(_, value)| value.as_str())
    }

    /// Whether a flag without a value is given.
    pub fn has(&self, name: &str) -> bool {
        self.flag(name).is_some()
    }
}

/// Every command.
pub fn all() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore::SETTINGS;

    #[test]
    fn table_of_commands_is_sound() {
        let names: Vec<_> = all().map(|command| command.name).collect();
        for (i, command) in all().enumerate() {
            assert!(!names[..i].contains(&command.name), "{} is there twice", command.name);
            for flag in command.flags {
                let is_setting = SETTINGS.iter().any(|setting| setting.flag == flag.name);
                let is_taken = match command.settings {
                    Settings::All => is_setting,
                    Settings::Only(settings) => settings.contains(&flag.name),
                };
                assert!(!is_taken, "--{} is a setting", flag.name);
                let others = all().flat_map(|command| command.flags).filter(|other| other.name == flag.name);
                let arity = |flag: &Flag| flag.value.is_some();
                assert!(others.map(arity).all(|other| other == arity(flag)), "--{} is two things", flag.name);
            }
            let others = command.operands.split_last().map_or(&[][..], |(_, others)| others);
            assert!(others.iter().all(|operand| operand.count == Count::One), "{}", command.name);
            if let Settings::Only(settings) = command.settings {
                for name in settings {
                    assert!(SETTINGS.iter().any(|setting| setting.flag == *name), "{name} is no setting");
                }
            }
        }
    }
}
