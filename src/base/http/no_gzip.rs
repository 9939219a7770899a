//! Replaces compression in a build without the feature `site`: the OpenAPI description alone is smaller than the
//! code to compress it.

/// `None`: nothing is compressed.
pub fn gzip(_: &[u8]) -> Option<Vec<u8>> {
    None
}

/// Returns nothing.
pub fn gunzip(_: &[u8]) -> Vec<u8> {
    Vec::new()
}
