//! Parameters as values: each reads its text, words what is expected, and describes itself.

use serde_json::json;

use crate::base::http::query;
use crate::base::http::{ApiError, Code};
use crate::base::json::{Declared, Optional, Required, Schema};

/// A parameter, for the interface description.
pub trait Parameter: Sync {
    /// The Parameter Object (OpenAPI 3.1, section 4.8.12).
    fn describe(&self) -> serde_json::Value;
}

/// A path parameter: the segment in braces in the operation's path.
pub type PathParameter<S> = Required<S>;

/// An optional query parameter.
pub type QueryParameter<S> = Optional<S>;

impl<S: Schema + Sync, const IN_PATH: bool> Parameter for Declared<S, IN_PATH> {
    fn describe(&self) -> serde_json::Value {
        let mut described = json!({ "name": self.name, "in": if IN_PATH { "path" } else { "query" } });
        if IN_PATH {
            described["required"] = true.into();
        }
        described["description"] = self.about.into();
        described["schema"] = self.schema.describe();
        described
    }
}

/// An optional request header field, as the interface description shows it. A handler reads it with
/// [`Call::header_values`](super::Call::header_values), so its name stands in `headers` of the row as well.
#[derive(Debug)]
pub struct HeaderParameter {
    pub name: &'static str,
    pub about: &'static str,
    pub example: &'static str,
    /// What the value must look like, as a regular expression of JSON Schema; `None`: anything.
    pub pattern: Option<&'static str>,
}

impl Parameter for HeaderParameter {
    fn describe(&self) -> serde_json::Value {
        let mut schema = json!({ "type": "string", "examples": [self.example] });
        if let Some(pattern) = self.pattern {
            schema["pattern"] = pattern.into();
        }
        json!({ "name": self.name, "in": "header", "description": self.about, "schema": schema })
    }
}

impl<S: Schema> QueryParameter<S> {
    /// Its value in this query; `None` if it is absent.
    ///
    /// # Errors
    /// 400, if it is given twice or has a wrong value.
    pub fn read(&self, query: Option<&str>) -> Result<Option<S::Value<'static>>, ApiError> {
        let Some(text) = query::parameter(query, self.name)? else { return Ok(None) };
        let value = self.schema.of_text(&text).ok_or_else(|| {
            let message = format!("The query parameter '{}' must be {}.", self.name, self.schema.expected());
            ApiError::with_message(Code::InvalidParameter, message)
        })?;
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::json::Integer;

    const COUNT: QueryParameter<Integer> = QueryParameter {
        name: "count",
        about: "How many.",
        schema: Integer { minimum: 0, maximum: 9, default: Some(5) },
    };

    #[test]
    fn value_stands_in_the_query() {
        assert_eq!(COUNT.read(Some("x=1&count=9")), Ok(Some(9)));
        assert_eq!(COUNT.read(Some("x=1")), Ok(None));
        assert_eq!(COUNT.read(None), Ok(None));
    }

    #[test]
    fn parameter_is_described_as_it_is_read() {
        let schema = json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": 9, "default": 5});
        let described = json!({"name": "count", "in": "query", "description": "How many.", "schema": schema});
        assert_eq!(COUNT.describe(), described);
    }

    #[test]
    fn message_names_the_parameter_and_what_is_expected() {
        let expected = "The query parameter 'count' must be an integer from 0 to 9.";
        let error = ApiError::with_message(Code::InvalidParameter, expected);
        assert_eq!(COUNT.read(Some("count=10")), Err(error));
    }
}
