//! The lane's codec in both directions: each end reads what the other writes, and rejects all other bytes.

use crate::lane::{Content, LaneRequest, LaneResponse, Ticket, ticket_of, write_response};
use crate::testing::OnLane;
use petstore_base::http::Response;
use petstore_base::testing::fuzzing::Parts;

/// Reads the bytes as a response, and makes a request and a response from them, which are written and read again.
pub fn lane(bytes: &[u8]) {
    response_is_read_whole_or_not_at_all(bytes);
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

const TICKET: Ticket = 7 << 32 | 12_345;

/// Makes text that the gate would forward: without line breaks and control characters.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(|character: char| character.is_ascii_control(), "")
}

fn request_comes_back(parts: &mut Parts) {
    let names = ["Host", "Authorization", "X"];
    let values: Vec<String> = (0..parts.byte() % 5).map(|_| text(parts.piece())).collect();
    let fields: Vec<_> = names.into_iter().cycle().zip(&values).collect();
    let target = text(parts.piece()).replace(|character: char| !character.is_ascii_graphic(), "");
    let (mut request, mut written) = (LaneRequest::default(), Vec::new());
    request.begin(b"POST", [target.as_bytes(), b""], 0);
    fields
        .iter()
        .for_each(|(name, value)| request.field(name, value.as_bytes()));
    request.end_head();
    request.body().extend_from_slice(parts.0);
    request.write(TICKET, b"an-id", &mut written);
    let sent = |value: &str| {
        value
            .bytes()
            .map(|byte| if byte.is_ascii() { byte.into() } else { '\x7f' })
            .collect()
    };
    let expected = OnLane {
        method: "POST".to_owned(),
        target,
        ticket: TICKET,
        id: "an-id".to_owned(),
        fields: fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), sent(value)))
            .collect(),
        body: parts.0.to_vec(),
    };
    assert_eq!(OnLane::parse(&written), expected);
    let end = written
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .unwrap()
        + 4;
    let content = &written[end..];
    assert_eq!(ticket_of(content), TICKET);
    let read = Content::read(content).unwrap();
    assert_eq!((read.id, read.body), ("an-id", parts.0));
    let fields = read
        .fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    assert_eq!(fields.collect::<Vec<_>>(), expected.fields);
}

fn response_comes_back(parts: &mut Parts) {
    let status = 100 + u16::from(parts.byte()) * 2 + u16::from(parts.byte() % 2);
    let fields = parts.byte() % 20;
    let key = String::from_utf8_lossy(parts.piece()).into_owned();
    let values: Vec<String> = (0..fields)
        .map(|_| String::from_utf8_lossy(parts.piece()).into_owned())
        .collect();
    let response = values.iter().fold(
        Response::new(status, parts.0.to_vec()).for_key(&key),
        |response, value| response.header("ETag", value.clone()),
    );
    let mut out = Vec::new();
    if write_response(&response, TICKET, &mut out).is_err() {
        return assert!(out.is_empty());
    }
    let length = out.len();
    assert_eq!(LaneResponse::read(&out[..length - 1]), Ok(None));
    out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    let read = read_of(&out);
    assert_eq!(
        (read.ticket, read.length, read.status, read.body),
        (TICKET, length, status, parts.0)
    );
    // No value can add a line.
    let lines: Vec<&[u8]> = read.fields.split(|byte| *byte == b'\n').collect();
    let framing = if [204, 304].contains(&status) { 2 } else { 3 };
    assert_eq!(lines.len(), values.len() + framing);
    for (line, value) in lines.iter().zip(&values) {
        assert_eq!(
            line.strip_prefix(b"ETag: "),
            Some(format!("{value}\r").as_bytes())
        );
    }
}
