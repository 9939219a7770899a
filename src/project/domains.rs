//! The domains of the project: adding and checking them, and which one is primary.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::dns_check::{check_dns, platform_addresses};
use super::finding::{CAA_BLOCKS, CAA_UNKNOWN, DNS_UNAVAILABLE, Finding};
use super::overview::DomainView;
use super::refusal::{Refusal, RefusalCode};
use super::{Project, name};
use crate::clock::unix_time;
use crate::config::Hosting;
use crate::model::{CertificateCount, Domain, DomainEvent, DomainState, Plan, Redirect};
use crate::store::{ProjectChange, ProjectReads};

/// The most domains of a project.
const MAX_DOMAINS: usize = 100;
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// A bit less than two minutes, because the service looks once a minute for what is due.
const TWO_MINUTES: i64 = 110;

impl Project {
    /// Adds a domain. Its DNS record is yet to be created.
    ///
    /// # Errors
    /// [`RefusalCode::PlanRequired`], [`RefusalCode::DeployRequired`] or [`RefusalCode::PlatformHostRequired`] if the
    /// project lacks one of these; [`RefusalCode::InvalidDomain`], [`RefusalCode::DomainExists`] or
    /// [`RefusalCode::TooManyDomains`] if the name cannot be added.
    pub fn add(&mut self, text: &str) -> Result<DomainView, Refusal> {
        let hosting = &self.hosting;
        self.store.change_project(|project| {
            let platform = may_add(project, hosting)?;
            Ok(DomainView::of(put_new(project, text, platform)?, platform))
        })
    }

    /// Adds a domain and the one with `www.` before it, which redirects to it with 301: both, or none of them.
    ///
    /// # Errors
    /// Those of [`Project::add`], for either name.
    pub fn add_with_www(&mut self, text: &str) -> Result<[DomainView; 2], Refusal> {
        let hosting = &self.hosting;
        self.store.change_project(|project| {
            let platform = may_add(project, hosting)?;
            let domain = put_new(project, text, platform)?;
            if domain.name.starts_with("www.") {
                let message = format!("{} already begins with www. Give the name without it.", domain.name);
                return Err(Refusal::new(RefusalCode::InvalidDomain, message));
            }
            let www = put_new(project, &format!("www.{}", domain.name), platform)?;
            let (from, to) = (www.name.clone(), domain.name.clone());
            project.put_redirect(&Redirect { from, to, status: 301 })?;
            Ok([domain, www].map(|domain| DomainView::of(domain, platform)))
        })
    }

    /// Looks up the addresses of the platform host, for the A and AAAA records of an apex domain. Takes at most 4 s; none
    /// if DNS does not tell them.
    pub fn platform_addresses(&self) -> Vec<IpAddr> {
        let platform = self.hosting.platform_host.as_deref();
        platform.map(|platform| platform_addresses(platform, &self.hosting)).unwrap_or_default()
    }

    /// Checks the DNS record of a domain and the CAA records that may forbid its certificate, and keeps the finding.
    /// Takes at most 20 s.
    ///
    /// # Errors
    /// [`RefusalCode::UnknownDomain`] if the domain does not exist; [`RefusalCode::PlatformHostRequired`] if no
    /// platform is set.
    pub fn check(&mut self, text: &str) -> Result<DomainView, Refusal> {
        let name = self.find(text)?;
        let finding = check_dns(&name, platform_host(&self.hosting)?, &self.hosting);
        self.keep(&name, &finding).map(|(domain, _)| domain)
    }

    /// Keeps what a check found about a domain. Returns also whether the domain has become worse: its record is no
    /// longer right, or CAA records now block its certificate.
    ///
    /// # Errors
    /// [`RefusalCode::UnknownDomain`] if the domain was removed meanwhile.
    pub(super) fn keep(&mut self, name: &str, finding: &Finding) -> Result<(DomainView, bool), Refusal> {
        let platform = platform_host(&self.hosting)?;
        self.store.change_project(|project| {
            let now = unix_time();
            let before = known(project, name)?.at(now);
            let domain = before.clone().after(finding.event, finding.reason.clone(), now);
            project.put_domain(&domain)?;
            let is_worse = match finding.event {
                DomainEvent::Blocked => !before.has_reason(CAA_BLOCKS),
                _ => domain.state == DomainState::DnsChanged && before.state != DomainState::DnsChanged,
            };
            // The first domain that may be served becomes primary.
            let may_be_primary = domain.state == DomainState::Verified && project.redirect(name)?.is_none();
            if may_be_primary && project.primary()?.is_none() {
                project.set_primary(name)?;
            }
            Ok((DomainView::of(known(project, name)?, platform), is_worse))
        })
    }

