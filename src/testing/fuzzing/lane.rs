//! The lane's codec, both ways: what one end writes the other reads, and nothing else is taken for it.

use super::Parts;
use crate::base::http::Response;
use crate::net::lane::{Content, LaneRequest, LaneResponse, TICKET_LENGTH, Ticket, write_response};

/// Reads bytes as either end of a lane does, and writes and reads what can be made of them.
pub fn lane(bytes: &[u8]) {
    response_is_read_whole_or_not_at_all(bytes);
    content_is_read_as_it_would_be_written(bytes);
    request_comes_back(&mut Parts(bytes));
    response_comes_back(&mut Parts(bytes));
}

fn response_is_read_whole_or_not_at_all(bytes: &[u8]) {
    let read = LaneResponse::read(bytes);
    for part in [bytes.len() / 2, bytes.len().saturating_sub(1)].map(|length| &bytes[..length]) {
        match (LaneResponse::read(part), &read) {
            (Ok(None), _) | (Err(_), Err(_)) => {}
            (Ok(Some(part)), Ok(Some(read))) => assert_eq!(part, *read),
            (part, _) => panic!("{part:?} becomes {read:?}"),
        }
    }
    if let Ok(Some(read)) = &read {
        assert_eq!(read_of(&bytes[..read.length]), *read);
        assert_eq!(LaneResponse::read(&bytes[..read.length - 1]), Ok(None));
    }
}

fn read_of(bytes: &[u8]) -> LaneResponse<'_> {
    LaneResponse::read(bytes).unwrap().unwrap()
}

fn content_is_read_as_it_would_be_written(bytes: &[u8]) {
    let Some(content) = Content::read(bytes) else { return };
    if content.fields.iter().all(|(_, value)| value.is_ascii()) {
        let written = written(b"GET", b"/", content.id.as_bytes(), &content.fields, content.body);
        assert_eq!(&after_head(&written)[TICKET_LENGTH..], bytes);
    }
}

const TICKET: Ticket = 7 << 32 | 12_345;

fn written(method: &[u8], target: &[u8], id: &[u8], fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let (mut request, mut out) = (LaneRequest::default(), Vec::new());
    request.begin(method, [target, b""], 0);
    fields.iter().for_each(|(name, value)| request.field(name, value.as_bytes()));
    request.end_head();
    request.body().extend_from_slice(body);
    request.write(TICKET, id, &mut out);
    out
}

/// The bytes after the head of a message.
fn after_head(message: &[u8]) -> &[u8] {
    let end = message.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    &message[end + 4..]
}

/// Text that the gate would pass on: without line ends and control characters.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(|character: char| character.is_ascii_control(), "")
}

fn request_comes_back(parts: &mut Parts) {
    let names = ["Host", "Authorization", "X"];
    let values: Vec<String> = (0..parts.byte() % 5).map(|_| text(parts.piece())).collect();
    let fields: Vec<_> = names.into_iter().cycle().zip(values.iter().map(String::as_str)).collect();
    let (target, id) = (text(parts.piece()).replace(' ', ""), "an-id");
    let written = written(b"POST", target.as_bytes(), id.as_bytes(), &fields, parts.0);
    let content = after_head(&written);
    let head = format!("POST {target} HTTP/1.1\r\nContent-Length: {}\r\n\r\n", content.len());
    assert!(written.starts_with(head.as_bytes()));
    let (ticket, content) = content.split_first_chunk().unwrap();
    let read = Content::read(content).unwrap();
    assert_eq!((Ticket::from_be_bytes(*ticket), read.id, read.body), (TICKET, id, parts.0));
    assert_eq!(read.fields.len(), fields.len());
    for ((name, value), (sent_name, sent)) in read.fields.iter().zip(&fields) {
        let sent: Vec<u8> = sent.bytes().map(|byte| if byte.is_ascii() { byte } else { 0x7f }).collect();
        assert_eq!((*name, value.as_bytes()), (*sent_name, &sent[..]));
    }
}

fn response_comes_back(parts: &mut Parts) {
    let status = 100 + u16::from(parts.byte()) * 2 + u16::from(parts.byte() % 2);
    let fields = parts.byte() % 20;
    let key = String::from_utf8_lossy(parts.piece()).into_owned();
    let values: Vec<String> =
        (0..fields).map(|_| String::from_utf8_lossy(parts.piece()).into_owned()).collect();
    let response =
        values.iter().fold(Response::new(status, parts.0.to_vec()).for_key(&key), |response, value| {
            response.header("ETag", value.clone())
        });
    let mut out = Vec::new();
    if write_response(&response, TICKET, &mut out).is_err() {
        return assert!(out.is_empty());
    }
    let length = out.len();
    assert_eq!(LaneResponse::read(&out[..length - 1]), Ok(None));
    out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    let read = read_of(&out);
    assert_eq!(
        (read.ticket, read.length, read.answer.status, read.answer.body),
        (TICKET, length, status, parts.0)
    );
    // Whatever a value holds, it makes no further line.
    let lines: Vec<&[u8]> = read.answer.fields.split(|byte| *byte == b'\n').collect();
    let framing = if [204, 304].contains(&status) { 2 } else { 3 };
    assert_eq!(lines.len(), values.len() + framing);
    for (line, value) in lines.iter().zip(&values) {
        assert_eq!(line.strip_prefix(b"ETag: "), Some(format!("{value}\r").as_bytes()));
    }
}
