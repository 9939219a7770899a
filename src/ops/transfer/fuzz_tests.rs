//! The rows of an import, for the fuzzers: the size of the buffer does not change them, and rows that are written again
//! are read the same.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::BufReader;

use super::csv::{columns, write_head};
use super::export::write_csv;
use super::rows::{InputRow, InputRows};
use super::{Format, ImportIds};
use crate::model::{NewPet, Pet, PetPatch};

/// Reads an import: CSV if the third bit of `kind` is set, and with ids if the second is.
pub fn rows(kind: u8, bytes: &[u8]) {
    let format = if kind & 4 > 0 {
        Format::Csv
    } else {
        Format::Ndjson
    };
    let whole = read(bytes, format, ids(kind), 1 << 16);
    // The buffer is never too small for a byte order mark.
    assert_eq!(
        whole,
        read(bytes, format, ids(kind), 3 + usize::from(kind >> 3))
    );
    let Ok(rows) = whole else { return };
    let (mut csv, mut sheet) = (Vec::new(), Vec::new());
    write_head(&mut csv, Format::Csv, &columns()).unwrap();
    write_head(&mut sheet, Format::ExcelSemicolon, &columns()).unwrap();
    let mut kept = Vec::new();
    for (_, row) in rows {
        let Ok(InputRow { id, patch }) = row else {
            continue;
        };
        let empty = Pet {
            id: id.unwrap_or(1),
            name: "".into(),
            category_id: 0,
            status: None,
        };
        let pet = patch.apply(&empty);
        write_csv(&mut csv, Format::Csv, pet.clone()).unwrap();
        write_csv(&mut sheet, Format::ExcelSemicolon, pet.clone()).unwrap();
        let patch = PetPatch::from(NewPet::from(pet)).into_owned();
        kept.push(InputRow { id, patch });
    }
    for written in [csv, sheet] {
        let again = read(&written, Format::Csv, ids(kind), 7).unwrap();
        let again: Vec<_> = again.into_iter().map(|(_, row)| row.unwrap()).collect();
        assert_eq!(again, kept);
    }
}

fn ids(kind: u8) -> ImportIds {
    if kind & 2 > 0 {
        ImportIds::Keep
    } else {
        ImportIds::New
    }
}

type Read = (u64, Result<InputRow<'static>, String>);

/// Returns each row with its line, or the error that ends the import.
fn read(bytes: &[u8], format: Format, ids: ImportIds, piece: usize) -> Result<Vec<Read>, String> {
    let source = BufReader::with_capacity(piece, bytes);
    let mut rows =
        InputRows::new(source, "", format, ids, &[]).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    while let Some(line) = rows.advance().map_err(|error| error.to_string())? {
        found.push((
            line,
            rows.row().map(|InputRow { id, patch }| InputRow {
                id,
                patch: patch.into_owned(),
            }),
        ));
    }
    assert!(rows.next_line > found.last().map_or(0, |(line, _)| *line));
    Ok(found)
}