    /// Keeps that a trusted proxy has passed on HTTPS requests for these names.
    ///
    /// # Errors
    /// [`RefusalCode::StorageUnavailable`] if the database cannot be written.
    pub(super) fn note_served(&mut self, names: impl IntoIterator<Item = String>) -> Result<(), Refusal> {
        let (now, names) = (unix_time(), names.into_iter().collect::<Vec<_>>());
        self.store.change_project(|project| {
            for name in &names {
                // It may have been removed meanwhile.
                if let Some(domain) = project.domain(name)? {
                    project.put_domain(&domain.at(now).after(DomainEvent::Served, None, now))?;
                }
            }
            Ok(())
        })
    }

    /// Returns the domains whose DNS is to be checked again at this Unix time, in seconds. The longest unchecked comes
    /// first.
    ///
    /// # Errors
    /// [`RefusalCode::StorageUnavailable`] if the database cannot be read.
    pub(super) fn due(&self, now: i64) -> Result<Vec<String>, Refusal> {
        let mut domains = self.store.project().domains()?;
        let checked_at = |domain: &Domain| domain.checked_at.unwrap_or(domain.added_at);
        domains.retain(|domain| checked_at(domain) <= now.saturating_sub(pause(domain, now)));
        domains.sort_by_key(checked_at);
        Ok(domains.into_iter().map(|domain| domain.name).collect())
    }

    /// Adds to the certificates that the proxy asked for, by name.
    ///
    /// # Errors
    /// [`RefusalCode::StorageUnavailable`] if the database cannot be written.
    pub(super) fn count_certificates(
        &mut self,
        counts: &BTreeMap<String, CertificateCount>,
    ) -> Result<(), Refusal> {
        self.store.change_project(|project| {
            for (name, count) in counts {
                // It may have been removed meanwhile.
                let is_domain = project.domain(name)?.is_some();
                project.count_certificates(if is_domain { name } else { "" }, *count)?;
            }
            Ok(())
        })
    }

    /// Makes a domain the primary one, which pages name as their canonical address (RFC 6596). Requests for the others
    /// are not redirected.
    ///
    /// # Errors
    /// [`RefusalCode::NotVerified`] if it is not served yet; [`RefusalCode::InvalidRedirect`] if it redirects to
    /// another domain.
    pub fn set_primary(&mut self, text: &str) -> Result<(), Refusal> {
        let name = name::normal(text);
        self.store.change_project(|project| {
            if !known(project, &name)?.state.is_served() {
                let message =
                    format!("{name} is not verified yet. 'petstore domain verify {name}' checks its record.");
                return Err(Refusal::new(RefusalCode::NotVerified, message));
            }
            if let Some(redirect) = project.redirect(&name)? {
                let message = format!("{name} redirects to {}. Remove that redirect first.", redirect.to);
                return Err(Refusal::new(RefusalCode::InvalidRedirect, message));
            }
            Ok(project.set_primary(&name)?)
        })
    }

    /// Returns the name of an existing domain as it is stored.
    ///
    /// # Errors
    /// [`RefusalCode::UnknownDomain`] if the domain does not exist.
    pub fn find(&self, text: &str) -> Result<String, Refusal> {
        // Without the rules for new names, which may have been others when the domain was added.
        Ok(known(&self.store.project(), &name::normal(text))?.name)
    }
}

/// How many seconds pass at this Unix time between two checks of a domain. A record that is awaited is looked for every
/// two minutes for an hour, and hourly for two days. After that, as with a record that is right, once a day, or after
/// an hour if DNS could not be asked.
fn pause(domain: &Domain, now: i64) -> i64 {
    let is_awaited = matches!(domain.state, DomainState::PendingDns | DomainState::DnsChanged);
    match now.saturating_sub(domain.since) {
        age if is_awaited && age < HOUR => TWO_MINUTES,
        age if is_awaited && age < 2 * DAY => HOUR,
        _ if domain.has_reason(DNS_UNAVAILABLE) || domain.has_reason(CAA_UNKNOWN) => HOUR,
        _ => DAY,
    }
}

