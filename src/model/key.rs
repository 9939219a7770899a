//! API keys, as the service stores them.

use petstore_base::words;

/// The SHA-256 digest of a key's text.
pub type Digest = [u8; 32];

words! {
    /// The scope of a key: `read-only`, `full` or `admin`.
    KeyScope {
        /// It may read pets.
        ReadOnly = "read-only",
        /// It may read and create pets.
        Full = "full",
        /// It may read and create pets, and change the settings of the project.
        Admin = "admin",
    }
}

impl KeyScope {
    /// The scope with these values in the columns `read_only` and `is_admin`. An invalid value permits least.
    pub(crate) fn of_columns(read_only: Option<i64>, is_admin: Option<i64>) -> Self {
        match (read_only, is_admin) {
            (Some(0), Some(1)) => Self::Admin,
            (Some(0), _) => Self::Full,
            _ => Self::ReadOnly,
        }
    }

    /// The values of the columns `read_only` and `is_admin`.
    pub(crate) fn columns(self) -> (bool, bool) {
        (self == Self::ReadOnly, self == Self::Admin)
    }
}

/// A stored key: everything except the key itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ApiKey {
    /// SHA-256 of the key.
    pub digest: Digest,
    /// The name that the operator gave it.
    pub name: String,
    /// The scope of requests with it.
    pub scope: KeyScope,
    /// When it was created, in seconds of Unix time.
    pub created_at: i64,
    /// When it expires, in seconds of Unix time; `None` if never.
    pub expires_at: Option<i64>,
    /// When it was last used, in seconds of Unix time; `None` if never. A service stores this once an hour, and when it
    /// stops.
    pub last_used_at: Option<i64>,
}

impl ApiKey {
    /// Returns whether the key has expired at this Unix time.
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_refused_from_the_second_in_which_it_expires() {
        let mut key = ApiKey {
            digest: [0; 32],
            name: "ci".to_owned(),
            scope: KeyScope::Full,
            created_at: 0,
            expires_at: Some(5),
            last_used_at: None,
        };
        assert_eq!(
            [4, 5, 6].map(|now| key.is_expired(now)),
            [false, true, true]
        );
        key.expires_at = None;
        assert!(!key.is_expired(i64::MAX));
    }

    #[test]
    fn scopes_have_the_names_of_the_flags() {
        let scopes = [KeyScope::ReadOnly, KeyScope::Full, KeyScope::Admin];
        assert_eq!(scopes.map(KeyScope::as_str), ["read-only", "full", "admin"]);
    }
}
