//! Log lines as JSON objects.

use std::time::{SystemTime, UNIX_EPOCH};

use log::kv::{Error, Key, Value, VisitSource};
use log::{Level, Record};

/// Prints a record as one line: an object with time, level, target, message, and the record's own key-value pairs.
pub fn of(record: &Record) -> String {
    let mut object = Object::new(record.level(), record.target(), &record.args().to_string());
    // The object accepts every pair, so this cannot fail.
    let _ = record.key_values().visit(&mut object);
    object.line()
}

/// Prints a warning that has no record as one line.
pub fn warning(message: &str) -> String {
    Object::new(Level::Warn, module_path!(), message).line()
}

/// The time such as `2027-01-31T18:00:00.250Z`.
pub fn now() -> impl std::fmt::Display {
    // Times before 1970 have no such form.
    humantime::format_rfc3339_millis(SystemTime::now().max(UNIX_EPOCH))
}

/// A JSON object without its closing brace.
struct Object(String);

impl Object {
    fn new(level: Level, target: &str, message: &str) -> Self {
        let mut object = Self("{".to_owned());
        object.text("time", &now().to_string());
        object.text("level", &level.as_str().to_ascii_lowercase());
        object.text("target", target);
        object.text("message", message);
        object
    }

    fn text(&mut self, name: &str, text: &str) {
        self.member(name, &quoted(text));
    }

    fn member(&mut self, name: &str, json: &str) {
        let comma = if self.0.len() > 1 { "," } else { "" };
        self.0 += &[comma, &quoted(name), ":", json].concat();
    }

    fn line(self) -> String {
        self.0 + "}\n"
    }
}

/// A text as JSON. Serialising a string cannot fail.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

impl<'kvs> VisitSource<'kvs> for Object {
    fn visit_pair(&mut self, key: Key<'kvs>, part: Value<'kvs>) -> Result<(), Error> {
        let number = part.to_u64().map(|n| n.to_string());
        // JSON has no infinity and no NaN.
        let number = number.or_else(|| part.to_f64().filter(|n| n.is_finite()).map(|n| n.to_string()));
        match number {
            Some(number) => self.member(key.as_str(), &number),
            None => self.text(key.as_str(), &part.to_string()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_one_line_with_its_pairs() {
        let parts =
            [("status", Value::from(200)), ("milliseconds", Value::from(2.5)), ("key", Value::from("a"))];
        let record = Record::builder()
            .args(format_args!("two\nlines"))
            .level(Level::Info)
            .target("petstore::access")
            .key_values(&parts)
            .build();
        let text = of(&record);
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        assert_eq!((&object["level"], &object["message"]), (&"info".into(), &"two\nlines".into()));
        assert_eq!((&object["status"], &object["milliseconds"]), (&200.into(), &2.5.into()));
        assert_eq!((&object["target"], &object["key"]), (&"petstore::access".into(), &"a".into()));
        let time = object["time"].as_str().unwrap();
        assert_eq!((time.len(), &time[19..20]), ("2026-11-21T19:28:22.123Z".len(), "."), "{time}");
    }
}
