//! Why a task on the project was refused, with a stable code for programs.

use crate::error::{Error, ErrorKind};
use crate::store::StoreError;

/// Declares the codes, and the HTTP status that each has in the settings interface.
macro_rules! codes {
    ($($(#[$about:meta])* $name:ident = $status:literal $code:literal;)*) => {
        /// Why a task on the project was refused, for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum RefusalCode { $($(#[$about])* $name,)* }

        impl RefusalCode {
            /// The code as the settings interface has it: stable snake_case.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The HTTP status in the settings interface.
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }
        }
    };
}

codes! {
    /// The plan does not include domains.
    PlanRequired = 402 "plan_required";
    /// The site was never deployed.
    DeployRequired = 409 "deploy_required";
    /// No hosting platform is set.
    PlatformHostRequired = 409 "platform_host_required";
    /// The text is not a domain name, or the name may not be added.
    InvalidDomain = 400 "invalid_domain";
    /// The project has the domain already.
    DomainExists = 409 "domain_exists";
    /// The project has as many domains as it may have.
    TooManyDomains = 409 "too_many_domains";
    /// The project has no such domain.
    UnknownDomain = 404 "unknown_domain";
    /// The domain is not verified yet.
    NotVerified = 409 "not_verified";
    /// The redirect would lead to a name that is not served, to itself, or through another redirect.
    InvalidRedirect = 400 "invalid_redirect";
    /// There is no redirect from this domain.
    UnknownRedirect = 404 "unknown_redirect";
    /// The folder cannot be published as it is.
    InvalidFolder = 400 "invalid_folder";
    /// There is no such deploy.
    UnknownDeploy = 404 "unknown_deploy";
    /// The database cannot be read or written.
    StorageUnavailable = 503 "storage_unavailable";
}

/// Why a task on the project was refused. `Display` prints one line that ends with the code.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// For programs.
    pub code: RefusalCode,
    /// For people: plain sentences that say what to do.
    pub message: String,
    /// The failure behind [`RefusalCode::StorageUnavailable`].
    cause: Option<StoreError>,
}

impl Refusal {
    /// Creates a refusal.
    pub(crate) fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), cause: None }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} ({})", self.message.trim_end_matches('.'), self.code.as_str())
    }
}

impl std::error::Error for Refusal {}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let cause = Some(error.clone());
        Self { code: RefusalCode::StorageUnavailable, message: error.to_string(), cause }
    }
}

impl From<Refusal> for Error {
    /// A failure of the database keeps its own kind; everything else is [`ErrorKind::Refused`], with the refusal as
    /// its source.
    fn from(refusal: Refusal) -> Self {
        match refusal.cause {
            Some(cause) => cause.into(),
            None => Self::new(ErrorKind::Refused, refusal.to_string()).caused_by(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Cause;

    #[test]
    fn error_has_the_refusal_as_its_source_or_the_kind_of_the_database() {
        let error = Error::from(Refusal::new(RefusalCode::UnknownDeploy, "There is no deploy 7."));
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Refused, "There is no deploy 7 (unknown_deploy)".into())
        );
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Refusal>());
        assert_eq!(source.map(|refusal| refusal.code), Some(RefusalCode::UnknownDeploy));
        let locked = Refusal::from(StoreError::Unavailable(Cause::Locked, "busy".to_owned()));
        assert_eq!((locked.code.status(), Error::from(locked).kind()), (503, ErrorKind::DatabaseLocked));
    }
}
