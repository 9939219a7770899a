//! Reads an input pet by pet: each row is a pet or a sentence that says what is wrong with it. Only one row is in
//! memory at a time, and it takes at most [`MAX_ROW`] bytes.

use std::io::{self, BufRead};

use super::Format;
use super::csv::{Record, columns};
use crate::json::Invalid;
use crate::model::{MEMBERS, NewPet};

/// The longest row, in bytes. It is far longer than any pet that the HTTP interface accepts.
const MAX_ROW: usize = 1024 * 1024;
const TOO_LONG: &str = "A pet must not be longer than 1048576 bytes.";
/// The byte order mark that spreadsheets and Windows put before text. A reader may ignore it (RFC 8259, section 8.1).
pub const MARK: &[u8] = b"\xef\xbb\xbf";

/// A pet of the input, and its id if it keeps that.
pub type Row<'a> = (Option<i64>, NewPet<'a>);

/// The rows of an input. Empty lines are counted but are no rows.
pub struct Rows<R> {
    source: R,
    keep_ids: bool,
    /// The line on which the next row begins, counted from 1.
    next_line: u64,
    /// The current row.
    record: Record,
    /// The places of the columns of CSV.
    places: Option<Places>,
}

/// The places of the columns in a record, counted from 0, and their number.
struct Places {
    id: Option<usize>,
    /// In the order of [`MEMBERS`].
    members: [Option<usize>; MEMBERS.len()],
    count: usize,
}

impl<R: BufRead> Rows<R> {
    /// Begins to read. With `keep_ids` each row needs an id; otherwise ids are ignored.
    ///
    /// # Errors
    /// The outer error if the input cannot be read, the inner one if the header line of CSV is wrong: a sentence
    /// that says why.
    pub fn new(mut source: R, format: Format, keep_ids: bool) -> io::Result<Result<Self, String>> {
        if source.fill_buf()?.starts_with(MARK) {
            source.consume(MARK.len());
        }
        let mut rows = Self { source, keep_ids, next_line: 1, record: Record::new(format), places: None };
        if format == Format::Csv {
            let has_header = rows.advance()?.is_some();
            let fields = if has_header { rows.record.fields() } else { Ok(Vec::new()) };
            match fields.map_err(str::to_owned).and_then(|fields| Places::of(&fields, keep_ids)) {
                Ok(found) => rows.places = Some(found),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(rows))
    }

    /// The line after the last one that was read.
    pub fn next_line(&self) -> u64 {
        self.next_line
    }

    /// Moves to the next row, and returns the line on which it begins; `None` at the end.
    pub fn advance(&mut self) -> io::Result<Option<u64>> {
        loop {
            let line = self.next_line;
            self.record.clear();
            let Some(count) = read_record(&mut self.source, &mut self.record)? else { return Ok(None) };
            self.next_line += count;
            if !self.record.is_blank() {
                return Ok(Some(line));
            }
        }
    }

    /// The pet of the current row.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it, in the words of the HTTP interface.
    #[inline(never)] // It is called in two places, and large.
    pub fn row(&self) -> Result<Row<'_>, String> {
        let Some(places) = &self.places else {
            let line = self.record.line()?;
            let row = if self.keep_ids {
                NewPet::with_id_from_json(line).map(|(id, new)| (Some(id), new))
            } else {
                NewPet::from_json(line).map(|new| (None, new))
            };
            // The row is one line of many.
            return row
                .map_err(|invalid| invalid.into_message().replace(" at line 1 column ", " at column "));
        };
        let fields = self.record.fields()?;
        if fields.len() != places.count {
            let (has, count) = (fields.len(), places.count);
            return Err(format!("The row has {has} fields, and the header has {count}."));
        }
        let id = places.id.filter(|_| self.keep_ids);
        let id = id.map(|place| NewPet::id_from_column(fields[place])).transpose();
        let new = NewPet::from_columns(places.members.map(|place| place.map_or("", |place| fields[place])));
        id.and_then(|id| Ok((id, new?))).map_err(Invalid::into_message)
    }
}

