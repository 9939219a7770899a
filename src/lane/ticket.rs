//! The ticket with which the gate matches a response to its request.

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
