//! Reads secrets, which come from the environment only: from a variable, or from a file that a variable names. Also
//! finds flaws in the values of all settings.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, ErrorKind, fail};

/// The size limit of a file with a secret, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// Finds a flaw that a shell, an editor or a file of variables has left in the value of a setting: white space or
/// quotes around it, or a control character in it. Returns the flaw as the end of a sentence, or `None`.
pub fn flaw(value: &str) -> Option<&'static str> {
    let is_odd = |c: char| c.is_control() || c == '\u{feff}';
    let is_quoted = |quote| value.starts_with(quote) && value.ends_with(quote);
    let is_odd =
        value.contains(is_odd) || value.trim() != value || is_quoted('"') || is_quoted('\'');
    is_odd.then_some("has white space or quotes around it, or a control character in it")
}

/// Returns the secret in an environment variable such as `PETSTORE_API_KEY`, or in the file that
/// `PETSTORE_API_KEY_FILE` names, without its last line break. Returns `None` if neither variable is set; an empty one
/// counts as not set.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if both variables are set, if the file cannot be read, is empty or has 16 KiB or more,
/// or if the secret is not UTF-8 text, has a control character, or has white space or quotes around it.
pub fn from_environment(name: &str) -> Result<Option<String>, Error> {
    let file = format!("{name}_FILE");
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match (given(name), given(&file)) {
        (None, None) => Ok(None),
        // The message does not repeat the value: even a wrong one is a secret.
        (Some(value), None) => match value.to_str().map_or(Some("is not UTF-8 text"), flaw) {
            Some(flaw) => fail(ErrorKind::InvalidInput, format!("{name} {flaw}")),
            None => Ok(value.into_string().ok()),
        },
        (None, Some(path)) => read(path.as_ref()).map(Some).map_err(|error| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("{file}: cannot use {path:?}: {error}"),
            )
        }),
        (Some(_), Some(_)) => fail(
            ErrorKind::InvalidInput,
            format!("{name} and {file} are both set; set only one of them"),
        ),
    }
}

/// The secret in a file.
fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.permissions().mode() & 0o004 != 0 {
        log::warn!(
            "every user of this machine can read the secret in {}; change its mode",
            path.display()
        );
    }
    let mut text = String::new();
    file.take(MAX_BYTES as u64).read_to_string(&mut text)?;
    let line = text
        .strip_suffix('\n')
        .map_or(&text[..], |line| line.strip_suffix('\r').unwrap_or(line));
    match flaw(line) {
        _ if line.is_empty() || text.len() == MAX_BYTES => {
            Err(io::Error::other("it is empty or too long"))
        }
        Some(flaw) => Err(io::Error::other(format!("what is in it {flaw}"))),
        None => Ok(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn one_last_line_break_is_dropped() {
        let folder = Folder::new();
        let path = folder.0.join("secret");
        for (content, secret) in [
            ("a b", "a b"),
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("\"a\" 'b'\n", "\"a\" 'b'"),
            ("it's", "it's"),
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(read(&path).unwrap(), secret);
        }
        for content in [
            &b""[..],
            b"\n",
            b"a\n\n",
            b"a\r",
            b" a",
            b"a\xc2\xa0\n",
            b"'a'\n",
            b"\"a\"",
            b"\xef\xbb\xbfa",
            b"\xff",
            &[b'x'; MAX_BYTES + 1],
        ] {
            std::fs::write(&path, content).unwrap();
            read(&path).unwrap_err();
        }
    }
}
