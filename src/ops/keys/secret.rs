//! Secrets and their digests. A key itself is never stored.

use crate::model::Digest;
use petstore_base::error::{Error, ErrorKind};

/// The prefix of every key that petstore creates, and the number of hexadecimal digits after it.
const PREFIX: &str = "petstore_";
const DIGITS: usize = 64;

/// Creates an API key: 256 random bits, in characters that need no quoting. It is not stored in any database.
///
/// ```
/// let config = petstore::Config::new().api_key(petstore::new_api_key()?);
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Io`] if the operating system gives no random bits.
pub fn new_key() -> Result<String, Error> {
    let mut bits = [0u8; 32];
    getrandom::fill(&mut bits)
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot get random bits: {error}")))?;
    Ok(PREFIX.to_owned() + &hexadecimal(&bits))
}

/// The digest under which the database stores a key.
pub fn digest(key: &str) -> Digest {
    hmac_sha256::Hash::hash(key.as_bytes())
}

/// Returns the first eight hexadecimal digits of a key's SHA-256 digest, which distinguish keys with the same name.
pub fn fingerprint(digest: &Digest) -> String {
    hexadecimal(digest)[..8].to_owned()
}

/// Prints a digest as 64 hexadecimal digits.
pub(super) fn hexadecimal(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether a text has the form of a key that petstore creates: 256 random bits, which nobody can guess from a
/// digest.
pub fn is_like_a_key(text: &str) -> bool {
    let digits = text.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == DIGITS
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Returns whether a text can be sent in an Authorization header (`b64token`, RFC 6750, section 2.1).
pub fn is_sendable(key: &str) -> bool {
    let text = key.trim_end_matches('=');
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_digest_is_sha256() {
        let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hexadecimal(&digest("abc")), of_abc);
    }

    #[test]
    fn new_keys_differ_and_can_be_sent() {
        let key = new_key().unwrap();
        assert!(is_like_a_key(&key));
        for other in [
            "",
            &key[1..],
            &key[..key.len() - 1],
            &(key.clone() + "0"),
            &key.to_uppercase(),
        ] {
            assert!(!is_like_a_key(other), "{other}");
        }
        assert!(is_sendable(&key));
        assert_ne!(key, new_key().unwrap());
    }

    #[test]
    fn unsendable_keys_are_recognised() {
        for key in ["", "=", "a b", "a\n", "é", "a=b"] {
            assert!(!is_sendable(key), "{key:?}");
        }
        assert!(is_sendable("a+/-._~b=="));
    }
}
