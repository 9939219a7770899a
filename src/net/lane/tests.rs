use super::*;

const TICKET: Ticket = 2 << 32 | 17;

#[test]
fn first_byte_is_found() {
    for length in 0..40 {
        for at in 0..length {
            for other in [0, b'\n' - 1, b'\n' + 1, 0x80 | b'\n', 0xff] {
                let mut bytes = vec![other; length];
                assert_eq!(position(&bytes, b'\n'), None);
                bytes[at] = b'\n';
                bytes[length - 1] = b'\n';
                assert_eq!(position(&bytes, b'\n'), Some(at), "{bytes:?}");
            }
        }
    }
}

/// The head of a request on a lane, and its content.
fn written_request(request: &LaneRequest) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    request.write(TICKET, b"an-id", &mut head);
    let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let content = head.split_off(end + 4);
    (String::from_utf8(head).unwrap(), content)
}

#[test]
fn request_is_read_as_it_is_written() {
    let mut request = LaneRequest::default();
    for body in [&b""[..], b"abc", b"\r\n\r\n", b"\xff\n\r\n"] {
        request.begin(b"POST", [b"/v1/pets", b"?a"], 0);
        request.field("Content-Type", b"text/x: y");
        request.field("Authorization", "Bearer \u{e9}".as_bytes());
        request.field("X", b"");
        request.end_head();
        request.body().extend_from_slice(body);
        assert_eq!(request.line(), b"POST /v1/pets?a");
        let (head, content) = written_request(&request);
        let line = "POST /v1/pets?a HTTP/1.1\r\n";
        assert_eq!(head, format!("{line}Content-Length: {}\r\n\r\n", content.len()));
        let fields = vec![("Content-Type", "text/x: y"), ("Authorization", "Bearer \u{7f}\u{7f}"), ("X", "")];
        let (ticket, content) = content.split_first_chunk().unwrap();
        assert_eq!(Ticket::from_be_bytes(*ticket), TICKET);
        assert_eq!(Content::read(content), Some(Content { id: "an-id", fields, body }));
    }
}

#[test]
fn other_content_is_not_read() {
    for text in ["", "x", "id", "id\r\n", "id\r\nX\r\n\r\n", "id\r\nX:y\r\n\r\n", "id\n\n"] {
        assert_eq!(Content::read(text.as_bytes()), None, "{text:?}");
    }
}

fn written(response: &Response) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::new();
    let written = write_response(response, TICKET, &mut out);
    assert!(written.is_ok() || out.is_empty());
    written.map(|()| out)
}

#[test]
fn fields_are_framed_by_content_length() {
    let bytes = written(&Response::json(200, &[1, 2]).header("Location", "/v1/pets/1")).unwrap();
    let read = LaneResponse::read(&bytes).unwrap().unwrap();
    let fields = "Content-Type: application/json\r\nLocation: /v1/pets/1\r\nContent-Length: 5\r\n\r\n";
    assert_eq!((read.answer.fields, read.answer.body), (fields.as_bytes(), &b"[1,2]"[..]));
}

#[test]
fn response_is_read_as_it_is_written_and_only_whole() {
    for response in [
        Response::new(200, b"abc").header("Link", "x").header("Allow", "GET, HEAD"),
        Response::new(304, b"").header("ETag", "\"x\"").header("cache-control", "no-cache"),
        Response::new(204, b"").for_key("a\r\nb \u{e9}"),
        Response::only(Course::PassOn),
        Response::only(Course::BreakOff),
        Response::json(200, &"x").header("X", "y").for_key(&"x".repeat(1024)),
        Response::new(599, vec![b'x'; 100_000]),
    ] {
        let mut bytes = written(&response).unwrap();
        let whole = bytes.len();
        for length in (0..whole).take(500) {
            assert_eq!(LaneResponse::read(&bytes[..length]), Ok(None), "{length} of {response:?}");
        }
        bytes.extend_from_slice(b"HTTP");
        let read = LaneResponse::read(&bytes).unwrap().unwrap();
        assert_eq!((read.ticket, read.course, read.length), (TICKET, response.course, whole));
        let mut buffer = Vec::new();
        let key_name = response.key_name.as_deref().unwrap_or("-").as_bytes();
        assert_eq!(read.answer, Answer { key_name, ..Answer::of(&response, &mut buffer) });
        assert_eq!((read.answer.status, read.answer.body), (response.status, response.body()));
        for name in ["Link", "ETag", "X"] {
            assert_eq!(read.answer.field(name), response.field(name).map(str::as_bytes));
        }
        assert_eq!(read.answer.field("Lin"), None);
    }
}

#[test]
fn unknown_flag_is_malformed() {
    let mut bytes = written(&Response::new(204, b"")).unwrap();
    bytes[HEAD_LENGTH - 1] = 4;
    assert_eq!(LaneResponse::read(&bytes), Err(ErrorKind::InvalidData));
}

#[test]
fn field_that_may_not_be_sent_is_not_written() {
    let ok = || Response::json(200, &());
    assert!(written(&ok().header("X", "\ty z~")).is_ok());
    for response in [
        ok().header("X", "a\r\nY: b"),
        ok().header("X", "a\nb"),
        ok().header("X", "a\0b"),
        ok().header("X", "\x7f"),
        ok().header("X", "\u{e9}"),
    ] {
        assert!(written(&response).is_err(), "{response:?}");
    }
}
