//! Log lines as JSON objects.

use std::time::{SystemTime, UNIX_EPOCH};

use log::kv::{Error, Key, Value, VisitSource};
use log::{Level, Record};
use serde_json::{Map, json};

/// Prints a record as one line: an object with time, level, target, message, and the record's own key-value pairs.
pub fn of(record: &Record) -> String {
    let mut object = object(record.level(), record.target(), &record.args().to_string());
    // The object accepts every pair, so this cannot fail.
    let _ = record.key_values().visit(&mut object);
    object.line()
}

/// Prints a warning that has no record as one line.
pub fn warning(message: &str) -> String {
    object(Level::Warn, module_path!(), message).line()
}

/// The time such as `2027-01-31T18:00:00.250Z`.
pub fn now() -> impl std::fmt::Display {
    // Times before 1970 have no such form.
    humantime::format_rfc3339_millis(SystemTime::now().max(UNIX_EPOCH))
}

fn object(level: Level, target: &str, message: &str) -> Object {
    let level = level.as_str().to_ascii_lowercase();
    let texts = [
        ("time", now().to_string()),
        ("level", level),
        ("target", target.into()),
        ("message", message.into()),
    ];
    Object(texts.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect())
}

/// The members of a line, in their order.
struct Object(Map<String, serde_json::Value>);

impl Object {
    fn line(self) -> String {
        format!("{}\n", serde_json::Value::Object(self.0))
    }
}

impl<'kvs> VisitSource<'kvs> for Object {
    fn visit_pair(&mut self, key: Key<'kvs>, part: Value<'kvs>) -> Result<(), Error> {
        let number = part.to_u64().map(|n| json!(n));
        // JSON has no infinity and no NaN.
        let number = number.or_else(|| part.to_f64().filter(|n| n.is_finite()).map(|n| json!(n)));
        self.0.insert(key.to_string(), number.unwrap_or_else(|| part.to_string().into()));
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
