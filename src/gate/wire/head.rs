//! The head of a request: the part for the gate itself, and the part that it forwards to the lane.

use std::net::IpAddr;

use crate::addresses::TrustedProxies;
use crate::lane::{LaneKind, LaneRequest};
use crate::refusal::{Refusal, RefusalReason};
use crate::wire::body::{BodyDecoder, Chunked};
use crate::wire::cors::{Allowed, Cors};
use crate::wire::request_id::{RequestId, RequestIds, trace_parent};
use crate::wire::request_line::{RequestLine, bad_request, is_authority};
use petstore_base::http::elements;
use petstore_base::http::limits::MAX_HEADER_FIELDS;

/// The most bytes of method and path in the access log.
const MAX_SUMMARY: usize = 1024;

/// What the gate knows to read requests.
pub struct Intake {
    /// Identifiers for requests without one.
    pub ids: RequestIds,
    /// The header fields that the service behind the lanes reads. No others are forwarded.
    pub forwarded: Vec<&'static str>,
    /// The proxies that may name a client's address.
    pub trusted: TrustedProxies,
    /// What scripts of other origins may do in a browser.
    pub cors: Cors,
    /// The target of the access log.
    pub access_log: &'static str,
    /// The access log also has the query and the names of the forwarded header fields.
    pub logs_details: bool,
    /// The most bytes of a body.
    pub max_body: usize,
}

/// The facts about a request that the gate needs for its response.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    pub kind: LaneKind,
    /// The method is HEAD: the response has no body.
    pub is_head: bool,
    /// A response to HTTP/1.0 says if the connection persists, one to HTTP/1.1 if it does not.
    pub is_http_1_0: bool,
    /// The client wants the connection to persist.
    pub keep_alive: bool,
    /// The client waits for a 100 Continue before it sends the body.
    pub expects_continue: bool,
    /// The client's identifier if that is usable, otherwise a new one.
    pub id: RequestId,
    /// The permission for the origin that a browser sent.
    pub allowed: Option<Allowed>,
    /// The client's address if a trusted proxy names it.
    pub forwarded_for: Option<IpAddr>,
    /// The place of the request in a distributed trace, for the access log.
    pub trace_parent: Option<Box<str>>,
    pub body: BodyDecoder,
    /// Method and path if there is an access log; otherwise empty. If the log has details, also the query and, after
    /// `FIELDS`, the names of the forwarded header fields, separated by commas.
    pub summary: String,
}

/// What separates the names of header fields from the target, which has no space.
pub const FIELDS: &str = " fields=";

impl Head {
    /// A head without any information.
    pub fn unknown(id: RequestId) -> Self {
        Self {
            kind: LaneKind::Write,
            is_head: false,
            is_http_1_0: false,
            keep_alive: false,
            expects_continue: false,
            id,
            allowed: None,
            forwarded_for: None,
            trace_parent: None,
            body: BodyDecoder::Length(0),
            summary: String::new(),
        }
    }

    /// Reads the complete lines of an incomplete head, without regard to errors. If only one origin is allowed, it may read
    /// the failure in any case, since a browser compares it with the script's.
    pub fn of_part(arrived: &[u8], intake: &mut Intake, out: &mut LaneRequest) -> Self {
        let method = arrived
            .trim_ascii_start()
            .split(|b| *b == b' ')
            .next()
            .unwrap_or_default();
        let mut head = Self {
            is_head: method == b"HEAD",
            ..Self::unknown(intake.ids.next())
        };
        let lines = arrived
            .split(|b| *b == b'\n')
            .filter_map(|line| line.strip_suffix(b"\r"));
        let headers: Vec<_> = lines.filter_map(header_in).collect();
        // The error has been found already.
        let _ = head.apply(&headers, intake);
        head.allowed = head.allowed.or_else(|| intake.cors.only());
        out.begin(method, [b"", b""], 0);
        forward(&headers, None, false, intake, out);
        head
    }

