//! Refusals: tasks that the project does not allow, with a stable code for programs.

use petstore_base::error::{Error, ErrorKind};

/// The code of a refusal, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusalCode {
    /// The code in the settings interface, in `snake_case`. It is stable.
    pub name: &'static str,
    /// The HTTP status in the settings interface.
    pub status: u16,
}

impl RefusalCode {
    /// The plan does not include domains.
    pub const PLAN_REQUIRED: Self = Self::new("plan_required", 402);
    /// The plan has no domains, and the project has some.
    pub const DOMAINS_EXIST: Self = Self::new("domains_exist", 409);
    /// The site was never deployed.
    pub const DEPLOY_REQUIRED: Self = Self::new("deploy_required", 409);
    /// No hosting platform is set.
    pub const PLATFORM_HOST_REQUIRED: Self = Self::new("platform_host_required", 409);
    /// The text is not a domain name, or the name may not be added.
    pub const INVALID_DOMAIN: Self = Self::new("invalid_domain", 400);
    /// The project has the domain already.
    pub const DOMAIN_EXISTS: Self = Self::new("domain_exists", 409);
    /// The project has 100 domains, the most that it may have.
    pub const TOO_MANY_DOMAINS: Self = Self::new("too_many_domains", 409);
    /// The project has no such domain.
    pub const UNKNOWN_DOMAIN: Self = Self::new("unknown_domain", 404);
    /// The domain is not verified yet.
    pub const NOT_VERIFIED: Self = Self::new("not_verified", 409);
    /// The redirect would lead to a name that is not served, to itself, or through another redirect.
    pub const INVALID_REDIRECT: Self = Self::new("invalid_redirect", 400);
    /// There is no redirect from this domain.
    pub const UNKNOWN_REDIRECT: Self = Self::new("unknown_redirect", 404);
    /// The folder cannot be published as it is.
    pub const INVALID_FOLDER: Self = Self::new("invalid_folder", 400);
    /// There is no such deploy.
    pub const UNKNOWN_DEPLOY: Self = Self::new("unknown_deploy", 404);
    /// The database cannot be read or written.
    pub const STORAGE_UNAVAILABLE: Self = Self::new("storage_unavailable", 503);
    /// The disk failed during a change, which may or may not be made.
    pub const OUTCOME_UNKNOWN: Self = Self::new("outcome_unknown", 503);

    const fn new(name: &'static str, status: u16) -> Self {
        Self { name, status }
    }
}

/// A task that the project does not allow, or that failed. `Display` prints one line that ends with the code.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// For programs.
    pub code: RefusalCode,
    /// For people: plain sentences with the reason and advice.
    pub message: String,
    /// The failure behind [`RefusalCode::STORAGE_UNAVAILABLE`] and [`RefusalCode::OUTCOME_UNKNOWN`].
    cause: Option<Error>,
}

impl Refusal {
    /// Creates a refusal.
    /// A refusal with this message.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            cause: None,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(
            f,
            "{} ({})",
            self.message.trim_end_matches('.'),
            self.code.name
        )
    }
}

impl std::error::Error for Refusal {}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self {
            code: if error.kind() == ErrorKind::OutcomeUnknown {
                RefusalCode::OUTCOME_UNKNOWN
            } else {
                RefusalCode::STORAGE_UNAVAILABLE
            },
            message: error.to_string(),
            cause: Some(error),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal.cause {
            Some(cause) => cause,
            None => Self::new(ErrorKind::Refused, refusal.to_string()).caused_by(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_has_the_refusal_as_its_source_or_the_kind_of_the_database() {
        let error = Error::from(Refusal::new(
            RefusalCode::UNKNOWN_DEPLOY,
            "There is no deploy 7.",
        ));
        assert_eq!(
            (error.kind(), error.to_string()),
            (
                ErrorKind::Refused,
                "There is no deploy 7 (unknown_deploy)".into()
            )
        );
        let source =
            std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Refusal>());
        assert_eq!(
            source.map(|refusal| refusal.code),
            Some(RefusalCode::UNKNOWN_DEPLOY)
        );
        let unknown = Refusal::from(Error::new(ErrorKind::OutcomeUnknown, "disk"));
        assert_eq!(
            (unknown.code, Error::from(unknown).kind()),
            (RefusalCode::OUTCOME_UNKNOWN, ErrorKind::OutcomeUnknown)
        );
        let locked = Refusal::from(Error::new(ErrorKind::DatabaseLocked, "busy"));
        assert_eq!(
            (locked.code.status, Error::from(locked).kind()),
            (503, ErrorKind::DatabaseLocked)
        );
    }
}
