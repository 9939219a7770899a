//! Bearer authentication (RFC 6750): finds the API key of a request.

use std::sync::Arc;

use crate::app::endpoint::{ApiError, Code, Failure};
use crate::model::{ApiKey, Caller, Digest, KeyScope};
use crate::ops::keys::secret::{digest, is_like_a_key};
use crate::ops::keys::{LastUses, fingerprint};
use crate::store::Reader;
use petstore_base::http::Request;

/// The header field with the key.
pub const AUTHORIZATION: &str = "Authorization";

/// The name of the key from the environment in the access log.
const EXTRA_KEY: &str = "PETSTORE_API_KEY";

/// Checks credentials against the store and the key from the environment.
#[derive(Clone, Default)]
pub struct Authenticator {
    extra_key: Option<Digest>,
    /// A cache of keys, valid for one version of the database.
    known: Vec<KnownKey>,
    version: i64,
    /// The last use of each key, shared with all clones.
    pub uses: LastUses,
}

/// A remembered key, and its owner.
#[derive(Clone)]
pub struct KnownKey {
    token: Box<str>,
    pub key: ApiKey,
    /// Its name.
    pub name: Arc<str>,
    pub caller: Caller,
    /// When its use was last noted, in seconds of Unix time.
    noted_at: i64,
}

/// The most keys in the cache: few enough to compare a token with all of them.
const MAX_KNOWN: usize = 64;

impl Authenticator {
    /// Also accepts `extra_key` (`PETSTORE_API_KEY`), with full scope and without expiry.
    pub fn new(extra_key: Option<&str>) -> Self {
        Self {
            extra_key: extra_key.map(digest),
            ..Self::default()
        }
    }

    /// Returns the key of a request, and notes `now`, in seconds of Unix time, as its last use.
    ///
    /// # Errors
    /// 401 with `WWW-Authenticate`, with the same message for an unknown, an expired and a revoked key; the store's
    /// failure, if it cannot be read.
    pub fn authenticate(
        &mut self,
        request: &Request,
        database: &Reader,
        now: i64,
    ) -> Result<&KnownKey, Failure> {
        let mut credentials = request.header_values(AUTHORIZATION);
        let Some(credential) = credentials.next() else {
            return Err(missing().into());
        };
        if credentials.next().is_some() {
            return Err(invalid().into());
        }
        let Some(token) = bearer_token(credential) else {
            return Err(missing().into());
        };
        if self.version != database.data_version() {
            self.known.clear();
            self.version = database.data_version();
        }
        let Some(place) = self.find(token, database)? else {
            return Err(invalid().into());
        };
        let known = &mut self.known[place];
        if known.key.is_expired(now) {
            return Err(invalid().into());
        }
        // At most once a second per worker and key while the key is in the cache.
        if known.noted_at < now {
            known.noted_at = now;
            self.uses.note(known.key.digest, now);
        }
        Ok(known)
    }

    /// Returns the text that the access log has in place of a key's name, for a request that was just rejected:
    /// `expired` or `unknown`, and the fingerprint of the key. `None` if the token does not look like a key: it may be
    /// a password, and its digest would help to guess it.
    pub fn refused(&self, request: &Request) -> Option<String> {
        let token = bearer_token(request.header_values(AUTHORIZATION).next()?)?;
        let digest = is_like_a_key(token).then(|| digest(token))?;
        // The cache has expired keys too.
        let is_known = self.known.iter().any(|known| known.key.digest == digest);
        let why = if is_known { "expired" } else { "unknown" };
        Some(format!("{why}:{}", fingerprint(&digest)))
    }

    /// Looks up a key, and returns its index in the cache. Only existing keys enter the cache, so guesses cannot evict
    /// them.
    fn find(&mut self, token: &str, database: &Reader) -> Result<Option<usize>, Failure> {
        let known = self
            .known
            .iter()
            .position(|known| is_same(&known.token, token));
        if known.is_some() {
            return Ok(known);
        }
        // Digests are compared, not keys: the length of a common prefix of two digests reveals nothing about a key.
        let digest = digest(token);
        let token = token.into();
        let found = if self.extra_key == Some(digest) {
            let (name, scope) = (EXTRA_KEY.to_owned(), KeyScope::Full);
            let key = ApiKey {
                digest,
                name,
                scope,
                created_at: 0,
                expires_at: None,
                last_used_at: None,
            };
            // So that its uses are never noted: no row of the database could store them.
            KnownKey {
                token,
                name: EXTRA_KEY.into(),
                key,
                caller: Caller::extra(),
                noted_at: i64::MAX,
            }
        } else if let Some(key) = database.key(&digest)? {
            KnownKey {
                token,
                caller: Caller::stored(&key.name),
                name: key.name.as_str().into(),
                key,
                noted_at: i64::MIN,
            }
        } else {
            return Ok(None);
        };
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.push(found);
        Ok(Some(self.known.len() - 1))
    }
}

/// Compares two tokens in constant time, except for their length.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one
        .bytes()
        .zip(other.bytes())
        .fold(0, |differences, (a, b)| differences | (a ^ b));
    one.len() == other.len() && differences == 0
}

/// Returns the token of a credential; `None` if the scheme is not Bearer or the token is missing.
fn bearer_token(credential: &str) -> Option<&str> {
    let (scheme, token) = credential.split_at_checked("Bearer ".len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case("Bearer ") && !token.is_empty()).then_some(token)
}

fn missing() -> ApiError {
    ask_for_key(ApiError::new(Code::Unauthorized))
}

/// Adds the challenge that a 401 needs (RFC 9110, section 15.5.2).
pub fn ask_for_key(refusal: ApiError) -> ApiError {
    refusal.header("WWW-Authenticate", "Bearer realm=\"petstore\"")
}

