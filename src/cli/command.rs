//! What a command is. Each file of `cli/` owns its rows; the parser, the help text, the manual page and the
//! completions read them, so that each is written once.

use petstore::{Config, Error};

use super::own::Own;

/// One command of the program.
pub struct Command {
    /// Its words, such as `key add`.
    pub name: &'static str,
    /// What follows the words.
    pub operands: &'static [Operand],
    pub flags: &'static [Flag],
    pub takes: Takes,
    /// What it does, in one line.
    pub about: &'static str,
    pub run: fn(&Call) -> Done,
}

/// Which settings a command takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// All of them, and the API key of the environment.
    All,
    /// These, by their flags.
    Only(&'static [&'static str]),
}

impl Takes {
    /// Whether the command takes the setting with this flag.
    pub fn includes(self, flag: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(flags) => flags.contains(&flag),
        }
    }
}

/// The setting of a command that works on a database.
pub const DATABASE: Takes = Takes::Only(&["database"]);

/// For a command that takes no settings.
pub const NO_SETTINGS: Takes = Takes::Only(&[]);

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

/// A flag of one command. A name takes a value in every command or in none. It may be the name of a setting that
/// the command does not take: it is the command's own flag then, once the command is named.
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
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// The work failed: exit code 1.
    Failed(Error),
    /// An import failed after a part of it was written: exit code 1.
    Unfinished { error: Error, next_line: u64 },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// One call of a command. Every word in it has been checked against the command's row.
#[derive(Debug)]
pub struct Call {
    /// The words of the command.
    pub command: &'static str,
    pub config: Config,
    pub own: Own,
    pub operands: Vec<String>,
    pub flags: Vec<(&'static str, String)>,
}

impl Call {
    /// The operand at a place; empty if it is optional and was not given.
    pub fn operand(&self, place: usize) -> &str {
        self.operands.get(place).map_or("", String::as_str)
    }

    /// The value of a flag; the last one if it was given twice.
    pub fn flag(&self, name: &str) -> Option<&str> {
        self.flags.iter().rfind(|(flag, _)| *flag == name).map(|(_, value)| value.as_str())
    }

    /// Whether a flag without a value is given.
    pub fn has(&self, name: &str) -> bool {
        self.flag(name).is_some()
    }
}
