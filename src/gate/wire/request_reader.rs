//! Reads one request from a client's bytes, strictly. Each byte of the head is scanned once, however small the pieces.

use crate::refusal::{Refusal, RefusalReason};
use petstore_base::http::limits::{MAX_HEAD_BYTES, MAX_HEADER_FIELDS};

use crate::lane::{LaneKind, LaneRequest};
use crate::wire::body::is_text;
use crate::wire::head::{Head, Intake};
use crate::wire::request_line::{RequestLine, bad_request, is_target_too_long};

/// Reads the head, and then the body.
#[derive(Debug, Default)]
pub struct RequestReader {
    scan: HeadScan,
    /// The head of the current request, once it is complete. The response takes it, and the next request begins.
    pub head: Option<Head>,
}

/// The progress within an incomplete head.
#[derive(Debug, Default)]
struct HeadScan {
    /// The bytes scanned.
    scanned: usize,
    /// The start of the current line.
    line_start: usize,
    /// The complete lines, including the request line.
    lines: usize,
    /// An empty line before the request was ignored (RFC 9112, section 2.2).
    passed_over_line: bool,
    /// Bytes other than that line have arrived.
    begun: bool,
    request_line: Option<RequestLine>,
}

/// The result of reading.
#[derive(Debug)]
pub enum Step {
    /// The request is incomplete. Pass the unconsumed bytes again, with the ones that follow.
    More,
    /// The head is complete, or breaks a rule.
    Head(Result<(), Refusal>),
    /// The client waits for a 100 Continue.
    Continue,
    /// A complete request for this kind of lane is in `out`.
    Request(LaneKind),
    /// The request breaks a rule.
    Reject(Refusal),
}

impl RequestReader {
    /// Returns whether more than an empty line has arrived.
    pub fn has_begun(&self) -> bool {
        self.scan.begun || self.is_in_body()
    }

    /// Returns whether the head is complete and the body is not.
    pub fn is_in_body(&self) -> bool {
        self.head.is_some()
    }

    /// Reads on, and returns the number of bytes consumed. Writes the request line and header fields for the lane, and then
    /// the body, to `out`. `is_trusted`: the peer's X-Forwarded-For counts.
    pub fn advance(
        &mut self,
        input: &[u8],
        is_trusted: bool,
        intake: &mut Intake,
        out: &mut LaneRequest,
    ) -> (usize, Step) {
        let Some(head) = &mut self.head else {
            let (line, length) = match self.scan.advance(input) {
                Ok(Some(whole)) => whole,
                Ok(None) => return (0, Step::More),
                Err(error) => return (0, Step::Reject(error)),
            };
            let (head, checked) = Head::parse(&line, &input[..length], is_trusted, intake, out);
            *self = Self {
                scan: HeadScan::default(),
                head: Some(head),
            };
            return (length, Step::Head(checked));
        };
        let consumed = match head.body.decode(input, out.body()) {
            Ok(consumed) => consumed,
            Err(error) => return (0, Step::Reject(error)),
        };
        if head.body.is_whole() {
            return (consumed, Step::Request(head.kind));
        }
        // A client that sends the body already does not wait (RFC 9110, section 10.1.1).
        if std::mem::take(&mut head.expects_continue) && out.body_length() == 0 {
            return (consumed, Step::Continue);
        }
        (consumed, Step::More)
    }
}

impl HeadScan {
    /// Scans the new bytes of `input`, which begins with the head. Returns the request line and the head's
    /// length once the head is complete.
    fn advance(&mut self, input: &[u8]) -> Result<Option<(RequestLine, usize)>, Refusal> {
        let found = self.scan(input);
        // The first fault counts, even if the line is incomplete.
        if !matches!(found, Ok(Some(_)))
            && self.request_line.is_none()
            && is_target_too_long(&input[..self.scanned])
        {
            return Err(Refusal::new(RefusalReason::UriTooLong));
        }
        found
    }

    fn scan(&mut self, input: &[u8]) -> Result<Option<(RequestLine, usize)>, Refusal> {
        let bound = input.len().min(MAX_HEAD_BYTES);
        while self.scanned < bound {
            let at = self.scanned;
            if at > self.line_start && input[at - 1] == b'\r' {
                if input[at] != b'\n' {
                    return Err(bad_request("A CR must be followed by LF."));
                }
                self.scanned = at + 1;
                if self.end_line(input, at - 1)? {
                    return Ok(self.request_line.take().map(|line| (line, at + 1)));
                }
                self.line_start = at + 1;
                continue;
            }
            let rest = &input[at..bound];
            let text = text_length(rest);
            self.scanned += text;
            self.begun |= text > 0 || self.passed_over_line;
            match rest.get(text) {
                None => {}
                Some(b'\r') => self.scanned += 1,
                Some(b'\n') => return Err(bad_request("A line must end with CR LF.")),
                Some(_) => {
                    return Err(bad_request(
                        "The request head contains a control character.",
                    ));
                }
            }
        }
        if bound == MAX_HEAD_BYTES {
            return Err(Refusal::new(RefusalReason::HeadersTooLarge));
        }
        Ok(None)
    }

    /// Notes the line that ends before `end`; returns whether it is the empty line after the head.
    fn end_line(&mut self, input: &[u8], end: usize) -> Result<bool, Refusal> {
        if self.request_line.is_none() && self.line_start == end && !self.passed_over_line {
            self.passed_over_line = true;
            return Ok(false);
        } else if self.request_line.is_none() {
            self.request_line = Some(RequestLine::parse(input, self.line_start..end)?);
        } else if self.line_start == end {
            return Ok(true);
        } else if self.lines > MAX_HEADER_FIELDS {
            return Err(Refusal::new(RefusalReason::HeadersTooLarge));
        }
        self.lines += 1;
        Ok(false)
    }
}

/// The number of text bytes at the start.
fn text_length(bytes: &[u8]) -> usize {
    let plain = 8 * bytes
        .as_chunks()
        .0
        .iter()
        .take_while(|bytes| is_plain(**bytes))
        .count();
    let rest = &bytes[plain..];
    plain
        + rest
            .iter()
            .position(|byte| !is_text(*byte))
            .unwrap_or(rest.len())
}

/// Returns whether eight bytes are text without a tab, tested all at once (Warren, Hacker's Delight, section 6-1).
fn is_plain(bytes: [u8; 8]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(bytes);
    let below_space = word.wrapping_sub(0x20 * ONES) & !word;
    let without_del = word ^ (0x7f * ONES);
    let is_del = without_del.wrapping_sub(ONES) & !without_del;
    (below_space | is_del) & (0x80 * ONES) == 0
}

#[cfg(test)]
pub mod tests;
