//! What the interface is told of the service that it belongs to.

/// The settings of the interface.
#[derive(Clone, Debug, Default)]
pub struct ApiSettings {
    /// The public URL of the interface, which ends in `/v1`.
    pub base_url: Option<String>,
    /// The contact in security.txt, a URI.
    pub security_contact: Option<String>,
    /// Whether the beta and experimental operations are served.
    pub is_experimental: bool,
}

impl ApiSettings {
    /// Returns the public URL of the service, without a trailing slash, if it is known.
    pub fn root(&self) -> Option<&str> {
        root_of(self.base_url.as_deref()?)
    }

    /// Returns the public URL of a path, or only the path if the public address is unknown.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.root().unwrap_or_default())
    }

    /// Returns the path of the public URL before `/v1`, without its first slash; `None` if it has none.
    pub fn root_path(&self) -> Option<&str> {
        self.root()?.splitn(4, '/').nth(3)
    }
}

/// The URL of the service, from that of its interface.
pub fn root_of(base_url: &str) -> Option<&str> {
    base_url.strip_suffix("/v1")
}
