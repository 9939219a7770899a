//! The rows of an import, for the fuzzers: they are the same in any pieces, and what is written again is read again.

use std::io::BufReader;

use super::Format;
use super::csv::push_field;
use super::rows::Rows;
use crate::model::PetStatus;

/// Reads an import: CSV if the third bit of `kind` is set, and with ids if the second is.
pub fn rows(kind: u8, bytes: &[u8]) {
    let format = if kind & 4 > 0 { Format::Csv } else { Format::Ndjson };
    let whole = read(bytes, format, kind & 2 > 0, 1 << 16);
    // A file is read in pieces that have room for a byte order mark.
    assert_eq!(whole, read(bytes, format, kind & 2 > 0, 3 + usize::from(kind >> 3)));
    let Ok(rows) = whole else { return };
    let mut csv = b"name,id,categoryId,status\n".to_vec();
    let mut kept = Vec::new();
    for (_, row) in rows {
        let Ok((id, name, category_id, status)) = row else { continue };
        push_field(&mut csv, &name);
        csv.extend(format!(",{},{category_id},{status}\r\n", id.unwrap_or(1)).bytes());
        kept.push((id, name, category_id, status));
    }
    let again = read(&csv, Format::Csv, kind & 2 > 0, 7).unwrap();
    assert_eq!(again.into_iter().map(|(_, row)| row.unwrap()).collect::<Vec<_>>(), kept);
}

type Read = (u64, Result<(Option<i64>, String, i64, &'static str), String>);

/// Each row with its line, or what is wrong with the header.
fn read(bytes: &[u8], format: Format, keep_ids: bool, piece: usize) -> Result<Vec<Read>, String> {
    let mut rows = Rows::new(BufReader::with_capacity(piece, bytes), format, keep_ids).unwrap()?;
    let mut found = Vec::new();
    while let Some(line) = rows.advance().unwrap() {
        let row = rows.row().map(|(id, new)| {
            let status = new.status.map_or("", PetStatus::as_str);
            (id, new.name.into_owned(), new.category_id, status)
        });
        found.push((line, row));
    }
    assert!(rows.next_line() > found.last().map_or(0, |(line, _)| *line));
    Ok(found)
}
