//! The state of the project as JSON shows it to people and programs.

use serde::Serialize;

use super::finding::CAA_UNKNOWN;
use super::name;
use super::record::DnsRecord;
use super::verify::{CONFLICTING_RECORD, WRONG_TARGET};
use crate::base::config::Hosting;
use crate::model::{CHECK_EVERY, Deploy, Domain, DomainState, Plan, Redirect};
use crate::store::{Reader, StoreError};

/// The project at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Overview {
    /// The plan that is paid for.
    pub plan: Plan,
    /// The host of the hosting platform, to which the DNS records point; null if none is set.
    pub platform_host: Option<String>,
    /// The project's own name on the platform; null if no platform is set.
    pub address: Option<String>,
    /// The live deploy; null if the site was never deployed.
    pub deploy: Option<Deploy>,
    /// The primary domain, which pages name as their canonical address; null if there is none.
    pub primary: Option<String>,
    /// How many seconds after a check of a domain a running service checks it again.
    pub check_every: i64,
    /// Every domain, by name.
    pub domains: Vec<DomainView>,
    /// Every redirect, by its source.
    pub redirects: Vec<Redirect>,
}

/// A domain, with what an operator needs to know to bring it to HTTPS.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DomainView {
    /// The domain; in JSON, its members stand next to the others.
    #[serde(flatten)]
    pub domain: Domain,
    /// The name in U-labels, such as `bücher.example`.
    pub display_name: String,
    /// The state in a few words, then its consequence after a semicolon.
    pub state_text: &'static str,
    /// The DNS record that it needs.
    pub record: DnsRecord,
}

impl Overview {
    /// The state at this Unix time, in seconds.
    pub(super) fn of(project: &Reader, hosting: &Hosting, now: i64) -> Result<Self, StoreError> {
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
    /// Returns true if the last check found nothing that keeps the domain from being served, although it may have a remark.
    pub fn is_in_order(&self) -> bool {
        self.domain.reason.as_deref().is_none_or(|code| code == CAA_UNKNOWN)
    }

    /// A domain of a project on this platform.
    pub(super) fn of(domain: Domain, platform: &str) -> Self {
        Self {
            display_name: name::to_unicode(&domain.name),
            state_text: text(&domain),
            record: DnsRecord::of(&domain.name, platform),
            domain,
        }
    }
}

/// The state of a domain in words.
fn text(domain: &Domain) -> &'static str {
    let is_wrong =
        [WRONG_TARGET, CONFLICTING_RECORD].iter().any(|code| domain.reason.as_deref() == Some(code));
    match domain.state {
        DomainState::PendingDns if is_wrong => "wrong DNS record",
        DomainState::PendingDns => "waiting for DNS",
        DomainState::Verified => {
            "verified; the certificate is created on the first HTTPS request, usually within a couple of minutes"
        }
        DomainState::Active => "live",
        DomainState::CertificateDelayed => {
            "no certificate yet; verify the domain again to check its DNS record and CAA records"
        }
        DomainState::DnsChanged => "wrong DNS record; the certificate is not renewed until it is right again",
    }
}
