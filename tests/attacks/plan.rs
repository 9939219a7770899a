//! The behaviour of attackers: their requests, how they read, and the replies that they saw.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The next piece that a connection sends, by the number of pieces before.
pub type Source = Box<dyn FnMut(usize) -> Option<Arc<[u8]>>>;

/// Sends this once.
pub fn once(bytes: impl Into<Vec<u8>>) -> Source {
    let bytes: Arc<[u8]> = bytes.into().into();
    Box::new(move |sent| (sent == 0).then(|| Arc::clone(&bytes)))
}

/// Sends this repeatedly, without waiting for replies.
pub fn again(bytes: impl Into<Vec<u8>>) -> Source {
    let bytes: Arc<[u8]> = bytes.into().into();
    Box::new(move |_| Some(Arc::clone(&bytes)))
}

/// Sends nothing.
pub fn silence() -> Source {
    Box::new(|_| None)
}

/// How a connection treats replies.
#[derive(Clone, Copy, PartialEq)]
pub enum Reading {
    /// Reads all as fast as possible, counts them, and reconnects if it was closed.
    AllAndComeAgain,
    /// Reads all and counts them.
    All,
    /// Reads 1 KiB a second.
    Sips,
    Nothing,
}

impl Reading {
    /// True if replies are read as they come.
    pub fn is_eager(self) -> bool {
        matches!(self, Reading::All | Reading::AllAndComeAgain)
    }
}

/// The replies that the crowd has seen.
#[derive(Debug, Default)]
pub struct Tally {
    pub opened: usize,
    /// Connections that the server ended.
    pub ended: usize,
    /// Pieces that were sent completely.
    pub sent: usize,
    /// Replies by their status.
    pub statuses: BTreeMap<u16, usize>,
    /// Replies with 503 and without Retry-After.
    pub without_retry_after: usize,
}

impl Tally {
    pub fn of(&self, status: u16) -> usize {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// Expects replies with this status, and otherwise only orderly refusals.
    #[track_caller]
    pub fn expect(&self, status: u16) {
        assert!(self.of(status) > 0, "no {status}: {self:?}");
        self.expect_refusals_beside(status);
    }

    /// Expects only orderly refusals and replies with this status; there may be none.
    #[track_caller]
    pub fn expect_refusals_beside(&self, status: u16) {
        assert!(
            self.statuses
                .keys()
                .all(|other| [status, 503].contains(other)),
            "{self:?}"
        );
        assert_eq!(self.without_retry_after, 0, "{self:?}");
    }
}
