//! The domains of the project: adds, checks and removes them, and chooses the primary one.

use serde::Serialize;

use crate::config::Hosting;
use crate::database::{Reads, Writes};
use crate::model::{Domain, DomainEvent, DomainState, Plan, Redirect};
use crate::project::Project;
use crate::project::error::{Refusal, RefusalCode};
use crate::project::finding::Finding;
use crate::project::name;
use crate::project::overview::DomainView;
use crate::project::verify::{CHECK_EVERY, check_dns};
use crate::statements::{ProjectReads, ProjectWrites};
use petstore_base::clock::unix_time;

/// The most domains of a project.
const MAX_DOMAINS: usize = 100;

/// The reason for a check of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Occasion {
    /// Somebody asked for it.
    Request,
    /// The last check was [`CHECK_EVERY`] seconds ago.
    Schedule,
}

/// A removed domain, and the redirects that were removed with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Removed {
    /// The name of the domain, in A-labels.
    pub name: String,
    /// The removed redirects from it and to it.
    pub redirects: Vec<Redirect>,
    /// True if it was the primary domain.
    pub was_primary: bool,
}

impl<W: Writes> Project<W> {
    /// Adds a domain. The returned view has the DNS record to create. With `has_www`, also adds the domain with the
    /// prefix `www.`, and redirects it to the first with 301; on failure, adds neither.
    ///
    /// # Errors
    /// [`RefusalCode::PLAN_REQUIRED`], [`RefusalCode::DEPLOY_REQUIRED`] or [`RefusalCode::PLATFORM_HOST_REQUIRED`] if the
    /// project lacks one of these; [`RefusalCode::INVALID_DOMAIN`], [`RefusalCode::DOMAIN_EXISTS`] or
    /// [`RefusalCode::TOO_MANY_DOMAINS`] if a name cannot be added.
    pub fn add(&mut self, text: &str, has_www: bool) -> Result<Vec<DomainView>, Refusal> {
        let hosting = &self.hosting;
        self.store.within_transaction(|project| {
            let platform = may_add(project, hosting)?;
            let mut added = vec![put_new(project, text, platform)?];
            if has_www {
                let to = added[0].name.clone();
                if to.starts_with("www.") {
                    let message =
                        format!("{to} already begins with www. Give the name without it.");
                    return Err(Refusal::new(RefusalCode::INVALID_DOMAIN, message));
                }
                let www = put_new(project, &format!("www.{to}"), platform)?;
                project.put_redirect(&Redirect {
                    from: www.name.clone(),
                    to,
                    status: 301,
                })?;
                added.push(www);
            }
            Ok(added
                .into_iter()
                .map(|domain| DomainView::of(domain, platform))
                .collect())
        })
    }

    /// Checks the DNS record of a domain and the CAA records, which may forbid its certificate, and stores the result. If
    /// both are right, the 30 minutes begin again after which a missing certificate counts as delayed. Takes at most 20 s.
    ///
    /// # Errors
    /// [`RefusalCode::UNKNOWN_DOMAIN`] if the domain does not exist; [`RefusalCode::PLAN_REQUIRED`] if the plan has no
    /// domains; [`RefusalCode::PLATFORM_HOST_REQUIRED`] if no platform is set.
    pub fn check(&mut self, text: &str) -> Result<DomainView, Refusal> {
        let name = self.may_check(text)?;
        let finding = check_dns(&name, &self.hosting);
        self.record(&name, &finding, Occasion::Request, unix_time())
            .map(|(domain, _)| domain)
    }

    /// Returns the stored name of a domain that may be checked, for a name in any form.
    ///
    /// # Errors
    /// Those of [`Project::check`].
    pub(crate) fn may_check(&self, text: &str) -> Result<String, Refusal> {
        let name = self.find(text)?;
        require_plan(&self.store)?;
        platform_host(&self.hosting)?;
        Ok(name)
    }