impl Places {
    /// Finds the columns in the header line.
    fn of(header: &[&str], keep_ids: bool) -> Result<Self, String> {
        let columns = columns();
        let expected = format!("the header line is {}, in any order", columns.join(","));
        for (i, name) in header.iter().enumerate() {
            if !columns.contains(name) {
                let name = &name[..name.floor_char_boundary(64)];
                return Err(format!("The column '{name}' is unknown; {expected}."));
            }
            if header[..i].contains(name) {
                return Err(format!("The column '{name}' is given more than once."));
            }
        }
        let place = |name: &str| header.iter().position(|column| *column == name);
        let required = MEMBERS.iter().filter(|member| member.is_required()).map(|member| member.name());
        if let Some(name) =
            (keep_ids.then_some("id").into_iter().chain(required)).find(|it| place(it).is_none())
        {
            return Err(format!("The column '{name}' is missing; {expected}."));
        }
        Ok(Self { id: place("id"), members: MEMBERS.map(|member| place(member.name())), count: header.len() })
    }
}

/// Reads a record, and returns its number of lines; `None` at the end of the input.
fn read_record(source: &mut impl BufRead, record: &mut Record) -> io::Result<Option<u64>> {
    let (mut lines, mut has_bytes) = (0, false);
    loop {
        let bytes = source.fill_buf()?;
        if bytes.is_empty() {
            record.end();
            return Ok(has_bytes.then_some(lines + 1));
        }
        has_bytes = true;
        let mut is_last = |byte: &u8| {
            lines += u64::from(*byte == b'\n');
            let is_last = record.take(*byte);
            if record.len() > MAX_ROW {
                record.blame(TOO_LONG);
                record.forget();
            }
            is_last
        };
        let end = bytes.iter().position(&mut is_last);
        let length = end.map_or(bytes.len(), |end| end + 1);
        source.consume(length);
        if end.is_some() {
            return Ok(Some(lines));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PetStatus;

    /// Every row of a text with its line, as `id name categoryId` or what is wrong with it.
    fn read(text: &str, format: Format, keep_ids: bool) -> Vec<(u64, Result<String, String>)> {
        // A small buffer, so that every row is read in pieces.
        let source = io::BufReader::with_capacity(3, text.as_bytes());
        let mut rows = Rows::new(source, format, keep_ids).unwrap().unwrap();
        let mut found = Vec::new();
        while let Some(line) = rows.advance().unwrap() {
            let row =
                rows.row().map(|(id, new)| format!("{} {} {}", id.unwrap_or(0), new.name, new.category_id));
            found.push((line, row));
        }
        found
    }

    #[test]
    fn empty_lines_are_counted() {
        let text = "\n{\"name\":\"a\",\"categoryId\":1}\r\n \r\n{\"id\":7,\"name\":\"b\",\"categoryId\":2}";
        assert_eq!(
            read(text, Format::Ndjson, false),
            [(2, Ok("0 a 1".to_owned())), (4, Ok("0 b 2".to_owned()))]
        );
        let text = "name,categoryId\n\na,1\n\"b\n\nb\",2\r\n\r\nc,3";
        assert_eq!(
            read(text, Format::Csv, false),
            [(3, Ok("0 a 1".to_owned())), (4, Ok("0 b\n\nb 2".to_owned())), (8, Ok("0 c 3".to_owned()))]
        );
        assert_eq!(read("", Format::Ndjson, true), []);
    }

    #[test]
    fn columns_can_be_in_any_order() {
        let text = "\u{feff}status,id,categoryId,name\nsold,7,2,\"a,b\"\n,8,3,";
        let text = text.to_owned();
        let mut rows = Rows::new(text.as_bytes(), Format::Csv, true).unwrap().unwrap();
        assert_eq!(rows.advance().unwrap(), Some(2));
        let new = NewPet { status: Some(PetStatus::Sold), ..NewPet::new("a,b", 2) };
        assert_eq!(rows.row(), Ok((Some(7), new)));
        assert_eq!(rows.advance().unwrap(), Some(3));
        assert_eq!(rows.row(), Ok((Some(8), NewPet::new("", 3))));
        assert_eq!(rows.advance().unwrap(), None);
    }

    #[test]
    fn wrong_header_is_described() {
        for (header, keep_ids, named) in [
            ("", false, "'name' is missing"),
            ("name,categoryId,status\n", true, "'id' is missing"),
            ("id,name\n", false, "'categoryId' is missing"),
            ("name,categoryId,Status\n", false, "'Status' is unknown"),
            ("name,categoryId,name\n", false, "'name' is given more than once"),
            ("{\"name\":\"x\"}\n", false, "quote"),
        ] {
            let said = Rows::new(header.as_bytes(), Format::Csv, keep_ids).unwrap().err().unwrap();
            assert!(said.contains(named), "{header:?}: {said}");
        }
    }

    #[test]
    fn wrong_row_is_described_and_the_next_is_read() {
        let text = "nonsense\n{\"name\":\"a\"}\n{\"name\":\"b\",\"categoryId\":1}\n";
        let rows = read(text, Format::Ndjson, false);
        assert_eq!(
            rows[0].1.as_ref().unwrap_err(),
            "The body must be one JSON object with 'name' and 'categoryId': expected ident at column 2."
        );
        assert!(rows[1].1.as_ref().unwrap_err().contains("'categoryId' is missing"));
        assert_eq!(rows[2], (3, Ok("0 b 1".to_owned())));
        let rows = read("id,name,categoryId\n1,a\n0,b,1\n3,c,1", Format::Csv, true);
        assert!(rows[0].1.as_ref().unwrap_err().contains("has 2 fields"));
        assert!(rows[1].1.as_ref().unwrap_err().contains("'id' must be an integer from 1"));
        assert_eq!(rows[2], (4, Ok("3 c 1".to_owned())));
    }

    #[test]
    fn row_that_is_too_long_is_refused_and_the_next_is_read() {
        let long = "x".repeat(MAX_ROW);
        let text = format!("{{\"name\":\"{long}\"}}\n{{\"name\":\"b\",\"categoryId\":1}}");
        let rows = read(&text, Format::Ndjson, false);
        assert_eq!(rows, [(1, Err(TOO_LONG.to_owned())), (2, Ok("0 b 1".to_owned()))]);
        let text = format!("name,categoryId\n\"{long}\n{long}\",1\nb,1");
        let rows = read(&text, Format::Csv, false);
        assert_eq!(rows, [(2, Err(TOO_LONG.to_owned())), (4, Ok("0 b 1".to_owned()))]);
        let commas = ",".repeat(MAX_ROW + 1);
        let rows = read(&format!("name,categoryId\n{commas}\nb,1"), Format::Csv, false);
        assert_eq!(rows, [(2, Err(TOO_LONG.to_owned())), (3, Ok("0 b 1".to_owned()))]);
    }

    #[test]
    fn row_may_be_as_long_as_the_bound_in_pieces_of_any_size() {
        for (length, fits) in [(MAX_ROW / 2, true), (MAX_ROW, true), (MAX_ROW + 1, false)] {
            for size in [7, 4096, 2 * MAX_ROW] {
                let text = "x".repeat(length) + "\n";
                for format in [Format::Ndjson, Format::Csv] {
                    let mut source = io::BufReader::with_capacity(size, text.as_bytes());
                    let mut record = Record::new(format);
                    assert_eq!(read_record(&mut source, &mut record).unwrap(), Some(1));
                    assert_eq!(record.line().is_ok(), fits, "{length} in pieces of {size}");
                    assert!(record.len() <= MAX_ROW, "what is too long is not kept");
                }
            }
        }
    }
}
