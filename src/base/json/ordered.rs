//! JSON whose members stay in the order in which they were added. `serde_json` sorts them, unless a feature changes its maps
//! for the whole program.

use std::fmt;
use std::ops::{Deref, Index, IndexMut};

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A JSON value. As a [`Value`], an object or an array of objects is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Json {
    /// Anything without members.
    Plain(Value),
    /// Objects or arrays, in order.
    Array(Vec<Json>),
    /// Members, in order.
    Object(#[serde(serialize_with = "as_map")] Vec<(String, Json)>),
}

/// `null`.
pub static NULL: Json = Json::Plain(Value::Null);

fn as_map<S: Serializer>(members: &[(String, Json)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
}

/// Makes an object.
#[macro_export]
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::json::Json::Object(vec![$(($name.to_owned(), $crate::json::Json::from($value))),*])
    };
}
pub use object;

impl<V: Into<Value>> From<V> for Json {
    fn from(value: V) -> Self {
        Self::Plain(value.into())
    }
}

impl<N: Into<String>> FromIterator<(N, Json)> for Json {
    fn from_iter<M: IntoIterator<Item = (N, Json)>>(members: M) -> Self {
        Self::Object(
            members
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        )
    }
}

impl FromIterator<Json> for Json {
    fn from_iter<I: IntoIterator<Item = Json>>(items: I) -> Self {
        Self::Array(items.into_iter().collect())
    }
}

impl Json {
    /// The members of an object; none of another value.
    pub fn members(&self) -> &[(String, Json)] {
        if let Self::Object(members) = self {
            members
        } else {
            &[]
        }
    }

    /// The members, to change them. Another value becomes an object.
    pub fn members_mut(&mut self) -> &mut Vec<(String, Json)> {
        if !matches!(self, Self::Object(_)) {
            *self = object! {};
        }
        if let Self::Object(members) = self {
            members
        } else {
            unreachable!("it is an object now")
        }
    }
}

impl Deref for Json {
    type Target = Value;

    fn deref(&self) -> &Value {
        if let Self::Plain(value) = self {
            value
        } else {
            &Value::Null
        }
    }
}

impl Index<&str> for Json {
    type Output = Self;

    /// A member; `null` if there is none.
    fn index(&self, name: &str) -> &Self {
        self.members()
            .iter()
            .find(|(known, _)| known == name)
            .map_or(&NULL, |(_, value)| value)
    }
}

impl IndexMut<&str> for Json {
    /// A member, which is added if there is none. Another value becomes an object.
    fn index_mut(&mut self, name: &str) -> &mut Self {
        let members = self.members_mut();
        let place = members
            .iter()
            .position(|(known, _)| known == name)
            .unwrap_or(members.len());
        if place == members.len() {
            members.push((name.to_owned(), NULL.clone()));
        }
        &mut members[place].1
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stay_in_order() {
        let mut json = object! { "z": 1, "a": object! { "y": true, "b": ["c"] } };
        json["m"] = Json::Array(vec![object! {}, "x".into()]);
        json["z"] = "again".into();
        json["new"]["member"] = Value::Null.into();
        let text = r#"{"z":"again","a":{"y":true,"b":["c"]},"m":[{},"x"],"new":{"member":null}}"#;
        assert_eq!(json.to_string(), text);
        assert_eq!(
            (
                &json["no"]["such"],
                json["a"]["b"].as_array().unwrap().len()
            ),
            (&NULL, 1)
        );
    }
}
