//! The animals: [`PetStatus`], [`NewPet`], [`Pet`]. Knows JSON, and nothing of HTTP or SQL.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// Whether an animal can be had: `available`, `pending` or `sold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PetStatus {
    /// The animal is available.
    Available,
    /// A sale is under way.
    Pending,
    /// The animal is sold.
    Sold,
}

impl PetStatus {
    /// The word in JSON, in queries and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            PetStatus::Available => "available",
            PetStatus::Pending => "pending",
            PetStatus::Sold => "sold",
        }
    }

    /// Reads exactly one of the three words.
    pub fn parse(word: &str) -> Option<Self> {
        [PetStatus::Available, PetStatus::Pending, PetStatus::Sold].into_iter().find(|s| s.as_str() == word)
    }
}

impl Serialize for PetStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An animal as clients see it. It borrows its name, so that a row can be written to a response
/// straight from the memory of the database.
///
/// ```json
/// {"id":7,"name":"Rex","categoryId":3,"status":"available"}
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pet<'a> {
    /// Given by the service, ascending, never used again.
    pub id: i64,
    /// Any text, empty included.
    pub name: &'a str,
    /// The category the animal belongs to.
    #[serde(rename = "categoryId")]
    pub category_id: i64,
    /// Absent where the animal was created without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
}

/// The body of a creation. Members it does not know, `id` among them, are ignored.
///
/// ```json
/// {"name":"Rex","categoryId":3,"status":"available"}
/// ```
#[derive(Debug, PartialEq)]
pub struct NewPet<'a> {
    /// Required; any JSON string.
    pub name: Cow<'a, str>,
    /// Required; an int64 without a fraction.
    pub category_id: i64,
    /// May be absent; null is not allowed.
    pub status: Option<PetStatus>,
}

/// Why a body is no [`NewPet`]; each message names the member and says what is expected.
#[derive(Debug, PartialEq)]
pub enum InvalidPet {
    /// Not one JSON object.
    Json(String),
    /// A required member is absent.
    Missing(String),
    /// A member has a value that is not allowed.
    Member(String),
    /// A member is given more than once.
    Duplicate(String),
}

impl<'a> NewPet<'a> {
    /// Reads the body of a creation.
    ///
    /// # Errors
    /// Where the text is no JSON object, a member is missing, given twice, or of another type.
    pub fn from_json(body: &'a [u8]) -> Result<Self, InvalidPet> {
        if body.is_empty() {
            return Err(InvalidPet::Json(
                "The body is empty; a JSON object with 'name' and 'categoryId' is expected.".into(),
            ));
        }
        // The whole text, as RFC 8259 (section 8.1) asks: serde_json looks only at the strings it hands out.
        let text =
            std::str::from_utf8(body).map_err(|_| InvalidPet::Json("The body is not UTF-8 text.".into()))?;
        let members: Members = serde_json::from_str(text).map_err(|error| {
            // Where the text is JSON and no object, serde_json would repeat all of it.
            let place = if error.is_data() { String::new() } else { format!(": {error}") };
            InvalidPet::Json(format!("The body must be one JSON object with 'name' and 'categoryId'{place}."))
        })?;
        if let Some(name) = members.duplicate {
            let name: String = name.chars().take(64).collect();
            return Err(InvalidPet::Duplicate(format!("The member '{name}' is given more than once.")));
        }
        Ok(Self {
            name: match members.name {
                Some(Value::Text(name)) => name,
                other => return Err(unexpected("name", "a string", other)),
            },
            category_id: match members.category_id {
                Some(Value::Integer(id)) => id,
                other => return Err(unexpected("categoryId", "an integer of 64 bits (int64)", other)),
            },
            status: match members.status {
                None => None,
                Some(Value::Text(word)) => match PetStatus::parse(&word) {
                    Some(status) => Some(status),
                    None => {
                        return Err(unexpected("status", STATUS_WORDS, Some(Value::Other("another string"))));
                    }
                },
                other => return Err(unexpected("status", STATUS_WORDS, other)),
            },
        })
    }
}

const STATUS_WORDS: &str = "'available', 'pending' or 'sold'";

/// Says what stands in place of what is expected. The value itself is not repeated.
fn unexpected(member: &str, expected: &str, found: Option<Value>) -> InvalidPet {
    let found = match found {
        None => {
            return InvalidPet::Missing(format!("The member '{member}' is missing; it must be {expected}."));
        }
        Some(Value::Text(_)) => "a string",
        Some(Value::Integer(_)) => "a number",
        Some(Value::Other(kind)) => kind,
    };
    InvalidPet::Member(format!("The member '{member}' must be {expected}, not {found}."))
}

/// The members of the object, whatever their types, so that a wrong type can be answered by name.
#[derive(Default)]
struct Members<'a> {
    name: Option<Value<'a>>,
    category_id: Option<Value<'a>>,
    status: Option<Value<'a>>,
    duplicate: Option<Cow<'a, str>>,
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                let mut unknown = HashSet::new();
                while let Some(Text(key)) = map.next_key()? {
                    let slot = match key.as_ref() {
                        "name" => &mut members.name,
                        "categoryId" => &mut members.category_id,
                        "status" => &mut members.status,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            if let Some(twice) = unknown.replace(key) {
                                members.duplicate = Some(twice);
                            }
                            continue;
                        }
                    };
                    if slot.replace(map.next_value()?).is_some() {
                        members.duplicate = Some(key);
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A string that borrows from the body wherever it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Text(text) => Ok(Text(text)),
            _ => Err(serde::de::Error::custom("a member's name must be a string")),
        }
    }
}

