//! What the start of an input tells: whether it is of its format at all, so that one message can say what it is instead.

use super::Format;
use crate::error::{Error, ErrorKind, fail};
use crate::json::shown;

const UTF_16: &str = "UTF-16 text: save it as UTF-8";
/// What other files begin with.
const OTHERS: [(&str, &[u8]); 5] = [
    (UTF_16, b"\xff\xfe"),
    (UTF_16, b"\xfe\xff"),
    ("compressed: decompress it first", b"\x1f\x8b"),
    ("a spreadsheet or an archive: save it as CSV", b"PK\x03\x04"),
    ("a JSON array: write each pet on a line of its own, without brackets and commas around it", b"["),
];

/// Checks whether an input can be of the format.
///
/// # Errors
/// [`ErrorKind::InvalidInput`], with what it is instead.
pub fn check(start: &[u8], name: &str, format: Format) -> Result<(), Error> {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_ascii_start();
    let line = text.lines().next().unwrap_or_default();
    let is_json = |line: &str| line.trim_ascii_start().starts_with('{');
    let begins = |sign| start.starts_with(sign) || text.as_bytes().starts_with(sign);
    let what = if let Some((what, _)) = OTHERS.iter().find(|(_, sign)| begins(sign)) {
        (*what).to_owned()
    } else if start.iter().take(2).any(|byte| *byte == 0) {
        // Half of each usual character.
        UTF_16.to_owned()
    } else if line == "{" {
        "JSON with pets over several lines: write each pet on one line".to_owned()
    } else if !is_json(line) && line.contains(|c: char| c.is_control() && !c.is_ascii_whitespace()) {
        "not text: decompress it, or save it as text".to_owned()
    } else if line.trim_ascii_end().contains('\r') {
        "text whose lines end with CR alone: save it with LF or CRLF".to_owned()
    } else if format == Format::Ndjson && !line.is_empty() && !text.lines().any(is_json) {
        let line = shown(line);
        format!(
            "not NDJSON, as no line begins with '{{', and the first is '{line}'; if it is CSV, that must be said"
        )
    } else if format == Format::Csv && is_json(line) {
        "JSON, not CSV".to_owned()
    } else if format == Format::Csv && !line.contains(',') && line.contains([';', '\t', '|']) {
        format!("not CSV with commas, as its header is '{}': save it with commas", shown(line))
    } else {
        return Ok(());
    };
    fail(ErrorKind::InvalidInput, format!("{name} is {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_of_the_format_is_named() {
        let utf_16 = |order: fn(u16) -> [u8; 2]| "name,categoryId\n".encode_utf16().flat_map(order).collect();
        let (little, big): (Vec<u8>, Vec<u8>) = (utf_16(u16::to_le_bytes), utf_16(u16::to_be_bytes));
        let json = "{\"name\":\"a\",\"categoryId\":1}";
        let (ndjson, csv) = (Format::Ndjson, Format::Csv);
        for (start, formats, said) in [
            (&[b"\xff\xfe", &little[..]].concat()[..], &[ndjson, csv][..], UTF_16),
            (&[b"\xfe\xff", &big[..]].concat(), &[ndjson, csv], UTF_16),
            (&little, &[ndjson, csv], UTF_16),
            (&big, &[ndjson, csv], UTF_16),
            (b"\x1f\x8b\x08", &[ndjson, csv], "is compressed: "),
            (b"PK\x03\x04", &[ndjson, csv], "is a spreadsheet or an archive: "),
            (b"name,categoryId\ra,1\r", &[ndjson, csv], "CR alone"),
            (format!("{json}\r{json}\r").as_bytes(), &[ndjson, csv], "CR alone"),
            (b"name;categoryId\na;1\n", &[csv], "its header is 'name;categoryId': save it with commas"),
            (b"\xef\xbb\xbfname\tcategoryId\r\n", &[csv], "its header is 'name\\tcategoryId': "),
            (json.as_bytes(), &[csv], "is JSON, not CSV"),
            (b"\xef\xbb\xbf\r\n [{", &[ndjson, csv], "is a JSON array: "),
            (b"{\r\n  \"name\": \"a\",\r\n", &[ndjson, csv], "is JSON with pets over several lines: "),
            (b"{\n  \"name\": \"a\",\n", &[ndjson, csv], "is JSON with pets over several lines: "),
            (b"name,categoryId\r\na,1\r\n", &[ndjson], "and the first is 'name,categoryId'; if it is CSV"),
            (b"\xfd7zXZ\0\0\x04\r\xe6\n", &[ndjson, csv], "is not text: "),
            (b"SQLite format 3\0\x10", &[ndjson, csv], "is not text: "),
            (b"<html>\n", &[ndjson], "is not NDJSON"),
            (b"- name: a\n", &[ndjson], "is not NDJSON"),
        ] {
            for format in formats {
                let error = check(start, "pets", *format).unwrap_err().to_string();
                assert!(error.starts_with("pets is ") && error.contains(said), "{start:?}: {error}");
            }
        }
        for (start, format) in [
            ("", csv),
            ("", ndjson),
            ("\n\n", ndjson),
            (json, ndjson),
            ("nonsense\n{}\n", ndjson),
            ("{\"name\":\"\u{1b}\"}\n", ndjson),
            ("\u{feff}{\"name\":\"a\",\"categoryId\":1}\r\n", ndjson),
            ("name,categoryId\n\"a;\rb\",1\n", csv),
            ("name;,categoryId\n", csv),
        ] {
            check(start.as_bytes(), "", format).unwrap();
        }
    }
}
