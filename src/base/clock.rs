//! The time of day: Unix time for the store, RFC 3339 for people, RFC 9110 for HTTP.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second that RFC 3339 can express: the end of the year 9999.
const LAST_SECOND: i64 = 253_402_300_799;

/// 21 November 2026, in Unix time. No right clock shows an earlier time to this program.
const WRITTEN: i64 = 1_795_219_200;

/// Logs a warning if the clock shows a time before this program was written, as on a board without a battery.
pub fn warn_if_early(unix_time: i64) {
    if unix_time < WRITTEN {
        log::warn!(
            "the clock shows {}, a time before this program was written: until it is set, expired API keys work again, and new ones expire too early",
            rfc3339(unix_time)
        );
    }
}

/// Returns the current Unix time in seconds: 0 before 1970, and the last second of the year 9999 after that year.
pub fn unix_time() -> i64 {
    let elapsed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(elapsed.as_secs())
        .unwrap_or(i64::MAX)
        .min(LAST_SECOND)
}

/// Returns the current Unix time in milliseconds: 0 before 1970.
pub fn unix_millis() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(elapsed.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// Formats a Unix time in milliseconds, such as `2027-01-31T18:00:00.125Z` (RFC 3339), within the years 1970 to 9999.
pub fn rfc3339_millis(unix_millis: i64) -> String {
    let millis = unix_millis
        .clamp(0, LAST_SECOND * 1000 + 999)
        .unsigned_abs();
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(millis)).to_string()
}

/// Reads a time such as `2027-01-31T18:00:00Z` or `2027-01-31T19:00:00.5+01:00` (RFC 3339), in milliseconds of Unix time.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let text = text.to_ascii_uppercase();
    if text.ends_with('Z') {
        return millis(&text);
    }
    let (time, offset) = text.split_at_checked(text.len().checked_sub("+01:00".len())?)?;
    let (sign, offset) = offset.split_at_checked(1)?;
    let (time, offset) = (
        millis(&format!("{time}Z"))?,
        millis(&format!("1970-01-01T{offset}:00Z"))?,
    );
    match sign {
        "+" => Some(time - offset),
        "-" => Some(time + offset),
        _ => None,
    }
}

/// Reads a time in UTC, from 1970 on.
fn millis(text: &str) -> Option<i64> {
    let time = humantime::parse_rfc3339(text).ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// Formats a Unix time in seconds, such as `2027-01-31T18:00:00Z` (RFC 3339). A time outside the years 1970
/// to 9999 becomes the nearest second inside.
pub fn rfc3339(unix_time: i64) -> String {
    humantime::format_rfc3339_seconds(moment(unix_time)).to_string()
}

/// Formats the Unix time of a past event, in seconds, like [`rfc3339`]. Returns `None` for a time later than now: the
/// clock was wrong when the event was noted, so its time is unknown.
pub fn past(at: i64) -> Option<String> {
    (at <= unix_time()).then(|| rfc3339(at))
}

/// Formats the day of a Unix time in seconds, such as `2027-01-31`, within the years 1970 to 9999.
pub fn day(unix_time: i64) -> String {
    let mut day = rfc3339(unix_time);
    day.truncate("2027-01-31".len());
    day
}

/// Formats a Unix time in seconds, such as `Sun, 31 Jan 2027 18:00:00 GMT` (RFC 9110, section 5.6.7), within
/// the years 1970 to 9999.
pub fn http_date(unix_time: i64) -> String {
    httpdate::fmt_http_date(moment(unix_time))
}

fn moment(unix_time: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(unix_time.clamp(0, LAST_SECOND).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::logged;

    #[test]
    fn any_second_can_be_printed() {
        assert_eq!(rfc3339(1_801_418_400), "2027-01-31T18:00:00Z");
        assert_eq!(http_date(1_801_418_400), "Sun, 31 Jan 2027 18:00:00 GMT");
        assert_eq!(
            (rfc3339(i64::MIN), rfc3339(i64::MAX)),
            (rfc3339(0), rfc3339(LAST_SECOND))
        );
        assert!(http_date(i64::MAX).ends_with(" 9999 23:59:59 GMT"));
    }

    #[test]
    fn times_are_read_in_any_zone_to_the_millisecond() {
        for (text, time) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2027-01-31T18:00:00.125Z", Some(1_801_418_400_125)),
            ("2027-01-31t18:00:00z", Some(1_801_418_400_000)),
            ("2027-01-31T19:30:00+01:30", Some(1_801_418_400_000)),
            ("2027-01-31T12:00:00.000-06:00", Some(1_801_418_400_000)),
            ("1970-01-01T00:00:00+00:00", Some(0)),
            ("2027-01-31T18:00:00", None),
            ("2027-01-31", None),
            ("2027-01-31T19:00:00+25:00", None),
            ("2027-01-31T19:00:00+1:00", None),
            ("2027-01-31T19:00:00 01:00", None),
            ("2027-01-31T19:00:00+0\u{e9}:0", None),
            ("+01:00", None),
            ("", None),
        ] {
            assert_eq!(parse_rfc3339(text), time, "{text}");
        }
        for time in [0, 1_801_418_400_125] {
            assert_eq!(parse_rfc3339(&rfc3339_millis(time)), Some(time));
        }
        assert_eq!(rfc3339_millis(i64::MIN), "1970-01-01T00:00:00.000Z");
        assert!(rfc3339_millis(i64::MAX).starts_with("9999-12-31T23:59:59.999"));
    }

    #[test]
    fn only_the_past_is_printed() {
        assert_eq!(past(0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(past(unix_time() + 60), None);
    }

    #[test]
    fn clock_before_the_program_gets_a_warning() {
        let lines = logged(|| [9, unix_time()].into_iter().for_each(warn_if_early));
        let [line] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert!(
            line.contains("the clock shows 1970-01-01T00:00:09Z, a time before"),
            "{line}"
        );
    }
}
