use super::*;
use petstore_base::testing::random::Random;

/// The steps that `input` causes if it comes in pieces of a size, one word each.
fn steps_in_pieces(input: &[u8], size: usize) -> Vec<String> {
    let mut reader = RequestReader::default();
    let mut intake = Intake::default();
    let (mut stash, mut out, mut steps) = (Vec::new(), LaneRequest::default(), Vec::new());
    for piece in input.chunks(size) {
        stash.extend_from_slice(piece);
        loop {
            let (consumed, step) = reader.advance(&stash, false, &mut intake, &mut out);
            stash.drain(..consumed);
            match step {
                Step::More => break,
                Step::Head(Ok(())) => {}
                Step::Continue => steps.push("continue".to_owned()),
                Step::Request(_) => {
                    reader.head = None;
                    let text = String::from_utf8_lossy(out.body()).into_owned();
                    let (head, body) = text.split_once("\r\n\r\n").unwrap();
                    steps.push(format!("{} {body}", head.split(" HTTP").next().unwrap()));
                }
                Step::Head(Err(error)) | Step::Reject(error) => {
                    steps.push(format!("{} {:?}", error.reason.status(), error.reason));
                    return steps;
                }
            }
        }
    }
    steps
}

pub fn steps(input: &[u8]) -> Vec<String> {
    let whole = steps_in_pieces(input, input.len());
    assert_eq!(
        whole,
        steps_in_pieces(input, 1),
        "byte by byte: {}",
        String::from_utf8_lossy(input)
    );
    whole
}

#[test]
fn eight_bytes_are_plain_where_each_is() {
    for byte in 0..=u8::MAX {
        for at in 0..8 {
            for other in [b'x', 0x20, 0xff, 0x80] {
                let mut bytes = [other; 8];
                bytes[at] = byte;
                assert_eq!(is_plain(bytes), is_text(byte) && byte != b'\t', "{bytes:?}");
            }
        }
    }
}

#[test]
fn pipelined_requests_come_one_by_one() {
    let input = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\
        POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\nGET /d HTTP/1.0\r\n\r\nGET";
    assert_eq!(
        steps(input),
        ["GET /a ", "POST /b abc", "POST /c de", "GET /d "]
    );
}

#[test]
fn continue_is_for_those_who_wait() {
    let head = "POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n";
    let waiting = format!("{head}Content-Length: 3\r\n\r\n");
    assert_eq!(steps(waiting.as_bytes()), ["continue"]);
    assert_eq!(
        steps_in_pieces(format!("{waiting}abc").as_bytes(), 1000),
        ["POST /a abc"]
    );
    assert_eq!(
        steps(format!("{head}\r\n").as_bytes()),
        ["POST /a "],
        "without a body"
    );
    assert_eq!(
        steps(format!("{head}Content-Length: 65537\r\n\r\n").as_bytes()),
        ["413 ContentTooLarge"]
    );
}

#[test]
fn one_empty_line_is_passed_over() {
    assert_eq!(steps(b"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"), ["GET / "]);
    assert_eq!(
        steps(b"\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"),
        ["400 BadRequest"]
    );
    for (input, begun) in [
        (&b""[..], false),
        (b"\r", false),
        (b"\r\n", false),
        (b"\r\n\r", true),
        (b"G", true),
    ] {
        let mut reader = RequestReader::default();
        for end in 0..=input.len() {
            reader.advance(
                &input[..end],
                false,
                &mut Intake::default(),
                &mut LaneRequest::default(),
            );
        }
        assert_eq!(reader.has_begun(), begun, "{input:?}");
    }
    assert_eq!(
        steps(b"\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"),
        ["400 BadRequest"]
    );
}

#[test]
fn request_has_begun_with_more_than_an_empty_line() {
    let reader_of = |input: &[u8]| {
        let mut intake = Intake::default();
        let (mut reader, mut out, mut done) = (RequestReader::default(), LaneRequest::default(), 0);
        loop {
            let (consumed, step) = reader.advance(&input[done..], false, &mut intake, &mut out);
            done += consumed;
            match step {
                Step::More => return reader,
                Step::Request(_) => reader.head = None,
                _ => {}
            }
        }
    };
    let head = "POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\n";
    for input in ["", "\r\n", &format!("{head}abc")] {
        assert!(!reader_of(input.as_bytes()).has_begun(), "{input:?}");
    }
    for input in ["G", "\r\nG", "GET / HTTP/1.1\r\n", head] {
        let reader = reader_of(input.as_bytes());
        assert!(reader.has_begun(), "{input:?}");
        assert_eq!(reader.is_in_body(), input == head);
    }
}

#[test]
fn bad_request_lines_are_rejected_before_the_head_is_complete() {
    assert_eq!(steps(b"nonsense\r\n"), ["400 BadRequest"]);
    assert_eq!(steps(b"GET / HTTP/3.0\r\n"), ["505 HttpVersion"]);
}

#[test]
fn heads_are_bounded() {
    let head = |length: usize| {
        let start = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
        format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4))
    };
    assert_eq!(steps(head(MAX_HEAD_BYTES).as_bytes()), ["GET / "]);
    assert_eq!(
        steps(head(MAX_HEAD_BYTES + 1).as_bytes()),
        ["431 HeadersTooLarge"]
    );
    let endless = "x".repeat(MAX_HEAD_BYTES);
    assert_eq!(
        steps(format!("GET /{endless}").as_bytes()),
        ["414 UriTooLong"]
    );
    assert_eq!(steps(endless.as_bytes()), ["431 HeadersTooLarge"]);
    let most = format!(
        "GET / HTTP/1.1\r\nHost: h\r\n{}\r\n",
        "X: y\r\n".repeat(MAX_HEADER_FIELDS - 1)
    );
    assert_eq!(steps(most.as_bytes()), ["GET / "]);
    let many = format!(
        "GET / HTTP/1.1\r\nHost: h\r\n{}",
        "X: y\r\n".repeat(MAX_HEADER_FIELDS)
    );
    assert_eq!(steps(many.as_bytes()), ["431 HeadersTooLarge"]);
}

#[test]
fn mutilated_requests_are_read_the_same_in_any_pieces() {
    let sound: &[u8] = b"POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\
        GET http://h/d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n\
        PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nde\r\n0\r\nT: u\r\n\r\n";
    let telling = b"\r\n\0 \t:;,/*0aF\x7f\xff";
    let mut numbers = Random::new(1);
    let mut random = |below: usize| numbers.index(below);
    for _ in 0..20_000 {
        let mut input = sound.to_vec();
        for _ in 0..=random(3) {
            let at = random(input.len());
            match random(3) {
                0 => drop(input.remove(at)),
                1 => input.insert(at, telling[random(telling.len())]),
                _ => input[at] = telling[random(telling.len())],
            }
        }
        let (whole, size) = (steps(&input), 1 + random(40));
        assert_eq!(
            whole,
            steps_in_pieces(&input, size),
            "{size}: {}",
            String::from_utf8_lossy(&input)
        );
    }
}
