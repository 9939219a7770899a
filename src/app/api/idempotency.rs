//! `Idempotency-Key`: a create that is sent again does not add a second pet
//! (draft-ietf-httpapi-idempotency-key-header-07).

use std::borrow::Cow;

use crate::app::endpoint::parameter::HeaderParameter;
use crate::app::endpoint::{ApiError, Call, Code, HeaderField};
use crate::model::IdempotencyKey;

/// The longest key, in bytes.
const MAX_BYTES: usize = 255;

/// The key of one create, chosen by the client.
pub static IDEMPOTENCY_KEY: HeaderParameter = HeaderParameter {
    name: "Idempotency-Key",
    about: "Makes a retry safe: 1 to 255 printable ASCII characters, such as a UUID. Use a new one for each pet.",
    example: "8e03978e-40d5-43e8-bc93-6894a57f9324",
    pattern: Some(r#"^([!#-+\--:<-\[\]-~]{1,255}|"([ !#-\[\]-~]|\\["\\]){1,255}")$"#),
};

/// Marks the response to a create that was carried out earlier.
pub const REPLAYED: HeaderField = HeaderField {
    name: "Idempotency-Replayed",
    about: "`true` if an earlier request with the same `Idempotency-Key` added the pet.",
    example: "true",
};

/// The key of a request; `None` if it has none.
///
/// # Errors
/// 400, if it is malformed or given twice.
pub fn idempotency_key(call: &Call) -> Result<Option<IdempotencyKey>, ApiError> {
    let mut values = call.header_values(&IDEMPOTENCY_KEY);
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = read(value.trim()).filter(|text| (1..=MAX_BYTES).contains(&text.len()));
    match (text, values.next()) {
        (Some(text), None) => Ok(call
            .caller
            .map(|caller| IdempotencyKey::new(caller, text.as_bytes()))),
        _ => Err(ApiError::new(Code::InvalidIdempotencyKey)),
    }
}

/// The text of a key: a structured-field string (RFC 9651, section 3.3.3), or the bare form that most clients send.
/// `None` if it is neither.
fn read(value: &str) -> Option<Cow<'_, str>> {
    let Some(quoted) = value.strip_prefix('"') else {
        let is_bare = |b: u8| b.is_ascii_graphic() && !b",;\"\\".contains(&b);
        return value.bytes().all(is_bare).then_some(Cow::Borrowed(value));
    };
    let mut text = String::new();
    let mut rest = quoted.chars();
    loop {
        match rest.next()? {
            '"' => return rest.as_str().is_empty().then_some(Cow::Owned(text)),
            '\\' => text.push(rest.next().filter(|c| ['"', '\\'].contains(c))?),
            c @ ' '..='~' => text.push(c),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_a_string_or_bare() {
        for (value, text) in [
            ("8e03978e-40d5", "8e03978e-40d5"),
            ("\"8e03978e-40d5\"", "8e03978e-40d5"),
            (
                "!#$%&'()*+-./:<=>?@[]^_`{|}~",
                "!#$%&'()*+-./:<=>?@[]^_`{|}~",
            ),
            (r#""a, b; \"c\" \\""#, r#"a, b; "c" \"#),
            ("", ""),
            ("\"\"", ""),
        ] {
            assert_eq!(read(value).as_deref(), Some(text), "{value}");
        }
        for value in [
            "a b",
            "a,b",
            "a;b",
            "a\"b",
            "a\\b",
            "é",
            "\"a",
            "a\"",
            "\"a\"b",
            "\"a\";p=1",
            r#""\a""#,
            "\"\t\"",
            "\"é\"",
            "\"\\",
        ] {
            assert_eq!(read(value), None, "{value}");
        }
    }
}
