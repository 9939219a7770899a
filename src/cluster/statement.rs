//! Statements as rqlite takes them, and rows as it returns them (`rqlite.io/docs/api/`): JSON in both directions.
//!
//! JSON has no BLOBs. A BLOB is sent as hexadecimal digits in `unhex(?)`, and received as base64.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize, Serializer};

use crate::failure::{ClusterFailure, Trouble};

/// A value of a statement or of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected null, an integer or a text")]
pub enum ClusterValue {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A text.
    Text(String),
    /// Only in rows.
    #[serde(skip)]
    Blob(Vec<u8>),
}

impl ClusterValue {
    /// The integer; `None` for anything else.
    pub fn integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    /// The value as text, whatever it is. Bytes other than UTF-8 become U+FFFD.
    pub fn text(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Integer(number) => number.to_string(),
            Self::Text(text) => text.clone(),
            Self::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        }
    }
}

/// An SQL statement with the values of its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Statement {
    /// Its text.
    pub sql: Cow<'static, str>,
    /// The values of its parameters.
    pub values: Vec<ClusterValue>,
}

impl Statement {
    /// A statement without values.
    pub fn plain(sql: impl Into<Cow<'static, str>>) -> Self {
        Self {
            sql: sql.into(),
            values: Vec::new(),
        }
    }

    /// A statement with these values. Its parameters are either all like `?1` or all like `?`.
    ///
    /// # Errors
    /// If SQLite cannot store a value.
    pub fn new(sql: &str, values: &[&dyn ToSql]) -> rusqlite::Result<Self> {
        let sent = values.iter().map(|value| Ok(sent(&value.to_sql()?)));
        let (values, forms): (Vec<ClusterValue>, Vec<[&str; 2]>) = sent
            .collect::<rusqlite::Result<Vec<_>>>()?
            .into_iter()
            .unzip();
        let (mut text, mut rest, mut count) = (String::with_capacity(sql.len() + 8), sql, 0);
        while let Some((before, after)) = rest.split_once('?') {
            count += 1;
            let digits = after
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(after.len());
            let (number, after) = after.split_at(digits);
            let [open, close] = forms
                .get(number.parse().unwrap_or(count) - 1)
                .unwrap_or(&["", ""]);
            text.extend([before, open, "?", number, close]);
            rest = after;
        }
        text += rest;
        Ok(Self {
            sql: text.into(),
            values,
        })
    }
}

/// Returns the value to send, and the SQL before and after its parameter. rqlite mistakes text such as `x'41'` for a
/// BLOB.
fn sent(value: &ToSqlOutput) -> (ClusterValue, [&'static str; 2]) {
    let value = match value {
        ToSqlOutput::Borrowed(value) => *value,
        ToSqlOutput::Owned(value) => value.into(),
        // The others need features of rusqlite that are off.
        _ => ValueRef::Null,
    };
    match value {
        ValueRef::Integer(number) => (ClusterValue::Integer(number), ["", ""]),
        ValueRef::Text(bytes) => match String::from_utf8_lossy(bytes) {
            text if text.trim_end().ends_with('\'') => {
                (hexadecimal(bytes), ["CAST(unhex(", ") AS TEXT)"])
            }
            text => (ClusterValue::Text(text.into_owned()), ["", ""]),
        },
        ValueRef::Blob(bytes) => (hexadecimal(bytes), ["unhex(", ")"]),
        // No column has real numbers.
        ValueRef::Null | ValueRef::Real(_) => (ClusterValue::Null, ["", ""]),
    }
}

fn hexadecimal(bytes: &[u8]) -> ClusterValue {
    let digit = |half: u8| char::from(b"0123456789ABCDEF"[usize::from(half)]);
    ClusterValue::Text(
        bytes
            .iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
            .collect(),
    )
}

/// The rows of one statement.
pub type ClusterRows = Vec<Vec<ClusterValue>>;

/// The effect of one statement of a transaction.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StatementAnswer {
    /// The id of the last row that was inserted on this connection, by this statement or an earlier one.
    pub last_insert_id: i64,
    /// The number of rows that the statement has changed.
    pub rows_affected: u64,
    /// The rows of a SELECT, or of a statement with RETURNING, if rows were asked for.
    #[serde(rename = "values")]
    pub rows: ClusterRows,
    /// The types of the columns.
    types: Vec<String>,
    /// The message of SQLite if the statement failed.
    error: Option<String>,
}

/// Writes statements as the body of a request.
pub fn encode(statements: &[Statement]) -> Vec<u8> {
    // JSON can express every text and every number.
    serde_json::to_vec(statements).unwrap_or_default()
}

/// Serializes a statement as an array of its text and its values.
impl Serialize for Statement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sql = ClusterValue::Text(self.sql.to_string());
        serializer.collect_seq(std::iter::once(&sql).chain(&self.values))
    }
}

/// Reads the body of a response to `count` statements: one outcome for each, or the failure of a statement.
///
/// # Errors
/// If the node could not carry them out, or the body is not what rqlite writes.
pub fn decode(
    body: &[u8],
    count: usize,
) -> Result<Result<Vec<StatementAnswer>, ClusterFailure>, Trouble> {
    let foreign = |what: &str| Trouble::foreign(what, true);
    let body: AnswerBody =
        serde_json::from_slice(body).map_err(|error| foreign(&error.to_string()))?;
    // Such as `leadership lost while committing log`.
    if let Some(error) = body.error {
        return Err(Trouble::of_message(&error));
    }
    let mut outcomes = body.results;
    for (i, outcome) in outcomes.iter_mut().enumerate() {
        if let Some(message) = outcome.error.take() {
            return Ok(Err(ClusterFailure::Statement(i, message)));
        }
        read_blobs(&mut outcome.rows, &outcome.types).ok_or_else(|| foreign("a BLOB"))?;
    }
    if outcomes.len() == count {
        Ok(Ok(outcomes))
    } else {
        Err(foreign(&format!(
            "{} results for {count} statements",
            outcomes.len()
        )))
    }
}

