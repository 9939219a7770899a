//! What the service knows of an API key.

/// The SHA-256 digest of a key's text.
pub type Digest = [u8; 32];

/// What a request with a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyScope {
    /// It may read pets.
    ReadOnly,
    /// It may read and create pets.
    Full,
    /// It may read and create pets, and change the settings of the project.
    Admin,
}

impl KeyScope {
    /// The name of the scope: `read-only`, `full` or `admin`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Full => "full",
            Self::Admin => "admin",
        }
    }
}

/// A stored key: everything except the key itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKey {
    /// SHA-256 of the key.
    pub digest: Digest,
    /// The name that the operator gave it.
    pub name: String,
    /// What requests with it may do.
    pub scope: KeyScope,
    /// When it was created, in seconds of Unix time.
    pub created_at: i64,
    /// When it expires, in seconds of Unix time; `None` if never.
    pub expires_at: Option<i64>,
    /// When it was last used, as far as the database knows, in seconds of Unix time; `None` if never.
    pub last_used_at: Option<i64>,
}

impl ApiKey {
    /// Whether the key is refused at this Unix time.
    pub fn is_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}
