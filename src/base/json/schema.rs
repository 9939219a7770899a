//! Schemas of values. A schema reads a value from a body or a query, reports the expected values, and describes them
//! as JSON Schema (2020-12).

use std::borrow::Cow;

use super::{Json, JsonValue, object};
use crate::clock::parse_rfc3339;

/// The values that a member of a body or a parameter of a request may have.
pub trait Schema {
    /// The type of the value in Rust.
    type Value<'a>;

    /// The expected values, as the end of a message after "must be".
    fn expected(&self) -> Cow<'static, str>;

    /// Reads a JSON value.
    ///
    /// # Errors
    /// The kind of value that was found, as the end of a message after "not". It never repeats the value.
    fn of_json<'a>(&self, value: JsonValue<'a>) -> Result<Self::Value<'a>, &'static str>;

    /// Reads the text of a query or path parameter; `None` if it is not allowed.
    fn of_text(&self, text: &str) -> Option<Self::Value<'static>>;

    /// The JSON Schema. A schema with a name is a reference to a component of the OpenAPI description.
    fn describe(&self) -> Json;
}

/// An integer between two bounds, both included.
#[derive(Clone, Copy, Debug)]
pub struct Integer {
    /// The least.
    pub minimum: i64,
    /// The greatest.
    pub maximum: i64,
    /// The value if it is absent, for the OpenAPI description.
    pub default: Option<i64>,
}

impl Integer {
    /// Any integer of 64 bits.
    pub const INT64: Self = Self::between(i64::MIN, i64::MAX);

    /// An integer between two bounds, without a default.
    pub const fn between(minimum: i64, maximum: i64) -> Self {
        Self {
            minimum,
            maximum,
            default: None,
        }
    }

    fn allows(&self, number: i64) -> bool {
        (self.minimum..=self.maximum).contains(&number)
    }
}

impl Schema for Integer {
    type Value<'a> = i64;

    fn expected(&self) -> Cow<'static, str> {
        if (self.minimum, self.maximum) == (i64::MIN, i64::MAX) {
            "a 64-bit integer (int64)".into()
        } else {
            format!("an integer from {} to {}", self.minimum, self.maximum).into()
        }
    }

    fn of_json(&self, value: JsonValue) -> Result<i64, &'static str> {
        let JsonValue::Number(text) = value else {
            return Err(value.kind());
        };
        let number = int64_of_json(text)?;
        if self.allows(number) {
            Ok(number)
        } else {
            Err("a number out of bounds")
        }
    }

    fn of_text(&self, text: &str) -> Option<i64> {
        // If no negative value is allowed, neither is a sign, not even in "-0".
        let is_plain = self.minimum < 0 || !text.starts_with('-');
        int64_of_text(text).filter(|number| is_plain && self.allows(*number))
    }

    fn describe(&self) -> Json {
        let mut schema = object! { "type": "integer", "format": "int64" };
        // Programs that read numbers as doubles would round these to other ones, beyond int64.
        if self.minimum != i64::MIN {
            schema["minimum"] = self.minimum.into();
        }
        if self.maximum != i64::MAX {
            schema["maximum"] = self.maximum.into();
        }
        if let Some(default) = self.default {
            schema["default"] = default.into();
        }
        schema
    }
}

/// Any string.
#[derive(Clone, Copy, Debug)]
pub struct AnyString;

impl Schema for AnyString {
    type Value<'a> = Cow<'a, str>;

    fn expected(&self) -> Cow<'static, str> {
        "a string".into()
    }

    fn of_json<'a>(&self, value: JsonValue<'a>) -> Result<Cow<'a, str>, &'static str> {
        if let JsonValue::Text(text) = value {
            Ok(text)
        } else {
            Err(value.kind())
        }
    }

    fn of_text(&self, text: &str) -> Option<Cow<'static, str>> {
        Some(text.to_owned().into())
    }

    fn describe(&self) -> Json {
        object! { "type": "string" }
    }
}

/// A string of some length.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// The fewest characters.
    pub least: usize,
    /// The most characters.
    pub most: usize,
}

impl Text {
    fn allows(&self, text: &str) -> bool {
        (self.least..=self.most).contains(&text.chars().count())
    }
}

impl Schema for Text {
    type Value<'a> = Cow<'a, str>;

    fn expected(&self) -> Cow<'static, str> {
        format!("a string of {} to {} characters", self.least, self.most).into()
    }

    fn of_json<'a>(&self, value: JsonValue<'a>) -> Result<Cow<'a, str>, &'static str> {
        match value {
            JsonValue::Text(text) if self.allows(&text) => Ok(text),
            JsonValue::Text(_) => Err("a string of another length"),
            other => Err(other.kind()),
        }
    }

    fn of_text(&self, text: &str) -> Option<Cow<'static, str>> {
        self.allows(text).then(|| text.to_owned().into())
    }

    fn describe(&self) -> Json {
        object! { "type": "string", "minLength": self.least as i64, "maxLength": self.most as i64 }
    }
}