    /// Stores the result of a check at this Unix time, in seconds. Returns the domain, and true if its state or the
    /// reason has changed since the check before.
    ///
    /// # Errors
    /// [`RefusalCode::UNKNOWN_DOMAIN`] if the domain was removed meanwhile.
    pub(crate) fn record(
        &mut self,
        name: &str,
        finding: &Finding,
        occasion: Occasion,
        now: i64,
    ) -> Result<(DomainView, bool), Refusal> {
        let platform = platform_host(&self.hosting)?;
        self.store.within_transaction(|project| {
            let stored = known(project, name)?;
            let seen_at = stored.checked_at.unwrap_or(now).min(now);
            let before = stored.clone().at(seen_at);
            let mut domain = stored.after(finding.event, finding.reason.clone(), now);
            if occasion == Occasion::Request && finding.event == DomainEvent::Right {
                domain.wait_again(now);
            }
            project.put_domain(&domain)?;
            // If no domain is primary, the next one with a correct DNS record becomes primary.
            let may_be_primary =
                matches!(domain.state, DomainState::Verified | DomainState::Active)
                    && project.redirect(name)?.is_none();
            if may_be_primary && project.primary()?.is_none() {
                project.set_primary(name)?;
            }
            let domain = known(project, name)?.at(now);
            let is_news = (domain.state, &domain.reason) != (before.state, &before.reason);
            Ok((DomainView::of(domain, platform), is_news))
        })
    }

    /// Stores that a trusted proxy has forwarded an HTTPS request for this name.
    ///
    /// # Errors
    /// [`RefusalCode::STORAGE_UNAVAILABLE`] if the database cannot be written.
    pub(crate) fn note_served(&mut self, name: &str) -> Result<(), Refusal> {
        let now = unix_time();
        self.store.within_transaction(|project| {
            // It may have been removed meanwhile.
            if let Some(domain) = project.domain(name)? {
                project.put_domain(&domain.after(DomainEvent::Served, None, now))?;
            }
            Ok(())
        })
    }

    /// Returns the domains with a due check at this Unix time, in seconds: new ones, and those whose last check was at
    /// least [`CHECK_EVERY`] seconds ago. The one with the oldest check comes last.
    ///
    /// # Errors
    /// [`RefusalCode::STORAGE_UNAVAILABLE`] if the database cannot be read.
    pub(crate) fn due(&self, now: i64) -> Result<Vec<String>, Refusal> {
        let domains = self
            .store
            .domains()?
            .into_iter()
            .map(|domain| domain.at(now));
        let is_due = |domain: &Domain| {
            domain
                .checked_at
                .is_none_or(|at| now >= at.saturating_add(CHECK_EVERY))
        };
        let mut domains: Vec<Domain> = domains.filter(is_due).collect();
        domains.sort_by_key(|domain| std::cmp::Reverse(domain.checked_at));
        Ok(domains.into_iter().map(|domain| domain.name).collect())
    }

    /// Makes a domain the primary one: the canonical host, to which pages link (RFC 6596). Requests for other domains
    /// are not redirected.
    ///
    /// # Errors
    /// [`RefusalCode::UNKNOWN_DOMAIN`] if it does not exist; [`RefusalCode::PLAN_REQUIRED`] if the plan has no domains;
    /// [`RefusalCode::NOT_VERIFIED`] if it is not served yet; [`RefusalCode::INVALID_REDIRECT`] if it redirects to
    /// another domain.
    pub fn set_primary(&mut self, text: &str) -> Result<(), Refusal> {
        let name = name::normal(text);
        self.store.within_transaction(|project| {
            let domain = known(project, &name)?;
            require_plan(project)?;
            if !domain.state.is_served() {
                let message = format!(
                    "{name} is not verified yet. 'petstore domain verify {name}' checks its record."
                );
                return Err(Refusal::new(RefusalCode::NOT_VERIFIED, message));
            }
            if let Some(redirect) = project.redirect(&name)? {
                let message = format!(
                    "{name} redirects to {}. Remove that redirect first.",
                    redirect.to
                );
                return Err(Refusal::new(RefusalCode::INVALID_REDIRECT, message));
            }
            Ok(project.set_primary(&name)?)
        })
    }

