//! A setting: flag, environment variable, help, default and check.

use super::Config;
use petstore_base::error::Expected;

/// Sets a field of a [`Config`] from text. Commas separate the values of a list.
pub type SetField = fn(&mut Config, &str) -> Result<(), Expected>;

/// A setting that only the environment has.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Variable {
    /// The name of the environment variable, such as `RUST_LOG`.
    pub name: &'static str,
    /// The purpose of the setting, in one line.
    pub help: &'static str,
    /// The default value; empty if there is none.
    pub default: &'static str,
}

/// A setting of the executable: a flag of the command line and an environment variable.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setting {
    /// The flag without its dashes, such as `max-connections`.
    pub flag: &'static str,
    /// The placeholder for the value in the help text, such as `NUMBER`; empty for a switch, which has a flag without a
    /// value and a variable that is `true` or `false`.
    pub value: &'static str,
    /// The purpose of the setting, in one line.
    pub help: &'static str,
    /// The default value, or its description; empty if there is none.
    pub default: &'static str,
    /// Checks the text and sets the field of the [`Config`]; `None` if only the executable has this setting, and any
    /// text is valid.
    pub set: Option<SetField>,
    /// True for a list, whose flag can be repeated.
    pub is_list: bool,
}

impl Setting {
    /// A setting of the executable alone, which has no default and is no list.
    pub(super) const fn new(flag: &'static str, value: &'static str) -> Self {
        Self {
            flag,
            value,
            help: "",
            default: "",
            set: None,
            is_list: false,
        }
    }

    /// A switch, which is off by default.
    pub(super) const fn switch(flag: &'static str) -> Self {
        Self {
            default: "false",
            ..Self::new(flag, "")
        }
    }

    pub(super) const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    pub(super) const fn default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    pub(super) const fn list(self) -> Self {
        Self {
            is_list: true,
            ..self
        }
    }

    pub(super) const fn set(self, set: SetField) -> Self {
        Self {
            set: Some(set),
            ..self
        }
    }

    /// The flag as the help text shows it, such as `--max-connections NUMBER`.
    pub fn usage(&self) -> String {
        format!("--{} {}", self.flag, self.value)
            .trim_end()
            .to_owned()
    }

    /// Returns whether the setting is a switch.
    pub fn is_switch(&self) -> bool {
        self.value.is_empty()
    }

    /// The environment variable of the setting, such as `PETSTORE_MAX_CONNECTIONS`.
    pub fn variable(&self) -> String {
        format!("PETSTORE_{}", self.flag.to_uppercase().replace('-', "_"))
    }
}

/// Sets a field, or fails if there is no value.
pub fn put<T>(field: &mut T, value: Option<T>, expected: &'static str) -> Result<(), Expected> {
    *field = value.ok_or(Expected(expected.into()))?;
    Ok(())
}

/// Reads values that commas separate.
pub fn list<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(',').map(|word| read(word.trim())).collect()
}
