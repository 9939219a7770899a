//! Statements and values, from how `rusqlite` has them to how rqlite takes them, and back.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::client::{Statement, Value};
use crate::store::StoreError;

/// A statement with its values, as rqlite takes them: a BLOB as the text of its hexadecimal digits.
///
/// # Errors
/// If a value has no place in SQLite.
pub fn statement(sql: &str, values: &[&dyn ToSql]) -> Result<Statement, StoreError> {
    let values = values.iter().map(|value| Ok(value_of(&value.to_sql()?))).collect::<Result<Vec<_>, _>>();
    let values: Vec<Value> = values.map_err(|error: rusqlite::Error| StoreError::from(error))?;
    let mut text = String::with_capacity(sql.len() + 8);
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once('?') {
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(digits);
        let place = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let is_blob = place.and_then(|place| values.get(place)).is_some_and(|v| matches!(v, Value::Blob(_)));
        text += before;
        text += &if is_blob { format!("unhex(?{number})") } else { format!("?{number}") };
        rest = after;
    }
    text += rest;
    Ok(Statement::new(text, values))
}

fn value_of(value: &ToSqlOutput) -> Value {
    let value = match value {
        ToSqlOutput::Borrowed(value) => *value,
        ToSqlOutput::Owned(value) => value.into(),
        // The others need features of rusqlite that are off.
        _ => ValueRef::Null,
    };
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        // No column is of this kind.
        ValueRef::Real(number) => Value::Text(number.to_string()),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
    }
}

/// A value of a response, as SQLite has it.
pub fn value_ref(value: &Value) -> ValueRef<'_> {
    match value {
        Value::Null => ValueRef::Null,
        Value::Integer(number) => ValueRef::Integer(*number),
        Value::Text(text) => ValueRef::Text(text.as_bytes()),
        Value::Blob(bytes) => ValueRef::Blob(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_is_sent_as_its_digits_wherever_it_stands() {
        let sent = statement("SELECT ?2, ?1 WHERE ?10 AND ?", &[&7, &[1_u8, 255].as_slice(), &"x"]).unwrap();
        assert_eq!(sent.sql, "SELECT unhex(?2), ?1 WHERE ?10 AND ?");
        assert_eq!(sent.values, [Value::Integer(7), Value::Blob(vec![1, 255]), "x".into()]);
    }
}
