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
    let mut values = encoded_pairs(query)
        .filter(|(n, _)| decoded(n) == name)
        .map(|(_, value)| decoded(value));
    let value = values.next();
    if values.next().is_some() {
        let message = format!("The query parameter '{name}' is given more than once.");
        return Err(ApiError::with_message(Code::DuplicateParameter, message));
    }
    Ok(value)
}

/// The names and values of a query, decoded.
pub fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    encoded_pairs(query).map(|(name, value)| (decoded(name), decoded(value)))
}

fn encoded_pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// The most names that [`ignored`] lists, and the most bytes of each, so that the header field stays short.
const MOST_IGNORED: usize = 10;
const MOST_NAME_BYTES: usize = 64;

/// Lists the names in a query that are not known, as a list of tokens (RFC 9651, section 3.3.4). A name that is no token is
/// left out.
pub fn ignored(query: Option<&str>, is_known: impl Fn(&str) -> bool) -> String {
    let mut names: Vec<Cow<str>> = Vec::new();
    for (name, _) in query.into_iter().flat_map(pairs) {
        if names.len() < MOST_IGNORED
            && is_token(&name)
            && !is_known(&name)
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names.join(", ")
}

fn is_token(name: &str) -> bool {
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'*';
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
    name.len() <= MOST_NAME_BYTES
        && name.bytes().next().is_some_and(is_first)
        && name.bytes().all(is_part)
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
    fn ignored_names_are_a_short_list_of_tokens() {
        let ignored = |query| ignored(Some(query), |name| name == "limit");
        assert_eq!(ignored("name=Zora&limit=5&q&%71=2&name"), "name, q");
        let long = "x".repeat(MOST_NAME_BYTES + 1);
        let odd = format!("a%20b=1&%0d%0aX=1&1st&%C3%A4&=x&{long}&*ok&a/b:c");
        assert_eq!(ignored(&odd), "*ok, a/b:c");
        let many: Vec<String> = (0..20).map(|n| format!("p{n}")).collect();
        assert_eq!(ignored(&many.join("&")).split(", ").count(), MOST_IGNORED);
        assert_eq!(super::ignored(None, |_| false), "");
    }

    #[test]
    fn parameter_given_twice_is_rejected() {
        assert_eq!(
            parameter(Some("a=1&%61=1"), "a").unwrap_err().code,
            Code::DuplicateParameter
        );
    }
}
