//! The state of the project, as the settings page and `petstore domain list` show it.

use serde::Serialize;

use crate::config::Hosting;
use crate::database::Reads;
use crate::model::{Deploy, Domain, DomainState, Plan, Redirect};
use crate::project::finding::CAA_UNKNOWN;
use crate::project::name;
use crate::project::record::DnsRecord;
use crate::project::verify::{CHECK_EVERY, CONFLICTING_RECORD, WRONG_TARGET};
use crate::statements::ProjectReads;
use petstore_base::error::Error;

/// The state of the project at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Overview {
    /// The plan of the project.
    pub plan: Plan,
    /// The host of the hosting platform, to which the DNS records point; `None` if none is configured.
    pub platform_host: Option<String>,
    /// The project's own name on the platform; `None` if no platform is configured.
    pub address: Option<String>,
    /// The live deploy; `None` if the site was never deployed.
    pub deploy: Option<Deploy>,
    /// The primary domain, which is the canonical host; `None` if there is none.
    pub primary: Option<String>,
    /// The interval at which a running service checks each domain, in seconds.
    pub check_every: i64,
    /// Every domain, by name.
    pub domains: Vec<DomainView>,
    /// Every redirect, by its source.
    pub redirects: Vec<Redirect>,
}

/// A domain, with its DNS record and its state in words.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DomainView {
    /// The domain. In JSON, its members are on the same level as the other fields.
    #[serde(flatten)]
    pub domain: Domain,
    /// The name in U-labels, such as `bücher.example`.
    pub display_name: String,
    /// The state in a few words and, after a semicolon, its consequence.
    pub state_text: &'static str,
    /// The DNS record to create.
    pub record: DnsRecord,
    /// True while a service checks the domain; `None` if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_checking: Option<bool>,
}

impl Overview {
    /// The state at this Unix time, in seconds.
    pub(crate) fn of(project: &impl Reads, hosting: &Hosting, now: i64) -> Result<Self, Error> {
        let platform = hosting.platform_host.as_deref().unwrap_or_default();
        let view = |domain: Domain| DomainView::of(domain.at(now), platform);
        Ok(Self {
            plan: project.plan()?,
            platform_host: hosting.platform_host.clone(),
            address: hosting.address(),
            deploy: project.deploys()?.into_iter().find(|deploy| deploy.is_live),
            primary: project.primary()?,
            check_every: CHECK_EVERY,
            domains: project.domains()?.into_iter().map(view).collect(),
            redirects: project.redirects()?,
        })
    }
}

impl DomainView {
    /// Returns whether the last check found no problem, except perhaps that the CAA records could not be looked up.
    pub fn is_in_order(&self) -> bool {
        self.domain
            .reason
            .as_deref()
            .is_none_or(|code| code == CAA_UNKNOWN)
    }

    /// A domain of a project on this platform.
    pub(crate) fn of(domain: Domain, platform: &str) -> Self {
        Self {
            display_name: name::to_unicode(&domain.name),
            state_text: text(&domain),
            record: DnsRecord::of(&domain.name, platform),
            domain,
            is_checking: None,
        }
    }
}

/// The state of a domain in words.
fn text(domain: &Domain) -> &'static str {
    let is_wrong = [WRONG_TARGET, CONFLICTING_RECORD]
        .iter()
        .any(|code| domain.reason.as_deref() == Some(code));
    match domain.state {
        DomainState::PendingDns if is_wrong => "wrong DNS record",
        DomainState::PendingDns => "waiting for DNS",
        DomainState::Verified => {
            "verified; the certificate is created on the first HTTPS request, usually within a couple of minutes"
        }
        DomainState::Active => "live",
        DomainState::CertificateDelayed => {
            "no certificate yet; confirm that the DNS record is still correct, check that no CAA record blocks the \
             certificate authority, and re-verify"
        }
        DomainState::DnsChanged => {
            "wrong DNS record; the certificate won't be renewed until the record is correct again"
        }
    }
}
