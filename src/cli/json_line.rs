//! Log lines as JSON objects.

use log::Record;
use log::kv::{Error, Key, Value, VisitSource};
use petstore::{Json, rfc3339_millis, unix_millis};

/// Prints a record as one line: an object with time, level, target, message, and the record's own key-value pairs.
pub fn format(record: &Record) -> String {
    let texts = [
        ("time", rfc3339_millis(unix_millis())),
        ("level", record.level().as_str().to_ascii_lowercase()),
        ("target", record.target().to_owned()),
        ("message", record.args().to_string()),
    ];
    let mut members = Members(
        texts
            .map(|(name, text)| (name, text.into()))
            .into_iter()
            .collect(),
    );
    // Every pair is accepted, so this cannot fail.
    let _ = record.key_values().visit(&mut members);
    format!("{}\n", members.0)
}

/// The members of a line, in order.
struct Members(Json);

impl<'kvs> VisitSource<'kvs> for Members {
    fn visit_pair(&mut self, key: Key<'kvs>, part: Value<'kvs>) -> Result<(), Error> {
        let number = part.to_u64().map(Json::from);
        // JSON has no infinity and no NaN.
        let number = number.or_else(|| part.to_f64().filter(|n| n.is_finite()).map(Json::from));
        let value = number.unwrap_or_else(|| part.to_string().into());
        // Empty texts are omitted.
        if *value != "" {
            self.0[key.as_str()] = value;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::Level;

    #[test]
    fn record_is_one_line_with_its_pairs() {
        let parts = [
            ("status", Value::from(200)),
            ("milliseconds", Value::from(2.5)),
            ("key", Value::from("a")),
        ];
        let record = Record::builder()
            .args(format_args!("two\nlines"))
            .level(Level::Info)
            .target("petstore::access")
            .key_values(&parts)
            .build();
        let text = format(&record);
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        assert_eq!(
            (&object["level"], &object["message"]),
            (&"info".into(), &"two\nlines".into())
        );
        assert_eq!(
            (&object["status"], &object["milliseconds"]),
            (&200.into(), &2.5.into())
        );
        assert_eq!(
            (&object["target"], &object["key"]),
            (&"petstore::access".into(), &"a".into())
        );
        let time = object["time"].as_str().unwrap();
        assert_eq!(
            (time.len(), &time[19..20]),
            ("2026-11-21T19:28:22.123Z".len(), "."),
            "{time}"
        );
    }
}
