//! The protocol between the gate and the workers, with encoding and decoding side by side.
//!
//! A lane is one connection to a tiny_http server on a private Unix socket. Whole requests go down it pipelined,
//! and whole responses come back in order. This room knows nothing of routes, pets or SQL, and no sockets.

mod request;
mod response;

pub use request::{Content, LaneRequest};
pub use response::{Answer, LaneResponse, Malformed, write_response};

/// The kind of lane that a request takes, which is all that the gate knows of its meaning. A worker that
/// reads may pass a request on to the write lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// GET, HEAD and OPTIONS.
    Read,
    /// Every other method.
    Write,
}

/// The position of a byte, searched for in eight bytes at once, because most lines here are short.
fn position(bytes: &[u8], byte: u8) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let (words, rest) = bytes.as_chunks();
    for (at, word) in words.iter().enumerate() {
        // A zero marks the byte (Warren, Hacker's Delight, section 6-1); the lowest bit that is set is exact.
        let word = u64::from_le_bytes(*word) ^ (u64::from(byte) * ONES);
        let found = word.wrapping_sub(ONES) & !word & (0x80 * ONES);
        if found != 0 {
            return Some(8 * at + found.trailing_zeros() as usize / 8);
        }
    }
    Some(bytes.len() - rest.len() + rest.iter().position(|other| *other == byte)?)
}

/// Identifies a request on a lane: the number of the connection, and its position on it. Sixteen bytes on the lane.
///
/// The first connection is number 1, so the default belongs to no request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// The number of the connection; earlier connections of the lane had others.
    pub epoch: u64,
    /// How many requests went down the connection before this one.
    pub place: u64,
}

impl Ticket {
    /// The number of its bytes.
    pub const LENGTH: usize = 16;

    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        (u128::from(self.epoch) << 64 | u128::from(self.place)).to_be_bytes()
    }

    /// Reads the ticket at the start of `bytes`, and returns what follows it; `None` if there are too few bytes.
    pub fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (ticket, rest) = bytes.split_first_chunk()?;
        let number = u128::from_be_bytes(*ticket);
        Some((Self { epoch: (number >> 64) as u64, place: number as u64 }, rest))
    }

    /// Whether `bytes` begin with this ticket, as far as they have arrived.
    pub fn begins(self, bytes: &[u8]) -> bool {
        self.to_bytes().starts_with(&bytes[..bytes.len().min(Self::LENGTH)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_byte_is_found() {
        for length in 0..40 {
            for at in 0..length {
                for other in [0, b'\n' - 1, b'\n' + 1, 0x80 | b'\n', 0xff] {
                    let mut bytes = vec![other; length];
                    assert_eq!(position(&bytes, b'\n'), None);
                    bytes[at] = b'\n';
                    bytes[length - 1] = b'\n';
                    assert_eq!(position(&bytes, b'\n'), Some(at), "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn ticket_is_read_as_it_is_written() {
        for ticket in
            [Ticket::default(), Ticket { epoch: 1, place: 20 }, Ticket { epoch: u64::MAX, place: 7 }]
        {
            let bytes = [&ticket.to_bytes()[..], b"rest"].concat();
            assert_eq!(Ticket::read(&bytes), Some((ticket, &b"rest"[..])));
            assert_eq!(Ticket::read(&bytes[..15]), None);
            assert!(ticket.begins(&bytes) && ticket.begins(&bytes[..3]) && !ticket.begins(b"HTTP/1.1 400"));
        }
    }
}