    /// Reads a complete head, and writes it to `out` for the lane, with the forwarded header fields. If this fails, the part
    /// that was read still counts: the response has the client's identifier, and no body for HEAD.
    pub fn parse(
        line: &RequestLine,
        head: &[u8],
        is_trusted: bool,
        intake: &mut Intake,
        out: &mut LaneRequest,
    ) -> (Self, Result<(), Refusal>) {
        let method = &head[line.method.clone()];
        let mut parsed = Self {
            kind: if [&b"GET"[..], b"HEAD", b"OPTIONS"].contains(&method) {
                LaneKind::Read
            } else {
                LaneKind::Write
            },
            is_head: method == b"HEAD",
            is_http_1_0: line.minor_version == 0,
            keep_alive: line.minor_version > 0,
            ..Self::unknown(intake.ids.next())
        };
        begin_request(&head[line.target.clone()], method, head.len(), out);
        if log::log_enabled!(target: intake.access_log, log::Level::Info) {
            let line = out.line();
            let has_query = intake.logs_details;
            let query = line.iter().position(|b| *b == b'?' && !has_query);
            let logged = &line[..query.unwrap_or(line.len())];
            let kept = &logged[..logged.len().min(MAX_SUMMARY)];
            let end = if kept.len() < logged.len() { "…" } else { "" };
            parsed.summary = (String::from_utf8_lossy(kept) + end).into_owned();
        }
        // After the version, such as " HTTP/1.1", and the line end.
        let start = line.target.end + 11;
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADER_FIELDS];
        let checked = match httparse::parse_headers(&head[start..], &mut headers) {
            Ok(httparse::Status::Complete((_, headers))) => {
                let authority = line.authority.clone().map(|at| &head[at]);
                parsed.apply(headers, intake).map(|()| {
                    if intake.logs_details && !parsed.summary.is_empty() {
                        parsed.summary += FIELDS;
                        parsed.summary += &names(headers, &intake.forwarded);
                    }
                    forward(headers, authority, is_trusted, intake, out);
                })
            }
            _ => Err(bad_request(
                "A header line must be a name, a colon and a value, with no space before the colon, and not folded.",
            )),
        };
        (parsed, checked)
    }

    /// Reads the header fields that the gate itself acts on.
    fn apply(&mut self, headers: &[httparse::Header], intake: &Intake) -> Result<(), Refusal> {
        let (mut hosts, mut close, mut traces) = (0, false, 0);
        let (mut length, mut coding) = (None, None);
        let mut failure = None;
        // A failure does not end the search for the identifier.
        let mut fail = |error| failure = failure.take().or(Some(error));
        for header in headers {
            let value = header.value.trim_ascii();
            match header.name.len() {
                4 if header.name.eq_ignore_ascii_case("Host") => {
                    hosts += 1;
                    if !is_authority(value) {
                        fail(bad_request(
                            "The Host header must be a host, with or without a port.",
                        ));
                    }
                }
                6 if header.name.eq_ignore_ascii_case("Expect") => {
                    let is_known = |expected: &[u8]| expected.eq_ignore_ascii_case(b"100-continue");
                    // RFC 9110, section 10.1.1: HTTP/1.0 has no 100 Continue.
                    self.expects_continue |= !self.is_http_1_0 && elements(value).any(is_known);
                    if !elements(value).all(is_known) {
                        fail(Refusal::new(RefusalReason::ExpectationFailed));
                    }
                }
                6 if header.name.eq_ignore_ascii_case("Origin") => {
                    self.allowed = intake.cors.allow(value);
                }
                10 if header.name.eq_ignore_ascii_case("Connection") => {
                    for option in elements(value) {
                        close |= option.eq_ignore_ascii_case(b"close");
                        self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                11 if header.name.eq_ignore_ascii_case("traceparent") => {
                    traces += 1;
                    self.trace_parent = trace_parent(value).filter(|_| traces == 1).map(Box::from);
                }
                12 if header.name.eq_ignore_ascii_case("X-Request-Id") => {
                    self.id = RequestId::from_client(value).unwrap_or(self.id);
                }
                14 if header.name.eq_ignore_ascii_case("Content-Length")
                    && length.replace(value).is_some() =>
                {
                    fail(bad_request("Content-Length is given more than once."));
                }
                15 if header.name.eq_ignore_ascii_case("X-Forwarded-For") => {
                    self.forwarded_for = intake.trusted.client_of(value, self.forwarded_for);
                }
                17 if header.name.eq_ignore_ascii_case("Transfer-Encoding")
                    && coding.replace(value).is_some() =>
                {
                    fail(Refusal::new(RefusalReason::TransferCoding));
                }
                _ => {}
            }
        }
        self.keep_alive &= !close;
        // RFC 9112, section 3.2.
        if hosts > 1 {
            fail(bad_request("The Host header is given more than once."));
        } else if hosts == 0 && !self.is_http_1_0 {
            fail(bad_request("The Host header is missing."));
        }
        if let Err(error) = self.frame(length, coding, intake.max_body) {
            fail(error);
        }
        failure.map_or(Ok(()), Err)
    }

    /// Determines the framing of the body (RFC 9112, section 6.3).
    fn frame(
        &mut self,
        length: Option<&[u8]>,
        coding: Option<&[u8]>,
        most: usize,
    ) -> Result<(), Refusal> {
        match (length, coding) {
            (None, None) => {}
            (Some(_), Some(_)) => {
                return Err(bad_request(
                    "Content-Length and Transfer-Encoding cannot be combined.",
                ));
            }
            (None, Some(_)) if self.is_http_1_0 => {
                return Err(bad_request("HTTP/1.0 does not support Transfer-Encoding."));
            }
            // Nothing else, not even an empty element: a difference from a proxy in front could hide a request.
            (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => {
                self.body = BodyDecoder::Chunked(Chunked::new(most));
            }
            (None, Some(_)) => return Err(Refusal::new(RefusalReason::TransferCoding)),
            (Some(digits), None) => {
                if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                    return Err(bad_request("Content-Length must be decimal digits."));
                }
                let length = digits.iter().fold(0usize, |length, digit| {
                    length
                        .saturating_mul(10)
                        .saturating_add(usize::from(digit - b'0'))
                });
                if length > most {
                    return Err(Refusal::new(RefusalReason::ContentTooLarge));
                }
                self.body = BodyDecoder::Length(length);
            }
        }
        Ok(())
    }
}

/// The header field in a line, if there is one.
fn header_in(line: &[u8]) -> Option<httparse::Header<'_>> {
    let colon = line.iter().position(|b| *b == b':')?;
    Some(httparse::Header {
        name: str::from_utf8(&line[..colon]).ok()?,
        value: &line[colon + 1..],
    })
}