/// Reads the BLOBs among the values, which come in base64; `None` if one does not.
fn read_blobs(rows: &mut ClusterRows, types: &[String]) -> Option<()> {
    for (column, _) in types.iter().enumerate().filter(|(_, kind)| *kind == "blob") {
        for value in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            if let ClusterValue::Text(text) = value {
                *value = ClusterValue::Blob(STANDARD.decode(text.as_bytes()).ok()?);
            }
        }
    }
    Some(())
}

#[derive(Deserialize)]
struct AnswerBody {
    #[serde(default)]
    results: Vec<StatementAnswer>,
    error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::params;

    #[test]
    fn statement_is_an_array_of_its_text_and_its_values() {
        let values = params![
            i64::MIN,
            "a\"\0é",
            Option::<i64>::None,
            Some(i64::MAX),
            [0_u8, 0xaf, 0xff]
        ];
        let insert = Statement::new("INSERT INTO t VALUES (?, ?, ?, ?, ?)", values).unwrap();
        assert_eq!(
            String::from_utf8(encode(&[Statement::plain("SELECT 1"), insert])).unwrap(),
            r#"[["SELECT 1"],["INSERT INTO t VALUES (?, ?, ?, ?, unhex(?))",-9223372036854775808,"a\"\u0000é",null,9223372036854775807,"00AFFF"]]"#
        );
        assert_eq!(encode(&[]), b"[]");
    }

    #[test]
    fn blob_is_sent_as_its_digits_wherever_it_stands_and_so_is_a_text_that_looks_like_one() {
        let sent = Statement::new(
            "SELECT ?2, ?1 WHERE ?10 AND ?3",
            params![7, [1_u8, 255], "x"],
        )
        .unwrap();
        assert_eq!(sent.sql, "SELECT unhex(?2), ?1 WHERE ?10 AND ?3");
        assert_eq!(
            sent.values,
            [
                ClusterValue::Integer(7),
                ClusterValue::Text("01FF".to_owned()),
                ClusterValue::Text("x".to_owned())
            ]
        );
        for text in ["x''", "X'41'", " x'4142' \t\u{a0}"] {
            let sent = Statement::new("SELECT ?, ?", params!["a", text]).unwrap();
            assert_eq!(sent.sql, "SELECT ?, CAST(unhex(?) AS TEXT)", "{text}");
        }
    }

    fn outcomes(body: &str, count: usize) -> Vec<StatementAnswer> {
        decode(body.as_bytes(), count).unwrap().unwrap()
    }

    #[test]
    fn response_has_an_outcome_for_each_statement() {
        let body = r#"{"results":[{"last_insert_id":7,"rows_affected":2},{},
            {"columns":["a"],"types":["integer"],"values":[[9223372036854775807,-9223372036854775808],[null,"x\u0000"]]}],"time":0.5}"#;
        let outcomes = outcomes(body, 3);
        assert_eq!(
            (outcomes[0].last_insert_id, outcomes[0].rows_affected),
            (7, 2)
        );
        assert_eq!(outcomes[1], StatementAnswer::default());
        assert_eq!(
            outcomes[2].rows,
            [
                [
                    ClusterValue::Integer(i64::MAX),
                    ClusterValue::Integer(i64::MIN)
                ],
                [ClusterValue::Null, ClusterValue::Text("x\0".to_owned())]
            ]
        );
    }

    #[test]
    fn statement_that_failed_is_named() {
        let body = br#"{"results":[{},{"error":"UNIQUE constraint failed: t.id"}]}"#;
        let expected = ClusterFailure::Statement(1, "UNIQUE constraint failed: t.id".to_owned());
        assert_eq!(decode(body, 3).unwrap(), Err(expected));
    }

    #[test]
    fn error_of_a_node_comes_before_its_results() {
        let body = br#"{"results":[{}],"error":"leadership lost while committing log"}"#;
        assert_eq!(
            decode(body, 1).unwrap_err().text,
            "leadership lost while committing log"
        );
    }

    #[test]
    fn anything_else_is_not_from_rqlite() {
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
            br#"{"results":[{"types":["blob"],"values":[["AP8"]]}]}"#,
            &[b'['; 100_000],
        ] {
            let trouble = decode(body, 1).unwrap_err();
            let why = &trouble.text;
            assert!(
                trouble.may_be_done && why.starts_with("the response is not from rqlite: "),
                "{}: {why}",
                String::from_utf8_lossy(body)
            );
        }
        let fraction = decode(br#"{"results":[{"values":[[1.5]]}]}"#, 1)
            .unwrap_err()
            .text;
        assert!(
            fraction.contains("expected null, an integer or a text"),
            "{fraction}"
        );
    }

    #[test]
    fn blob_comes_in_base64() {
        let body = |text: &str| {
            format!(
                r#"{{"results":[{{"types":["integer","blob"],"values":[[1,"{text}"],[2,null]]}}]}}"#
            )
        };
        let rows = outcomes(&body("AP8="), 1).remove(0).rows;
        assert_eq!(
            rows,
            [
                [ClusterValue::Integer(1), ClusterValue::Blob(vec![0, 255])],
                [ClusterValue::Integer(2), ClusterValue::Null]
            ]
        );
    }
}