fn invalid() -> ApiError {
    let what = "The API key is unknown, expired or revoked";
    challenge(
        ApiError::with_message(Code::Unauthorized, format!("{what}.")),
        "invalid_token",
        what,
    )
}

/// The error for a write with a read-only key (RFC 6750, section 3.1).
pub fn insufficient_scope() -> ApiError {
    challenge(
        ApiError::new(Code::InsufficientScope),
        "insufficient_scope",
        "This API key is read-only",
    )
}

fn challenge(refusal: ApiError, error: &str, what: &str) -> ApiError {
    let value =
        format!("Bearer realm=\"petstore\", error=\"{error}\", error_description=\"{what}\"");
    refusal.header("WWW-Authenticate", value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Writer;
    use petstore_base::testing::Folder;

    fn ask(
        authenticator: &mut Authenticator,
        database: &Reader,
        credentials: &[&str],
    ) -> Result<KeyScope, Failure> {
        let headers = credentials
            .iter()
            .map(|value| ("authorization", *value))
            .collect();
        let request = Request {
            id: "-",
            method: "GET",
            target: "/v1/pets",
            headers,
            body: b"",
        };
        authenticator
            .authenticate(&request, database, 1000)
            .map(|known| known.key.scope)
    }

    fn key(text: &str, scope: KeyScope, expires_at: Option<i64>) -> ApiKey {
        let (digest, name) = (digest(text), text.to_owned());
        ApiKey {
            digest,
            name,
            scope,
            created_at: 0,
            expires_at,
            last_used_at: None,
        }
    }

    #[test]
    fn keys_have_their_scopes_until_they_expire() {
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        writer
            .insert_key(&key("full", KeyScope::Full, None))
            .unwrap();
        writer
            .insert_key(&key("reader", KeyScope::ReadOnly, Some(1001)))
            .unwrap();
        writer
            .insert_key(&key("old", KeyScope::Full, Some(1000)))
            .unwrap();
        let mut authenticator = Authenticator::new(Some("extra"));
        let mut ask = |credentials: &[&str]| ask(&mut authenticator, &writer, credentials);
        assert_eq!(ask(&["Bearer full"]), Ok(KeyScope::Full));
        assert_eq!(ask(&["bEARER  full "]), Ok(KeyScope::Full));
        assert_eq!(ask(&["Bearer reader"]), Ok(KeyScope::ReadOnly));
        assert_eq!(ask(&["Bearer extra"]), Ok(KeyScope::Full));
        for credentials in [
            &["Bearer old"][..],
            &["Bearer none"],
            &["Bearer fullx"],
            &["Bearer full", "Bearer full"],
        ] {
            assert_eq!(ask(credentials), Err(invalid().into()), "{credentials:?}");
        }
        for credentials in [
            &[][..],
            &["Basic full"],
            &["Bearer"],
            &["Bearer "],
            &["full"],
            &[""],
        ] {
            assert_eq!(ask(credentials), Err(missing().into()), "{credentials:?}");
        }
    }

    #[test]
    fn uses_of_valid_keys_are_noted() {
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        for (name, expires_at) in [("mine", None), ("old", Some(1000)), ("idle", None)] {
            writer
                .insert_key(&key(name, KeyScope::ReadOnly, expires_at))
                .unwrap();
        }
        let mut authenticator = Authenticator::new(Some("extra"));
        let uses = authenticator.clone().uses;
        for credential in [
            "Bearer mine",
            "Bearer old",
            "Bearer extra",
            "Bearer none",
            "Bearer mine",
        ] {
            let _ = ask(&mut authenticator, &writer, &[credential]);
        }
        assert_eq!(uses.take(), [(digest("mine"), 1000)]);
        let _ = ask(&mut authenticator, &writer, &["Bearer mine"]);
        assert_eq!(uses.take(), [], "once a second is enough");
    }

    #[test]
    fn keys_are_remembered_up_to_a_bound() {
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        writer.insert_key(&key("a", KeyScope::Full, None)).unwrap();
        writer.insert_key(&key("b", KeyScope::Full, None)).unwrap();
        writer.insert_key(&key("c", KeyScope::Full, None)).unwrap();
        let mut authenticator = Authenticator::default();
        assert_eq!(
            ask(&mut authenticator, &writer, &["Bearer a"]),
            Ok(KeyScope::Full)
        );
        assert_eq!(
            ask(&mut authenticator, &writer, &["Bearer b"]),
            Ok(KeyScope::Full)
        );
        assert_eq!(authenticator.known.len(), 2);
        for i in 2..MAX_KNOWN {
            let text = i.to_string();
            let key = key(&text, KeyScope::Full, None);
            let caller = Caller::stored(&key.name);
            authenticator.known.push(KnownKey {
                token: text.into(),
                name: key.name.as_str().into(),
                key,
                caller,
                noted_at: 0,
            });
        }
        assert_eq!(
            ask(&mut authenticator, &writer, &["Bearer b"]),
            Ok(KeyScope::Full)
        );
        assert_eq!(authenticator.known.len(), MAX_KNOWN);
        assert_eq!(
            ask(&mut authenticator, &writer, &["Bearer c"]),
            Ok(KeyScope::Full)
        );
        assert_eq!(authenticator.known.len(), 1, "all others are forgotten");
    }

    #[test]
    fn tokens_that_differ_are_never_the_same() {
        assert!(is_same("", "") && is_same("abc", "abc"));
        for (one, other) in [
            ("a", "b"),
            ("ab", "ba"),
            ("aa", "bb"),
            ("abc", "ab"),
            ("", "a"),
        ] {
            assert!(
                !is_same(one, other) && !is_same(other, one),
                "{one} {other}"
            );
        }
    }
}
