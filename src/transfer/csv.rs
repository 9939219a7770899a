//! Records of CSV (RFC 4180), and plain lines. Reading CSV is strict: the usual crates also accept malformed CSV, such as
//! a quote within a plain field, and nobody notices a misread pet until it is too late.

use super::Format;
use crate::model::MEMBERS;

/// The columns of a pet, in the order of an export.
pub fn columns() -> Vec<&'static str> {
    ["id"].into_iter().chain(MEMBERS.iter().map(|member| member.name())).collect()
}

/// Writes one field, in quotes if it needs them.
pub fn push_field(out: &mut Vec<u8>, text: &str) {
    if !text.contains(['"', ',', '\r', '\n']) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    for byte in text.bytes() {
        out.push(byte);
        if byte == b'"' {
            out.push(byte);
        }
    }
    out.push(b'"');
}

/// The state of a record after a byte.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// In a line that has no fields.
    Line,
    FieldStart,
    Plain,
    Quoted,
    /// After a quote in a quoted field: it ends the field, or is the first of two that stand for one.
    Quote,
    /// After a carriage return, which only a line feed may follow.
    Return,
}

/// One record or line, which is read byte by byte.
pub struct Record {
    /// The state before its first byte.
    begin: State,
    /// The fields, one after the other.
    bytes: Vec<u8>,
    /// Where each field but the last ends.
    ends: Vec<usize>,
    state: State,
    /// What is wrong with the record; the first fault counts.
    fault: Option<&'static str>,
}

/// The fault of a record that ends in a quoted field.
const OPEN: &str = "A quoted field has no closing quote.";

impl Record {
    pub fn new(format: Format) -> Self {
        let begin = if format == Format::Csv { State::FieldStart } else { State::Line };
        Self { begin, bytes: Vec::new(), ends: Vec::new(), state: begin, fault: None }
    }

    /// Begins the next record.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.state = self.begin;
        self.fault = None;
    }

    /// Takes a byte; `true` if it ends the record.
    pub fn take(&mut self, byte: u8) -> bool {
        match (self.state, byte) {
            (State::Quoted, b'"') => self.state = State::Quote,
            (State::Quoted, _) => self.bytes.push(byte),
            (State::Quote, b'"') => {
                self.bytes.push(byte);
                self.state = State::Quoted;
            }
            (_, b'\n') => return true,
            (State::Line, _) => self.bytes.push(byte),
            (State::Return, _) => {
                self.blame(
                    "A carriage return must be in a quoted field, or end the line together with a line feed.",
                );
                self.state = State::Plain;
                return self.take(byte);
            }
            (_, b'\r') => self.state = State::Return,
            (_, b',') => {
                self.ends.push(self.bytes.len());
                self.state = State::FieldStart;
            }
            (State::FieldStart, b'"') => self.state = State::Quoted,
            (State::FieldStart, _) => {
                self.bytes.push(byte);
                self.state = State::Plain;
            }
            (State::Plain, _) => {
                if byte == b'"' {
                    self.blame("A field that contains a quote must be in quotes, and the quote doubled.");
                }
                self.bytes.push(byte);
            }
            (State::Quote, _) => {
                self.blame("A comma or the end of the line must follow the closing quote of a field.");
                self.bytes.push(byte);
                self.state = State::Plain;
            }
        }
        false
    }

    /// Ends the record at the end of the input.
    pub fn end(&mut self) {
        if self.state == State::Quoted {
            self.blame(OPEN);
        }
    }

    /// Notes a fault, unless there is one already.
    pub fn blame(&mut self, fault: &'static str) {
        self.fault.get_or_insert(fault);
    }

    /// The length of the record in bytes, with its separators.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.ends.len()
    }

    /// Drops the bytes so far, if the record is too long to be kept.
    pub fn forget(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Whether the record is an empty line, or the line only whitespace.
    pub fn is_blank(&self) -> bool {
        let is_line = self.begin == State::Line;
        self.fault.is_none() && (self.len() == 0 || is_line && self.bytes.trim_ascii().is_empty())
    }

    /// The line.
    ///
    /// # Errors
    /// A sentence that describes the fault.
    pub fn line(&self) -> Result<&[u8], &'static str> {
        self.fault.map_or(Ok(&self.bytes), Err)
    }

    /// The fields of the record.
    ///
    /// # Errors
    /// A sentence that describes the fault.
    pub fn fields(&self) -> Result<Vec<&str>, &'static str> {
        let (bytes, mut start) = (self.line()?, 0);
        let ends = self.ends.iter().copied().chain([bytes.len()]);
        let field = |end| str::from_utf8(&bytes[std::mem::replace(&mut start, end)..end]);
        ends.map(field).collect::<Result<_, _>>().map_err(|_| "The line is not UTF-8 text.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of a text, each as its fields or its fault.
    fn read(text: &str) -> Vec<Result<Vec<String>, &'static str>> {
        let (mut records, mut record) = (Vec::new(), Record::new(Format::Csv));
        let mut rest = text.bytes().peekable();
        while rest.peek().is_some() {
            record.clear();
            if !rest.by_ref().any(|byte| record.take(byte)) {
                record.end();
            }
            records.push(record.fields().map(|fields| fields.into_iter().map(str::to_owned).collect()));
        }
        records
    }

    #[test]
    fn fields_come_back_as_they_were_written() {
        let names = ["", " a ", "a\"b", "\"", "\"\"", "a,b", "a\r\nb", "\n", "\r", "a\0b", "\u{1f600}"];
        let mut text = Vec::new();
        for name in names {
            push_field(&mut text, name);
            text.push(b',');
        }
        let fields = read(str::from_utf8(&text).unwrap()).remove(0).unwrap();
        assert_eq!(fields[..names.len()], names);
    }

    #[test]
    fn lines_end_with_or_without_a_carriage_return() {
        let records = read("1,a\r\n2,\"b\"\n\"3\",\"\"\r\n4,");
        let fields: Vec<Vec<String>> = records.into_iter().map(Result::unwrap).collect();
        assert_eq!(fields, [["1", "a"], ["2", "b"], ["3", ""], ["4", ""]]);
    }

    #[test]
    fn malformed_record_is_refused_and_the_next_is_read() {
        for line in ["a\"b", "\"a\"b", "\"a\" ", "a\rb", "\ra"] {
            let records = read(&format!("{line}\nc"));
            assert!(records[0].is_err(), "{line:?}");
            assert_eq!(records[1], Ok(vec!["c".to_owned()]), "{line:?}");
        }
        assert_eq!(read("1,\"a\n2,b\n"), [Err(OPEN)]);
    }

    #[test]
    fn character_cut_by_a_comma_is_refused() {
        let mut record = Record::new(Format::Csv);
        "é".bytes().for_each(|byte| assert!(!record.take(byte) && !record.take(b',')));
        assert!(record.fields().is_err());
    }
}