    /// Removes a domain, and the redirects from it and to it. The next request for it is rejected, unless it is the
    /// host of the base URL or the staging URL. If it was primary, the next domain with a successful check becomes
    /// primary.
    ///
    /// # Errors
    /// [`RefusalCode::UNKNOWN_DOMAIN`] if the domain does not exist.
    pub fn remove(&mut self, text: &str) -> Result<Removed, Refusal> {
        let name = name::normal(text);
        self.store.within_transaction(|project| {
            let was_primary = known(project, &name)?.is_primary;
            let mut redirects = project.redirects()?;
            redirects.retain(|redirect| redirect.from == name || redirect.to == name);
            project.remove_domain(&name)?;
            Ok(Removed {
                name: name.clone(),
                redirects,
                was_primary,
            })
        })
    }

    /// Returns the stored name of an existing domain, for a name in any form.
    ///
    /// # Errors
    /// [`RefusalCode::UNKNOWN_DOMAIN`] if the domain does not exist.
    pub fn find(&self, text: &str) -> Result<String, Refusal> {
        // The rules for new names are not applied: they may have been different when the domain was added.
        Ok(known(&self.store, &name::normal(text))?.name)
    }
}

/// Fails if the plan has no domains.
pub(crate) fn require_plan(project: &impl Reads) -> Result<(), Refusal> {
    if project.plan()? == Plan::Free {
        let message = "Domains need the plan pro or enterprise, and this project has the plan free. \
                       'petstore site plan pro' changes it.";
        return Err(Refusal::new(RefusalCode::PLAN_REQUIRED, message));
    }
    Ok(())
}

/// Fails if the project may have no domains. Returns the host of the platform.
fn may_add<'h>(project: &impl Reads, hosting: &'h Hosting) -> Result<&'h str, Refusal> {
    require_plan(project)?;
    if !project.is_deployed()? {
        let message = "A domain needs a site to serve, and this project has never been deployed. \
                       'petstore site deploy' deploys it.";
        return Err(Refusal::new(RefusalCode::DEPLOY_REQUIRED, message));
    }
    platform_host(hosting)
}

/// Adds one domain.
fn put_new(project: &mut impl Writes, text: &str, platform: &str) -> Result<Domain, Refusal> {
    let name = name::parse(text, platform)?;
    let domains = project.domains()?;
    if domains.iter().any(|domain| domain.name == name) {
        let message = format!("The project already has the domain {name}.");
        return Err(Refusal::new(RefusalCode::DOMAIN_EXISTS, message));
    }
    if domains.len() >= MAX_DOMAINS {
        let message = format!("The project has {MAX_DOMAINS} domains, which is the limit.");
        return Err(Refusal::new(RefusalCode::TOO_MANY_DOMAINS, message));
    }
    let domain = Domain::new(name, unix_time());
    project.put_domain(&domain)?;
    Ok(domain)
}

/// The domain of this name.
pub(crate) fn known(project: &impl Reads, name: &str) -> Result<Domain, Refusal> {
    project.domain(name)?.ok_or_else(|| {
        let shown: String = name.chars().take(80).filter(|c| !c.is_control()).collect();
        let message = format!(
            "The project has no domain '{shown}'; 'petstore domain list' shows its domains."
        );
        Refusal::new(RefusalCode::UNKNOWN_DOMAIN, message)
    })
}

