//! The head of a response, with the header fields that every response has.

use crate::lane::LaneResponse;
use crate::wire::cors::Cors;
use crate::wire::head::Head;
use petstore_base::clock::{http_date, unix_time};
use petstore_base::http::response::{write_field, write_status_line};

/// Space for the fields that the gate adds to a response.
const HEAD_CAPACITY: usize = 512;

impl Head {
    /// Writes the response for the client. The response's own Cache-Control replaces the general one.
    pub fn print(
        &self,
        response: &LaneResponse,
        close: bool,
        general: &GeneralFields,
        out: &mut Vec<u8>,
    ) {
        out.reserve(HEAD_CAPACITY + response.fields.len() + response.body.len());
        write_status_line(out, response.status);
        out.extend_from_slice(&general.block);
        write_field(out, "X-Request-Id", self.id.as_bytes());
        if close {
            write_field(out, "Connection", b"close");
        } else if self.is_http_1_0 {
            write_field(out, "Connection", b"keep-alive");
        }
        if let Some(allowed) = &self.allowed {
            allowed.write_response(general.exposed, out);
        }
        if !response.has_cache_control {
            write_field(out, "Cache-Control", b"no-store");
        }
        let mut fields = response.fields;
        if general.varies {
            // RFC 9110, section 12.5.5. A Vary of the service is its first field, and joins this line.
            out.extend_from_slice(b"Vary: Origin");
            let rest = fields.strip_prefix(b"Vary: ");
            out.extend_from_slice(if rest.is_some() { b", " } else { b"\r\n" });
            fields = rest.unwrap_or(fields);
        }
        out.extend_from_slice(fields);
        // HEAD gets the Content-Length of GET (RFC 9110, section 9.3.2).
        if !self.is_head {
            out.extend_from_slice(response.body);
        }
    }
}

/// The fields that all responses have, printed once a second because of the date.
pub struct GeneralFields {
    /// Each with its line end.
    block: Vec<u8>,
    second: i64,
    /// The value of Server.
    server: &'static str,
    /// Responses depend on the origin, so each has `Vary: Origin`.
    varies: bool,
    /// The response header fields that scripts of other origins may read.
    exposed: &'static str,
}

impl GeneralFields {
    /// The fields of a server with this name, for scripts of these origins.
    pub fn new(server: &'static str, cors: &Cors) -> Self {
        let mut fields = Self {
            block: Vec::new(),
            second: 0,
            server,
            varies: cors.vary(),
            exposed: cors.exposed,
        };
        fields.refresh(unix_time());
        fields
    }

    /// Updates the date to this Unix time.
    pub fn refresh(&mut self, second: i64) {
        if second == self.second && !self.block.is_empty() {
            return;
        }
        self.second = second;
        self.block.clear();
        write_field(&mut self.block, "Date", http_date(second).as_bytes());
        write_field(&mut self.block, "Server", self.server.as_bytes());
        write_field(&mut self.block, "X-Content-Type-Options", b"nosniff");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::request_id::RequestId;
    use petstore_base::http::Response;

    fn head() -> Head {
        Head::unknown(RequestId::from_client(b"id").unwrap())
    }

    fn printed(head: &Head, response: &Response, close: bool) -> String {
        let mut general = GeneralFields::new("petstore", &Cors::default());
        general.refresh(784_111_777);
        let mut out = Vec::new();
        head.print(
            &LaneResponse::of(response, &mut Vec::new()),
            close,
            &general,
            &mut out,
        );
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn client_gets_the_general_fields_too() {
        let head = head();
        let general = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: petstore\r\n\
            X-Content-Type-Options: nosniff\r\nX-Request-Id: id\r\n";
        let response = Response::new(200, b"abc").header("Link", "x");
        let fields = "Cache-Control: no-store\r\nLink: x\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(
            printed(&head, &response, false),
            format!("{general}{fields}abc")
        );
        let mut without_body = head.clone();
        without_body.is_head = true;
        assert_eq!(
            printed(&without_body, &response, true),
            format!("{general}Connection: close\r\n{fields}")
        );
        let mut old = head;
        old.is_http_1_0 = true;
        assert!(printed(&old, &response, false).contains("\r\nConnection: keep-alive\r\n"));
    }

    #[test]
    fn vary_is_one_line() {
        let cors = Cors {
            origins: vec!["https://a.example".to_owned()],
            ..Cors::default()
        };
        let mut general = GeneralFields::new("petstore", &cors);
        general.refresh(0);
        for (response, vary) in [
            (Response::new(200, b""), "Vary: Origin\r\nContent-Length"),
            (
                Response::new(200, b"")
                    .header("X", "y")
                    .header("Vary", "Accept"),
                "Vary: Origin, Accept\r\nX: y\r\n",
            ),
        ] {
            let mut out = Vec::new();
            head().print(
                &LaneResponse::of(&response, &mut Vec::new()),
                false,
                &general,
                &mut out,
            );
            let text = String::from_utf8(out).unwrap();
            assert!(
                text.contains(vary) && text.matches("Vary").count() == 1,
                "{text}"
            );
        }
    }

    #[test]
    fn response_may_say_how_long_it_may_be_kept() {
        let text = printed(
            &head(),
            &Response::new(200, b"").header("Cache-Control", "max-age=60"),
            false,
        );
        assert_eq!(text.matches("Cache-Control: ").count(), 1, "{text}");
        assert!(text.contains("\r\nCache-Control: max-age=60\r\n"), "{text}");
    }

    #[test]
    fn clock_before_1970_is_at_its_first_second() {
        let mut fields = GeneralFields::new("petstore", &Cors::default());
        fields.refresh(-5);
        let block = String::from_utf8(fields.block).unwrap();
        assert!(
            block.starts_with("Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer: "),
            "{block}"
        );
    }
}
