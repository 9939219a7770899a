//! The failure of a request to the cluster, and whether it may have been carried out.

use std::fmt;
use std::io::ErrorKind as Io;

use rustls::Error as Tls;

use petstore_base::error::{Error, ErrorKind};

/// The end of rqlite's message about a linearizable read that has waited too long.
pub const WAITS: &str = "timeout waiting for fsm";

/// The failure of a request. No message has the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterFailure {
    /// The statement at this place failed, with this message of SQLite. Nothing of the transaction was written.
    Statement(usize, String),
    /// No node carried out the request.
    Node(Trouble),
}

impl fmt::Display for ClusterFailure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Statement(_, text) | Self::Node(Trouble { text, .. }) => f.write_str(text),
        }
    }
}

impl std::error::Error for ClusterFailure {}

impl From<ClusterFailure> for Error {
    fn from(failure: ClusterFailure) -> Self {
        let (kind, before) = match &failure {
            ClusterFailure::Statement(..) => (ErrorKind::Internal, ""),
            ClusterFailure::Node(Trouble {
                kind: ErrorKind::PasswordRefused,
                ..
            }) => (ErrorKind::PasswordRefused, ""),
            ClusterFailure::Node(trouble) => (trouble.kind, "the cluster cannot be reached: "),
        };
        Error::new(kind, format!("{before}{failure}")).caused_by(failure)
    }
}

/// The reason why a node did not carry out a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The kind for the operator.
    pub kind: ErrorKind,
    /// What happened, for people.
    pub text: String,
    /// True if a node may have carried out the request, or may still do so.
    pub may_be_done: bool,
    /// True if every node would reject it.
    pub is_final: bool,
}

impl Trouble {
    /// A trouble with this text.
    pub fn new(text: String, may_be_done: bool) -> Self {
        Self {
            kind: ErrorKind::DatabaseUnreachable,
            text,
            may_be_done,
            is_final: false,
        }
    }

    /// The trouble of a response that is not from rqlite, with the evidence, if any.
    pub fn foreign(detail: &str, may_be_done: bool) -> Self {
        let colon = if detail.is_empty() { "" } else { ": " };
        let text = format!("the response is not from rqlite{colon}{detail}");
        Self::new(text, may_be_done)
    }

    /// The trouble of a response with the message of a node in place of results.
    pub fn of_message(message: &str) -> Self {
        let why = plain(&message[..message.floor_char_boundary(200)]);
        // A request that a node rejects because it does not lead is not in its log.
        let may_be_done = !why.contains("not leader") && !why.contains("leader not found");
        Self {
            is_final: why.ends_with(WAITS),
            ..Self::new(why, may_be_done)
        }
    }

    /// The trouble of a response with a status other than 200, from rqlite or from something on the way to it.
    pub fn of_status(status: u16, body: &[u8], is_of_rqlite: bool) -> Self {
        let said = plain(&String::from_utf8_lossy(&body[..body.len().min(200)]));
        let why = format!("status {status} {}", said.trim())
            .trim_end()
            .to_owned();
        match status {
            401 | 403 => {
                // A node that forwards a request returns the response of the leader.
                let why = format!(
                    "it, or the leader, refuses the user or the password ({status}), \
                     or the user lacks a right in auth.json"
                );
                Self {
                    is_final: true,
                    kind: ErrorKind::PasswordRefused,
                    ..Self::new(why, false)
                }
            }
            // Without a leader nothing is written (rqlite.io/docs/api/).
            503 if said.contains("leader not found") => {
                Self::new("the cluster has no leader just now".to_owned(), false)
            }
            400..500 if is_of_rqlite => Self {
                is_final: true,
                ..Self::new(why, false)
            },
            _ if is_of_rqlite => Self::new(why, true),
            _ => Self::foreign(&why, true),
        }
    }
}

