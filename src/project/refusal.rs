//! Why something about the project was not done.

use crate::store::StoreError;

/// Declares the codes with the status that each has in the settings interface.
macro_rules! codes {
    ($($(#[$about:meta])* $name:ident = $status:literal $code:literal;)*) => {
        /// Why something about the project was not done, for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum RefusalCode { $($(#[$about])* $name,)* }

        impl RefusalCode {
            /// The word, stable snake_case.
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
    /// The plan has no domains.
    PlanRequired = 402 "plan_required";
    /// The site was never deployed.
    DeployRequired = 409 "deploy_required";
    /// No hosting platform is set.
    PlatformHostRequired = 409 "platform_host_required";
    /// The text is not the name of a domain, or not of one that may be added.
    InvalidDomain = 400 "invalid_domain";
    /// The domain is there already.
    DomainExists = 409 "domain_exists";
    /// There are as many domains as there may be.
    TooManyDomains = 409 "too_many_domains";
    /// The project has no such domain.
    UnknownDomain = 404 "unknown_domain";
    /// The domain is not verified yet.
    NotVerified = 409 "not_verified";
    /// The redirect would lead nowhere, in a circle, or through another one.
    InvalidRedirect = 400 "invalid_redirect";
    /// There is no redirect from this name.
    UnknownRedirect = 404 "unknown_redirect";
    /// The folder cannot be published as it is.
    InvalidFolder = 400 "invalid_folder";
    /// There is no such deploy.
    UnknownDeploy = 404 "unknown_deploy";
    /// As many verifications are under way as may be.
    TooManyChecks = 503 "too_many_checks";
    /// The database cannot be used.
    StorageUnavailable = 503 "storage_unavailable";
}

/// Why something about the project was not done.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// For programs.
    pub code: RefusalCode,
    /// For people: plain sentences that say what to do.
    pub message: String,
}

/// What comes of the work on the project.
pub type Refused<T> = Result<T, Refusal>;

impl Refusal {
    /// A refusal in these words.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl std::fmt::Display for Refusal {
    /// One line for an operator, with the code at its end.
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} ({})", self.message.trim_end_matches('.'), self.code.as_str())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::new(RefusalCode::StorageUnavailable, error.to_string())
    }
}

impl From<Refusal> for crate::Error {
    fn from(refusal: Refusal) -> Self {
        refusal.to_string().into()
    }
}