/// Refuses if the project may have no domains. Returns the host of the platform.
fn may_add<'h>(project: &ProjectReads, hosting: &'h Hosting) -> Result<&'h str, Refusal> {
    if project.plan()? == Plan::Free {
        let message = "Domains need the plan pro or enterprise, and this project has the plan free. \
                       'petstore site plan pro' changes it.";
        return Err(Refusal::new(RefusalCode::PlanRequired, message));
    }
    if !project.is_deployed()? {
        let message = "A domain needs a site to serve, and this project has never been deployed. \
                       'petstore site deploy' deploys it.";
        return Err(Refusal::new(RefusalCode::DeployRequired, message));
    }
    platform_host(hosting)
}

/// Adds one domain.
fn put_new(project: &ProjectChange, text: &str, platform: &str) -> Result<Domain, Refusal> {
    let name = name::parse(text, platform)?;
    let domains = project.domains()?;
    if domains.iter().any(|domain| domain.name == name) {
        let message = format!("The project already has the domain {name}.");
        return Err(Refusal::new(RefusalCode::DomainExists, message));
    }
    if domains.len() >= MAX_DOMAINS {
        let message = format!("The project has {MAX_DOMAINS} domains, which is the limit.");
        return Err(Refusal::new(RefusalCode::TooManyDomains, message));
    }
    let domain = Domain::new(name, unix_time());
    project.put_domain(&domain)?;
    project.forget_removed(&domain.name)?;
    Ok(domain)
}

