//! Removes domains, and remembers them: somebody else with a place on the platform could serve a name whose DNS record
//! still leads here, so the log names it once a week until the record is gone, for half a year.

use serde::Serialize;

use super::domains::known;
use super::finding::Finding;
use super::refusal::Refusal;
use super::{Project, name};
use crate::clock::unix_time;
use crate::model::{Domain, DomainEvent, DomainState, Redirect, RemovedDomain};
use crate::store::{ProjectChange, ProjectReads, StoreError};

/// The most removed domains that are remembered. The longest removed one is forgotten first.
const MAX_REMOVED: usize = 100;
const DAY: i64 = 24 * 3600;
const WEEK: i64 = 7 * DAY;
/// How long a removed domain is remembered.
const REMEMBERED: i64 = 26 * WEEK;

/// What went with a domain that was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Removed {
    /// The name of the domain, in A-labels.
    pub name: String,
    /// The redirects from it and to it, which were removed too.
    pub redirects: Vec<Redirect>,
    /// Whether it was the primary domain.
    pub was_primary: bool,
    /// The primary domain from now on; null if there is none.
    pub primary: Option<String>,
    /// Whether the service serves the name even so, since it is the host of the base URL or the staging URL.
    pub is_own_host: bool,
}

/// The domain that becomes primary when the primary one is removed: the one added first of those that are active, or
/// else verified, and do not redirect.
fn successor(project: &ProjectReads) -> Result<Option<String>, StoreError> {
    let (redirects, now) = (project.redirects()?, unix_time());
    let domains = project.domains()?.into_iter().map(|domain| domain.at(now));
    let may_be_primary = |domain: &Domain| {
        matches!(domain.state, DomainState::Active | DomainState::Verified)
            && !redirects.iter().any(|redirect| redirect.from == domain.name)
    };
    let chosen =
        domains.filter(may_be_primary).min_by_key(|it| (it.state != DomainState::Active, it.added_at));
    Ok(chosen.map(|domain| domain.name))
}

/// Remembers a domain that was just removed.
fn remember(project: &ProjectChange, name: &str) -> Result<(), Refusal> {
    project.put_removed(&RemovedDomain {
        name: name.to_owned(),
        removed_at: unix_time(),
        checked_at: None,
    })?;
    let mut removed = project.removed_domains()?;
    removed.sort_by_key(|domain| domain.removed_at);
    for domain in &removed[..removed.len().saturating_sub(MAX_REMOVED)] {
        project.forget_removed(&domain.name)?;
    }
    Ok(())
}

impl Project {
    /// Removes a domain, and the redirects from it and to it. It is not served from the next request on, unless it is
    /// the host of the base URL or the staging URL. If it was primary, another domain takes its place.
    ///
    /// # Errors
    /// [`RefusalCode::UnknownDomain`](super::RefusalCode::UnknownDomain) if the domain does not exist.
    pub fn remove(&mut self, text: &str) -> Result<Removed, Refusal> {
        let name = name::normal(text);
        let is_own_host = self.own_hosts.contains(&name);
        self.store.change_project(|project| {
            let was_primary = known(project, &name)?.is_primary;
            let mut redirects = project.redirects()?;
            redirects.retain(|redirect| redirect.from == name || redirect.to == name);
            project.remove_domain(&name)?;
            remember(project, &name)?;
            let primary = if was_primary { successor(project)? } else { project.primary()? };
            if let Some(successor) = primary.as_ref().filter(|_| was_primary) {
                project.set_primary(successor)?;
            }
            Ok(Removed { name: name.clone(), redirects, was_primary, primary, is_own_host })
        })
    }

    /// Returns the removed domains whose DNS is to be checked at this Unix time, in seconds: a day after the removal,
    /// and then once a week.
    ///
    /// # Errors
    /// [`RefusalCode::StorageUnavailable`](super::RefusalCode::StorageUnavailable) if the database cannot be read.
    pub(super) fn due_removed(&self, now: i64) -> Result<Vec<String>, Refusal> {
        let due_at = |it: &RemovedDomain| it.checked_at.map_or(it.removed_at + DAY, |at| at + WEEK);
        let removed = self.store.project().removed_domains()?;
        Ok(removed.into_iter().filter(|it| due_at(it) <= now).map(|it| it.name).collect())
    }