/// The host of the hosting platform.
pub(crate) fn platform_host(hosting: &Hosting) -> Result<&str, Refusal> {
    hosting.platform_host.as_deref().ok_or_else(|| {
        let message = "Domains need the host of the hosting platform. Give --platform-host HOST, or set \
                       PETSTORE_PLATFORM_HOST, to the value that the service has.";
        Refusal::new(RefusalCode::PLATFORM_HOST_REQUIRED, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::overview::Overview;
    use crate::project::testing::{check, code, project};

    #[test]
    fn new_domain_is_due_at_once_and_the_longest_unchecked_last() {
        let (_folder, mut project) = project();
        for name in ["a.test", "b.test"] {
            project.add(name, false).unwrap();
        }
        let now = unix_time();
        check(&mut project, "b.test", DomainEvent::Right, "").unwrap();
        assert_eq!(project.due(now).unwrap(), ["a.test"]);
        assert_eq!(
            project.due(now + CHECK_EVERY + 9).unwrap(),
            ["b.test", "a.test"]
        );
        assert_eq!(
            project.due(now - 86_400).unwrap(),
            ["a.test", "b.test"],
            "a check of tomorrow counts as none"
        );
    }

    #[test]
    fn first_domain_that_is_found_right_is_primary_unless_it_redirects() {
        let (_folder, mut project) = project();
        for name in ["a.test", "b.test", "c.test", "d.test"] {
            project.add(name, false).unwrap();
        }
        assert!(
            !check(&mut project, "a.test", DomainEvent::Wrong, "wrong_target")
                .unwrap()
                .0
                .domain
                .is_primary
        );
        let keep = |project: &mut Project<crate::project::testing::Database>, name| {
            check(project, name, DomainEvent::Right, "")
        };
        for (name, is_primary) in [
            ("b.test", true),
            ("a.test", false),
            ("c.test", false),
            ("d.test", false),
        ] {
            assert_eq!(
                keep(&mut project, name).unwrap().0.domain.is_primary,
                is_primary,
                "{name}"
            );
        }
        project.note_served("c.test").unwrap();
        project.add_redirect("a.test", "c.test", 301).unwrap();
        assert!(project.remove("b.test").unwrap().was_primary);
        assert!(
            !keep(&mut project, "a.test").unwrap().0.domain.is_primary,
            "it redirects"
        );
        assert!(keep(&mut project, "c.test").unwrap().0.domain.is_primary);
        assert!(!project.remove("d.test").unwrap().was_primary);
        assert_eq!(project.remove("C.test.").unwrap().redirects.len(), 1);
        assert_eq!(code(keep(&mut project, "b.test")), "unknown_domain");
    }

    /// The plan can be `free` only in a database that another version has written.
    #[test]
    fn plan_without_domains_changes_none_and_removes_them() {
        let (_folder, mut project) = project();
        for name in ["a.test", "b.test", "c.test"] {
            project.add(name, false).unwrap();
            check(&mut project, name, DomainEvent::Right, "").unwrap();
        }
        project.add_redirect("c.test", "a.test", 301).unwrap();
        let refused = project.set_plan(Plan::Free).unwrap_err();
        assert_eq!(refused.code, RefusalCode::DOMAINS_EXIST);
        assert!(
            refused.message.contains("has a.test, b.test, c.test."),
            "{}",
            refused.message
        );
        project.set_plan(Plan::Enterprise).unwrap();
        project
            .store
            .within_transaction(|store| store.set_plan(Plan::Free))
            .unwrap();
        assert_eq!(code(project.add("d.test", false)), "plan_required");
        assert_eq!(code(project.check("a.test")), "plan_required");
        assert_eq!(code(project.set_primary("b.test")), "plan_required");
        assert_eq!(
            code(project.add_redirect("b.test", "a.test", 301)),
            "plan_required"
        );
        project.remove_redirect("c.test").unwrap();
        for name in ["a.test", "b.test", "c.test"] {
            project.remove(name).unwrap();
        }
        project.set_plan(Plan::Free).unwrap();
    }

    #[test]
    fn project_has_a_bound_of_domains() {
        let (_folder, mut project) = project();
        for number in 0..MAX_DOMAINS {
            project.add(&format!("a{number}.test"), false).unwrap();
        }
        assert_eq!(
            code(project.add("one-more.test", false)),
            "too_many_domains"
        );
        project.remove("a0.test").unwrap();
        assert_eq!(code(project.add("pair.test", true)), "too_many_domains");
        project.add("one-more.test", false).unwrap();
    }

    #[test]
    fn pair_is_added_whole_or_not_at_all() {
        let (_folder, mut project) = project();
        let added = project.add("Bücher.test.", true).unwrap();
        let [domain, www] = &added[..] else {
            panic!("{added:?}")
        };
        assert_eq!(
            (&*domain.domain.name, &*www.domain.name),
            ("xn--bcher-kva.test", "www.xn--bcher-kva.test")
        );
        let expected = Redirect {
            from: www.domain.name.clone(),
            to: domain.domain.name.clone(),
            status: 301,
        };
        assert_eq!(project.overview().unwrap().redirects, [expected]);
        project.add("www.a.test", false).unwrap();
        assert_eq!(code(project.add("a.test", true)), "domain_exists");
        assert_eq!(code(project.add("www.b.test", true)), "invalid_domain");
        let long = format!("{}test", "a.".repeat(124));
        assert_eq!(code(project.add(&long, true)), "invalid_domain");
        assert_eq!(project.overview().unwrap().domains.len(), 3);
        // The domain with the redirect does not become primary, even if it is verified first.
        let verified = |project: &mut Project<crate::project::testing::Database>, name| {
            check(project, name, DomainEvent::Right, "").unwrap().0
        };
        assert!(
            !verified(&mut project, "www.xn--bcher-kva.test")
                .domain
                .is_primary
        );
        assert!(
            verified(&mut project, "xn--bcher-kva.test")
                .domain
                .is_primary
        );
    }

    #[test]
    fn new_state_or_reason_is_news_once() {
        let (_folder, mut project) = project();
        project.add("a.test", false).unwrap();
        for (event, reason, is_news) in [
            (DomainEvent::Wrong, "wrong_target", true),
            (DomainEvent::Wrong, "wrong_target", false),
            (DomainEvent::Right, "", true),
            (DomainEvent::Right, "", false),
            (DomainEvent::Blocked, "caa_blocks", true),
            (DomainEvent::Blocked, "caa_blocks", false),
            (DomainEvent::Wrong, "wrong_target", true),
        ] {
            assert_eq!(
                check(&mut project, "a.test", event, reason).unwrap().1,
                is_news,
                "{event:?}"
            );
        }
    }

    #[test]
    fn certificate_that_does_not_come_is_delayed_although_the_service_checks_every_ten_minutes() {
        let (_folder, mut project) = project();
        project.add("a.test", false).unwrap();
        let start = unix_time();
        let mut check = |occasion, minutes: i64| {
            let now = start + 60 * minutes;
            let (view, is_news) = project
                .record("a.test", &Finding::RIGHT, occasion, now)
                .unwrap();
            let overview = Overview::of(&project.store, &project.hosting, now).unwrap();
            assert_eq!(
                overview.domains[0].domain, view.domain,
                "in the list as in the response"
            );
            (view.domain.state, (view.domain.since - start) / 60, is_news)
        };
        let (verified, delayed) = (DomainState::Verified, DomainState::CertificateDelayed);
        assert_eq!(check(Occasion::Schedule, 0), (verified, 0, true));
        assert_eq!(check(Occasion::Schedule, 10), (verified, 0, false));
        assert_eq!(check(Occasion::Schedule, 20), (verified, 0, false));
        assert_eq!(check(Occasion::Schedule, 30), (delayed, 30, true));
        assert_eq!(check(Occasion::Schedule, 40), (delayed, 30, false));
        assert_eq!(check(Occasion::Request, 45), (verified, 45, true));
        assert_eq!(check(Occasion::Schedule, 74), (verified, 45, false));
        assert_eq!(check(Occasion::Schedule, 84), (delayed, 75, true));
    }

    #[test]
    fn removed_domain_takes_its_own_redirects_along_and_no_other() {
        let (_folder, mut project) = project();
        for (from, to) in [("a.test", "b.test"), ("c.test", "d.test")] {
            for name in [to, from] {
                project.add(name, false).unwrap();
                check(&mut project, name, DomainEvent::Right, "").unwrap();
            }
            project.add_redirect(from, to, 301).unwrap();
        }
        let removed = project.remove("b.test").unwrap().redirects;
        let removed: Vec<_> = removed
            .iter()
            .map(|redirect| (&*redirect.from, &*redirect.to))
            .collect();
        assert_eq!(removed, [("a.test", "b.test")]);
        assert_eq!(project.overview().unwrap().redirects.len(), 1);
    }
}
