//! Parameters as values: each reads its text, words what is expected, and describes itself.

use std::borrow::Cow;

use serde_json::json;

use crate::http::query;
use crate::http::{ApiError, Code};
use crate::json::Schema;

/// A parameter, for the interface description.
pub trait Parameter: Sync {
    fn name(&self) -> &'static str;
    /// The Parameter Object (OpenAPI 3.1, section 4.8.12).
    fn describe(&self) -> serde_json::Value;
}

/// A path parameter: the segment in braces in the operation's path.
#[derive(Debug)]
pub struct PathParameter<S> {
    pub name: &'static str,
    /// Its meaning, for the interface description.
    pub about: &'static str,
    pub schema: S,
}

/// An optional query parameter.
#[derive(Debug)]
pub struct QueryParameter<S> {
    pub name: &'static str,
    /// What it means, for the interface description.
    pub about: &'static str,
    pub schema: S,
}

/// A query parameter with a default.
#[derive(Debug)]
pub struct DefaultedParameter<S: Schema> {
    pub parameter: QueryParameter<S>,
    pub default: S::Value<'static>,
}

impl<S: Schema + Sync> Parameter for PathParameter<S> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn describe(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "in": "path",
            "required": true,
            "description": self.about,
            "schema": self.schema.describe(),
        })
    }
}

impl<S: Schema + Sync> Parameter for QueryParameter<S> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn describe(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "in": "query",
            "description": self.about,
            "schema": self.schema.describe(),
        })
    }
}

impl<S: Schema<Value<'static>: Sync + Clone + Into<serde_json::Value>> + Sync> Parameter
    for DefaultedParameter<S>
{
    fn name(&self) -> &'static str {
        self.parameter.name
    }
    fn describe(&self) -> serde_json::Value {
        let mut described = self.parameter.describe();
        described["schema"]["default"] = self.default.clone().into();
        described
    }
}

impl<S: Schema> QueryParameter<S> {
    /// Its value in this query; `None` if it is absent.
    ///
    /// # Errors
    /// 400, if it is given twice or has a wrong value.
    pub fn read(&self, query: Option<&str>) -> Result<Option<S::Value<'static>>, ApiError> {
        let Some(text) = query::parameter(query, self.name)? else { return Ok(None) };
        self.value(text).map(Some)
    }

    fn value(&self, text: Cow<str>) -> Result<S::Value<'static>, ApiError> {
        self.schema.of_text(&text).ok_or_else(|| {
            let message = format!("The query parameter '{}' must be {}.", self.name, self.schema.expected());
            ApiError::with_message(Code::InvalidParameter, message)
        })
    }
}

impl<S: Schema<Value<'static>: Clone>> DefaultedParameter<S> {
    /// Its value in this query, or its default.
    ///
    /// # Errors
    /// 400, if it is given twice or has a wrong value.
    pub fn read(&self, query: Option<&str>) -> Result<S::Value<'static>, ApiError> {
        Ok(self.parameter.read(query)?.unwrap_or_else(|| self.default.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Integer;

    const COUNT: DefaultedParameter<Integer> = DefaultedParameter {
        parameter: QueryParameter {
            name: "count",
            about: "How many.",
            schema: Integer { minimum: 0, maximum: 9 },
        },
        default: 5,
    };

    #[test]
    fn value_stands_in_the_query_or_is_the_default() {
        assert_eq!(COUNT.read(Some("x=1&count=9")), Ok(9));
        assert_eq!(COUNT.read(Some("x=1")), Ok(5));
        assert_eq!(COUNT.parameter.read(None), Ok(None));
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
