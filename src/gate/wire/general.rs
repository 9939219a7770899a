//! The header fields that every response has.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::clock::http_date;
use crate::http::response::write_field;

/// The lines, made again every second because of the date.
pub struct GeneralFields {
    block: Vec<u8>,
    second: u64,
    /// Whether responses depend on the origin.
    varies: bool,
}

impl GeneralFields {
    /// `varies`: whether responses depend on the origin of a request.
    pub fn new(varies: bool) -> Self {
        let mut fields = Self { block: Vec::new(), second: 0, varies };
        fields.refresh(SystemTime::now());
        fields
    }

    /// The lines, each with its line end.
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// Updates the date.
    pub fn refresh(&mut self, now: SystemTime) {
        let second = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if second == self.second && !self.block.is_empty() {
            return;
        }
        self.second = second;
        self.block.clear();
        let date = http_date(i64::try_from(second).unwrap_or(i64::MAX));
        write_field(&mut self.block, "Date", date.as_bytes());
        write_field(&mut self.block, "Server", b"petstore");
        write_field(&mut self.block, "X-Content-Type-Options", b"nosniff");
        if self.varies {
            // RFC 9110, section 12.5.5.
            write_field(&mut self.block, "Vary", b"Origin");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_before_1970_is_at_its_first_second() {
        let mut fields = GeneralFields { block: Vec::new(), second: 0, varies: false };
        fields.refresh(UNIX_EPOCH - std::time::Duration::from_secs(5));
        let block = String::from_utf8(fields.block).unwrap();
        assert!(block.starts_with("Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer: "), "{block}");
    }
}
