//! Checks the start of an input, so that an input of another format gets one message that names its format, instead of
//! one per line.

use super::Format;
use super::input::Input;
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_base::json::shown;

const UTF_16: &str =
    "UTF-16 text: save it as UTF-8, or convert it: iconv -f utf-16 -t utf-8 FILE > UTF-8-FILE";
const SPREAD: &str = "a JSON array, or JSON with pets over several lines: write each pet on a line of its own, without brackets \
    and commas around it";

/// Checks that an input can be of the format.
///
/// # Errors
/// [`ErrorKind::InvalidInput`], with the actual format.
pub fn check(input: &Input, format: Format) -> Result<(), Error> {
    other(&input.start, format).map_or(Ok(()), |what| {
        fail(ErrorKind::InvalidInput, format!("{} is {what}", input.name))
    })
}

/// How files begin that are no text, and what they are.
const BINARY: [(&[u8], &str); 8] = [
    (b"PK\x03\x04", WORKBOOK),
    (b"\xd0\xcf\x11\xe0", WORKBOOK),
    (
        b"\x1f\x8b",
        "compressed with gzip: unpack it first: gunzip < FILE > NEW-FILE",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed with zstd: unpack it first: unzstd < FILE > NEW-FILE",
    ),
    (
        b"SQLite format 3\0",
        "an SQLite database: a backup of petstore is restored with petstore restore",
    ),
    (
        b"BZh",
        "compressed with bzip2: unpack it first: bunzip2 < FILE > NEW-FILE",
    ),
    (
        b"\xfd7zXZ",
        "compressed with xz: unpack it first: unxz < FILE > NEW-FILE",
    ),
    (b"%PDF", "a PDF document"),
];
const WORKBOOK: &str =
    "a workbook of a spreadsheet, or another archive: save its sheet as CSV UTF-8";

/// Returns the actual format of an input with another format than the expected one.
fn other(start: &[u8], format: Format) -> Option<String> {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_ascii_start();
    let line = text.lines().next().unwrap_or_default();
    let is_json = |line: &str| line.trim_ascii_start().starts_with('{');
    if let Some((_, what)) = BINARY.iter().find(|(begin, _)| start.starts_with(begin)) {
        return Some((*what).to_owned());
    }
    Some(match format {
        // A byte order mark of UTF-16, or the zero byte of an ASCII character in UTF-16.
        _ if start
            .iter()
            .take(2)
            .any(|byte| matches!(byte, 0 | 0xfe | 0xff)) =>
        {
            UTF_16.to_owned()
        }
        _ if line == "{" || line.starts_with('[') => SPREAD.to_owned(),
        _ if line.trim_ascii_end().contains('\r') => {
            "text whose lines end with CR alone: save it with LF or CRLF".to_owned()
        }
        Format::Ndjson if !line.is_empty() && !text.lines().any(is_json) => format!(
            "not NDJSON, as no line begins with '{{', and the first is '{}'; if it is CSV, add --format csv",
            shown(line)
        ),
        _ if format.is_csv() && is_json(line) => "JSON, not CSV".to_owned(),
        _ if format.is_csv() && !line.contains([',', ';', '\t']) && line.contains('|') => {
            format!(
                "not CSV with commas, as its header is '{}': save it with commas",
                shown(line)
            )
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_of_the_format_is_named() {
        let utf_16 = |order: fn(u16) -> [u8; 2]| {
            "name,categoryId\n".encode_utf16().flat_map(order).collect()
        };
        let (little, big): (Vec<u8>, Vec<u8>) =
            (utf_16(u16::to_le_bytes), utf_16(u16::to_be_bytes));
        let json = "{\"name\":\"a\",\"categoryId\":1}";
        let (ndjson, csv) = (Format::Ndjson, Format::Csv);
        for (start, formats, said) in [
            (
                &[b"\xff\xfe", &little[..]].concat()[..],
                &[ndjson, csv][..],
                UTF_16,
            ),
            (&[b"\xfe\xff", &big[..]].concat(), &[ndjson, csv], UTF_16),
            (&little, &[ndjson, csv], UTF_16),
            (&big, &[ndjson, csv], UTF_16),
            (b"name,categoryId\ra,1\r", &[ndjson, csv], "CR alone"),
            (
                format!("{json}\r{json}\r").as_bytes(),
                &[ndjson, csv],
                "CR alone",
            ),
            (
                b"name|categoryId\na|1\n",
                &[csv],
                "its header is 'name|categoryId': save it with commas",
            ),
            (json.as_bytes(), &[csv], "JSON, not CSV"),
            (b"\xef\xbb\xbf\r\n [{", &[ndjson, csv], SPREAD),
            (b"{\r\n  \"name\": \"a\",\r\n", &[ndjson, csv], SPREAD),
            (b"{\n  \"name\": \"a\",\n", &[ndjson, csv], SPREAD),
            (
                b"name,categoryId\r\na,1\r\n",
                &[ndjson],
                "and the first is 'name,categoryId'; if it is CSV",
            ),
            (b"PK\x03\x04\x14", &[ndjson, csv], "a workbook"),
            (b"\xd0\xcf\x11\xe0\xa1", &[ndjson, csv], "a workbook"),
            (b"\x1f\x8b\x08", &[ndjson, csv], "gunzip"),
            (b"SQLite format 3\0\x10", &[ndjson, csv], "petstore restore"),
            (b"<html>\n", &[ndjson], "not NDJSON"),
            (b"- name: a\n", &[ndjson], "not NDJSON"),
        ] {
            for format in formats {
                let what = other(start, *format).unwrap();
                assert!(what.contains(said), "{start:?}: {what}");
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
            ("name;categoryId\na;1\n", csv),
            ("\u{feff}name\tcategoryId\r\n", csv),
        ] {
            assert_eq!(other(start.as_bytes(), format), None, "{start:?}");
        }
    }
}
