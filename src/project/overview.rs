//! The state of the project as JSON shows it to people and programs.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;

use super::finding::{CAA_ACCOUNT, CAA_UNKNOWN};
use super::name;
use super::record::DnsRecord;
use crate::clock::rfc3339;
use crate::config::Hosting;
use crate::model::{CertificateCount, Deploy, Domain, DomainState, Plan, Redirect};
use crate::store::{ProjectReads, StoreError};

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
    pub deploy: Option<DeployView>,
    /// The primary domain, which pages name as their canonical address; null if there is none.
    pub primary: Option<String>,
    /// Every domain, by name.
    pub domains: Vec<DomainView>,
    /// Every redirect, by its source.
    pub redirects: Vec<Redirect>,
    /// The certificates that the proxy asked for under names that are no domains of the project.
    pub other_certificate_requests: CertificateRequests,
}

/// How often the proxy asked whether it may make a certificate. A running service writes the counts once a minute.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CertificateRequests {
    /// How often it was allowed to.
    pub allowed: i64,
    /// How often it was not.
    pub denied: i64,
    /// When it last asked: UTC, as RFC 3339 writes it; null if it never did.
    pub last_at: Option<String>,
}

/// A deploy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeployView {
    /// Its number.
    pub id: i64,
    /// When it went live: UTC, as RFC 3339 writes it.
    pub deployed_at: String,
    /// How many static files it has alongside the built-in site.
    pub files: i64,
}

/// A domain. Times are in UTC, as RFC 3339 writes them.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DomainView {
    /// The name in A-labels, such as `xn--bcher-kva.example`.
    pub name: String,
    /// The name in U-labels, such as `bücher.example`.
    pub display_name: String,
    /// The state on the way to HTTPS.
    pub state: DomainState,
    /// The state in words.
    pub state_text: String,
    /// Since when it has this state.
    pub since: String,
    /// The code of the reason for the state, such as `wrong_target`; null if there is none.
    pub reason: Option<String>,
    /// The reason in one or two sentences.
    pub message: Option<String>,
    /// When it was added.
    pub added_at: String,
    /// When its DNS was last checked; null if it never was.
    pub checked_at: Option<String>,
    /// Whether it is the primary domain.
    pub is_primary: bool,
    /// The DNS record that it needs.
    pub record: DnsRecord,
    /// How often the proxy asked for its certificate.
    pub certificate_requests: CertificateRequests,
}

impl Overview {
    /// The state at this Unix time, in seconds. `addresses` are those of the platform host, as far as they are known.
    pub(super) fn of(
        project: &ProjectReads,
        hosting: &Hosting,
        addresses: &[IpAddr],
        now: i64,
    ) -> Result<Self, StoreError> {
        let platform = hosting.platform_host.as_deref().unwrap_or_default();
        let mut counts: BTreeMap<_, _> = project.certificate_counts()?.into_iter().collect();
        let mut count_of =
            |name: &str| counts.remove(name).map(CertificateRequests::from).unwrap_or_default();
        let view = |domain: Domain| {
            let mut view = DomainView::of(domain.at(now), platform);
            view.record = view.record.with_addresses(addresses);
            view.certificate_requests = count_of(&view.name);
            view
        };
        let domains = project.domains()?.into_iter().map(view).collect();
        let live = project.deploys()?.into_iter().find(|deploy| deploy.is_live);
        Ok(Self {
            plan: project.plan()?,
            platform_host: hosting.platform_host.clone(),
            address: hosting.address(),
            deploy: live.map(|Deploy { id, deployed_at, files, .. }| DeployView {
                id,
                deployed_at: rfc3339(deployed_at),
                files,
            }),
            primary: project.primary()?,
            domains,
            redirects: project.redirects()?,
            other_certificate_requests: count_of(""),
        })
    }
}

impl DomainView {
    /// Whether the last check found nothing that keeps the domain from being served. It may have a remark even so.
    pub fn is_in_order(&self) -> bool {
        self.reason.as_deref().is_none_or(|code| [CAA_ACCOUNT, CAA_UNKNOWN].contains(&code))
    }

    /// A domain of a project on this platform.
    pub(super) fn of(domain: Domain, platform: &str) -> Self {
        let (reason, message) = domain.reason.map(|reason| (reason.code, reason.message)).unzip();
        Self {
            display_name: name::to_unicode(&domain.name),
            record: DnsRecord::of(&domain.name, platform),
            state: domain.state,
            state_text: text(domain.state).to_owned(),
            since: rfc3339(domain.since),
            reason,
            message,
            added_at: rfc3339(domain.added_at),
            checked_at: domain.checked_at.map(rfc3339),
            is_primary: domain.is_primary,
            certificate_requests: CertificateRequests::default(),
            name: domain.name,
        }
    }
}

impl From<CertificateCount> for CertificateRequests {
    fn from(count: CertificateCount) -> Self {
        let CertificateCount { allowed, denied, last_at } = count;
        Self { allowed, denied, last_at: Some(rfc3339(last_at)) }
    }
}

/// A state in words.
fn text(state: DomainState) -> &'static str {
    match state {
        DomainState::PendingDns => "waiting for its DNS record; not served yet",
        DomainState::Verified => {
            "verified; the certificate is created on the first HTTPS request, usually within a couple of minutes"
        }
        DomainState::Active => "served over HTTPS",
        DomainState::CertificateDelayed => {
            "verified, but without a certificate yet; verify it again to check its DNS record and CAA records"
        }
        DomainState::DnsChanged => "its DNS record is no longer correct; its certificate is not renewed",
    }
}