/// A time (RFC 3339), in milliseconds of Unix time.
#[derive(Clone, Copy, Debug)]
pub struct DateTime;

impl Schema for DateTime {
    type Value<'a> = i64;

    fn expected(&self) -> Cow<'static, str> {
        "a time such as 2027-01-31T18:00:00Z (RFC 3339)".into()
    }

    fn of_json(&self, value: JsonValue) -> Result<i64, &'static str> {
        match value {
            JsonValue::Text(text) => self.of_text(&text).ok_or("another string"),
            other => Err(other.kind()),
        }
    }

    fn of_text(&self, text: &str) -> Option<i64> {
        parse_rfc3339(text)
    }

    fn describe(&self) -> Json {
        object! { "type": "string", "format": "date-time" }
    }
}

/// One of a few words.
#[derive(Clone, Copy, Debug)]
pub struct Enumeration<W: 'static> {
    /// The name of the component in the OpenAPI description.
    pub name: &'static str,
    /// All values with their words.
    pub words: &'static [(W, &'static str)],
}

impl<W> Enumeration<W> {
    /// The component that [`Schema::describe`] refers to: its name and its JSON Schema.
    pub fn component(&self, description: &str) -> (&'static str, Json) {
        let words: Vec<&str> = self.words.iter().map(|(_, word)| *word).collect();
        (
            self.name,
            object! { "type": "string", "enum": words, "description": description },
        )
    }
}

/// One of a few words, or null.
#[derive(Clone, Copy, Debug)]
pub struct Nullable<W: 'static>(pub Enumeration<W>);

impl<W: Copy> Schema for Nullable<W> {
    type Value<'a> = Option<W>;

    fn expected(&self) -> Cow<'static, str> {
        format!("{}, or null", self.0.expected()).into()
    }

    fn of_json<'a>(&self, value: JsonValue<'a>) -> Result<Self::Value<'a>, &'static str> {
        if let JsonValue::Other("null") = value {
            Ok(None)
        } else {
            self.0.of_json(value).map(Some)
        }
    }

    fn of_text(&self, text: &str) -> Option<Self::Value<'static>> {
        self.0.of_text(text).map(Some)
    }

    fn describe(&self) -> Json {
        // Converters to OpenAPI 3.0 know no reference beside null.
        let words = self.0.words.iter().map(|(_, word)| Some(*word));
        let words: Vec<_> = words.chain([None]).collect();
        object! { "type": ["string", "null"], "enum": words }
    }
}

/// A reference to a component of the OpenAPI description.
pub fn reference(name: &str) -> Json {
    object! { "$ref": format!("#/components/schemas/{name}") }
}

impl<W: Copy> Schema for Enumeration<W> {
    type Value<'a> = W;

    fn expected(&self) -> Cow<'static, str> {
        let words: Vec<String> = self
            .words
            .iter()
            .map(|(_, word)| format!("'{word}'"))
            .collect();
        let words = words.join(", ");
        words
            .rsplit_once(", ")
            .map_or(words.clone(), |(others, last)| {
                format!("{others} or {last}")
            })
            .into()
    }

    fn of_json(&self, value: JsonValue) -> Result<W, &'static str> {
        match value {
            JsonValue::Text(word) => self.of_text(&word).ok_or("another string"),
            other => Err(other.kind()),
        }
    }

    fn of_text(&self, text: &str) -> Option<W> {
        self.words
            .iter()
            .find(|(_, word)| *word == text)
            .map(|(value, _)| *value)
    }

    fn describe(&self) -> Json {
        reference(self.name)
    }
}

/// Reads a JSON number whose value is an integer, such as `1.0` or `1e2` (JSON Schema 2020-12, section
/// 6.1.1). Nothing is rounded. `text` must be a number as in RFC 8259, section 6.
///
/// # Errors
/// The kind of number, if it is not an int64.
pub fn int64_of_json(text: &str) -> Result<i64, &'static str> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // The value is `kept` times ten to the power of `shift`, and the last digit of `kept` is not zero.
    let digits = [whole, fraction].concat();
    let kept = digits.trim_end_matches('0');
    if kept.is_empty() || kept == "-" {
        return Ok(0);
    }
    // Only a sign and digits are left, so parsing fails only if there are too many digits.
    let endless = if exponent.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    let power: i64 = exponent.parse().unwrap_or(endless);
    let dropped = (digits.len() - kept.len()) as i64;
    let shift = power
        .saturating_sub(fraction.len() as i64)
        .saturating_add(dropped);
    if shift < 0 {
        return Err("a number with a fraction");
    }
    // No int64 has more than 18 zeros at its end.
    let zeros = usize::try_from(shift)
        .ok()
        .and_then(|shift| "000000000000000000".get(..shift));
    let number = zeros.and_then(|zeros| [kept, zeros].concat().parse().ok());
    number.ok_or("a number beyond int64")
}

