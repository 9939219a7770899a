//! A log line as a JSON object.

use jiff::Timestamp;
use log::kv::{Error, Key, Value as Part, VisitSource};
use log::{Level, Record};
use serde_json::{Map, Value};

/// The object of a record and its line end: time, level, target, message, and the parts that it has.
pub fn of(record: &Record) -> String {
    let message = record.args().to_string();
    let mut object = object(record.level(), record.target(), message);
    // Nothing here fails: the object takes whatever it is given.
    let _ = record.key_values().visit(&mut object);
    object.line()
}

/// The line of a warning that has no record.
pub fn warning(message: &str) -> String {
    object(Level::Warn, module_path!(), message.to_owned()).line()
}

struct Object(Map<String, Value>);

fn object(level: Level, target: &str, message: String) -> Object {
    let mut map = Map::new();
    map.insert("time".to_owned(), format!("{:.3}", Timestamp::now()).into());
    map.insert("level".to_owned(), level.as_str().to_lowercase().into());
    map.insert("target".to_owned(), target.into());
    map.insert("message".to_owned(), message.into());
    Object(map)
}

impl Object {
    fn line(self) -> String {
        format!("{}\n", Value::Object(self.0))
    }
}

impl<'kvs> VisitSource<'kvs> for Object {
    fn visit_pair(&mut self, key: Key<'kvs>, part: Part<'kvs>) -> Result<(), Error> {
        let number = part.to_u64().map(Value::from).or_else(|| part.to_f64().map(Value::from));
        self.0.insert(key.to_string(), number.unwrap_or_else(|| part.to_string().into()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_one_line_with_its_parts() {
        let parts =
            [("status", Part::from(200)), ("milliseconds", Part::from(2.5)), ("key", Part::from("a"))];
        let record = Record::builder()
            .args(format_args!("two\nlines"))
            .level(Level::Info)
            .target("petstore::access")
            .key_values(&parts)
            .build();
        let text = of(&record);
        let object: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        assert_eq!((&object["level"], &object["message"]), (&"info".into(), &"two\nlines".into()));
        assert_eq!((&object["status"], &object["milliseconds"]), (&200.into(), &2.5.into()));
        assert_eq!((&object["target"], &object["key"]), (&"petstore::access".into(), &"a".into()));
        let time = object["time"].as_str().unwrap();
        assert_eq!((time.len(), &time[19..20]), ("2026-11-21T19:28:22.123Z".len(), "."), "{time}");
    }
}
