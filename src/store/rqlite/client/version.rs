//! The version of rqlite that a node names in each of its responses.

use std::fmt;

/// The first version that flushes a snapshot to the disk before it drops the log that it replaces.
pub const NEEDED: Version = Version { major: 9, minor: 4, patch: 0 };

/// A version of rqlite. What it leaves out counts as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u16,
    minor: u16,
    patch: u16,
}

impl Version {
    /// Reads a version such as `v9.4.1`, `9.4` or `10.0.0-rc1`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut numbers = text[..end].split('.').map(|number| number.parse().ok());
        Some(Self {
            major: numbers.next()??,
            minor: numbers.next().unwrap_or(Some(0))?,
            patch: numbers.next().unwrap_or(Some(0))?,
        })
    }

    /// Whether it may lose what it has acknowledged.
    pub fn is_old(self) -> bool {
        self < NEEDED
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order() {
        let parsed: Vec<Version> =
            ["8", "v8.26.8", "9", "v9.3.17", "9.4", "9.4.0", "v9.4.1", "10.0.0-rc1", "v10.2.7"]
                .into_iter()
                .map(|text| Version::parse(text).unwrap())
                .collect();
        assert!(parsed.is_sorted());
        assert_eq!(parsed.iter().filter(|version| !version.is_old()).count(), 5);
        assert_eq!(parsed[1].to_string(), "8.26.8");
    }

    #[test]
    fn anything_else_is_none() {
        for text in ["", "v", "x", "unknown", "9.", "9..1", "99999.1"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
