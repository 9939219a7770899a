//! The protocol between the gate and the workers, with encoding and decoding side by side.
//!
//! A lane is one connection to a tiny_http server on a private Unix socket. Whole requests go down it pipelined,
//! and whole responses come back in order. This room knows nothing of routes, pets or SQL, and no sockets.

mod request;
mod response;
mod ticket;

pub use request::{Content, LaneRequest};
pub use response::{Answer, LaneResponse, Malformed, write_response};
pub use ticket::Ticket;

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

#[cfg(test)]
mod tests {
    use super::position;

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
}
