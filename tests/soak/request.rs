//! Requests as bytes.

/// A request as it goes out.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: &'static str,
    pub target: String,
    /// Each with its line end.
    pub fields: String,
    pub body: Vec<u8>,
}

impl Request {
    pub fn get(target: &str, key: &str, id: &str) -> Self {
        let fields = format!("Authorization: Bearer {key}\r\nX-Request-Id: {id}\r\n");
        Self {
            method: "GET",
            target: target.to_owned(),
            fields,
            body: Vec::new(),
        }
    }

    pub fn post(key: &str, id: &str, once: Option<&str>, body: String) -> Self {
        let mut request = Self::get("/v1/pets", key, id);
        request.method = "POST";
        request.fields += &once
            .map(|once| format!("Idempotency-Key: {once}\r\n"))
            .unwrap_or_default();
        request.body = body.into_bytes();
        request
    }

    pub fn bytes(&self) -> Vec<u8> {
        let length = match self.method {
            "POST" | "PATCH" => format!("Content-Length: {}\r\n", self.body.len()),
            _ => String::new(),
        };
        let Self {
            method,
            target,
            fields,
            body,
        } = self;
        [
            format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}{length}\r\n").as_bytes(),
            body,
        ]
        .concat()
    }

    /// With its body in chunks of up to 100 bytes.
    pub fn chunked(&self) -> Vec<u8> {
        let Self {
            method,
            target,
            fields,
            body,
        } = self;
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}Transfer-Encoding: chunked\r\n\r\n"
        );
        let mut bytes = head.into_bytes();
        for chunk in body.chunks(100) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    }
}
