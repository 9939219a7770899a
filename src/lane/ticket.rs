//! The ticket by which the gate knows a request, and finds its response again.

use crate::http::response::write_decimal;

/// The header field of a ticket: the number of the lane's connection, a dot, that of the request, and in a
/// request also a space and its identifier for the log. The name is short because tiny_http reads every byte of
/// it one by one. No client sees it.
pub const TICKET: &str = "T";

/// Writes what the ticket says of the connection and of the request's place on it.
pub fn write_number(out: &mut Vec<u8>, epoch: usize, place: usize) {
    write_decimal(out, epoch);
    out.push(b'.');
    write_decimal(out, place);
}

/// The identifier for the log that a request's ticket has.
pub fn id(ticket: &str) -> &str {
    ticket.split_once(' ').map_or("-", |(_, id)| id)
}
