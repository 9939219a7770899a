//! Parameters as values: each reads its text and says in a message what is expected.

use std::borrow::Cow;

use crate::http::query;
use crate::http::{ApiError, Code};
use crate::json::Schema;

/// A parameter of the path: the segment that stands in braces in the operation's row.
#[derive(Debug)]
pub struct PathParameter<S> {
    pub name: &'static str,
    pub schema: S,
}

/// A parameter of the query that may be absent.
#[derive(Debug)]
pub struct QueryParameter<S> {
    pub name: &'static str,
    pub schema: S,
}

/// A parameter of the query that has a value where it is absent.
#[derive(Debug)]
pub struct DefaultedParameter<S: Schema> {
    pub parameter: QueryParameter<S>,
    pub default: S::Value<'static>,
}

impl<S: Schema> QueryParameter<S> {
    /// Its value in this query.
    ///
    /// # Errors
    /// Where it is given twice, or is something else.
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
    /// Where it is given twice, or is something else.
    pub fn read(&self, query: Option<&str>) -> Result<S::Value<'static>, ApiError> {
        Ok(self.parameter.read(query)?.unwrap_or_else(|| self.default.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Integer;

    const COUNT: DefaultedParameter<Integer> = DefaultedParameter {
        parameter: QueryParameter { name: "count", schema: Integer { minimum: 0, maximum: 9 } },
        default: 5,
    };

    #[test]
    fn value_stands_in_the_query_or_is_the_default() {
        assert_eq!(COUNT.read(Some("x=1&count=9")), Ok(9));
        assert_eq!(COUNT.read(Some("x=1")), Ok(5));
        assert_eq!(COUNT.parameter.read(None), Ok(None));
    }

    #[test]
    fn message_names_the_parameter_and_what_is_expected() {
        let expected = "The query parameter 'count' must be an integer from 0 to 9.";
        let error = ApiError::with_message(Code::InvalidParameter, expected);
        assert_eq!(COUNT.read(Some("count=10")), Err(error));
    }
}