    /// Keeps what a check found about a removed domain. Returns whether its record still leads here. If it does not,
    /// or should because the name is served for another reason, or half a year has passed, the domain is forgotten.
    ///
    /// # Errors
    /// [`RefusalCode::StorageUnavailable`](super::RefusalCode::StorageUnavailable) if the database cannot be written.
    pub(super) fn keep_removed(&mut self, name: &str, finding: &Finding) -> Result<bool, Refusal> {
        let (now, is_own_host) = (unix_time(), self.own_hosts.iter().any(|host| host == name));
        self.store.change_project(|project| {
            let removed = project.removed_domains()?.into_iter().find(|removed| removed.name == name);
            // It may have been added again meanwhile.
            let Some(removed) = removed else { return Ok(false) };
            let is_over = is_own_host || now >= removed.removed_at + REMEMBERED;
            if is_over || finding.event == DomainEvent::Wrong {
                project.forget_removed(name)?;
            } else {
                project.put_removed(&RemovedDomain { checked_at: Some(now), ..removed })?;
            }
            Ok(!is_own_host && matches!(finding.event, DomainEvent::Right | DomainEvent::Blocked))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::tests::{finding, project};

    fn put(project: &mut Project, name: &str, removed_at: i64) {
        let removed = RemovedDomain { name: name.to_owned(), removed_at, checked_at: None };
        project.store.change_project(|project| project.put_removed(&removed)).unwrap();
    }

    fn names(project: &Project) -> Vec<String> {
        let removed = project.store.project().removed_domains().unwrap();
        removed.into_iter().map(|removed| removed.name).collect()
    }

    #[test]
    fn removed_domain_is_due_after_a_day_and_then_weekly_until_its_record_is_gone() {
        let (_folder, mut project) = project();
        project.add("a.test").unwrap();
        project.remove("a.test").unwrap();
        let now = unix_time();
        assert_eq!(project.due_removed(now + DAY - 9).unwrap(), [""; 0]);
        assert_eq!(project.due_removed(now + DAY + 9).unwrap(), ["a.test"]);
        for event in [DomainEvent::Right, DomainEvent::Blocked] {
            assert!(project.keep_removed("a.test", &finding(event, "")).unwrap());
        }
        assert!(!project.keep_removed("a.test", &finding(DomainEvent::Unknown, "")).unwrap());
        assert_eq!(project.due_removed(now + WEEK - 9).unwrap(), [""; 0]);
        assert_eq!(project.due_removed(now + WEEK + 9).unwrap(), ["a.test"]);
        assert!(!project.keep_removed("a.test", &finding(DomainEvent::Wrong, "")).unwrap());
        assert_eq!(names(&project), [""; 0]);
        assert!(!project.keep_removed("a.test", &finding(DomainEvent::Right, "")).unwrap(), "forgotten");
    }

    #[test]
    fn removed_domain_is_forgotten_when_it_is_added_again_or_served_anyway_or_half_a_year_old() {
        let (_folder, mut project) = project();
        for name in ["a.test", "api.test"] {
            project.add(name).unwrap();
            project.remove(name).unwrap();
        }
        project.add("a.test").unwrap();
        assert_eq!(names(&project), ["api.test"]);
        assert!(!project.keep_removed("api.test", &finding(DomainEvent::Right, "")).unwrap(), "its own host");
        put(&mut project, "b.test", unix_time() - REMEMBERED);
        assert!(project.keep_removed("b.test", &finding(DomainEvent::Right, "")).unwrap(), "one last time");
        assert_eq!(names(&project), [""; 0]);
    }

    #[test]
    fn removed_domains_are_bounded() {
        let (_folder, mut project) = project();
        for number in 0..MAX_REMOVED {
            put(&mut project, &format!("b{number}.test"), 100 - number as i64);
        }
        project.add("a.test").unwrap();
        project.remove("a.test").unwrap();
        let names = names(&project);
        assert!(
            names.len() == MAX_REMOVED && names[0] == "a.test" && !names.contains(&"b99.test".to_owned())
        );
    }
}
