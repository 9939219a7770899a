//! One JSON object (RFC 8259), read strictly: nothing else in the text, and each member at most once.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Json, Schema, object};

/// A member that must be present.
pub type Required<S> = Declared<S, true>;

/// A member that may be absent. If it is present, it must not be null.
pub type Optional<S> = Declared<S, false>;

/// A member as an object declares it.
#[derive(Clone, Copy, Debug)]
pub struct Declared<S, const IS_REQUIRED: bool> {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, for the OpenAPI description.
    pub about: &'static str,
    /// The values that it may have.
    pub schema: S,
}

impl<S, const IS_REQUIRED: bool> Declared<S, IS_REQUIRED> {
    /// This member as an optional one, with another schema.
    pub const fn optional_as<T>(&self, about: &'static str, schema: T) -> Optional<T> {
        Declared {
            name: self.name,
            about,
            schema,
        }
    }
}

/// A member in the OpenAPI description.
pub trait Member: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Whether an object must have it.
    fn is_required(&self) -> bool;
    /// The JSON Schema with its meaning.
    fn schema(&self) -> Json;
    /// Checks a value that no parser of JSON has read.
    ///
    /// # Errors
    /// [`Invalid::Member`], if it is not allowed.
    fn check(&self, value: JsonValue) -> Result<(), Invalid>;
}

impl<S: Schema + Sync, const IS_REQUIRED: bool> Member for Declared<S, IS_REQUIRED> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn is_required(&self) -> bool {
        IS_REQUIRED
    }
    fn schema(&self) -> Json {
        // OpenAPI 3.1 allows a description next to a reference.
        let mut schema = self.schema.describe();
        schema["description"] = self.about.into();
        schema
    }
    fn check(&self, value: JsonValue) -> Result<(), Invalid> {
        read(self.name, &self.schema, value).map(drop)
    }
}

/// The JSON Schema of an object with these members. `may_grow`: later versions may add members, as to a response, and
/// the schema says so, since many generated clients refuse any other.
pub fn describe(about: &str, members: &[&dyn Member], example: Json, may_grow: bool) -> Json {
    let required: Vec<&str> = members
        .iter()
        .filter(|m| m.is_required())
        .map(|m| m.name())
        .collect();
    let properties: Json = members
        .iter()
        .map(|member| (member.name(), member.schema()))
        .collect();
    let mut schema = object! { "type": "object", "description": about };
    // In OpenAPI 3.0, it must not be empty.
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema["properties"] = properties;
    if may_grow {
        schema["additionalProperties"] = true.into();
    }
    schema["examples"] = Json::Array(vec![example]);
    schema
}

/// The reason for rejecting a body. Each message names the member and the expected value.
#[derive(Debug, PartialEq)]
pub enum Invalid {
    /// Not one JSON object.
    Json(String),
    /// A required member is absent.
    Missing(String),
    /// A member has a value that is not allowed.
    Member(String),
    /// A member is given more than once.
    Duplicate(String),
}

impl Invalid {
    /// The message alone.
    pub fn into_message(self) -> String {
        let (Self::Json(message)
        | Self::Missing(message)
        | Self::Member(message)
        | Self::Duplicate(message)) = self;
        message
    }
}

/// The longest name of a member that a message repeats, in characters.
const MAX_NAME: usize = 64;

/// Prepares a text for a message: puts it on one line, and shortens a long one in the middle.
pub fn shown(text: &str) -> String {
    let (head, tail) = (
        text.floor_char_boundary(60),
        text.ceil_char_boundary(text.len().saturating_sub(40)),
    );
    let text = if head < tail {
        &format!("{}…{}", &text[..head], &text[tail..])
    } else {
        text
    };
    let show = |c| {
        if matches!(c, '"' | '\'') {
            String::from(c)
        } else {
            c.escape_debug().to_string()
        }
    };
    text.chars().map(show).collect()
}

