//! What an operator is told of a fault, and whether SQL repairs it.

use std::fmt;

use crate::error::ErrorKind;

/// Something that is wrong, in one line.
pub struct Fault {
    text: String,
    /// Whether something is lost that only a backup has.
    is_loss: bool,
}

impl Fault {
    /// A loss, for which there may be a backup.
    pub fn loss(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_loss: true }
    }

    /// A fault that SQL mends without losing anything.
    pub fn mended(text: impl fmt::Display, sql: impl fmt::Display) -> Self {
        Self { text: format!("{text}; this SQL repairs it: {sql}"), is_loss: false }
    }

    /// Something that another program has changed on purpose.
    pub fn change(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_loss: false }
    }

    /// One line for an operator.
    pub fn line(&self) -> String {
        self.text.clone()
    }

    /// The kind of an error for some faults.
    pub fn kind(faults: &[Self]) -> ErrorKind {
        let is_loss = faults.iter().any(|fault| fault.is_loss);
        if is_loss { ErrorKind::DatabaseDamaged } else { ErrorKind::SchemaChanged }
    }
}
