//! Reads an input row by row. A row is a pet, or a sentence about its fault. Only one row is in memory at a time, of at
//! most [`MAX_ROW`] bytes.

use std::io::{BufRead, Read};

use super::csv::{CsvRecord, GUARD, GUARDED_NAME, columns};
use super::input::cannot_read;
use super::{Format, ImportIds};
use crate::model::{BROUGHT_ID, ID, MEMBERS, NewPet, PetPatch, any_id, column};
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_base::json::{Invalid, shown};

/// The longest row, in bytes. It is far longer than any pet that the HTTP interface accepts.
const MAX_ROW: usize = 1024 * 1024;
/// The fault of a row that changes no pet that is named.
const NO_ID: &str =
    "The row has no id. Import new pets from a file of their own, without --update.";
/// The fault of a row that is no text, with the usual cause.
const NOT_UTF8: &str = "The line is not UTF-8 text. If it is windows-1252, as CSV of Excel is by default, save it as CSV UTF-8, \
    or convert it: iconv -f windows-1252 -t utf-8 FILE > UTF-8-FILE.";
/// The byte order mark, which spreadsheets and Windows put before text. A reader may ignore it (RFC 8259, section 8.1).
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A row of the input.
#[derive(Debug, PartialEq)]
pub struct InputRow<'a> {
    /// The id, if there is one that is of use.
    pub id: Option<i64>,
    /// A whole pet, or what changes of it.
    pub patch: PetPatch<'a>,
}

/// The rows of an input. Empty lines count as lines but are not rows.
pub struct InputRows<'i, R> {
    source: R,
    /// The name of the input in messages.
    name: &'i str,
    ids: ImportIds,
    /// The line after the last one that was read, counted from 1.
    pub next_line: u64,
    /// The current row, with its line breaks.
    text: Vec<u8>,
    /// The current row of CSV, or its fault.
    record: Result<CsvRecord, &'static str>,
    /// The separator of CSV.
    separator: char,
    /// The positions of the columns of CSV; `None` for NDJSON.
    places: Option<Places>,
}

/// The positions of the columns in a record, counted from 0, and their number.
#[derive(Default)]
struct Places {
    id: Option<usize>,
    /// In the order of [`MEMBERS`].
    members: [Option<usize>; MEMBERS.len()],
    count: usize,
    /// The file is one for spreadsheets, with guarded texts.
    is_guarded: bool,
}

impl<'i, R: BufRead> InputRows<'i, R> {
    /// Begins to read. If ids are kept, or name the pets that change, each row needs one.
    ///
    /// # Errors
    /// If the input cannot be read, or the header line of CSV is wrong.
    pub fn new(
        source: R,
        name: &'i str,
        format: Format,
        ids: ImportIds,
        ignored: &[String],
    ) -> Result<Self, Error> {
        let mut rows = Self {
            source,
            name,
            ids,
            next_line: 1,
            text: Vec::new(),
            record: Ok(CsvRecord::default()),
            separator: ',',
            places: format.is_csv().then(Places::default),
        };
        let start = rows
            .source
            .fill_buf()
            .map_err(|error| cannot_read(name, error))?;
        if start.starts_with(MARK) {
            rows.source.consume(MARK.len());
        }
        if rows.places.is_some() {
            let line = rows.read_header()?;
            let places = rows
                .fields()
                .and_then(|header| Places::from_header(&header, ids, ignored));
            let wrong = |why| Error::new(ErrorKind::InvalidInput, format!("line {line}: {why}"));
            rows.places = Some(places.map_err(wrong)?);
        }
        Ok(rows)
    }

    /// Reads the header line, whose names tell the separator, and returns its number. Before it, a spreadsheet may have written
    /// the separator, as `sep=;`.
    fn read_header(&mut self) -> Result<u64, Error> {
        while self.read_text()? {
            let text = String::from_utf8_lossy(&self.text);
            let line = text.trim_end_matches(['\r', '\n']);
            let mut named = line.strip_prefix("sep=").unwrap_or_default().chars();
            if let (Some(separator), None) = (named.next(), named.next()) {
                self.separator = separator;
                continue;
            }
            if text
                .trim_matches([',', ';', '\t', '"', ' ', '\r', '\n'])
                .is_empty()
            {
                continue;
            }
            if self.separator == ',' {
                self.separator = separator_of(&text);
            }
            let line = self.next_line - 1;
            self.record = self.read_record()?;
            return Ok(line);
        }
        Ok(1)
    }