/// The domain of this name.
pub(super) fn known(project: &ProjectReads, name: &str) -> Result<Domain, Refusal> {
    project.domain(name)?.ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Refusal {
    let shown: String = name.chars().take(80).filter(|c| !c.is_control()).collect();
    let message = format!("The project has no domain '{shown}'; 'petstore domain list' shows its domains.");
    Refusal::new(RefusalCode::UnknownDomain, message)
}

/// The host of the hosting platform.
fn platform_host(hosting: &Hosting) -> Result<&str, Refusal> {
    hosting.platform_host.as_deref().ok_or_else(|| {
        let message = "Domains need the host of the hosting platform. Give --platform-host HOST, or set \
                       PETSTORE_PLATFORM_HOST, to the value that the service has.";
        Refusal::new(RefusalCode::PlatformHostRequired, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::tests::{code, finding, project};

    #[test]
    fn domain_is_due_after_a_day_and_sooner_if_nothing_is_known() {
        let (_folder, mut project) = project();
        for name in ["a.test", "b.test"] {
            project.add(name).unwrap();
        }
        project.keep("a.test", &finding(DomainEvent::Right, "")).unwrap();
        project.keep("b.test", &finding(DomainEvent::Right, CAA_UNKNOWN)).unwrap();
        let now = unix_time();
        assert_eq!(project.due(now).unwrap(), [""; 0]);
        assert_eq!(project.due(now + HOUR + 9).unwrap(), ["b.test"]);
        let mut due = project.due(now + DAY + 9).unwrap();
        due.sort();
        assert_eq!(due, ["a.test", "b.test"]);
    }

    #[test]
    fn awaited_record_is_looked_for_every_two_minutes_then_hourly_then_daily() {
        let right = Domain::new("a.test".to_owned(), 0).after(DomainEvent::Right, None, 0);
        for domain in [Domain::new("a.test".to_owned(), 0), right.after(DomainEvent::Wrong, None, 0)] {
            for (age, expected) in
                [(0, TWO_MINUTES), (HOUR - 1, TWO_MINUTES), (HOUR, HOUR), (2 * DAY - 1, HOUR), (2 * DAY, DAY)]
            {
                assert_eq!(pause(&domain, age), expected, "{:?} after {age} s", domain.state);
            }
        }
        let (_folder, mut project) = project();
        project.add("a.test").unwrap();
        let now = unix_time();
        assert_eq!(project.due(now + 60).unwrap(), [""; 0]);
        assert_eq!(project.due(now + 120).unwrap(), ["a.test"]);
    }

    #[test]
    fn first_verified_domain_is_primary_until_it_is_removed_and_then_an_active_one() {
        let (_folder, mut project) = project();
        project.add("a.test").unwrap();
        project.add("b.test").unwrap();
        assert!(!project.keep("a.test", &finding(DomainEvent::Wrong, "wrong_target")).unwrap().0.is_primary);
        assert!(project.keep("b.test", &finding(DomainEvent::Right, "")).unwrap().0.is_primary);
        assert!(!project.keep("a.test", &finding(DomainEvent::Right, "")).unwrap().0.is_primary);
        for name in ["c.test", "d.test", "e.test"] {
            project.add(name).unwrap();
            project.keep(name, &finding(DomainEvent::Right, "")).unwrap();
        }
        project.note_served(["c.test".to_owned(), "e.test".to_owned()]).unwrap();
        project.add_redirect("c.test", "d.test", 301).unwrap();
        let primary_after = |project: &mut Project, name: &str| project.remove(name).unwrap().primary;
        // The active one before the verified one, but not the one that redirects.
        assert_eq!(primary_after(&mut project, "b.test").as_deref(), Some("e.test"));
        assert_eq!(project.overview().unwrap().primary.as_deref(), Some("e.test"));
        assert_eq!(primary_after(&mut project, "a.test").as_deref(), Some("e.test"), "it was not primary");
        // Without its redirect, the active one may be primary.
        assert_eq!(project.remove("d.test").unwrap().redirects.len(), 1);
        assert_eq!(primary_after(&mut project, "e.test").as_deref(), Some("c.test"));
        let removed = project.remove("c.test").unwrap();
        assert!(removed.was_primary && removed.primary.is_none() && !removed.is_own_host);
        assert_eq!(code(project.keep("b.test", &finding(DomainEvent::Right, ""))), "unknown_domain");
        project.add("api.test").unwrap();
        assert!(project.remove("API.test.").unwrap().is_own_host);
    }

    #[test]
    fn project_has_a_bound_of_domains() {
        let (_folder, mut project) = project();
        for number in 0..MAX_DOMAINS {
            project.add(&format!("a{number}.test")).unwrap();
        }
        assert_eq!(code(project.add("one-more.test")), "too_many_domains");
        project.remove("a0.test").unwrap();
        assert_eq!(code(project.add_with_www("pair.test")), "too_many_domains");
        project.add("one-more.test").unwrap();
    }

    #[test]
    fn pair_is_added_whole_or_not_at_all() {
        let (_folder, mut project) = project();
        let [domain, www] = project.add_with_www("Bücher.test.").unwrap();
        assert_eq!((&*domain.name, &*www.name), ("xn--bcher-kva.test", "www.xn--bcher-kva.test"));
        let expected = Redirect { from: www.name, to: domain.name, status: 301 };
        assert_eq!(project.overview().unwrap().redirects, [expected]);
        project.add("www.a.test").unwrap();
        assert_eq!(code(project.add_with_www("a.test")), "domain_exists");
        assert_eq!(code(project.add_with_www("www.b.test")), "invalid_domain");
        let long = format!("{}test", "a.".repeat(124));
        assert_eq!(code(project.add_with_www(&long)), "invalid_domain");
        assert_eq!(project.overview().unwrap().domains.len(), 3);
        // The one that redirects does not become primary, even if it is verified first.
        let verified =
            |project: &mut Project, name| project.keep(name, &finding(DomainEvent::Right, "")).unwrap().0;
        assert!(!verified(&mut project, "www.xn--bcher-kva.test").is_primary);
        assert!(verified(&mut project, "xn--bcher-kva.test").is_primary);
    }

    #[test]
    fn what_was_right_and_is_wrong_is_news_once() {
        let (_folder, mut project) = project();
        project.add("a.test").unwrap();
        for (event, reason, is_worse) in [
            (DomainEvent::Wrong, "wrong_target", false),
            (DomainEvent::Right, "", false),
            (DomainEvent::Unknown, "no_answer", false),
            (DomainEvent::Wrong, "wrong_target", true),
            (DomainEvent::Wrong, "wrong_target", false),
            (DomainEvent::Right, "", false),
            (DomainEvent::Blocked, CAA_BLOCKS, true),
            (DomainEvent::Blocked, CAA_BLOCKS, false),
        ] {
            assert_eq!(project.keep("a.test", &finding(event, reason)).unwrap().1, is_worse, "{event:?}");
        }
    }

    #[test]
    fn removed_domain_takes_its_own_redirects_along_and_no_other() {
        let (_folder, mut project) = project();
        for (from, to) in [("a.test", "b.test"), ("c.test", "d.test")] {
            for name in [to, from] {
                project.add(name).unwrap();
                project.keep(name, &finding(DomainEvent::Right, "")).unwrap();
            }
            project.add_redirect(from, to, 301).unwrap();
        }
        let removed = project.remove("b.test").unwrap().redirects;
        let removed: Vec<_> = removed.iter().map(|redirect| (&*redirect.from, &*redirect.to)).collect();
        assert_eq!(removed, [("a.test", "b.test")]);
        assert_eq!(project.overview().unwrap().redirects.len(), 1);
    }
}