/// Writes the request line for the lane, with its target in origin form.
fn begin_request(target: &[u8], method: &[u8], capacity: usize, out: &mut LaneRequest) {
    let start: &[u8] = if target.is_empty() && method == b"OPTIONS" {
        // RFC 9112, section 3.2.4: for OPTIONS, an absolute form without a path means the server as a whole.
        b"*"
    } else if !target.starts_with(b"/") && target != b"*" {
        b"/"
    } else {
        b""
    };
    out.begin(method, [start, target], capacity);
}

/// Writes the header fields that the service reads. An authority in the request line replaces the Host.
fn forward(
    headers: &[httparse::Header],
    authority: Option<&[u8]>,
    is_trusted: bool,
    intake: &Intake,
    out: &mut LaneRequest,
) {
    for header in headers {
        if let Some(name) = intake
            .forwarded
            .iter()
            .find(|name| name.eq_ignore_ascii_case(header.name))
        {
            let is_replaced = *name == HOST && authority.is_some();
            let is_doubted = *name == FORWARDED_PROTO && !is_trusted;
            // The same as no field (RFC 9110, section 12.5.1). Most clients send it.
            let is_needless = *name == ACCEPT && header.value == b"*/*";
            if !is_replaced && !is_doubted && !is_needless {
                out.field(name, header.value);
            }
        }
    }
    if let Some(authority) = authority.filter(|_| intake.forwarded.contains(&HOST)) {
        out.field(HOST, authority);
    }
    out.end_head();
}

/// The names of the header fields that are forwarded, separated by commas.
fn names(headers: &[httparse::Header], forwarded: &[&str]) -> String {
    let mut names = String::new();
    for name in forwarded {
        let mut sent = headers.iter().map(|header| header.name);
        if sent.any(|sent| name.eq_ignore_ascii_case(sent)) {
            names += if names.is_empty() { "" } else { "," };
            names += name;
        }
    }
    names
}

const ACCEPT: &str = "Accept";
const HOST: &str = "Host";
/// The scheme of the request to the proxy; it counts only from a trusted one.
const FORWARDED_PROTO: &str = "X-Forwarded-Proto";

