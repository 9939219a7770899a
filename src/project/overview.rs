//! What people and programs see of the project, as JSON has it.

use serde::Serialize;

use super::name;
use super::project::Settings;
use super::record::Record;
use crate::clock::rfc3339;
use crate::model::{Deploy, Domain, DomainState, Plan, Redirect};
use crate::store::{ProjectReads, StoreError};

/// The project at one moment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Overview {
    /// What is paid for.
    pub plan: Plan,
    /// The host of the hosting platform, to which the records of domains lead; null: none is set.
    pub platform_host: Option<String>,
    /// The project's own name on the platform.
    pub address: Option<String>,
    /// The deploy that is served; null: there was none yet.
    pub deploy: Option<DeployView>,
    /// The domain that the others stand for.
    pub primary: Option<String>,
    /// Every domain, by name.
    pub domains: Vec<DomainView>,
    /// Every redirect, by the name that it is from.
    pub redirects: Vec<Redirect>,
}

/// A deploy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeployView {
    /// Its number.
    pub id: i64,
    /// RFC 3339.
    pub deployed_at: String,
    /// How many static files it has beside the built-in site.
    pub files: i64,
}

/// A domain. Times are as in RFC 3339.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DomainView {
    /// In A-labels.
    pub name: String,
    /// As people read it, in U-labels.
    pub display_name: String,
    /// Where it stands.
    pub state: DomainState,
    /// The same in words.
    pub state_text: String,
    /// Since when.
    pub since: String,
    /// Why, for programs; null: there is nothing to say.
    pub reason: Option<String>,
    /// Why, for people.
    pub message: Option<String>,
    /// When it was added.
    pub added_at: String,
    /// When DNS was last asked; null: never.
    pub checked_at: Option<String>,
    /// Whether it is the one that the others stand for.
    pub is_primary: bool,
    /// The DNS record that it needs.
    pub record: Record,
}

impl Overview {
    /// What there is at this Unix time, in seconds.
    pub(super) fn of(project: &ProjectReads, settings: &Settings, now: i64) -> Result<Self, StoreError> {
        let platform = settings.hosting.platform_host.as_deref().unwrap_or_default();
        let domains = project.domains()?.into_iter().map(|domain| DomainView::of(domain.at(now), platform));
        let live = project.deploys()?.into_iter().find(|deploy| deploy.is_live);
        Ok(Self {
            plan: project.plan()?,
            platform_host: settings.hosting.platform_host.clone(),
            address: settings.hosting.address(),
            deploy: live.map(DeployView::from),
            primary: project.primary()?,
            domains: domains.collect(),
            redirects: project.redirects()?,
        })
    }
}

impl From<Deploy> for DeployView {
    fn from(deploy: Deploy) -> Self {
        Self { id: deploy.id, deployed_at: rfc3339(deploy.deployed_at), files: deploy.files }
    }
}

impl DomainView {
    /// A domain of a project on this platform.
    pub(super) fn of(domain: Domain, platform: &str) -> Self {
        let (reason, message) = domain.reason.map(|reason| (reason.code, reason.message)).unzip();
        Self {
            display_name: name::to_unicode(&domain.name),
            record: Record::of(&domain.name, platform),
            state: domain.state,
            state_text: text(domain.state).to_owned(),
            since: rfc3339(domain.since),
            reason,
            message,
            added_at: rfc3339(domain.added_at),
            checked_at: domain.checked_at.map(rfc3339),
            is_primary: domain.is_primary,
            name: domain.name,
        }
    }
}

/// A state in words.
fn text(state: DomainState) -> &'static str {
    match state {
        DomainState::PendingDns => "waits for its DNS record; not served yet",
        DomainState::Verified => {
            "verified; the certificate comes with the first HTTPS request, usually within a couple of minutes"
        }
        DomainState::Active => "served over HTTPS",
        DomainState::CertificateDelayed => {
            "verified, but nothing shows that it has a certificate yet; re-verify looks at its DNS record and at \
             CAA records"
        }
        DomainState::DnsChanged => "its DNS record is no longer right; no certificate is renewed",
    }
}
