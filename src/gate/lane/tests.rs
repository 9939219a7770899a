use super::*;

const TICKET_17: Ticket = 2 << 32 | 17;

#[test]
fn request_is_read_as_it_is_written() {
    let mut request = LaneRequest::default();
    request.begin(b"POST", [b"/v1/pets", b"?a"], 0);
    request.field("Content-Type", b"text/x: y");
    request.field("Authorization", "Bearer \u{e9}".as_bytes());
    request.field("X", b"");
    request.end_head();
    assert_eq!(
        (request.line(), request.body_length()),
        (&b"POST /v1/pets?a"[..], 0)
    );
    request.body().extend_from_slice(b"\xff\n\r\n");
    assert_eq!(request.body_length(), 4);
    let mut out = Vec::new();
    request.write(TICKET_17, b"an-id", &mut out);
    let content = b"\0\0\0\x02\0\0\0\x11an-id\r\nContent-Type: text/x: y\r\nAuthorization: Bearer \x7f\x7f\r\nX: \r\n\r\n\xff\n\r\n";
    let head = format!(
        "POST /v1/pets?a HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    assert_eq!(out, [head.as_bytes(), content].concat());
    assert_eq!(ticket_of(content), TICKET_17);
    let fields = vec![
        ("Content-Type", "text/x: y"),
        ("Authorization", "Bearer \u{7f}\u{7f}"),
        ("X", ""),
    ];
    assert_eq!(
        Content::read(content),
        Some(Content {
            id: "an-id",
            fields,
            body: b"\xff\n\r\n"
        })
    );
}

#[test]
fn content_that_is_not_from_the_gate_is_none() {
    assert_eq!(ticket_of(b"1234567"), NO_TICKET);
    for content in [
        "",
        "x",
        "x\r\n",
        "x\nA: b\r\n\r\n",
        "x\r\nA\r\n\r\n",
        "x\r\nA:b\r\n\r\n",
    ] {
        assert_eq!(
            Content::read(format!("12345678{content}").as_bytes()),
            None,
            "{content:?}"
        );
    }
}

fn written(response: &Response) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::new();
    let written = write_response(response, TICKET_17, &mut out);
    assert!(written.is_ok() || out.is_empty());
    written.map(|()| out)
}

#[test]
fn fields_are_framed_by_content_length() {
    let bytes = written(&Response::json(200, &[1, 2]).header("Location", "/v1/pets/1")).unwrap();
    let read = LaneResponse::read(&bytes).unwrap().unwrap();
    let fields =
        "Content-Type: application/json\r\nLocation: /v1/pets/1\r\nContent-Length: 5\r\n\r\n";
    assert_eq!((read.fields, read.body), (fields.as_bytes(), &b"[1,2]"[..]));
}

#[test]
fn response_is_read_as_it_is_written_and_only_whole() {
    for response in [
        Response::new(200, b"abc")
            .header("Link", "x")
            .header("Allow", "GET, HEAD"),
        Response::new(304, b"")
            .header("ETag", "\"x\"")
            .header("cache-control", "no-cache"),
        Response::new(204, b"").for_key("a\r\nb \u{e9}"),
        Response::only(Disposition::RetryOnWriter),
        Response::only(Disposition::Abort),
        Response::json(200, &"x")
            .header("X", "y")
            .for_key(&"x".repeat(1024)),
        Response::new(599, vec![b'x'; 100_000]),
    ] {
        let mut bytes = written(&response).unwrap();
        let whole = bytes.len();
        for length in (0..whole).take(500) {
            assert_eq!(
                LaneResponse::read(&bytes[..length]),
                Ok(None),
                "{length} of {response:?}"
            );
        }
        bytes.extend_from_slice(b"HTTP");
        let read = LaneResponse::read(&bytes).unwrap().unwrap();
        assert_eq!(
            (read.ticket, read.disposition, read.length),
            (TICKET_17, response.disposition, whole)
        );
        let mut buffer = Vec::new();
        let key_name = response.key_name.as_deref().unwrap_or("-").as_bytes();
        let own = LaneResponse::of(&response, &mut buffer);
        assert_eq!(
            read,
            LaneResponse {
                key_name,
                ticket: TICKET_17,
                length: whole,
                ..own
            }
        );
        assert_eq!((read.status, read.body), (response.status, response.body()));
        for name in ["Link", "ETag", "X"] {
            assert_eq!(read.field(name), response.field(name).map(str::as_bytes));
        }
        assert_eq!(read.field("Lin"), None);
    }
}

#[test]
fn unknown_disposition_is_malformed() {
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
