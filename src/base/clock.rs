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
    rfc3339(unix_time)
        .split('T')
        .next()
        .unwrap_or_default()
        .to_owned()
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