/// Reads decimal digits, with an optional minus sign, as an int64.
pub fn int64_of_text(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    // The standard library would also accept a plus sign.
    (digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: Enumeration<u8> = Enumeration {
        name: "Digit",
        words: &[(1, "one"), (2, "two"), (3, "three")],
    };

    const FEW: Integer = Integer::between(1, 100);

    #[test]
    fn bounds_belong_to_what_is_allowed() {
        for (text, number) in [
            ("0", None),
            ("1", Some(1)),
            ("100", Some(100)),
            ("101", None),
            ("-1", None),
        ] {
            assert_eq!(FEW.of_text(text), number, "{text}");
            assert_eq!(FEW.of_json(JsonValue::Number(text)).ok(), number, "{text}");
        }
        assert_eq!(Integer::between(0, 9).of_text("-0"), None);
        assert_eq!(Integer::INT64.of_text("-0"), Some(0));
        assert_eq!(FEW.expected(), "an integer from 1 to 100");
        assert_eq!(Integer::INT64.expected(), "a 64-bit integer (int64)");
    }

    #[test]
    fn schemas_describe_what_they_read() {
        assert_eq!(
            FEW.describe(),
            object! {"type": "integer", "format": "int64", "minimum": 1, "maximum": 100}
        );
        assert_eq!(
            Integer::INT64.describe(),
            object! {"type": "integer", "format": "int64"}
        );
        assert_eq!(
            DIGITS.describe(),
            object! {"$ref": "#/components/schemas/Digit"}
        );
        let (name, schema) = DIGITS.component("x");
        assert_eq!(
            (name, &schema["enum"]),
            ("Digit", &Json::from(["one", "two", "three"]))
        );
    }

    #[test]
    fn words_are_taken_to_the_letter() {
        assert_eq!(DIGITS.of_text("two"), Some(2));
        assert_eq!(DIGITS.of_text("Two"), None);
        assert_eq!(DIGITS.of_json(JsonValue::Text("three".into())), Ok(3));
        assert_eq!(
            DIGITS.of_json(JsonValue::Text("".into())),
            Err("another string")
        );
        assert_eq!(DIGITS.of_json(JsonValue::Other("null")), Err("null"));
        assert_eq!(DIGITS.expected(), "'one', 'two' or 'three'");
    }

    #[test]
    fn integers_are_read_however_they_are_written() {
        for (text, number) in [
            ("0", 0),
            ("-0", 0),
            ("0.000", 0),
            ("0e99999999999999999999", 0),
            ("-0.0E-5", 0),
            ("1.0", 1),
            ("1e2", 100),
            ("1E+2", 100),
            ("100e-2", 1),
            ("1000.00e-3", 1),
            ("1.50e1", 15),
            ("0.0015e4", 15),
            ("10", 10),
            ("-12.3e1", -123),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("9223372036854775807", i64::MAX),
            ("9.223372036854775807e18", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("-922337203685477580800e-2", i64::MIN),
            ("1e18", 1_000_000_000_000_000_000),
        ] {
            assert_eq!(int64_of_json(text), Ok(number), "{text}");
        }
    }

    #[test]
    fn fractions_are_told_from_what_is_too_large() {
        for text in [
            "1.5",
            "-0.1",
            "1e-1",
            "15e-1",
            "9007199254740993.5",
            "1e-99999999999999999999",
            "0.1e0",
        ] {
            assert_eq!(
                int64_of_json(text),
                Err("a number with a fraction"),
                "{text}"
            );
        }
        for text in [
            "9223372036854775808",
            "-9223372036854775809",
            "9223372036854775808.0",
            "1e19",
            "1e400",
            "-1e99999999999999999999",
            "99999999999999999999999999999999999999999999",
        ] {
            assert_eq!(int64_of_json(text), Err("a number beyond int64"), "{text}");
        }
        let long = format!("1{}", "0".repeat(60_000));
        assert_eq!(int64_of_json(&long), Err("a number beyond int64"));
        assert_eq!(int64_of_json(&format!("{long}e-60000")), Ok(1));
        assert_eq!(
            int64_of_json(&format!("0.{}1e60001", "0".repeat(60_000))),
            Ok(1)
        );
    }

    #[test]
    fn text_takes_plain_digits_only() {
        assert_eq!(int64_of_text("9223372036854775807"), Some(i64::MAX));
        assert_eq!(int64_of_text("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(int64_of_text("007"), Some(7));
        for text in [
            "",
            "-",
            "+1",
            "--1",
            "1.0",
            "1e3",
            " 1",
            "0x1",
            "9223372036854775808",
            "١",
        ] {
            assert_eq!(int64_of_text(text), None, "{text}");
        }
    }
}
