//! Secrets, which only the environment gives: as the value of a variable, or in a file that a variable names.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, ErrorKind, fail};

/// More than any secret has.
const MAX_BYTES: usize = 16 * 1024;

/// The value of an environment variable with a secret, such as `PETSTORE_API_KEY`, or the content of the file that
/// `PETSTORE_API_KEY_FILE` names, without a last line break.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if both variables are set, if the file cannot be read or is empty, or if the secret is
/// not UTF-8 text.
pub fn from_environment(name: &str) -> Result<Option<String>, Error> {
    let file = format!("{name}_FILE");
    match (std::env::var_os(name), std::env::var_os(&file)) {
        (None, None) => Ok(None),
        (Some(value), None) => {
            let text = OsString::into_string(value).ok();
            // The message does not repeat the value: even a wrong one is a secret.
            let wrong = || Error::new(ErrorKind::InvalidInput, format!("{name} is not UTF-8 text"));
            text.ok_or_else(wrong).map(Some)
        }
        (None, Some(path)) => read(path.as_ref()).map(Some).map_err(|error| {
            Error::new(ErrorKind::InvalidInput, format!("{file}: cannot use '{}': {error}", path.display()))
        }),
        (Some(_), Some(_)) => {
            fail(ErrorKind::InvalidInput, format!("{name} and {file} are both set; set only one of them"))
        }
    }
}

/// The secret in a file.
fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.permissions().mode() & 0o004 != 0 {
        log::warn!("every user of this machine can read the secret in {}; change its mode", path.display());
    }
    let mut text = String::new();
    file.take(MAX_BYTES as u64).read_to_string(&mut text)?;
    let line = text.strip_suffix('\n').map_or(&text[..], |line| line.strip_suffix('\r').unwrap_or(line));
    match text.len() {
        MAX_BYTES => Err(io::Error::other("it is too long")),
        _ if line.is_empty() => Err(io::Error::other("it is empty")),
        _ => Ok(line.to_owned()),
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
        for (content, secret) in
            [("a b", "a b"), ("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), (" a\r", " a\r")]
        {
            std::fs::write(&path, content).unwrap();
            assert_eq!(read(&path).unwrap(), secret);
        }
        for content in [&b""[..], b"\n", b"\xff", &[b'x'; MAX_BYTES + 1]] {
            std::fs::write(&path, content).unwrap();
            read(&path).unwrap_err();
        }
    }
}
