//! Media types of static files, by their extensions, as IANA registers them.

/// The type of all other files (RFC 2046, section 4.5.1). Video and audio get it too, because Safari plays them only
/// from servers with range requests.
const UNKNOWN: &str = "application/octet-stream";

#[rustfmt::skip]
const TYPES: &[(&[&str], &str)] = &[
    (&["html", "htm"], "text/html; charset=utf-8"),
    (&["css"], "text/css; charset=utf-8"),
    (&["js", "mjs"], "text/javascript; charset=utf-8"),
    (&["txt", "log", "map"], "text/plain; charset=utf-8"),
    (&["md"], "text/markdown; charset=utf-8"), (&["csv"], "text/csv; charset=utf-8"),
    (&["xml"], "text/xml; charset=utf-8"), (&["vtt"], "text/vtt; charset=utf-8"),
    (&["ics"], "text/calendar; charset=utf-8"),
    (&["json"], "application/json"), (&["webmanifest"], "application/manifest+json"),
    (&["atom"], "application/atom+xml"), (&["rss"], "application/rss+xml"),
    (&["xhtml"], "application/xhtml+xml"), (&["yaml", "yml"], "application/yaml"),
    (&["pdf"], "application/pdf"), (&["wasm"], "application/wasm"),
    (&["zip"], "application/zip"), (&["gz"], "application/gzip"),
    (&["svg"], "image/svg+xml"), (&["png"], "image/png"), (&["jpg", "jpeg"], "image/jpeg"),
    (&["gif"], "image/gif"), (&["webp"], "image/webp"), (&["avif"], "image/avif"), (&["ico"], "image/x-icon"),
    (&["woff"], "font/woff"), (&["woff2"], "font/woff2"), (&["ttf"], "font/ttf"), (&["otf"], "font/otf"),
];

/// Returns the media type of a file, with the charset if it is text. The case of the extension does not matter.
pub fn of(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some((_, extension)) = name.rsplit_once('.') else {
        return UNKNOWN;
    };
    let has = |known: &[&str]| {
        known
            .iter()
            .any(|known| known.eq_ignore_ascii_case(extension))
    };
    TYPES
        .iter()
        .find(|(known, _)| has(known))
        .map_or(UNKNOWN, |(_, media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn extension_decides_in_any_case() {
        assert_eq!(of("/a.b/INDEX.Html"), "text/html; charset=utf-8");
        assert_eq!(of("/a.min.js"), "text/javascript; charset=utf-8");
        for path in ["/film.mp4", "/a.html/b", "/a.html.bin", "/a.", "/html"] {
            assert_eq!(of(path), super::UNKNOWN, "{path}");
        }
    }
}
