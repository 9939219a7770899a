//! The finding of a check: its event, and the reason in words for an operator.

use crate::model::{DomainEvent, Reason};

/// The code of a remark: the record is correct, but the CAA records could not be looked up.
pub const CAA_UNKNOWN: &str = "caa_unknown";

/// The most records that a message names.
const MAX_NAMED: usize = 4;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub event: DomainEvent,
    pub reason: Option<Reason>,
}

impl Finding {
    /// The record is correct.
    pub const RIGHT: Self = Self {
        event: DomainEvent::Right,
        reason: None,
    };

    /// Creates a finding with a reason.
    pub fn new(event: DomainEvent, code: &str, message: String) -> Self {
        Self {
            event,
            reason: Some(Reason {
                code: code.to_owned(),
                message,
            }),
        }
    }
}

/// Lists the first few items for a sentence, each cut off if it is long.
pub(crate) fn list(items: impl IntoIterator<Item: ToString>) -> String {
    const MOST: usize = 100;
    let shortened = |shown: String| shown.chars().take(MOST).collect();
    let items: Vec<String> = items
        .into_iter()
        .map(|item| shortened(item.to_string()))
        .collect();
    let first = items[..items.len().min(MAX_NAMED)].join(", ");
    match items.len().saturating_sub(MAX_NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
