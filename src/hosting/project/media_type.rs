//! Media types of static files, by their extensions, as IANA registers them.

/// The type of all other files (RFC 2046, section 4.5.1). Video and audio get it too, because Safari plays them only
/// from servers with range requests.
const UNKNOWN: &str = "application/octet-stream";

/// A media type in each line, a colon, and its extensions.
const TYPES: &str = include_str!("media_types.txt");

/// Returns the media type of a file, with the charset if it is text. The case of the extension does not matter.
pub fn of(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some((_, extension)) = name.rsplit_once('.') else {
        return UNKNOWN;
    };
    let is_own = |known: &str| known.eq_ignore_ascii_case(extension);
    TYPES
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(_, known)| known.split(' ').any(is_own))
        .map_or(UNKNOWN, |(media_type, _)| media_type)
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
