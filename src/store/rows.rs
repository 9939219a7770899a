//! Reads the columns of a row, whatever other programs have written there.

use std::borrow::Cow;
use std::ops::ControlFlow;

use rusqlite::Row;
use rusqlite::types::{FromSql, FromSqlResult, ValueRef};

/// Gets the rows of a statement.
pub type Visit<'v> = dyn FnMut(&Row) -> rusqlite::Result<ControlFlow<()>> + 'v;

/// A column as text, borrowed if it is UTF-8.
pub fn text<'r>(row: &'r Row, column: usize) -> rusqlite::Result<Cow<'r, str>> {
    let value = row.get_ref(column)?;
    let is_text = value.as_str().map(Cow::Borrowed);
    Ok(is_text.or_else(|_| AnyText::column_result(value).map(|text| Cow::Owned(text.0)))?)
}

/// A column as text; `None` if it is null.
pub fn text_or_null(row: &Row, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(row.get::<_, Option<AnyText>>(column)?.map(|text| text.0))
}

/// A column as a number, also where another program has made it text or a float of the same value; `None` if it is
/// anything else.
pub fn integer(row: &Row, column: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Null => None,
        other => {
            let text = AnyText::column_result(other)?.0;
            text.parse().ok()
        }
    })
}

/// A value of any type as text. Other programs write too, and SQLite does not check text: bytes other than UTF-8 become
/// U+FFFD.
pub struct AnyText(pub String);

impl FromSql for AnyText {
    fn column_result(value: ValueRef) -> FromSqlResult<Self> {
        Ok(Self(match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Null => String::new(),
        }))
    }
}
