//! Log lines as JSON objects.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use log::Record;
use log::kv::{Error, Key, Value, VisitSource};
use petstore::Json;

/// Prints a record as one line: an object with time, level, target, message, and the record's own key-value pairs.
pub fn format(record: &Record) -> String {
    let texts = [
        ("time", now().to_string()),
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

/// Returns the current time, such as `2027-01-31T18:00:00.250Z`.
pub fn now() -> impl std::fmt::Display {
    shown(SystemTime::now())
}

/// Formats a time. One outside the years 1970 to 9999 becomes the nearest inside, because humantime would panic.
fn shown(time: SystemTime) -> impl std::fmt::Display {
    let last = UNIX_EPOCH + Duration::from_millis(253_402_300_799_999);
    humantime::format_rfc3339_millis(time.clamp(UNIX_EPOCH, last))
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
    fn any_time_can_be_shown() {
        for (time, text) in [
            (
                UNIX_EPOCH - Duration::from_secs(1),
                "1970-01-01T00:00:00.000Z",
            ),
            (
                UNIX_EPOCH + Duration::from_millis(1_801_418_400_250),
                "2027-01-31T18:00:00.250Z",
            ),
            (
                UNIX_EPOCH + Duration::from_secs(1 << 40),
                "9999-12-31T23:59:59.999Z",
            ),
        ] {
            assert_eq!(shown(time).to_string(), text);
        }
    }

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
