//! Counts the replies in a stream of bytes, without keeping their bodies.

/// A complete reply.
pub struct Whole {
    pub status: u16,
    pub has_retry_after: bool,
}

/// One connection's replies.
#[derive(Default)]
pub struct Replies {
    /// An incomplete head.
    head: Vec<u8>,
    /// The reply whose body is arriving, and how much of it is missing.
    body: Option<(Whole, usize)>,
}

impl Replies {
    /// Takes received bytes, and passes on the replies that are complete now.
    pub fn take(&mut self, bytes: &[u8], mut whole: impl FnMut(Whole)) {
        if self.head.is_empty() {
            let used = self.read(bytes, &mut whole);
            self.head.extend_from_slice(&bytes[used..]);
        } else {
            let mut head = std::mem::take(&mut self.head);
            head.extend_from_slice(bytes);
            let used = self.read(&head, &mut whole);
            self.head.extend_from_slice(&head[used..]);
        }
    }

    /// Reads up to an incomplete head; returns how many bytes were consumed.
    fn read(&mut self, bytes: &[u8], whole: &mut impl FnMut(Whole)) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let (reply, left) = match self.body.take() {
                Some(body) => body,
                None => match parse(&bytes[at..]) {
                    Some((reply, head, body)) => {
                        at += head;
                        (reply, body)
                    }
                    None => return at,
                },
            };
            let part = left.min(bytes.len() - at);
            at += part;
            if part == left {
                whole(reply);
            } else {
                self.body = Some((reply, left - part));
            }
        }
        at
    }
}

/// The head at the start of `bytes`, its length, and the length of the body. `None` if it is incomplete.
fn parse(bytes: &[u8]) -> Option<(Whole, usize, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let head = match response.parse(bytes).expect("a reply") {
        httparse::Status::Complete(head) => head,
        httparse::Status::Partial => return None,
    };
    let field = |name: &str| {
        response
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name))
    };
    let length =
        field("Content-Length").map_or("0", |header| std::str::from_utf8(header.value).unwrap());
    let has_retry_after = field("Retry-After").is_some();
    Some((
        Whole {
            status: response.code?,
            has_retry_after,
        },
        head,
        length.parse().unwrap(),
    ))
}
