//! A response on a lane: how the worker writes it, and how the gate reads it.

use std::borrow::Cow;

use crate::http::Response;
use crate::http::limits::MAX_RESPONSE_FIELDS;
use crate::http::response::{Field, has_no_body, write_end_of_head, write_field, write_status_line};
use crate::lane::TICKET;

/// Marks [`Response::pass_on`]. No client sees it.
const PASS_ON: &str = "Pass-On";
/// Names the key of the request, on its way to the access log. No client sees it.
const KEY_NAME: &str = "K";
/// Room for the head of most responses.
const HEAD_ROOM: usize = 256;

/// The most header fields of a lane's response: the handler's, the ticket, the key's name and Content-Length.
const MAX_LANE_FIELDS: usize = MAX_RESPONSE_FIELDS + 3;

/// The response breaks a rule that its reader relies on.
#[derive(Debug, PartialEq)]
pub struct Unprintable(pub &'static str);

/// Writes a response as an HTTP/1.1 message with a ticket, framed by Content-Length (none with 204).
///
/// # Errors
/// Where it could not be read again as what it is: then nothing is written.
pub fn print(response: &Response, number: &str, out: &mut Vec<u8>) -> Result<(), Unprintable> {
    check(response)?;
    out.reserve(HEAD_ROOM + response.body().len());
    write_status_line(out, response.status());
    write_field(out, TICKET, number.as_bytes());
    if response.goes_on() {
        write_field(out, PASS_ON, b"write");
    }
    if let Some(name) = response.key_name() {
        write_field(out, KEY_NAME, name.as_bytes());
    }
    for (name, value) in response.headers() {
        write_field(out, name, value.as_bytes());
    }
    write_end_of_head(out, response.status(), response.body().len());
    out.extend_from_slice(response.body());
    Ok(())
}

/// Holds to the bounds of a response.
fn check(response: &Response) -> Result<(), Unprintable> {
    if !(200..=599).contains(&response.status()) {
        return Err(Unprintable("its status is not final"));
    }
    if has_no_body(response.status()) && !response.body().is_empty() {
        return Err(Unprintable("it has a body that its status does not allow"));
    }
    if response.headers().len() > MAX_RESPONSE_FIELDS {
        return Err(Unprintable("it has too many header fields"));
    }
    // RFC 9110, section 5.5.
    let is_text = |value: &str| value.bytes().all(|b| b == b'\t' || (0x20..0x7f).contains(&b));
    // What is borrowed stands in the source; only what was made of other data can be anything.
    let is_sound = |value: &Cow<str>| matches!(value, Cow::Borrowed(_)) || is_text(value);
    if response.headers().iter().all(|(_, value)| is_sound(value)) {
        Ok(())
    } else {
        Err(Unprintable("a header field is not printable ASCII"))
    }
}

/// A status, header fields and a body, for a client.
pub struct Answer<'a> {
    pub status: u16,
    fields: Fields<'a>,
    pub body: &'a [u8],
    /// The name of the key of the request, where the access log is to have it.
    pub key_name: Option<&'a [u8]>,
}

#[expect(clippy::large_enum_variant, reason = "it stays where it is made, and costs no allocation")]
enum Fields<'a> {
    /// Read from a lane; those that are not there are empty.
    Read([httparse::Header<'a>; MAX_LANE_FIELDS]),
    /// Of a response made here.
    Made(&'a [Field]),
}

/// A whole response of a lane, still in the lane's buffer.
pub struct LaneResponse<'a> {
    pub answer: Answer<'a>,
    /// Whose it is.
    pub ticket: &'a [u8],
    /// Whether the request is to go on, down the lane for writing, and this is no answer yet.
    pub passes_on: bool,
    /// How many bytes it was.
    pub length: usize,
}

/// The bytes are no response.
#[derive(Debug, PartialEq)]
pub struct Malformed;

impl<'a> LaneResponse<'a> {
    /// Reads the response at the start of `bytes`; `None` while it is not whole.
    ///
    /// # Errors
    /// Where the bytes are no response with a ticket, framed by Content-Length.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_LANE_FIELDS];
        let mut response = httparse::Response::new(&mut headers);
        let head = match response.parse(bytes) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Malformed),
        };
        let status = response.code.ok_or(Malformed)?;
        let (mut length, mut ticket, mut key_name, mut passes_on) = (0, None, None, false);
        for header in response.headers.iter() {
            match header.name.len() {
                14 if header.name.eq_ignore_ascii_case("Content-Length") => {
                    let digits = std::str::from_utf8(header.value).map_err(|_| Malformed)?;
                    length = digits.parse().map_err(|_| Malformed)?;
                }
                17 if header.name.eq_ignore_ascii_case("Transfer-Encoding") => return Err(Malformed),
                _ if header.name == TICKET => ticket = Some(header.value),
                _ if header.name == KEY_NAME => key_name = Some(header.value),
                _ if header.name == PASS_ON => passes_on = true,
                _ => {}
            }
        }
        // tiny_http itself knows no tickets: what it says by itself is nobody's.
        let ticket = ticket.ok_or(Malformed)?;
        let Some(body) = bytes.get(head..).and_then(|rest| rest.get(..length)) else { return Ok(None) };
        let answer = Answer { status, fields: Fields::Read(headers), body, key_name };
        Ok(Some(Self { answer, ticket, passes_on, length: head + length }))
    }
}

