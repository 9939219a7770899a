//! The hosting of the project: its name, its platform, and the checks of its domains.

use std::net::SocketAddr;

/// The hosting of the project: its name, its platform, and the checks of its domains.
///
/// ```
/// let mut hosting = petstore_hosting::Hosting::default();
/// hosting.platform_host = Some("sites.example.net".to_owned());
/// assert_eq!(hosting.address().as_deref(), Some("petstore.sites.example.net"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Hosting {
    /// The name of the project on the platform: one DNS label. `petstore` by default.
    pub project: String,
    /// The host of the hosting platform, such as `sites.example.net`, in lower case. If it is set, requests for names
    /// that are not the project's get 421. `None`, the default: every name is served, and there are no domains.
    pub platform_host: Option<String>,
    /// The DNS server for the checks of domains. `None`, the default: the authoritative servers of each domain, found
    /// with the system's resolver. Used with the feature `site` only.
    pub resolver: Option<SocketAddr>,
    /// The certificate authorities that issue for the domains, as CAA records name them, such as `letsencrypt.org`
    /// (RFC 8659, section 4.2). Empty, the default: Let's Encrypt and `ZeroSSL`. Used with the feature `site` only.
    pub certificate_authorities: Vec<String>,
}

impl Default for Hosting {
    fn default() -> Self {
        Self {
            project: "petstore".to_owned(),
            platform_host: None,
            resolver: None,
            certificate_authorities: Vec::new(),
        }
    }
}

impl Hosting {
    /// The project's own name on the platform, such as `petstore.sites.example.net`.
    pub fn address(&self) -> Option<String> {
        self.platform_host
            .as_ref()
            .map(|host| format!("{}.{host}", self.project))
    }
}

/// Reads a host name of two labels or more. Returns it in lower case and without a trailing dot.
pub fn host(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_number = |label: &str| label.bytes().all(|b| b.is_ascii_digit());
    let is_name = name.len() <= 253 && name.contains('.') && name.split('.').all(is_label);
    (is_name && !name.rsplit('.').next().is_some_and(is_number)).then_some(name)
}

/// Returns whether a text is a DNS label: 1 to 63 lower-case letters, digits and hyphens, without a hyphen at its
/// beginning or end (RFC 1123, section 2.1).
pub fn is_label(label: &str) -> bool {
    let is_label_byte = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&label.len())
        && label.bytes().all(is_label_byte)
        && !label.starts_with('-')
        && !label.ends_with('-')
}
