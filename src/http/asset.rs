//! A document that is made once and served often: with a strong validator, and compressed for who takes it.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::Digest;

use crate::http::Response;

/// The header fields that decide what of an asset is sent.
pub const ASSET_HEADERS: &[&str] = &["Accept-Encoding", "If-None-Match"];

/// A document and its compressed form.
#[derive(Clone, Debug)]
pub struct Asset {
    content_type: &'static str,
    plain: Form,
    gzip: Form,
}

/// One form of a document.
#[derive(Clone, Debug)]
struct Form {
    bytes: Vec<u8>,
    /// A strong entity tag (RFC 9110, section 8.8.3); each form has its own.
    tag: String,
}

impl Asset {
    pub fn new(content_type: &'static str, bytes: Vec<u8>) -> Self {
        let digest = sha2::Sha256::digest(&bytes);
        let tag: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let gzip = Form { bytes: gzip(&bytes), tag: format!("\"{tag}-gzip\"") };
        Self { content_type, plain: Form { bytes, tag: format!("\"{tag}\"") }, gzip }
    }

    /// The response to a client that sent these header fields; 304 where it has the document already.
    pub fn respond<'a>(
        &self,
        mut accept_encoding: impl Iterator<Item = &'a str>,
        mut if_none_match: impl Iterator<Item = &'a str>,
    ) -> Response {
        let is_compressed = accept_encoding.any(takes_gzip);
        let form = if is_compressed { &self.gzip } else { &self.plain };
        let response = if if_none_match.any(|tags| names(tags, &form.tag)) {
            Response::new(304, b"")
        } else {
            let response = Response::new(200, form.bytes.clone()).header("Content-Type", self.content_type);
            if is_compressed { response.header("Content-Encoding", "gzip") } else { response }
        };
        response
            .header("ETag", form.tag.clone())
            // Another one may be there after the next start: it is asked for each time, and costs a 304.
            .header("Cache-Control", "no-cache")
            .header("Vary", "Accept-Encoding")
    }
}

/// Nothing where it could not be compressed, which writing to memory does not lead to.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Whether an Accept-Encoding takes gzip (RFC 9110, section 12.5.3).
fn takes_gzip(value: &str) -> bool {
    value.split(',').any(|word| {
        let (coding, weight) = word.split_once(';').unwrap_or((word, "q=1"));
        let is_refused = weight.trim().strip_prefix("q=").is_some_and(|q| q.trim().parse() == Ok(0.0));
        coding.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Whether an If-None-Match names this tag, by weak comparison (RFC 9110, section 13.1.2).
fn names(value: &str, tag: &str) -> bool {
    value.trim() == "*" || value.split(',').any(|word| word.trim().trim_start_matches("W/") == tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn field<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
        response.headers().iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_ref())
    }

    fn ask(asset: &Asset, encoding: Option<&str>, tag: Option<&str>) -> Response {
        asset.respond(encoding.into_iter(), tag.into_iter())
    }

    #[test]
    fn who_takes_gzip_gets_it() {
        let text = "the same again ".repeat(100);
        let asset = Asset::new("text/plain", text.clone().into_bytes());
        for (value, is_taken) in [
            (None, false),
            (Some(""), false),
            (Some("br, deflate"), false),
            (Some("gzip;q=0"), false),
            (Some("gzip; q=0.000"), false),
            (Some("br, GZIP"), true),
            (Some("gzip;q=0.5"), true),
        ] {
            let response = ask(&asset, value, None);
            assert_eq!(field(&response, "Content-Encoding"), is_taken.then_some("gzip"), "{value:?}");
            assert_eq!(field(&response, "Vary"), Some("Accept-Encoding"));
            let mut read = String::new();
            if is_taken {
                assert!(response.body().len() < text.len());
                flate2::read::GzDecoder::new(response.body()).read_to_string(&mut read).unwrap();
            } else {
                read = String::from_utf8(response.body().to_vec()).unwrap();
            }
            assert_eq!(read, text);
        }
    }

    #[test]
    fn who_has_it_already_gets_304() {
        let asset = Asset::new("text/plain", b"a".to_vec());
        let tag = field(&ask(&asset, None, None), "ETag").unwrap().to_owned();
        for value in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            let response = ask(&asset, None, Some(&value));
            assert_eq!((response.status(), response.body()), (304, &b""[..]), "{value}");
            assert_eq!(field(&response, "ETag"), Some(tag.as_str()));
        }
        for (encoding, value) in [(None, "\"x\""), (Some("gzip"), tag.as_str())] {
            assert_eq!(ask(&asset, encoding, Some(value)).status(), 200, "{value}");
        }
        let other = Asset::new("text/plain", b"b".to_vec());
        assert_eq!(ask(&other, None, Some(&tag)).status(), 200);
    }
}