#[cfg(test)]
mod tests {
    use super::*;

    const FORWARDED: [&str; 2] = ["Authorization", "Content-Type"];

    fn text(mut out: LaneRequest) -> String {
        String::from_utf8(std::mem::take(out.body())).unwrap()
    }

    fn parse(head: &str) -> (Head, Result<String, RefusalReason>) {
        let end = head.find("\r\n").unwrap();
        let line = RequestLine::parse(head.as_bytes(), 0..end).unwrap();
        let mut out = LaneRequest::default();
        let mut intake = Intake {
            forwarded: FORWARDED.to_vec(),
            ..Intake::default()
        };
        let (parsed, checked) = Head::parse(&line, head.as_bytes(), false, &mut intake, &mut out);
        (
            parsed,
            checked.map(|()| text(out)).map_err(|error| error.reason),
        )
    }

    fn forwarded(head: &str) -> String {
        parse(head).1.unwrap()
    }

    #[test]
    fn only_what_the_service_reads_is_forwarded() {
        assert_eq!(
            forwarded(
                "POST http://h/v1/pets HTTP/1.0\r\nhost: h\r\nCookie: x\r\nAUTHORIZATION: Bearer \u{e9}\r\n\
                 te: gzip\r\nT: 9 forged\r\ncontent-type:text/x\r\nContent-Type: a\r\nContent-Length: 0012\r\n\r\n"
            ),
            "POST /v1/pets HTTP/1.1\r\nAuthorization: Bearer \u{7f}\u{7f}\r\nContent-Type: text/x\r\n\
             Content-Type: a\r\n\r\n"
        );
        assert_eq!(
            forwarded("GET http://h?x HTTP/1.1\r\nHost:\r\n\r\n"),
            "GET /?x HTTP/1.1\r\n\r\n"
        );
    }

    #[test]
    fn accept_of_everything_is_not_forwarded() {
        let head = "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nAccept: text/html\r\n\r\n";
        let line = RequestLine::parse(head.as_bytes(), 0..14).unwrap();
        let mut out = LaneRequest::default();
        let mut intake = Intake {
            forwarded: vec![ACCEPT],
            ..Intake::default()
        };
        Head::parse(&line, head.as_bytes(), false, &mut intake, &mut out)
            .1
            .unwrap();
        assert_eq!(text(out), "GET / HTTP/1.1\r\nAccept: text/html\r\n\r\n");
    }

    #[test]
    fn host_of_the_request_line_counts_and_the_scheme_only_from_a_trusted_peer() {
        let forwarded = |target: &str, is_trusted| {
            let head =
                format!("GET {target} HTTP/1.1\r\nHost: a\r\nx-forwarded-proto: https\r\n\r\n");
            let line = RequestLine::parse(head.as_bytes(), 0..head.find('\r').unwrap()).unwrap();
            let mut out = LaneRequest::default();
            let mut intake = Intake {
                forwarded: vec![HOST, FORWARDED_PROTO],
                ..Intake::default()
            };
            Head::parse(&line, head.as_bytes(), is_trusted, &mut intake, &mut out)
                .1
                .unwrap();
            text(out)
        };
        assert_eq!(
            forwarded("/x", true),
            "GET /x HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\n\r\n"
        );
        assert_eq!(forwarded("/x", false), "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(
            forwarded("http://b:80/x", false),
            "GET /x HTTP/1.1\r\nHost: b:80\r\n\r\n"
        );
    }

    #[test]
    fn target_is_forwarded_in_origin_form() {
        for (target, passed) in [
            ("GET http://h", "GET /"),
            ("GET http://h/x", "GET /x"),
            ("GET /x", "GET /x"),
            ("OPTIONS http://h", "OPTIONS *"),
            ("OPTIONS http://h/x", "OPTIONS /x"),
            ("OPTIONS http://h?x", "OPTIONS /?x"),
            ("OPTIONS *", "OPTIONS *"),
        ] {
            let head = format!("{target} HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(
                forwarded(&head),
                format!("{passed} HTTP/1.1\r\n\r\n"),
                "{target}"
            );
        }
    }