    /// Reads the next line that is not empty; `false` at the end.
    fn read_text(&mut self) -> Result<bool, Error> {
        loop {
            self.text.clear();
            if !self.read_line()? {
                return Ok(false);
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Moves to the next row, and returns the line on which it begins; `None` at the end.
    ///
    /// # Errors
    /// If the input cannot be read, or the row is too long.
    pub fn advance(&mut self) -> Result<Option<u64>, Error> {
        while self.read_text()? {
            let line = self.next_line - 1;
            if self.places.is_some() {
                self.record = self.read_record()?;
                if self.record.as_ref().is_ok_and(CsvRecord::is_empty) {
                    continue;
                }
            }
            return Ok(Some(line));
        }
        Ok(None)
    }

    /// Reads the record that begins with the text, to its end or its fault.
    fn read_record(&mut self) -> Result<Result<CsvRecord, &'static str>, Error> {
        let mut record = CsvRecord::separated_by(self.separator);
        let mut start = 0;
        loop {
            // Text that is not UTF-8 is rejected only later, so that the end of the record is found.
            if let Err(fault) = record.add(&String::from_utf8_lossy(&self.text[start..])) {
                return Ok(Err(fault));
            }
            start = self.text.len();
            if !record.is_open {
                record.trim(self.places.as_ref().map_or(0, |places| places.count));
                return Ok(Ok(record));
            }
            if !self.read_line()? {
                return Ok(Err("A quoted field has no closing quote."));
            }
        }
    }

    /// Adds the next line to the text; `false` at the end of the input.
    fn read_line(&mut self) -> Result<bool, Error> {
        // The row, its line feed, and one byte more, which shows that the row is too long.
        let limit = MAX_ROW + 2;
        let before = self.text.len();
        let mut source = self.source.by_ref().take((limit - before) as u64);
        source
            .read_until(b'\n', &mut self.text)
            .map_err(|error| cannot_read(self.name, error))?;
        if self.text.len() == limit {
            // The row begins earlier if a quoted field has line breaks, or is never closed.
            let begin = self.next_line
                - self.text[..before].split(|byte| *byte == b'\n').count() as u64
                + 1;
            let line = format!("line {begin}: a pet must not be longer than {MAX_ROW} bytes");
            return fail(ErrorKind::InvalidInput, line);
        }
        let has_line = self.text.len() > before;
        self.next_line += u64::from(has_line);
        Ok(has_line)
    }

    /// Returns a sentence followed by the current row.
    fn found(&self, why: &str) -> String {
        format!(
            "{why} Found: {}",
            shown(String::from_utf8_lossy(&self.text).trim_ascii_end())
        )
    }

    /// Whether the current row is text.
    pub fn is_utf8(&self) -> bool {
        str::from_utf8(&self.text).is_ok()
    }

    /// The fields of the current row of CSV.
    fn fields(&self) -> Result<Vec<&str>, String> {
        let record = self.record.as_ref().map_err(|fault| self.found(fault))?;
        if !self.is_utf8() {
            return Err(self.found(NOT_UTF8));
        }
        Ok(record.fields())
    }

    /// The pet of the current row.
    ///
    /// # Errors
    /// A sentence about the fault.
    #[inline(never)] // It is called in two places, and large.
    pub fn row(&self) -> Result<InputRow<'_>, String> {
        let Some(places) = &self.places else {
            let line = self.text.trim_ascii_end();
            let row = match self.ids {
                ImportIds::Keep => {
                    NewPet::with_id_from_json(line).map(|(id, pet)| (Some(id), pet.into()))
                }
                ImportIds::Update => match PetPatch::with_id_from_json(line) {
                    // No other member of a change is required.
                    Err(Invalid::Missing(_)) => return Err(self.found(NO_ID)),
                    row => row.map(|(id, patch)| (Some(id), patch)),
                },
                ImportIds::NewUnlessTaken => {
                    NewPet::with_any_id_from_json(line).map(|(id, pet)| (id, pet.into()))
                }
                ImportIds::New => NewPet::from_json(line).map(|pet| (None, pet.into())),
            };
            let row = row.map(|(id, patch)| InputRow { id, patch });
            // The messages are those for a body with a single object; here the object is one line of many.
            return row.map_err(|invalid| {
                let why = invalid
                    .into_message()
                    .replace(" at line 1 column ", " at column ");
                self.found(&why.replacen("The body ", "The line ", 1))
            });
        };
        let mut fields = self.fields()?;
        if places.is_guarded {
            for field in &mut fields {
                *field = field.strip_prefix(GUARD).unwrap_or(field);
            }
        }
        if fields.len() != places.count {
            return Err(format!(
                "The row has {} fields, and the header has {}.",
                fields.len(),
                places.count
            ));
        }
        let id = places.id.map(|place| fields[place]);
        let id = match self.ids {
            ImportIds::Keep => id.map(|id| column(&BROUGHT_ID, id)).transpose(),
            ImportIds::Update if id.is_some_and(|id| id.trim_ascii().is_empty()) => {
                return Err(NO_ID.to_owned());
            }
            ImportIds::Update => id.map(|id| column(&ID, id)).transpose(),
            ImportIds::NewUnlessTaken => id.map_or(Ok(None), any_id),
            ImportIds::New => Ok(None),
        };
        let members = places.members.map(|place| place.map(|place| fields[place]));
        let row = id.and_then(|id| {
            let patch = PetPatch::from_columns(members)?;
            Ok(InputRow { id, patch })
        });
        row.map_err(Invalid::into_message)
    }
}

impl Places {
    /// Finds the columns in the header line, whose letters may be in any case, without those that are to be ignored.
    fn from_header(header: &[&str], ids: ImportIds, ignored: &[String]) -> Result<Self, String> {
        let is_ignored = |name: &str| {
            ignored
                .iter()
                .any(|it| it.trim_ascii().eq_ignore_ascii_case(name))
        };
        if let Some(name) = ignored.iter().find(|name| {
            !header
                .iter()
                .any(|it| it.trim_ascii().eq_ignore_ascii_case(name.trim_ascii()))
        }) {
            return Err(format!("there is no column '{}' to ignore", shown(name)));
        }
        let expected = format!("the header line is {}, in any order", columns().join(","));
        let mut unknown = Vec::new();
        let header: Vec<&str> = header
            .iter()
            .map(|name| {
                let name = name.trim_ascii();
                match known_column(name) {
                    _ if is_ignored(name) => "",
                    Some(known) => known,
                    None => {
                        unknown.push(shown(name));
                        name
                    }
                }
            })
            .collect();
        let is_guarded = header.contains(&GUARDED_NAME);
        let header: Vec<&str> = header
            .into_iter()
            .map(|name| if name == GUARDED_NAME { "name" } else { name })
            .collect();
        for (i, name) in header.iter().enumerate() {
            if !name.is_empty() && header[..i].contains(name) {
                return Err(format!("the column '{name}' is given more than once"));
            }
        }
        let place = |name: &str| header.iter().position(|column| *column == name);
        let unknown = unknown_columns(&unknown, ignored);
        // A change may have any of the members.
        let is_whole = ids != ImportIds::Update;
        let required = MEMBERS
            .iter()
            .filter(|member| is_whole && member.is_required());
        let id = ids.are_needed().then_some("id");
        let required = id.into_iter().chain(required.map(|member| member.name()));
        if let Some(name) = required.into_iter().find(|name| place(name).is_none()) {
            let other = unknown.map_or_else(String::new, |(first, _)| {
                format!(", and '{first}' is unknown")
            });
            return Err(format!("the column '{name}' is missing{other}; {expected}"));
        }
        if let Some((first, advice)) = unknown {
            return Err(format!(
                "the column '{first}' is unknown; {expected}; {advice}"
            ));
        }
        Ok(Self {
            id: place("id"),
            members: MEMBERS.map(|member| place(member.name())),
            count: header.len(),
            is_guarded,
        })
    }
}

/// The first unknown column, and how to leave out all of them and those that are ignored already, by their names if these mean
/// nothing to a shell.
fn unknown_columns<'a>(unknown: &'a [String], ignored: &[String]) -> Option<(&'a str, String)> {
    // Within single quotes, and with commas between the names.
    let is_plain = |c: char| !c.is_control() && !"',\\".contains(c);
    let names = [ignored, unknown].concat();
    let are_plain = names.iter().all(|name| name.chars().all(is_plain));
    let advice = if are_plain {
        let all = names.join(",");
        format!("--ignore-columns '{all}' leaves out what petstore does not have")
    } else {
        "delete the other columns".to_owned()
    };
    Some((unknown.first()?, advice))
}

