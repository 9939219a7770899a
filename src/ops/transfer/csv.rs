//! Records of CSV (RFC 4180). Reading is strict: the usual crates also accept malformed CSV, such as a quote within an
//! unquoted field, so a pet could be misread without notice.

use std::borrow::Cow;
use std::io::{self, Write};

use super::Format;
use crate::model::{MEMBERS, MemberValue, NewPet, Pet};

/// The fault of a malformed record.
pub const MALFORMED: &str = "A field with a quote, a separator or a line break must be in quotes, and each quote in it doubled.";

/// The name of the column with the name of a pet in a file for spreadsheets. There, an apostrophe comes before each text
/// that has one, or that a spreadsheet would change or run.
pub const GUARDED_NAME: &str = "name (text)";
/// The apostrophe.
pub const GUARD: char = '\'';

/// The columns of a pet, in the order of an export.
pub fn columns() -> Vec<&'static str> {
    ["id"]
        .into_iter()
        .chain(MEMBERS.iter().map(|member| member.name()))
        .collect()
}

/// Writes the head of a file.
///
/// # Errors
/// Those of `out`.
pub fn write_head(out: &mut impl Write, format: Format, columns: &[&str]) -> io::Result<()> {
    let mut head = columns.join(&format.separator().to_string());
    if format.is_for_sheets() {
        head = format!("\u{feff}{}", head.replace("name", GUARDED_NAME));
    }
    write!(out, "{head}\r\n")
}

/// One field, in quotes if it needs them.
pub fn field(text: &str, format: Format) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if format.is_for_sheets() && is_changed_by_sheets(&text) {
        text.to_mut().insert(0, GUARD);
    }
    if text.contains(['"', ',', ';', '\t', '\r', '\n']) {
        text = format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text
}

/// Returns true if a spreadsheet may take a text for a formula, a number, a date or a truth value, or if it begins as
/// guarded ones do: all but plain words.
fn is_changed_by_sheets(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphabetic() || " -.,".contains(c);
    let is_word = text.starts_with(char::is_alphabetic) && text.chars().all(is_plain);
    let is_truth = ["true", "false"]
        .iter()
        .any(|it| text.eq_ignore_ascii_case(it));
    !text.is_empty() && (!is_word || is_truth)
}

/// A number, guarded if a spreadsheet would round it, as it keeps 15 digits.
pub fn number(number: i64, format: Format) -> String {
    let is_rounded = format.is_for_sheets() && number.unsigned_abs() >= 1_000_000_000_000_000;
    if is_rounded {
        format!("{GUARD}{number}")
    } else {
        number.to_string()
    }
}

/// Writes the members of a pet except its id, each after a separator.
///
/// # Errors
/// Those of `out`.
pub fn write_members(out: &mut impl Write, format: Format, pet: Pet) -> io::Result<()> {
    let separator = format.separator();
    for value in NewPet::from(pet).values() {
        match value {
            MemberValue::Integer(value) => write!(out, "{separator}{}", number(value, format))?,
            MemberValue::Text(text) => write!(out, "{separator}{}", field(text, format))?,
            MemberValue::None => write!(out, "{separator}")?,
        }
    }
    Ok(())
}

/// A record. It is read line by line, because a quoted field may have line breaks.
#[derive(Default)]
pub struct CsvRecord {
    /// The text of all fields, without separators.
    text: String,
    /// What separates fields.
    separator: char,
    /// The end of each field in the text.
    ends: Vec<usize>,
    /// True if the last line ends within a quoted field, so that the record continues on the next line.
    pub is_open: bool,
}

impl CsvRecord {
    /// A record with this separator.
    pub fn separated_by(separator: char) -> Self {
        Self {
            separator,
            ..Self::default()
        }
    }

    /// Adds a line with its line break.
    ///
    /// # Errors
    /// A sentence that describes the fault. The record then ends with this line.
    pub fn add(&mut self, line: &str) -> Result<(), &'static str> {
        let separator = self.separator;
        let mut rest = line;
        loop {
            let quoted = if self.is_open {
                Some(rest)
            } else {
                rest.strip_prefix('"')
            };
            rest = if let Some(quoted) = quoted {
                let Some(after) = self.add_quoted(quoted) else {
                    return Ok(());
                };
                after
            } else {
                let (text, after) = rest.split_at(
                    rest.find([separator, '"', '\r', '\n'])
                        .unwrap_or(rest.len()),
                );
                self.text.push_str(text);
                after
            };
            self.ends.push(self.text.len());
            match rest.strip_prefix(separator) {
                Some(next) => rest = next,
                None if matches!(rest, "" | "\n" | "\r\n") => return Ok(()),
                None => return Err(MALFORMED),
            }
        }
    }

    /// Adds the rest of a quoted field, and returns what follows the closing quote; `None` if there is none.
    fn add_quoted<'l>(&mut self, mut rest: &'l str) -> Option<&'l str> {
        self.is_open = true;
        while let Some((text, after)) = rest.split_once('"') {
            self.text.push_str(text);
            let Some(next) = after.strip_prefix('"') else {
                self.is_open = false;
                return Some(after);
            };
            self.text.push('"');
            rest = next;
        }
        self.text.push_str(rest);
        None
    }

    /// Returns true if no field has text.
    pub fn is_empty(&self) -> bool {
        self.text.trim_ascii().is_empty()
    }

    /// Removes empty fields from its end, which spreadsheets add, until `count` fields are left.
    pub fn trim(&mut self, count: usize) {
        while self.ends.len() > count && self.fields().last() == Some(&"") {
            self.ends.pop();
        }
    }

    /// Returns the fields. The record must not be open.
    pub fn fields(&self) -> Vec<&str> {
        let mut start = 0;
        self.ends
            .iter()
            .map(|end| &self.text[std::mem::replace(&mut start, *end)..*end])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the records of a text: for each, its fields or its fault.
    fn read(text: &str) -> Vec<Result<Vec<String>, &'static str>> {
        let (mut records, mut record) = (Vec::new(), CsvRecord::separated_by(','));
        for line in text.split_inclusive('\n') {
            let added = record.add(line);
            if added.is_err() || !record.is_open {
                let record = std::mem::replace(&mut record, CsvRecord::separated_by(','));
                records
                    .push(added.map(|()| record.fields().into_iter().map(str::to_owned).collect()));
            }
        }
        records
    }

    #[test]
    fn fields_come_back_as_they_were_written() {
        let names = [
            "",
            " a ",
            "a\"b",
            "\"",
            "\"\"",
            "a,b",
            "a\r\nb",
            "\n",
            "\r",
            "a\0b",
            "\u{1f600}",
        ];
        let text: String = names
            .iter()
            .map(|name| format!("{},", field(name, Format::Csv)))
            .collect();
        let fields = read(&text).remove(0).unwrap();
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
    }
}
