//! Compression (RFC 1952).

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};

/// Compresses at the highest level. `None` if it fails, which cannot happen when writing to memory.
pub fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// Decompresses. Empty if the input is not gzip.
pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut decoder = GzDecoder::new(Vec::new());
    let _ = decoder.write_all(bytes);
    decoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use crate::http::Asset;
    use crate::http::static_document::tests::ask;

    #[test]
    fn client_that_accepts_gzip_gets_gzip() {
        let text = "the same again ".repeat(100);
        let asset = Asset::new("text/plain", text.clone().into_bytes());
        for (value, is_taken) in [
            (None, false),
            (Some(""), false),
            (Some("br, deflate"), false),
            (Some("gzip;q=0"), false),
            (Some("gzip; q=0.000"), false),
            (Some("gzip;Q=0"), false),
            (Some("br, GZIP"), true),
            (Some("gzip;q=0.5"), true),
        ] {
            let response = ask(&asset, value, None);
            assert_eq!(
                response.field("Content-Encoding"),
                is_taken.then_some("gzip"),
                "{value:?}"
            );
            assert_eq!(response.field("Vary"), Some("Accept-Encoding"));
            let mut read = String::new();
            if is_taken {
                assert!(response.body().len() < text.len());
                flate2::read::GzDecoder::new(response.body())
                    .read_to_string(&mut read)
                    .unwrap();
            } else {
                read = String::from_utf8(response.body().to_vec()).unwrap();
            }
            assert_eq!(read, text);
        }
    }
}
