//! The ticket with which the gate matches a response to its request.

use crate::http::response::{decimal_digits, write_decimal};

/// Identifies a request on a lane: the number of the connection, and its position on it.
///
/// As text it is two numbers with a dot between them, such as `2.17`. The first connection is number 1, so the
/// default belongs to no request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    /// The number of the connection; earlier connections of the lane had others.
    pub epoch: usize,
    /// How many requests went down the connection before this one.
    pub place: usize,
}

impl Ticket {
    /// The bytes of its text.
    pub(super) fn length(self) -> usize {
        decimal_digits(self.epoch) + 1 + decimal_digits(self.place)
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        write_decimal(out, self.epoch);
        out.push(b'.');
        write_decimal(out, self.place);
    }

    /// Reads the ticket at the start of `bytes`, and the separator after it.
    pub(super) fn read(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self { epoch: read_number(bytes, b'.')?, place: read_number(bytes, b' ')? })
    }
}

/// Reads decimal digits at the start of `bytes`, and the separator after them.
pub(super) fn read_number(bytes: &mut &[u8], separator: u8) -> Option<usize> {
    let mut number = 0usize;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == separator && at > 0 {
            *bytes = &bytes[at + 1..];
            return Some(number);
        }
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number = number.checked_mul(10)?.checked_add(usize::from(digit))?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_is_read_as_it_is_written() {
        for ticket in
            [Ticket::default(), Ticket { epoch: 1, place: 20 }, Ticket { epoch: usize::MAX, place: 7 }]
        {
            let mut text = Vec::new();
            ticket.write(&mut text);
            assert_eq!(text.len(), ticket.length());
            text.extend_from_slice(b" rest");
            let mut bytes = &text[..];
            assert_eq!((Ticket::read(&mut bytes), bytes), (Some(ticket), &b"rest"[..]));
        }
    }

    #[test]
    fn other_text_is_no_ticket() {
        for text in
            ["", "1", "1.2", "1.2\r", ".2 ", "1. ", "-1.2 ", "1.x ", "1.: ", "99999999999999999999999.1 "]
        {
            assert_eq!(Ticket::read(&mut text.as_bytes()), None, "{text:?}");
        }
    }
}
