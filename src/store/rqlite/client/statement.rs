//! Statements as rqlite takes them, and rows as it returns them (`rqlite.io/docs/api/`): JSON in both directions.
//!
//! A BLOB has no place in JSON. It goes as the text of its hexadecimal digits, for `unhex(?)` in the statement, and it
//! comes in base64.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// A value of a statement or of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Null,
    Integer(i64),
    Text(String),
    /// As a parameter it needs `unhex(?)`.
    Blob(Vec<u8>),
}

impl Value {
    /// The integer; `None` for anything else.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Null | Self::Text(_) | Self::Blob(_) => None,
        }
    }

    /// The text; `None` for anything else.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Integer(_) | Self::Blob(_) => None,
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Blob(bytes.to_owned())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// An SQL statement with the values of its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Statement {
    pub sql: Cow<'static, str>,
    pub values: Vec<Value>,
}

impl Statement {
    /// A statement with these values, in the order of its question marks.
    pub fn new(sql: impl Into<Cow<'static, str>>, values: impl Into<Vec<Value>>) -> Self {
        Self { sql: sql.into(), values: values.into() }
    }
}

/// The rows of one statement.
pub type Rows = Vec<Vec<Value>>;

/// What one statement of a transaction has done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The id of the last row that was inserted on this connection, be it by this statement or by an earlier one.
    pub last_insert_id: i64,
    /// How many rows the statement has changed.
    pub rows_affected: u64,
    /// The rows of a SELECT, or of a statement with RETURNING, if rows were asked for.
    pub rows: Rows,
}

/// Writes statements as the body of a request.
pub fn encode(statements: &[Statement]) -> Vec<u8> {
    let mut body = Vec::with_capacity(128 * statements.len() + 2);
    body.push(b'[');
    for (i, statement) in statements.iter().enumerate() {
        body.extend_from_slice(if i > 0 { b",[" } else { b"[" });
        write_text(&mut body, &statement.sql);
        for value in &statement.values {
            body.push(b',');
            match value {
                Value::Null => body.extend_from_slice(b"null"),
                Value::Integer(number) => {
                    body.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
                }
                Value::Text(text) => write_text(&mut body, text),
                Value::Blob(bytes) => {
                    body.push(b'"');
                    let digit = |half: u8| b"0123456789ABCDEF"[usize::from(half)];
                    body.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
                    body.push(b'"');
                }
            }
        }
        body.push(b']');
    }
    body.push(b']');
    body
}

fn write_text(body: &mut Vec<u8>, text: &str) {
    // Writing to memory cannot fail, nor can text be anything but JSON.
    let _ = serde_json::to_writer(body, text);
}

/// Why a response has no outcome for each statement.
#[derive(Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// This statement failed, with this message of SQLite or rqlite.
    Failed(usize, String),
    /// The node could not carry them out, with its message, such as `leadership lost while committing log`.
    Error(String),
    /// The body is not what rqlite writes.
    Garbled(String),
}

/// Reads the body of a response to so many statements.
///
/// # Errors
/// If a statement failed, or there is not one outcome for each.
pub fn decode(body: &[u8], count: usize) -> Result<Vec<Outcome>, Unanswered> {
    let garbled = |what: String| Unanswered::Garbled(what);
    let answer: Answer = serde_json::from_slice(body).map_err(|error| garbled(error.to_string()))?;
    if let Some(error) = answer.error {
        return Err(Unanswered::Error(error));
    }
    let answered = answer.results.len();
    let mut outcomes = Vec::with_capacity(count);
    for (i, result) in answer.results.into_iter().enumerate() {
        if let Some(message) = result.error {
            return Err(Unanswered::Failed(i, message));
        }
        outcomes.push(Outcome {
            last_insert_id: result.last_insert_id,
            rows_affected: result.rows_affected,
            rows: with_blobs(result.values, &result.types).ok_or_else(|| garbled("a BLOB".to_owned()))?,
        });
    }
    if answered == count {
        Ok(outcomes)
    } else {
        Err(garbled(format!("{answered} results for {count} statements")))
    }
}

/// The rows with their BLOBs, which come in base64; `None` if one does not.
fn with_blobs(mut rows: Rows, types: &[String]) -> Option<Rows> {
    for column in types.iter().enumerate().filter(|(_, kind)| *kind == "blob").map(|(column, _)| column) {
        for value in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            if let Value::Text(text) = value {
                *value = Value::Blob(STANDARD.decode(text.as_bytes()).ok()?);
            }
        }
    }
    Some(rows)
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    results: Vec<StatementAnswer>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct StatementAnswer {
    #[serde(default)]
    last_insert_id: i64,
    #[serde(default)]
    rows_affected: u64,
    /// Those of the columns.
    #[serde(default)]
    types: Vec<String>,
    #[serde(default)]
    values: Rows,
    error: Option<String>,
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading)
    }
}

