//! Parameters of operations: each reads its value, reports the expected values, and describes itself for the interface
//! description.

use crate::app::endpoint::{ApiError, Code, query};
use petstore_base::json::{Json, Schema, object};

/// The request header fields that describe a body.
pub const CONTENT_TYPE: &str = "Content-Type";
pub const CONTENT_ENCODING: &str = "Content-Encoding";

/// A parameter that a handler reads.
pub trait Parameter: Sync {
    /// Returns the Parameter Object of the OpenAPI description (OpenAPI 3.1, section 4.8.12).
    fn describe(&self) -> Json;

    /// The name of the request header field, if it is one.
    fn header(&self) -> Option<&'static str> {
        None
    }

    /// The name of the query parameter, if it is one.
    fn query(&self) -> Option<&'static str> {
        None
    }
}

/// A path parameter: the segment in braces in the operation's path.
#[derive(Debug)]
pub struct PathParameter<S> {
    pub name: &'static str,
    pub about: &'static str,
    pub schema: S,
}

impl<S: Schema + Sync> Parameter for PathParameter<S> {
    fn describe(&self) -> Json {
        let schema = self.schema.describe();
        object! { "name": self.name, "in": "path", "required": true, "description": self.about, "schema": schema, "example": 1 }
    }
}

/// An optional query parameter.
#[derive(Debug)]
pub struct QueryParameter<S> {
    pub name: &'static str,
    pub about: &'static str,
    pub schema: S,
}

impl<S: Schema + Sync> Parameter for QueryParameter<S> {
    fn describe(&self) -> Json {
        let schema = self.schema.describe();
        object! { "name": self.name, "in": "query", "description": self.about, "schema": schema }
    }

    fn query(&self) -> Option<&'static str> {
        Some(self.name)
    }
}

/// The label of what may change or disappear without notice.
pub const EXPERIMENTAL: &str = "experimental";

/// An optional query parameter that may change or disappear without notice.
#[derive(Debug)]
pub struct Experimental<S>(pub QueryParameter<S>);

impl<S: Schema + Sync> Parameter for Experimental<S> {
    fn describe(&self) -> Json {
        let mut described = self.0.describe();
        described["x-stability"] = EXPERIMENTAL.into();
        described
    }

    fn query(&self) -> Option<&'static str> {
        self.0.query()
    }
}

/// An optional request header field.
#[derive(Debug)]
pub struct HeaderParameter {
    pub name: &'static str,
    pub about: &'static str,
    pub example: &'static str,
    /// The form of the value, as a regular expression of JSON Schema; `None`: any.
    pub pattern: Option<&'static str>,
}

impl HeaderParameter {
    /// A header field of operations that are not described.
    pub const fn undescribed(name: &'static str) -> Self {
        Self {
            name,
            about: "",
            example: "",
            pattern: None,
        }
    }
}

/// The content codings that the client accepts.
pub static ACCEPT_ENCODING: HeaderParameter = HeaderParameter::undescribed("Accept-Encoding");

/// The entity tags that the client has.
pub static IF_NONE_MATCH: HeaderParameter = HeaderParameter {
    name: "If-None-Match",
    about: "The `ETag` of the response that you have, several of them separated by commas, or `*`. If one of them is \
        current, a GET gets a 304 without a body, and a change gets a 412.",
    example: "\"9f86d081884c7d659a2feaa0c55ad015\"",
    pattern: None,
};

/// The entity tags; the pet must have one of them.
pub static IF_MATCH: HeaderParameter = HeaderParameter {
    name: "If-Match",
    about: "The `ETag` of the pet as you know it. If the pet was changed since, you get a 412 and nothing is changed.",
    example: "\"9f86d081884c7d659a2feaa0c55ad015\"",
    pattern: None,
};

impl Parameter for HeaderParameter {
    fn header(&self) -> Option<&'static str> {
        Some(self.name)
    }

    fn describe(&self) -> Json {
        let mut schema = object! { "type": "string", "examples": [self.example] };
        if let Some(pattern) = self.pattern {
            schema["pattern"] = pattern.into();
        }
        object! { "name": self.name, "in": "header", "description": self.about, "schema": schema }
    }
}

impl<S: Schema> QueryParameter<S> {
    /// Returns its value in this query; `None` if it is absent.
    ///
    /// # Errors
    /// 400, if it is given twice or has a wrong value.
    pub fn read(&self, query: Option<&str>) -> Result<Option<S::Value<'static>>, ApiError> {
        let Some(text) = query::parameter(query, self.name)? else {
            return Ok(None);
        };
        let value = self.schema.of_text(&text).ok_or_else(|| {
            let message = format!(
                "The query parameter '{}' must be {}.",
                self.name,
                self.schema.expected()
            );
            ApiError::with_message(Code::InvalidParameter, message)
        })?;
        Ok(Some(value))
    }
}

/// A header field of a response, for the OpenAPI description.
#[derive(Clone, Copy, Debug)]
pub struct HeaderField {
    pub name: &'static str,
    pub about: &'static str,
    pub example: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::json::Integer;

    const COUNT: QueryParameter<Integer> = QueryParameter {
        name: "count",
        about: "How many.",
        schema: Integer {
            minimum: 0,
            maximum: 9,
            default: Some(5),
        },
    };

    #[test]
    fn value_stands_in_the_query() {
        assert_eq!(COUNT.read(Some("x=1&count=9")), Ok(Some(9)));
        assert_eq!(COUNT.read(Some("x=1")), Ok(None));
        assert_eq!(COUNT.read(None), Ok(None));
    }

    #[test]
    fn parameter_is_described_as_it_is_read() {
        let schema = object! {"type": "integer", "format": "int64", "minimum": 0, "maximum": 9, "default": 5};
        let described =
            object! {"name": "count", "in": "query", "description": "How many.", "schema": schema};
        assert_eq!(COUNT.describe(), described);
    }

    #[test]
    fn message_names_the_parameter_and_what_is_expected() {
        let expected = "The query parameter 'count' must be an integer from 0 to 9.";
        let error = ApiError::with_message(Code::InvalidParameter, expected);
        assert_eq!(COUNT.read(Some("count=10")), Err(error));
    }
}
