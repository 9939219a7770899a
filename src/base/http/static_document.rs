//! Documents that are made once and served often, with a strong entity tag, and compressed for clients that
//! accept gzip. Only the compressed form is kept in memory: clients that do not accept it are rare.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::http::gzip::{gunzip, gzip};
use crate::http::response::ResponseBody;
use crate::http::{Fields, Response};

/// The values of the request header fields that determine the form of an asset.
#[derive(Default, Debug)]
pub struct AssetFields<'r> {
    /// The values of Accept-Encoding.
    pub accept_encoding: Vec<&'r str>,
    /// The values of If-None-Match.
    pub if_none_match: Vec<&'r str>,
}

/// The documents by their paths.
pub type Assets = BTreeMap<String, Asset>;

/// Documents that are made at the first request for one of them.
pub type LazyAssets = LazyLock<Assets, Box<dyn FnOnce() -> Assets + Send>>;

/// A document. Clones share its bytes.
#[derive(Clone, Debug)]
pub struct Asset {
    content_type: &'static str,
    /// Its entity tag without the quotes.
    tag: String,
    bytes: Arc<[u8]>,
    /// True if the bytes are compressed; otherwise the document is always sent as it is.
    is_gzip: bool,
    fields: Fields,
}

impl Asset {
    /// A document that may change at the next start: clients revalidate it each time, which costs a 304.
    pub fn new(content_type: &'static str, bytes: Vec<u8>) -> Self {
        let (tag, gzip) = (tag_of(&bytes), gzip(&bytes));
        let (is_gzip, bytes) = (gzip.is_some(), gzip.unwrap_or(bytes).into());
        let asset = Self {
            content_type,
            tag,
            bytes,
            is_gzip,
            fields: Fields::default(),
        };
        asset.header("Cache-Control", "no-cache")
    }

    /// Marks the document as one whose path never has other content: clients keep it and do not ask again (RFC 8246).
    pub fn immutable(mut self) -> Self {
        self.fields.remove("Cache-Control");
        self.header("Cache-Control", "public, max-age=31536000, immutable")
    }

    /// Adds a header field to the responses with the document.
    pub fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.fields.add(name, value.as_ref());
        self
    }

    /// The response to a client that sent these header fields; 304 if it has the document already.
    pub fn respond(&self, fields: &AssetFields) -> Response {
        let form = Form::choose(&self.tag, self.is_gzip, fields);
        let unpack = self.is_gzip && !form.gzip;
        let content = || {
            if unpack {
                gunzip(&self.bytes)
            } else {
                self.bytes.to_vec()
            }
            .into()
        };
        let content = (!form.is_known).then(content);
        form.respond(self.content_type, content).with(&self.fields)
    }
}

/// The form of a document for one client.
#[derive(Debug)]
pub struct Form {
    /// True if the document is sent compressed.
    pub gzip: bool,
    /// True if the client has the document, so that no body is sent.
    pub is_known: bool,
    tag: String,
}

impl Form {
    /// The form for a client that sent these header fields.
    pub fn choose(tag: &str, has_gzip: bool, fields: &AssetFields) -> Self {
        let gzip = has_gzip
            && fields
                .accept_encoding
                .iter()
                .any(|value| accepts_gzip(value));
        // Each form has its own strong entity tag (RFC 9110, section 8.8.3).
        let tag = if gzip {
            format!("\"{tag}-gzip\"")
        } else {
            format!("\"{tag}\"")
        };
        let is_known = fields
            .if_none_match
            .iter()
            .any(|tags| names_tag(tags, tag.as_bytes()));
        Self {
            gzip,
            is_known,
            tag,
        }
    }

    /// The response. `content` must be in this form; it is not needed if the client has the document.
    pub fn respond(
        self,
        content_type: impl AsRef<[u8]>,
        content: Option<ResponseBody>,
    ) -> Response {
        let response = match content {
            None => Response::new(304, b""),
            Some(content) => Response::new(200, content).header("Content-Type", content_type),
        };
        let response = if self.gzip && !self.is_known {
            response.header("Content-Encoding", "gzip")
        } else {
            response
        };
        response
            .header("ETag", self.tag)
            .header("Vary", "Accept-Encoding")
    }
}

/// An entity tag of this content, without its quotes.
pub fn tag_of(bytes: &[u8]) -> String {
    hmac_sha256::Hash::hash(bytes)[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns whether an Accept-Encoding accepts gzip (RFC 9110, section 12.5.3).
fn accepts_gzip(value: &str) -> bool {
    value.split(',').any(|word| {
        let (coding, weight) = word.split_once(';').unwrap_or((word, "q=1"));
        let weight = weight.trim().to_ascii_lowercase();
        let is_refused = weight
            .strip_prefix("q=")
            .is_some_and(|q| q.trim().parse() == Ok(0.0));
        coding.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Returns whether an If-None-Match names this tag, quotes included, by weak comparison (RFC 9110, section 13.1.2).
pub fn names_tag(value: &str, tag: &[u8]) -> bool {
    let strong = |word: &str| word.trim().trim_start_matches("W/").as_bytes() == tag;
    value.trim() == "*" || value.split(',').any(strong)
}

/// Returns whether an If-Match names this tag, quotes included, by strong comparison (RFC 9110, section 13.1.1).
pub fn matches_tag(value: &str, tag: &[u8]) -> bool {
    value.trim() == "*" || value.split(',').any(|word| word.trim().as_bytes() == tag)
}

#[cfg(test)]
pub mod tests;