    #[test]
    fn client_is_the_rightmost_address_that_is_not_trusted() {
        let forwarded = |headers: &str| {
            parse(&format!("GET / HTTP/1.1\r\nHost: h\r\n{headers}\r\n"))
                .0
                .forwarded_for
                .map(|ip| ip.to_string())
        };
        assert_eq!(forwarded(""), None);
        assert_eq!(
            forwarded("X-Forwarded-For: 1.2.3.4\r\n").as_deref(),
            Some("1.2.3.4")
        );
        assert_eq!(
            forwarded("X-Forwarded-For: 9.9.9.9, 1.2.3.4, 127.0.0.1\r\n").as_deref(),
            Some("1.2.3.4")
        );
        assert_eq!(
            forwarded("X-Forwarded-For: 9.9.9.9\r\nx-forwarded-for: 1.2.3.4\r\n").as_deref(),
            Some("1.2.3.4")
        );
        assert_eq!(
            forwarded("X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: ::1\r\n").as_deref(),
            Some("1.2.3.4"),
            "a trusted one passed it on"
        );
        assert_eq!(
            forwarded("X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: unknown\r\n"),
            None,
            "a trusted one does not know, and before that anybody may have said anything"
        );
    }

    #[test]
    fn methods_choose_the_lane() {
        for (method, kind) in [
            ("GET", LaneKind::Read),
            ("HEAD", LaneKind::Read),
            ("OPTIONS", LaneKind::Read),
        ] {
            assert_eq!(
                parse(&format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n"))
                    .0
                    .kind,
                kind
            );
        }
        for method in ["POST", "DELETE", "get", "BREW"] {
            assert_eq!(
                parse(&format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n"))
                    .0
                    .kind,
                LaneKind::Write
            );
        }
    }

    #[test]
    fn persistence_depends_on_version_and_options() {
        for (version, connection, keep_alive) in [
            ("1.1", "", true),
            ("1.1", "Connection: Close\r\n", false),
            ("1.1", "Connection: keep-alive, close\r\n", false),
            ("1.1", "Connection: x\r\nConnection: y, close\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
            (
                "1.0",
                "Connection: keep-alive\r\nConnection: close\r\n",
                false,
            ),
        ] {
            let (head, _) = parse(&format!(
                "GET / HTTP/{version}\r\nHost: h\r\n{connection}\r\n"
            ));
            assert_eq!(head.keep_alive, keep_alive, "{version} {connection}");
        }
    }

    #[test]
    fn other_fields_of_the_same_lengths_are_ignored() {
        let (head, checked) = parse(
            "POST / HTTP/1.1\r\nHost: h\r\nFrom: a b\r\nCookie: 100-continue\r\nUser-Agent: close\r\n\
             Content-Type: other\r\nAccept-Charset: 5\r\nIf-Modified-Since: chunked\r\n\
             Content-MD5: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nAccept-Language: 1.2.3.4\r\n\r\n",
        );
        assert!(checked.is_ok());
        assert!(head.keep_alive && !head.expects_continue);
        assert_eq!(head.body, BodyDecoder::Length(0));
        assert_eq!(head.id.as_str().len(), 16, "made here");
        assert_eq!((head.allowed, head.forwarded_for), (None, None));
        assert_eq!(head.trace_parent, None);
    }

    #[test]
    fn trace_is_forwarded_if_it_is_given_once() {
        let trace = "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
        let has_trace = |fields: &str| {
            parse(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"))
                .0
                .trace_parent
                .is_some()
        };
        assert!(has_trace(trace));
        assert!(!has_trace(&trace.repeat(2)) && !has_trace(&trace.repeat(3)));
    }

    #[test]
    fn http_1_0_needs_no_host_and_knows_no_coding() {
        assert!(parse("GET / HTTP/1.0\r\n\r\n").1.is_ok());
        let coded = parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").1;
        assert_eq!(coded, Err(RefusalReason::BadRequest));
        let (head, _) =
            parse("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
        assert!(!head.expects_continue);
    }

    #[test]
    fn rejected_heads_keep_the_identifier() {
        let (head, checked) =
            parse("HEAD / HTTP/1.1\r\nContent-Length: x\r\nX-Request-Id: mine\r\n\r\n");
        assert_eq!(checked, Err(RefusalReason::BadRequest));
        assert_eq!(head.id.as_str(), "mine");
        assert!(head.is_head);
    }
}
