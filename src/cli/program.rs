//! The settings that only the executable has. An embedding program decides these things itself.

use std::path::PathBuf;

/// The values of the executable's own settings.
#[derive(Clone, Debug, Default)]
pub struct ProgramSettings {
    /// The new file for the first API key. `None`: a terminal shows the key, or nobody gets one.
    pub first_key_file: Option<PathBuf>,
    pub log_format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Time, level, target and message, for people.
    #[default]
    Text,
    /// One JSON object per line, for programs.
    Json,
}

impl ProgramSettings {
    /// Sets the value of a flag for which the library has no field.
    ///
    /// # Errors
    /// What is expected, such as "text or json".
    pub fn set(&mut self, flag: &str, text: &str) -> Result<(), &'static str> {
        match (flag, text) {
            ("first-key-file", "") => return Err("a file name"),
            ("first-key-file", path) => self.first_key_file = Some(path.into()),
            ("log-format", "text") => self.log_format = LogFormat::Text,
            ("log-format", "json") => self.log_format = LogFormat::Json,
            ("log-format", _) => return Err("text or json"),
            _ => return Err("a setting of the executable"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore::SETTINGS;

    #[test]
    fn own_settings_are_those_that_the_library_does_not_set() {
        for setting in SETTINGS.iter().filter(|setting| setting.set.is_none()) {
            let text = if setting.default.is_empty() { "file" } else { setting.default };
            assert_eq!(ProgramSettings::default().set(setting.flag, text), Ok(()), "--{}", setting.flag);
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        assert_eq!(ProgramSettings::default().set("log-format", "xml"), Err("text or json"));
        assert_eq!(ProgramSettings::default().set("first-key-file", ""), Err("a file name"));
    }
}
