//! Query strings, as browsers and curl write them (`application/x-www-form-urlencoded`).

use std::borrow::Cow;

use crate::app::endpoint::{ApiError, Code};
use petstore_base::http::percent;

/// The decoded value of a query parameter; `None` if it is absent.
///
/// # Errors
/// [`ApiError`] 400, if it is given more than once.
pub fn parameter<'a>(query: Option<&'a str>, name: &str) -> Result<Option<Cow<'a, str>>, ApiError> {
    let Some(query) = query else { return Ok(None) };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut values = pairs
        .filter(|(n, _)| decoded(n) == name)
        .map(|(_, value)| decoded(value));
    let value = values.next();
    if values.next().is_some() {
        let message = format!("The query parameter '{name}' is given more than once.");
        return Err(ApiError::with_message(Code::DuplicateParameter, message));
    }
    Ok(value)
}

/// Decodes a name or a value. Invalid UTF-8 becomes U+FFFD.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains(['+', '%']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(String::from_utf8_lossy(&percent::decode(&text.replace('+', " "))).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Some("x&limit=%31%30&st%61tus=a+b&empty=&&=&odd=%2b=%zz%ff");
        assert_eq!(parameter(query, "limit").unwrap().unwrap(), "10");
        assert_eq!(parameter(query, "status").unwrap().unwrap(), "a b");
        assert_eq!(parameter(query, "odd").unwrap().unwrap(), "+=%zz\u{fffd}");
        assert_eq!(parameter(query, "x").unwrap().unwrap(), "");
        assert_eq!(parameter(query, "empty").unwrap().unwrap(), "");
        assert_eq!(parameter(query, "after").unwrap(), None);
        assert_eq!(parameter(None, "after").unwrap(), None);
    }

    #[test]
    fn parameter_given_twice_is_rejected() {
        assert_eq!(
            parameter(Some("a=1&%61=1"), "a").unwrap_err().code,
            Code::DuplicateParameter
        );
    }
}