struct Reading;

impl Visitor<'_> for Reading {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("null, an integer or a text")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        i64::try_from(number).map(Value::Integer).map_err(|_| E::custom("an integer beyond SQLite's"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_is_an_array_of_its_text_and_its_values() {
        let statements = [
            Statement::new("SELECT 1", []),
            Statement::new(
                "INSERT INTO t VALUES (?, ?, ?, ?, unhex(?))",
                [
                    i64::MIN.into(),
                    "a\"\0é".into(),
                    Value::Null,
                    Some(i64::MAX).into(),
                    (&[0_u8, 0xaf, 0xff][..]).into(),
                ],
            ),
        ];
        assert_eq!(
            String::from_utf8(encode(&statements)).unwrap(),
            r#"[["SELECT 1"],["INSERT INTO t VALUES (?, ?, ?, ?, unhex(?))",-9223372036854775808,"a\"\u0000é",null,9223372036854775807,"00AFFF"]]"#
        );
        assert_eq!(encode(&[]), b"[]");
    }

    #[test]
    fn response_has_an_outcome_for_each_statement() {
        let body = r#"{"results":[{"last_insert_id":7,"rows_affected":2},{},
            {"columns":["a"],"types":["integer"],"values":[[9223372036854775807,-9223372036854775808],[null,"x\u0000"]]}],"time":0.5}"#;
        let outcomes = decode(body.as_bytes(), 3).unwrap();
        assert_eq!((outcomes[0].last_insert_id, outcomes[0].rows_affected), (7, 2));
        assert_eq!(outcomes[1], Outcome::default());
        assert_eq!(outcomes[2].rows, [[i64::MAX.into(), i64::MIN.into()], [Value::Null, "x\0".into()]]);
    }

    #[test]
    fn statement_that_failed_is_named() {
        let body = br#"{"results":[{},{"error":"UNIQUE constraint failed: t.id"}]}"#;
        assert_eq!(decode(body, 3), Err(Unanswered::Failed(1, "UNIQUE constraint failed: t.id".to_owned())));
    }

    #[test]
    fn error_of_a_node_comes_before_its_results() {
        let body = br#"{"results":[{}],"error":"leadership lost while committing log"}"#;
        let expected = Unanswered::Error("leadership lost while committing log".to_owned());
        assert_eq!(decode(body, 1), Err(expected));
    }

    #[test]
    fn anything_else_is_garbled() {
        for body in [
            &b""[..],
            b"{",
            b"[]",
            b"null",
            b"{}",
            b"\xff",
            br#"{"results":[]}"#,
            br#"{"results":[{},{}]}"#,
            br#"{"results":[{"rows_affected":-1}]}"#,
            br#"{"results":[{"values":[[1.5]]}]}"#,
            br#"{"results":[{"values":[[9223372036854775808]]}]}"#,
            br#"{"results":[{"values":[[[]]]}]}"#,
        ] {
            let answer = decode(body, 1);
            assert!(
                matches!(answer, Err(Unanswered::Garbled(_))),
                "{}: {answer:?}",
                String::from_utf8_lossy(body)
            );
        }
        let fraction = decode(br#"{"results":[{"values":[[1.5]]}]}"#, 1);
        assert!(
            matches!(&fraction, Err(Unanswered::Garbled(why)) if why.contains("expected null, an integer or a text")),
            "{fraction:?}"
        );
        assert!(matches!(decode("[".repeat(100_000).as_bytes(), 1), Err(Unanswered::Garbled(_))));
    }

    #[test]
    fn blob_comes_in_base64() {
        let body = |text: &str| {
            format!(r#"{{"results":[{{"types":["integer","blob"],"values":[[1,"{text}"],[2,null]]}}]}}"#)
        };
        let rows = decode(body("AP8=").as_bytes(), 1).unwrap().remove(0).rows;
        assert_eq!(rows, [[1.into(), Value::Blob(vec![0, 255])], [2.into(), Value::Null]]);
        assert!(matches!(decode(body("AP8").as_bytes(), 1), Err(Unanswered::Garbled(_))));
    }
}