/// The members of an object, in the order of their names.
#[derive(Debug)]
pub struct JsonObject<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> JsonObject<'a> {
    /// Reads a body. `expected` names what the object must have, such as "with 'name'".
    ///
    /// # Errors
    /// [`Invalid`], if the text is not one JSON object or has a member twice.
    pub fn parse(body: &'a [u8], expected: &str) -> Result<Self, Invalid> {
        // A parser may ignore a byte order mark (RFC 8259, section 8.1).
        let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
        if body.is_empty() {
            return Err(Invalid::Json(format!(
                "The body is empty; a JSON object {expected} is expected."
            )));
        }
        // The whole text must be UTF-8 (RFC 8259, section 8.1); serde_json checks only the strings that it
        // returns.
        let text = std::str::from_utf8(body)
            .map_err(|_| Invalid::Json("The body is not UTF-8 text.".into()))?;
        let Self(mut members) = serde_json::from_str(text).map_err(|error| {
            // If the text is JSON but not an object, serde_json would repeat all of it.
            let place = if error.is_data() {
                String::new()
            } else {
                format!(": {error}")
            };
            Invalid::Json(format!(
                "The body must be one JSON object {expected}{place}."
            ))
        })?;
        members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        if let Some([(name, _), _]) = members
            .array_windows()
            .find(|[(one, _), (other, _)]| one == other)
        {
            let name: String = name.chars().take(MAX_NAME).collect();
            return Err(Invalid::Duplicate(format!(
                "The field '{name}' is given more than once."
            )));
        }
        Ok(Self(members))
    }

    /// The number of members.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The value of a required member.
    ///
    /// # Errors
    /// [`Invalid`], if it is absent or of another type.
    pub fn required<S: Schema>(&self, member: &Required<S>) -> Result<S::Value<'a>, Invalid> {
        self.read(member.name, &member.schema)?.ok_or_else(|| {
            let expected = member.schema.expected();
            Invalid::Missing(format!(
                "The field '{}' is missing; it must be {expected}.",
                member.name
            ))
        })
    }

    /// The value of an optional member.
    ///
    /// # Errors
    /// [`Invalid`], if it is of another type.
    pub fn optional<S: Schema>(
        &self,
        member: &Optional<S>,
    ) -> Result<Option<S::Value<'a>>, Invalid> {
        self.read(member.name, &member.schema)
    }

    /// Returns true if a member is null.
    pub fn is_null(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|(n, raw)| n == name && raw.get() == "null")
    }

    fn read<S: Schema>(&self, name: &str, schema: &S) -> Result<Option<S::Value<'a>>, Invalid> {
        let Some((_, raw)) = self.0.iter().find(|(n, _)| n == name) else {
            return Ok(None);
        };
        read(name, schema, JsonValue::of(raw)).map(Some)
    }
}

/// Reads the value of a member.
fn read<'a, S: Schema>(
    name: &str,
    schema: &S,
    value: JsonValue<'a>,
) -> Result<S::Value<'a>, Invalid> {
    schema.of_json(value).map_err(|found| {
        let expected = schema.expected();
        Invalid::Member(format!(
            "The field '{name}' must be {expected}, not {found}."
        ))
    })
}

/// A JSON value, with as much of its type as schemas need.
#[derive(Debug)]
pub enum JsonValue<'a> {
    /// The characters of a string.
    Text(Cow<'a, str>),
    /// The text of a number.
    Number(&'a str),
    /// A value of another type, in words.
    Other(&'static str),
}

impl<'a> JsonValue<'a> {
    fn of(raw: &'a RawValue) -> Self {
        let text = raw.get();
        match text.as_bytes().first() {
            // The whole body was parsed before, so only half of a surrogate pair, which JSON allows, can fail here.
            Some(b'"') => serde_json::from_str(text).map_or(
                JsonValue::Other(
                    "a string with half of a surrogate pair such as \\ud800, which is no character",
                ),
                |BorrowedText(text)| JsonValue::Text(text),
            ),
            Some(b'-' | b'0'..=b'9') => JsonValue::Number(text),
            Some(b't' | b'f') => JsonValue::Other("a boolean"),
            Some(b'[') => JsonValue::Other("an array"),
            Some(b'{') => JsonValue::Other("an object"),
            _ => JsonValue::Other("null"),
        }
    }

    /// The type in words, for a message.
    pub fn kind(&self) -> &'static str {
        match self {
            JsonValue::Text(_) => "a string",
            JsonValue::Number(_) => "a number",
            JsonValue::Other(kind) => kind,
        }
    }
}

impl<'de> Deserialize<'de> for JsonObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = JsonObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<&RawValue, _>()? {
                    members.push((name_of(name.get()), value));
                }
                Ok(JsonObject(members))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// Decodes the name of a member. A name with half of a surrogate pair stays as written, since no schema has it.
fn name_of(text: &str) -> Cow<'_, str> {
    let plain = text.get(1..text.len() - 1).unwrap_or(text);
    let decoded = plain
        .contains('\\')
        .then(|| serde_json::from_str(text).ok())
        .flatten();
    decoded.map_or(plain.into(), |BorrowedText(name)| name)
}