impl From<ureq::Error> for Trouble {
    fn from(error: ureq::Error) -> Self {
        use ureq::{Error as E, Timeout as T};
        let tls = match &error {
            E::Rustls(error) => Some(error),
            E::Io(io) => io.get_ref().and_then(|inner| inner.downcast_ref::<Tls>()),
            _ => None,
        };
        if let Some(tls) = tls {
            // Other TLS failures may arrive with the response, after the request was sent.
            let is_sent = !matches!(tls, Tls::InvalidCertificate(_) | Tls::AlertReceived(_));
            return Self::new(format!("TLS failed: {}", plain(&tls.to_string())), is_sent);
        }
        let is_sent = match &error {
            E::HostNotFound | E::ConnectionFailed | E::Timeout(T::Resolve | T::Connect) => false,
            E::Io(io) => !matches!(
                io.kind(),
                Io::ConnectionRefused | Io::HostUnreachable | Io::NetworkUnreachable
            ),
            _ => true,
        };
        let why = match &error {
            E::HostNotFound => "the name of the host cannot be resolved".to_owned(),
            E::Timeout(T::Connect) => "it does not accept connections".to_owned(),
            E::Timeout(_) => "it did not answer in time".to_owned(),
            _ => plain(&error.to_string()),
        };
        Self::new(why, is_sent)
    }
}

/// Text from a node, without characters that would break a line of the log.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_node_cannot_have_done_is_sure() {
        let sure =
            |status, body: &str| !Trouble::of_status(status, body.as_bytes(), true).may_be_done;
        assert!(sure(503, "leader not found\n") && sure(401, "") && sure(400, "invalid JSON body"));
        assert!(
            !Trouble::of_message(
                "node failed to process Execute on remote node at one:4002: not leader"
            )
            .may_be_done
        );
        assert!(Trouble::of_message("leadership lost while committing log").may_be_done);
        let of_proxy = Trouble::of_status(413, b"too large", false);
        assert!(of_proxy.may_be_done && !of_proxy.is_final);
        assert!(
            !sure(503, "leadership lost while committing log") && !sure(500, "") && !sure(302, "")
        );
        let error = |kind| Trouble::from(ureq::Error::Io(std::io::Error::from(kind))).may_be_done;
        let tls = |error| Trouble::from(ureq::Error::Io(std::io::Error::other(error))).may_be_done;
        assert!(
            !tls(Tls::InvalidCertificate(rustls::CertificateError::Expired))
                && tls(Tls::DecryptError)
        );
        assert!(
            !error(Io::ConnectionRefused) && error(Io::ConnectionReset) && error(Io::BrokenPipe)
        );
        assert!(!Trouble::from(ureq::Error::Timeout(ureq::Timeout::Connect)).may_be_done);
        assert!(Trouble::from(ureq::Error::Timeout(ureq::Timeout::Global)).may_be_done);
    }

    #[test]
    fn other_nodes_are_not_asked_what_they_would_refuse_as_well() {
        let of = |status| {
            let trouble = Trouble::of_status(status, b"no", true);
            (trouble.is_final, trouble.kind == ErrorKind::PasswordRefused)
        };
        assert_eq!(
            (of(401), of(403), of(400)),
            ((true, true), (true, true), (true, false))
        );
        assert_eq!(
            (of(500), of(503), of(302)),
            ((false, false), (false, false), (false, false))
        );
    }

    #[test]
    fn what_fails_is_said_in_words() {
        let why = |error| Trouble::from(error).text;
        let timeout = |timeout| why(ureq::Error::Timeout(timeout));
        assert_eq!(
            timeout(ureq::Timeout::Connect),
            "it does not accept connections"
        );
        assert_eq!(timeout(ureq::Timeout::Global), "it did not answer in time");
        assert_eq!(why(ureq::Error::ConnectionFailed), "connection failed");
        let tls = std::io::Error::other(rustls::Error::DecryptError);
        assert_eq!(
            why(ureq::Error::Io(tls)),
            "TLS failed: cannot decrypt peer's message"
        );
        let denied = Trouble::of_status(401, b"", true).text;
        let expected = "it, or the leader, refuses the user or the password (401), or the user lacks a right in auth.json";
        assert_eq!(denied, expected);
        assert_eq!(Trouble::of_status(500, b"no\n", true).text, "status 500 no");
        let error = Error::from(ClusterFailure::Node(Trouble::new(
            "one:4001: it did not answer in time".to_owned(),
            false,
        )));
        assert_eq!(
            error.to_string(),
            "the cluster cannot be reached: one:4001: it did not answer in time"
        );
        assert_eq!(error.kind(), ErrorKind::DatabaseUnreachable);
        let error = Error::from(ClusterFailure::Node(Trouble::of_status(401, b"", true)));
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn text_of_a_node_stays_on_its_line_and_is_short() {
        let trouble = Trouble::of_status(
            500,
            format!("a\nb\x1b[31m{}", "x".repeat(1000)).as_bytes(),
            true,
        );
        let text = trouble.text;
        assert!(!text.contains(['\n', '\x1b']) && text.len() < 230, "{text}");
    }
}
