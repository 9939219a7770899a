//! The time of day: Unix time for the store, RFC 3339 for people, RFC 9110 for HTTP.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second that RFC 3339 can express: the end of the year 9999.
const LAST_SECOND: i64 = 253_402_300_799;

/// Seconds since 1970: 0 before that, and the last second of the year 9999 after it.
pub fn unix_time() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX).min(LAST_SECOND)
}

/// Formats a Unix time in seconds, such as `2027-01-31T18:00:00Z` (RFC 3339). A time outside the years 1970
/// to 9999 becomes the nearest second inside.
///
/// ```
/// assert_eq!(petstore::rfc3339(1_801_418_400), "2027-01-31T18:00:00Z");
/// ```
pub fn rfc3339(unix_time: i64) -> String {
    humantime::format_rfc3339_seconds(moment(unix_time)).to_string()
}

/// Formats the Unix time of a past event, like [`rfc3339`]. `None` for a time later than now: the clock was wrong when it
/// was noted, so that the time is not known.
///
/// ```
/// assert_eq!(petstore::past(0).as_deref(), Some("1970-01-01T00:00:00Z"));
/// assert_eq!(petstore::past(petstore::unix_time() + 60), None);
/// ```
pub fn past(at: i64) -> Option<String> {
    (at <= unix_time()).then(|| rfc3339(at))
}

/// Formats the day of a Unix time in seconds, such as `2027-01-31`, within the years 1970 to 9999.
pub fn day(unix_time: i64) -> String {
    rfc3339(unix_time).split('T').next().unwrap_or_default().to_owned()
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

    #[test]
    fn any_second_can_be_printed() {
        assert_eq!(rfc3339(1_801_418_400), "2027-01-31T18:00:00Z");
        assert_eq!(http_date(1_801_418_400), "Sun, 31 Jan 2027 18:00:00 GMT");
        assert_eq!((rfc3339(i64::MIN), rfc3339(i64::MAX)), (rfc3339(0), rfc3339(LAST_SECOND)));
        assert!(http_date(i64::MAX).ends_with(" 9999 23:59:59 GMT"));
    }
}