/// A member's value, told apart as far as a creation needs.
enum Value<'a> {
    Text(Cow<'a, str>),
    Integer(i64),
    /// Anything else, in words for the message.
    Other(&'static str),
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Value<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Value::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Value::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Value::Integer(number))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(i64::try_from(number).map_or(Value::Other("a number beyond int64"), Value::Integer))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                // -0 is an integer of JSON that serde_json has no integer for; -0.0 comes along with it.
                if number == 0.0 && number.is_sign_negative() {
                    return Ok(Value::Integer(0));
                }
                Ok(Value::Other("a number with a fraction, an exponent or beyond int64"))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Value::Other("a boolean"))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Value::Other("null"))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Value::Other("an array"))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Value::Other("an object"))
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<NewPet<'_>, InvalidPet> {
        NewPet::from_json(body.as_bytes())
    }

    #[test]
    fn members_are_read_to_the_letter() {
        let pet = read(
            r#" {"name":"","categoryId":-9223372036854775808,"status":"sold","id":5,"x":{"y":[1e999]}} "#,
        );
        assert_eq!(pet, Ok(NewPet { name: "".into(), category_id: i64::MIN, status: Some(PetStatus::Sold) }));
        let pet = read(r#"{"n\u0061me":"a\u0000\n\ud83d\ude00","categoryId":9223372036854775807}"#).unwrap();
        assert_eq!(pet.name, "a\0\n😀");
        assert_eq!(pet.status, None);
    }

    #[test]
    fn negative_zero_is_an_integer() {
        assert_eq!(read(r#"{"name":"","categoryId":-0}"#).unwrap().category_id, 0);
        assert!(read(r#"{"name":"","categoryId":0.0}"#).is_err());
    }

    #[test]
    fn wrong_members_are_named() {
        for (body, member) in [
            (r#"{"name":null,"categoryId":1}"#, "'name'"),
            (r#"{"name":1,"categoryId":1}"#, "'name'"),
            (r#"{"name":["x"],"categoryId":1}"#, "'name'"),
            (r#"{"name":"x","categoryId":"1"}"#, "'categoryId'"),
            (r#"{"name":"x","categoryId":1.0}"#, "'categoryId'"),
            (r#"{"name":"x","categoryId":1e2}"#, "'categoryId'"),
            (r#"{"name":"x","categoryId":9223372036854775808}"#, "'categoryId'"),
            (r#"{"name":"x","categoryId":-9223372036854775809}"#, "'categoryId'"),
            (r#"{"name":"x","categoryId":true}"#, "'categoryId'"),
            (r#"{"name":"x","categoryId":1,"status":null}"#, "'status'"),
            (r#"{"name":"x","categoryId":1,"status":"Sold"}"#, "'status'"),
            (r#"{"name":"x","categoryId":1,"status":{}}"#, "'status'"),
        ] {
            match read(body) {
                Err(InvalidPet::Member(message)) => assert!(message.contains(member), "{body}: {message}"),
                other => panic!("{body}: {other:?}"),
            }
        }
    }

    #[test]
    fn missing_members_are_named() {
        assert!(matches!(read("{}"), Err(InvalidPet::Missing(m)) if m.contains("'name'")));
        assert!(matches!(read(r#"{"name":"x"}"#), Err(InvalidPet::Missing(m)) if m.contains("'categoryId'")));
    }

    #[test]
    fn members_given_twice_are_refused() {
        for body in [
            r#"{"name":"x","name":"x","categoryId":1}"#,
            r#"{"name":"x","n\u0061me":"x","categoryId":1}"#,
            r#"{"name":"x","categoryId":1,"categoryId":1}"#,
            r#"{"name":"x","categoryId":1,"status":"sold","status":"sold"}"#,
            r#"{"name":"x","categoryId":1,"other":1,"other":2}"#,
        ] {
            assert!(matches!(read(body), Err(InvalidPet::Duplicate(_))), "{body}");
        }
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
            "\u{feff}{}",
            r#"{"name":"\ud800"}"#,
            &deep,
        ] {
            assert!(matches!(read(body), Err(InvalidPet::Json(_))), "{body:.20}");
        }
        assert!(matches!(NewPet::from_json(b"{\"x\":\"\xff\"}"), Err(InvalidPet::Json(_))));
    }

    #[test]
    fn message_does_not_repeat_the_body() {
        let long = format!("\"{}\"", "x".repeat(60_000));
        assert!(matches!(read(&long), Err(InvalidPet::Json(message)) if message.len() < 200));
    }

    #[test]
    fn pet_without_status_has_no_such_member() {
        let pet = Pet { id: 1, name: "a\"b", category_id: 2, status: None };
        assert_eq!(serde_json::to_string(&pet).unwrap(), r#"{"id":1,"name":"a\"b","categoryId":2}"#);
        let pet = Pet { status: Some(PetStatus::Pending), ..pet };
        assert_eq!(
            serde_json::to_string(&pet).unwrap(),
            r#"{"id":1,"name":"a\"b","categoryId":2,"status":"pending"}"#
        );
    }
}