impl<'a> From<&'a Response> for Answer<'a> {
    fn from(response: &'a Response) -> Self {
        let fields = Fields::Made(response.headers());
        let key_name = response.key_name().map(str::as_bytes);
        Self { status: response.status(), fields, body: response.body(), key_name }
    }
}

impl Answer<'_> {
    /// Hands out the header fields that are for the client.
    pub fn each_field(&self, mut take: impl FnMut(&str, &[u8])) {
        let is_ours = |name: &str| {
            ["Content-Length", "Connection", "Date", "Server", TICKET, KEY_NAME]
                .iter()
                .any(|ours| name.len() == ours.len() && name.eq_ignore_ascii_case(ours))
        };
        match &self.fields {
            Fields::Read(headers) => {
                let headers = headers.iter().take_while(|header| !header.name.is_empty());
                headers.filter(|header| !is_ours(header.name)).for_each(|h| take(h.name, h.value));
            }
            Fields::Made(headers) => {
                let headers = headers.iter().filter(|(name, _)| !is_ours(name));
                headers.for_each(|(name, value)| take(name, value.as_bytes()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] =
        b"HTTP/1.1 200 OK\r\nT: 1.2\r\nLink: x\r\nServer: lane\r\nContent-Length: 3\r\n\r\nabcHTTP";

    fn fields(answer: &Answer) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        answer.each_field(|name, value| {
            fields.push((name.to_owned(), String::from_utf8_lossy(value).into_owned()));
        });
        fields
    }

    #[test]
    fn response_is_taken_only_whole() {
        let end = RESPONSE.len() - 4;
        for length in 0..end {
            assert!(LaneResponse::parse(&RESPONSE[..length]).unwrap().is_none(), "{length}");
        }
        let response = LaneResponse::parse(RESPONSE).unwrap().unwrap();
        assert_eq!((response.answer.status, response.answer.body), (200, &b"abc"[..]));
        assert_eq!((response.ticket, response.passes_on, response.length), (&b"1.2"[..], false, end));
        assert_eq!(fields(&response.answer), [("Link".to_owned(), "x".to_owned())]);
    }

    #[test]
    fn other_fields_of_the_same_lengths_frame_nothing() {
        let text = "HTTP/1.1 200 OK\r\nT: 1.2\r\nAccept-Charset: x\r\nIf-Modified-Since: x\r\n\r\n";
        let response = LaneResponse::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((response.length, fields(&response.answer).len()), (text.len(), 2));
    }

    #[test]
    fn what_is_no_response_of_a_worker_is_malformed() {
        for text in [
            "nonsense\r\n\r\n",
            "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nT: 1.1\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nT: 1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(LaneResponse::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn largest_response_of_a_handler_fits() {
        let response = (0..MAX_RESPONSE_FIELDS)
            .fold(Response::new(200, b"x").for_key("ci"), |response, _| response.header("X", "y"));
        let mut printed = Vec::new();
        print(&response, "1.1", &mut printed).unwrap();
        let read = LaneResponse::parse(&printed).unwrap().unwrap();
        assert_eq!(fields(&read.answer), fields(&Answer::from(&response)));
        assert_eq!((read.answer.body, read.length), (&b"x"[..], printed.len()));
        assert_eq!(read.answer.key_name, Some(&b"ci"[..]));
        assert!(fields(&read.answer).iter().all(|(name, _)| name == "X"), "the key's name is for no client");
    }

    #[test]
    fn request_that_is_to_go_on_is_recognized() {
        let mut printed = Vec::new();
        print(&Response::pass_on(), "1.1", &mut printed).unwrap();
        assert!(LaneResponse::parse(&printed).unwrap().unwrap().passes_on);
    }

    fn printed(response: &Response) -> Result<String, Unprintable> {
        let mut out = Vec::new();
        let printed = print(response, "1.2", &mut out);
        assert!(printed.is_ok() || out.is_empty());
        printed.map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn response_is_framed_by_content_length() {
        let text = printed(&Response::json(200, &[1, 2]).header("Location", "/v1/pets/1")).unwrap();
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\nT: 1.2\r\nContent-Type: application/json\r\nLocation: /v1/pets/1\r\n\
             Content-Length: 5\r\n\r\n[1,2]"
        );
    }

    #[test]
    fn name_of_a_key_is_one_word_whatever_it_is() {
        let text = printed(&Response::new(204, b"").for_key("a\r\nb \u{e9}")).unwrap();
        assert_eq!(text, "HTTP/1.1 204 No Content\r\nT: 1.2\r\nK: a??b??\r\n\r\n");
    }

    #[test]
    fn no_content_has_no_content_length() {
        let text = printed(&Response::new(204, b"")).unwrap();
        assert_eq!(text, "HTTP/1.1 204 No Content\r\nT: 1.2\r\n\r\n");
    }

    #[test]
    fn what_could_not_be_read_again_is_not_printed() {
        let ok = || Response::json(200, &());
        let full =
            (0..MAX_RESPONSE_FIELDS - 1).fold(ok(), |response, _| response.header("X", "\ty z~".to_owned()));
        assert!(printed(&full).is_ok());
        for response in [
            full.header("X", "y"),
            ok().header("X", "a\r\nY: b".to_owned()),
            ok().header("X", "a\nb".to_owned()),
            ok().header("X", "a\0b".to_owned()),
            ok().header("X", "\x7f".to_owned()),
            ok().header("X", "\u{e9}".to_owned()),
            Response::new(100, b""),
            Response::new(199, b""),
            Response::new(600, b""),
            Response::new(204, b"x"),
        ] {
            assert!(printed(&response).is_err(), "{response:?}");
        }
    }
}
