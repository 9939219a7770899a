//! The line of a request in the access log.

use std::net::IpAddr;
use std::time::Duration;

use crate::addresses::Peer;
use crate::lane::LaneResponse;
use crate::wire::head::{FIELDS, Head};

impl Head {
    /// Writes the line of the access log, and its parts as key-value pairs.
    ///
    /// It names the peer, or the client that a trusted proxy names.
    pub fn log(
        &self,
        target: &str,
        peer: Peer,
        client: IpAddr,
        response: &LaneResponse,
        duration: Duration,
    ) {
        if log::log_enabled!(target: target, log::Level::Info) {
            let client = if client == peer.ip() {
                peer.to_string()
            } else {
                client.to_string()
            };
            let (method, path) = self.summary().split_once(' ').unwrap_or_default();
            let details = self.details(response);
            let [key, code, created, traceparent, fields] = details.map(Option::unwrap_or_default);
            log::info!(
                target: target,
                client = client.as_str(),
                request = self.id.as_str(),
                method,
                path,
                status = response.status,
                bytes = response.body.len(),
                milliseconds = (duration.as_secs_f64() * 1e6).round() / 1e3,
                key, code, created, traceparent, fields;
                "{}", self.line(&client, response, details, duration)
            );
        }
    }

    /// The parts that only some lines have: the name of the key, the code of the failure, the id of the created resource,
    /// the place in a trace, and the names of header fields.
    fn details<'a>(&'a self, response: &LaneResponse<'a>) -> [Option<&'a str>; 5] {
        let text = |bytes: &'a [u8]| str::from_utf8(bytes).ok();
        let code = response
            .body
            .strip_prefix(b"{\"code\":\"")
            .filter(|_| response.status >= 400);
        let code = code.and_then(|rest| text(rest.split(|b| *b == b'"').next()?));
        let location = if response.status == 201 {
            response.field("Location")
        } else {
            None
        };
        let created = location.and_then(|path| text(path.rsplit(|b| *b == b'/').next()?));
        [
            text(response.key_name).filter(|name| *name != "-"),
            code,
            created,
            self.trace_parent.as_deref(),
            self.summary.split_once(FIELDS).map(|(_, names)| names),
        ]
    }

    /// Method and target.
    fn summary(&self) -> &str {
        self.summary.split(FIELDS).next().unwrap_or_default()
    }

    fn line(
        &self,
        client: &str,
        response: &LaneResponse,
        details: [Option<&str>; 5],
        duration: Duration,
    ) -> String {
        let milliseconds = duration.as_secs_f64() * 1e3;
        let id = self.id.as_str();
        let summary = match self.summary() {
            "" => "-",
            known => known,
        };
        let (status, length) = (response.status, response.body.len());
        let mut line =
            format!("{client} {id} {summary} {status} {length} bytes {milliseconds:.3} ms");
        for (name, value) in [" key=", " code=", " created=", " traceparent=", FIELDS]
            .into_iter()
            .zip(details)
        {
            if let Some(value) = value {
                line += name;
                line += value;
            }
        }
        line
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

    #[test]
    fn log_line_has_the_duration_in_milliseconds() {
        let response = Response::new(200, b"abc");
        let duration = Duration::from_micros(2500);
        let line = |details| {
            head().line(
                "1.2.3.4:5",
                &LaneResponse::of(&response, &mut Vec::new()),
                details,
                duration,
            )
        };
        assert_eq!(
            line([Some("ci"), None, None, None, Some("Accept")]),
            "1.2.3.4:5 id - 200 3 bytes 2.500 ms key=ci fields=Accept"
        );
        assert_eq!(line([None; 5]), "1.2.3.4:5 id - 200 3 bytes 2.500 ms");
    }

    #[test]
    fn log_names_failures_by_code_and_new_resources_by_id() {
        let details = |response: &Response| {
            let (head, mut buffer) = (head(), Vec::new());
            head.details(&LaneResponse::of(response, &mut buffer))
                .map(|detail| detail.map(str::to_owned))
        };
        let owned = |text: &str| Some(text.to_owned());
        let created =
            Response::json_bytes(201, b"{\"code\":\"x\"}").header("Location", "/v1/pets/7");
        assert_eq!(details(&created), [None, None, owned("7"), None, None]);
        let failed = Response::json_bytes(404, br#"{"code":"not_found","status":404}"#);
        assert_eq!(
            details(&failed),
            [None, owned("not_found"), None, None, None]
        );
        let elsewhere = Response::new(308, b"").header("Location", "/7");
        assert_eq!(details(&elsewhere), [const { None }; 5]);
    }
}
