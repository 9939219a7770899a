//! One of the attackers.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use mio::net::TcpStream;

use crate::plan::{Reading, Source, Tally};
use crate::replies::Replies;

/// One connection.
pub struct Member {
    pub stream: TcpStream,
    replies: Replies,
    /// The piece being sent, how many of its bytes are sent, and how many pieces came before it.
    piece: Option<Arc<[u8]>>,
    sent: usize,
    pieces: usize,
    pub readable: bool,
    pub writable: bool,
    /// True if it is in the queue of connections that can make progress.
    pub queued: bool,
}

impl Member {
    /// One whose connection is being made.
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            replies: Replies::default(),
            piece: None,
            sent: 0,
            pieces: 0,
            readable: false,
            writable: false,
            queued: false,
        }
    }

    /// Starts again with its source.
    pub fn begin_anew(&mut self) {
        self.pieces = 0;
    }

    pub fn can_get_on(&self, reading: Reading) -> bool {
        self.readable && reading.is_eager() || self.writable && self.piece.is_some()
    }

    /// Writes once; returns whether the connection is still open.
    pub fn write(&mut self, source: &mut Source, tally: &mut Tally) -> bool {
        if self.piece.is_none() {
            self.piece = source(self.pieces);
        }
        let Some(piece) = &self.piece else {
            return true;
        };
        match self.stream.write(&piece[self.sent..]) {
            Ok(count) => {
                self.sent += count;
                if self.sent == piece.len() {
                    self.sent = 0;
                    self.pieces += 1;
                    tally.sent += 1;
                    self.piece = source(self.pieces);
                }
                true
            }
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::NotConnected].contains(&error.kind()) =>
            {
                self.writable = false;
                true
            }
            Err(_) => {
                self.writable = false;
                false
            }
        }
    }

    /// Reads once; returns whether the connection is still open.
    pub fn read(&mut self, scratch: &mut [u8], tally: &mut Tally) -> bool {
        match self.stream.read(scratch) {
            Ok(0) => false,
            Ok(count) => {
                self.replies.take(&scratch[..count], |reply| {
                    *tally.statuses.entry(reply.status).or_default() += 1;
                    tally.without_retry_after +=
                        usize::from(reply.status == 503 && !reply.has_retry_after);
                });
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                true
            }
            Err(_) => false,
        }
    }
}