/// The column that a name in a header line means: in any case, also as 'Category ID' or 'category_id'.
fn known_column(name: &str) -> Option<&'static str> {
    let joined = name.replace([' ', '_'], "");
    let mut known = columns().into_iter().chain([GUARDED_NAME]);
    known.find(|it| it.eq_ignore_ascii_case(name) || it.eq_ignore_ascii_case(&joined))
}

/// The separator of a header line: that which gives the most columns of a pet.
fn separator_of(header: &str) -> char {
    let known = |separator: &char| {
        let names = header
            .split(*separator)
            .map(|name| name.trim_matches(['"', ' ', '\r', '\n']));
        names.filter(|name| known_column(name).is_some()).count()
    };
    // If several give as many, the last of these.
    [';', '\t', ',']
        .into_iter()
        .max_by_key(known)
        .unwrap_or(',')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PetStatus;
    use crate::ops::transfer::csv::MALFORMED;
    use std::io;

    const NEW: ImportIds = ImportIds::New;
    const KEEP: ImportIds = ImportIds::Keep;

    /// Reads every row of a text: its line, and `id name categoryId` or its fault.
    fn read(text: &str, format: Format, ids: ImportIds) -> Vec<(u64, Result<String, String>)> {
        // A small buffer, so that every row is read in pieces.
        let source = io::BufReader::with_capacity(3, text.as_bytes());
        let mut rows = InputRows::new(source, "", format, ids, &[]).unwrap();
        let mut found = Vec::new();
        while let Some(line) = rows.advance().unwrap() {
            let row = rows.row().map(|InputRow { id, patch }| {
                format!(
                    "{} {} {}",
                    id.unwrap_or(0),
                    patch.name.unwrap(),
                    patch.category_id.unwrap()
                )
            });
            found.push((line, row));
        }
        found
    }

    #[test]
    fn empty_lines_are_counted() {
        let text = "\n{\"name\":\"a\",\"categoryId\":1}\r\n \r\n{\"id\":7,\"name\":\"b\",\"categoryId\":2}";
        assert_eq!(
            read(text, Format::Ndjson, NEW),
            [(2, Ok("0 a 1".to_owned())), (4, Ok("0 b 2".to_owned()))]
        );
        let text = "name,categoryId\n\na,1\n\"b\n\nb\",2\r\n\r\nc,3";
        assert_eq!(
            read(text, Format::Csv, NEW),
            [
                (3, Ok("0 a 1".to_owned())),
                (4, Ok("0 b\n\nb 2".to_owned())),
                (8, Ok("0 c 3".to_owned()))
            ]
        );
        assert_eq!(read("", Format::Ndjson, KEEP), []);
    }

    #[test]
    fn id_that_is_no_integer_is_not_taken_for_none() {
        let unless_taken = ImportIds::NewUnlessTaken;
        for id in [
            "\"=\"\"3\"\"\"",
            "''3",
            "#3",
            "\"1,003\"",
            "1.000",
            "+3",
            "abc",
        ] {
            let text = format!("id,name,categoryId\n{id},a,1\n");
            let said = read(&text, Format::Csv, unless_taken)[0].1.clone();
            let said = said.unwrap_err();
            assert!(
                said.contains("'id' must be a 64-bit integer (int64), not"),
                "{said}"
            );
            assert!(said.contains("as new pets with --new-ids"), "{said}");
            assert_eq!(read(&text, Format::Csv, NEW)[0].1, Ok("0 a 1".to_owned()));
        }
        for (id, read_as) in [
            ("\"+3\"", None),
            ("1.5", None),
            ("null", Some(0)),
            ("\"\"", Some(0)),
            ("\"3\"", Some(3)),
        ] {
            let text = format!("{{\"id\":{id},\"name\":\"a\",\"categoryId\":1}}");
            let found = read(&text, Format::Ndjson, unless_taken)[0].1.clone().ok();
            assert_eq!(found, read_as.map(|id| format!("{id} a 1")), "{id}");
        }
        let empty = "id,name,categoryId\n ,a,1\n";
        assert_eq!(
            read(empty, Format::Csv, unless_taken)[0].1,
            Ok("0 a 1".to_owned())
        );
    }

    #[test]
    fn columns_can_be_in_any_order() {
        let text = "\u{feff}status,id,categoryId,name\nsold,7,2,\"a,b\"\n,8,3,";
        let text = text.to_owned();
        let mut rows = InputRows::new(text.as_bytes(), "", Format::Csv, KEEP, &[]).unwrap();
        assert_eq!(rows.advance().unwrap(), Some(2));
        let pet = NewPet {
            status: Some(PetStatus::Sold),
            ..NewPet::new("a,b", 2)
        };
        let patch = pet.into();
        assert_eq!(rows.row(), Ok(InputRow { id: Some(7), patch }));
        assert_eq!(rows.advance().unwrap(), Some(3));
        assert_eq!(
            rows.row(),
            Ok(InputRow {
                id: Some(8),
                patch: NewPet::new("", 3).into()
            })
        );
        assert_eq!(rows.advance().unwrap(), None);
    }

    #[test]
    fn wrong_header_is_described() {
        for (header, ids, named) in [
            ("", NEW, "'name' is missing"),
            ("name,categoryId,status\n", KEEP, "'id' is missing"),
            ("id,name\n", NEW, "'categoryId' is missing"),
            (
                "name,Price,categoryId,notes\n",
                NEW,
                "'Price' is unknown; the header line is id,name,categoryId,status, in any order; --ignore-columns 'Price,notes'",
            ),
            // What a shell would run is not among what is to be pasted.
            (
                "name,categoryId,x'; rm -r .; echo '\n",
                NEW,
                "is unknown; the header line is id,name,categoryId,status, in any order; delete the other columns",
            ),
            (
                "name,Kategorie\n",
                NEW,
                "the column 'categoryId' is missing, and 'Kategorie' is unknown; the header",
            ),
            (
                "id,name (text),name,categoryId\n",
                NEW,
                "'name' is given more than once",
            ),
            (
                "NAME;name;categoryId\n",
                NEW,
                "'name' is given more than once",
            ),
            (
                "name,categoryId,name\n",
                NEW,
                "'name' is given more than once",
            ),
            (
                ",,\n\nname,,categoryId\n",
                NEW,
                "line 3: the column '' is unknown",
            ),
            (
                "name,category\u{1b}Id\n",
                NEW,
                "'category\\u{1b}Id' is unknown",
            ),
            ("name,cat\"egoryId\n", NEW, MALFORMED),
            (
                "name,\"categoryId\na,1\n",
                NEW,
                "line 1: A quoted field has no closing quote. Found: ",
            ),
        ] {
            let said = InputRows::new(header.as_bytes(), "", Format::Csv, ids, &[])
                .err()
                .unwrap()
                .to_string();
            assert!(said.contains(named), "{header:?}: {said}");
        }
        // UTF-16, which spreadsheets save as "Unicode text".
        let said = InputRows::new(&b"\xff\xfen\0,\0"[..], "", Format::Csv, NEW, &[])
            .err()
            .unwrap()
            .to_string();
        assert_eq!(
            said,
            format!("line 1: {NOT_UTF8} Found: \u{fffd}\u{fffd}n\\0,\\0")
        );
    }

    #[test]
    fn wrong_row_is_described_and_the_next_is_read() {
        let text = "nonsense\n{\"name\":\"a\"}\n{\"name\":\"b\",\"categoryId\":1}\n";
        let rows = read(text, Format::Ndjson, NEW);
        assert_eq!(
            rows[0].1.as_ref().unwrap_err(),
            "The line must be one JSON object with 'name' and 'categoryId': expected ident at column 2. \
             Found: nonsense"
        );
        assert!(
            rows[1]
                .1
                .as_ref()
                .unwrap_err()
                .contains("'categoryId' is missing")
        );
        assert_eq!(rows[2], (3, Ok("0 b 1".to_owned())));
        let rows = read("id,name,categoryId\n1,a\n0,b,1\n3,c,1", Format::Csv, KEEP);
        assert!(rows[0].1.as_ref().unwrap_err().contains("has 2 fields"));
        assert!(
            rows[1]
                .1
                .as_ref()
                .unwrap_err()
                .contains("'id' must be an integer from 1")
        );
        assert_eq!(rows[2], (4, Ok("3 c 1".to_owned())));
    }

    #[test]
    fn record_ends_where_it_seems_to_and_the_next_is_read() {
        let text = b"name,categoryId\n\xc3,\xa9\n\"\xff\nb\",1\n5\" nail,1\na,1\nc,\"1\n";
        let mut rows = InputRows::new(&text[..], "", Format::Csv, NEW, &[]).unwrap();
        let mut expect = |line, said| {
            assert_eq!(rows.advance().unwrap(), Some(line));
            assert_eq!(
                rows.row().map(|row| row.patch.name.unwrap().into_owned()),
                said
            );
        };
        let no_text = |found: &str| Err(format!("{NOT_UTF8} Found: {found}"));
        expect(2, no_text("\u{fffd},\u{fffd}"));
        expect(3, no_text("\"\u{fffd}\\nb\",1"));
        expect(5, Err(format!("{MALFORMED} Found: 5\" nail,1")));
        expect(6, Ok("a".to_owned()));
        expect(
            7,
            Err("A quoted field has no closing quote. Found: c,\"1".to_owned()),
        );
        assert_eq!(rows.advance().unwrap(), None);
    }

    #[test]
    fn row_may_be_as_long_as_the_bound_in_pieces_of_any_size() {
        for (length, fits) in [(MAX_ROW / 2, true), (MAX_ROW, true), (MAX_ROW + 1, false)] {
            for size in [7, 4096, 2 * MAX_ROW] {
                for (header, format, line) in [
                    ("", Format::Ndjson, 1),
                    ("name,categoryId\n", Format::Csv, 2),
                ] {
                    let text = format!("{header}{}\n", "x".repeat(length));
                    let source = io::BufReader::with_capacity(size, text.as_bytes());
                    let mut rows = InputRows::new(source, "", format, NEW, &[]).unwrap();
                    let said =
                        format!("line {line}: a pet must not be longer than {MAX_ROW} bytes");
                    let found = rows.advance().map_err(|error| error.to_string());
                    assert_eq!(found, if fits { Ok(Some(line)) } else { Err(said) });
                }
            }
        }
        let text = format!("name,categoryId\na,1\n\"{}\"", "\n".repeat(MAX_ROW));
        let mut rows = InputRows::new(text.as_bytes(), "", Format::Csv, NEW, &[]).unwrap();
        assert_eq!(rows.advance().unwrap(), Some(2));
        assert!(
            rows.advance()
                .unwrap_err()
                .to_string()
                .starts_with("line 3: "),
            "where it begins"
        );
        assert!(
            rows.text.len() < MAX_ROW + 3,
            "what is too long is not kept"
        );
    }

    #[test]
    fn rows_and_columns_without_text_are_none() {
        let text = "\u{feff},,,,\r\nname, categoryId ,status,,\r\na,1,,,\r\n,,,,\r\n\"\",\" \",\r\nb,2,sold\r\nc,3,,,,,,\r\nd,4,,x,\r\ne,5\r\n";
        let few = |has: usize| Err(format!("The row has {has} fields, and the header has 3."));
        let pet = |pet: &str| Ok(pet.to_owned());
        assert_eq!(
            read(text, Format::Csv, NEW),
            [
                (3, pet("0 a 1")),
                (6, pet("0 b 2")),
                (7, pet("0 c 3")),
                (8, few(4)),
                (9, few(2))
            ]
        );
    }
}
