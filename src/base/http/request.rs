//! A complete request, as handlers see it, and its target (RFC 3986; RFC 9112, section 3.2).

use std::borrow::Cow;

use crate::http::percent;

/// A complete request, as a worker received it.
#[derive(Debug)]
pub struct Request<'a> {
    /// The identifier in the response and the log; `-` if there is none.
    pub id: &'a str,
    /// Case-sensitive, such as `GET` (RFC 9110, section 9.1).
    pub method: &'a str,
    /// Path and query as sent, such as `/v1/pets?limit=5`; `*` for a server-wide OPTIONS.
    pub target: &'a str,
    /// Name and value of the header fields that the gate forwards.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The body without any transfer coding.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Every value of a header field, in the order sent; names are case-insensitive.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }
}

/// The size of a response, or of the work for it, estimated by method and target. Each size has its own queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// One item at most, or a head alone.
    Small,
    /// A page of usual length.
    Medium,
    /// A long page, or a deployed file.
    Large,
    /// Whatever takes milliseconds, however short its response: in a lane, nothing waits behind it.
    Long,
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
        _ => format!(
            "requests {named} and {} more",
            count.saturating_sub(MAX_NAMED)
        ),
    }
}

/// A parsed request target.
#[derive(Debug)]
pub struct Target<'a> {
    /// The path, with percent-encoded unreserved characters decoded; `*` for the server as a whole.
    pub path: Cow<'a, str>,
    /// Everything after the question mark, as sent.
    pub query: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Splits a target in origin form at its first question mark.
    pub fn parse(target: &'a str) -> Self {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        Self {
            path: normalize(path),
            query,
        }
    }
}

/// Decodes percent-encoded unreserved characters, which is equivalent (RFC 3986, section 6.2.2.2). Everything
/// else stays encoded: `%2F` is not a slash.
fn normalize(path: &str) -> Cow<'_, str> {
    match percent::decode_if(path, percent::is_unreserved) {
        Cow::Borrowed(_) => path.into(),
        Cow::Owned(decoded) => String::from_utf8_lossy(&decoded).into_owned().into(),
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
        assert!(
            many.ends_with("a, a and 2 more") && many.matches("a,").count() == MAX_NAMED - 1,
            "{many}"
        );
    }

    #[test]
    fn path_and_query_are_split_at_the_first_question_mark() {
        let target = Target::parse("/a?b=c?d");
        assert_eq!((target.path.as_ref(), target.query), ("/a", Some("b=c?d")));
        let target = Target::parse("*");
        assert_eq!((target.path.as_ref(), target.query), ("*", None));
        assert_eq!(Target::parse("/a?").query, Some(""));
    }

    #[test]
    fn unreserved_characters_are_decoded_and_no_others() {
        assert_eq!(normalize("/v1/pets"), "/v1/pets");
        assert_eq!(normalize("/%761/p%65ts/%31%7e"), "/v1/pets/1~");
        assert_eq!(normalize("/v1%2Fpets%20%zz%4"), "/v1%2Fpets%20%zz%4");
        assert_eq!(normalize("/%25%37%30"), "/%2570", "decoded once");
    }
}