/// A string that borrows from the body if it has no escapes.
#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{AnyString, Integer};

    const NAME: Required<AnyString> = Required {
        name: "name",
        about: "",
        schema: AnyString,
    };
    const COUNT: Optional<Integer> = Optional {
        name: "count",
        about: "How many.",
        schema: Integer::INT64,
    };

    fn parse(body: &str) -> Result<JsonObject<'_>, Invalid> {
        JsonObject::parse(body.as_bytes(), "with 'name'")
    }

    #[test]
    fn object_is_described_by_its_members() {
        let schema = describe("Things.", &[&NAME, &COUNT], object! { "name": "x" }, true);
        assert_eq!(schema["required"], Json::from(["name"]));
        assert_eq!(*schema["properties"]["count"]["description"], "How many.");
        assert_eq!(*schema["properties"]["name"]["type"], "string");
    }

    #[test]
    fn members_are_read_by_name() {
        let object =
            parse(r#" {"x":{"y":[1e999]},"count":5,"n\u0061me":"a\u0000\n\ud83d\ude00"} "#)
                .unwrap();
        assert_eq!(object.required(&NAME).unwrap(), "a\0\n😀");
        assert_eq!(object.optional(&COUNT), Ok(Some(5)));
        assert_eq!(parse("{}").unwrap().optional(&COUNT), Ok(None));
    }

    #[test]
    fn text_without_escapes_is_borrowed() {
        let object = parse(r#"{"name":"Rex"}"#).unwrap();
        assert!(matches!(object.required(&NAME), Ok(Cow::Borrowed("Rex"))));
    }

    #[test]
    fn what_stands_there_is_named_and_not_repeated() {
        for (value, found) in [
            ("null", "null"),
            ("\"secret\"", "a string"),
            ("true", "a boolean"),
            ("false", "a boolean"),
            ("[1]", "an array"),
            ("{\"a\":1}", "an object"),
            ("1.5", "a number with a fraction"),
            ("1e19", "a number beyond int64"),
        ] {
            let body = format!(r#"{{"count":{value}}}"#);
            let expected =
                format!("The field 'count' must be a 64-bit integer (int64), not {found}.");
            assert_eq!(
                parse(&body).unwrap().optional(&COUNT),
                Err(Invalid::Member(expected))
            );
        }
    }

    #[test]
    fn missing_members_are_named() {
        let missing = parse("{}").unwrap().required(&NAME).unwrap_err();
        assert_eq!(
            missing,
            Invalid::Missing("The field 'name' is missing; it must be a string.".to_owned())
        );
    }

    #[test]
    fn member_given_twice_is_found_among_any_number() {
        for count in [2, 30] {
            let mut members: Vec<String> = (0..count).map(|i| format!(r#""m{i}":1"#)).collect();
            assert!(
                parse(&format!("{{{}}}", members.join(","))).is_ok(),
                "{count}"
            );
            members[count - 1] = r#""m0":2"#.to_owned();
            let said = Invalid::Duplicate("The field 'm0' is given more than once.".to_owned());
            assert_eq!(
                parse(&format!("{{{}}}", members.join(","))).err(),
                Some(said),
                "{count}"
            );
        }
    }

    #[test]
    fn members_given_twice_are_refused() {
        for body in [
            r#"{"a":1,"a":1}"#,
            r#"{"name":"x","b":1,"n\u0061me":"x"}"#,
            r#"{"z":1,"a":2,"b":3,"z":{}}"#,
        ] {
            assert!(matches!(parse(body), Err(Invalid::Duplicate(_))), "{body}");
        }
        let long = "x".repeat(1000);
        let body = format!(r#"{{"{long}":1,"{long}":1}}"#);
        assert!(matches!(parse(&body), Err(Invalid::Duplicate(message)) if message.len() < 200));
    }

    #[test]
    fn other_texts_are_no_object() {
        let deep = "[".repeat(60_000);
        for body in [
            "",
            " ",
            "null",
            "[]",
            "\"x\"",
            "{",
            "{}x",
            "{'name':1}",
            "{\"a\":}",
            "\u{feff}\u{feff}{}",
            "\u{feff}",
            "{1:2}",
            &deep,
        ] {
            assert!(matches!(parse(body), Err(Invalid::Json(_))), "{body:.20}");
        }
        assert!(matches!(
            JsonObject::parse(b"{\"x\":\"\xff\"}", ""),
            Err(Invalid::Json(_))
        ));
    }

    #[test]
    fn half_of_a_surrogate_pair_is_a_wrong_value_and_elsewhere_unknown() {
        for half in [
            r"\ud800",
            r"a\uDFFFb",
            r"\ud800\u0041",
            r"\ud83d\ud83d\ude00",
            r"\ud800\n",
        ] {
            let body = format!(r#"{{"name":"{half}","count":"{half}"}}"#);
            let object = parse(&body).unwrap();
            let said = [object.required(&NAME).err(), object.optional(&COUNT).err()];
            for said in said.map(|said| format!("{said:?}")) {
                let ours = "not a string with half of a surrogate pair such as \\\\ud800, which is no character.";
                assert!(
                    said.starts_with("Some(Member(") && said.contains(ours),
                    "{said}"
                );
            }
            let body = format!(r#"{{"{half}":1,"name":"x","y":["{half}",{{"{half}":1}}]}}"#);
            assert_eq!(parse(&body).unwrap().required(&NAME).unwrap(), "x");
        }
    }

    #[test]
    fn byte_order_mark_is_skipped() {
        assert_eq!(
            parse("\u{feff} {\"name\":\"\u{feff}x\"}")
                .unwrap()
                .required(&NAME)
                .unwrap(),
            "\u{feff}x"
        );
    }

    #[test]
    fn deep_values_overflow_no_stack() {
        let deep = format!(
            r#"{{"name":"x","y":{}1{}}}"#,
            "[".repeat(30_000),
            "]".repeat(30_000)
        );
        assert!(
            parse(&deep)
                .and_then(|object| object.required(&NAME).map(|_| ()))
                .is_ok()
        );
    }

    #[test]
    fn message_does_not_repeat_the_body() {
        let long = format!("\"{}\"", "x".repeat(60_000));
        assert!(matches!(parse(&long), Err(Invalid::Json(message)) if message.len() < 200));
    }
}
