//! A complete request, as handlers see it.

use crate::http::{ApiError, Code};

/// A complete request, as a worker received it.
#[derive(Debug)]
pub struct Request<'a> {
    /// The identifier in the response and the log; `-` if there is none.
    pub id: &'a str,
    /// Case-sensitive, such as `GET` (RFC 9110, section 9.1).
    pub method: &'a str,
    /// Path and query as sent, such as `/v1/pets?limit=5`; `*` for a server-wide OPTIONS.
    pub target: &'a str,
    /// Name and value of the few header fields that the gate passes on.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The body without any transfer coding.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Every value of a header field, in the order sent; names are case-insensitive.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// Refuses a body whose header fields declare something other than plain JSON (RFC 9110, sections 8.3 and
    /// 8.4).
    ///
    /// # Errors
    /// 415.
    pub fn check_json(&self) -> Result<(), ApiError> {
        for coding in self.header_values("Content-Encoding").flat_map(|value| value.split(',')) {
            if !coding.trim().eq_ignore_ascii_case("identity") {
                return Err(
                    ApiError::new(Code::UnsupportedContentEncoding).header("Accept-Encoding", "identity")
                );
            }
        }
        for value in self.header_values("Content-Type") {
            let media_type = value.split(';').next().unwrap_or("").trim();
            if !media_type.eq_ignore_ascii_case("application/json") {
                return Err(ApiError::new(Code::UnsupportedMediaType).header("Accept", "application/json"));
            }
        }
        Ok(())
    }
}

/// The most requests that are named in one line of the log.
const MAX_NAMED: usize = 20;

/// Names requests by their identifiers, for a line of the log.
pub fn name_all<'a>(ids: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = ids.len();
    let named = ids.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    match count {
        0 => String::new(),
        1 => format!("request {named}"),
        2..=MAX_NAMED => format!("requests {named}"),
        _ => format!("requests {named} and {} more", count.saturating_sub(MAX_NAMED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_named_up_to_a_bound() {
        assert_eq!(name_all([].into_iter()), "");
        assert_eq!(name_all(["a"].into_iter()), "request a");
        assert_eq!(name_all(["a", "b"].into_iter()), "requests a, b");
        let many = name_all(std::iter::repeat_n("a", MAX_NAMED + 2));
        assert!(many.ends_with("a, a and 2 more") && many.matches("a,").count() == MAX_NAMED - 1, "{many}");
    }
}
