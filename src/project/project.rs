//! The operator's work on the published project: its plan, its deploys, its domains and their redirects. In
//! force at once on a running service, which looks into the database with each request.

use std::path::Path;
use std::time::Duration;

use super::folder::Folder;
use super::look::{DNS_UNAVAILABLE, Look, Looker, Seen};
use super::name;
use super::overview::{DomainView, Overview};
use super::refusal::RefusalCode as R;
use super::refusal::{Refusal, Refused};
use crate::clock::unix_time;
use crate::config::{Config, Hosting};
use crate::http::{gzip, tag_of};
use crate::model::{Deploy, Domain, DomainEvent, DomainState, Plan, REDIRECT_STATUSES, Redirect, SiteFile};
use crate::store::{ProjectReads, Writer};

/// The most domains of a project.
const MAX_DOMAINS: usize = 100;
/// The most deploys that are kept, the one that is served not counted.
const MAX_DEPLOYS: i64 = 5;
/// As many bytes of a deploy are written at once, so that creates do not wait long for it.
const BATCH_BYTES: usize = 1024 * 1024;

/// How long until a domain is looked at again, in seconds: where DNS could be asked, and where not.
const DAY: i64 = 24 * HOUR;
const HOUR: i64 = 3600;

/// The project of one database.
pub struct Project {
    store: Writer,
    settings: Settings,
}

/// What the project is told from outside its database.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name on the platform, and the platform.
    pub hosting: Hosting,
    pub looker: Looker,
}

/// What a deploy has published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deployed {
    /// Its number.
    pub id: i64,
    /// How many static files there are beside the built-in site.
    pub files: usize,
    /// How many hidden files and folders were left out.
    pub hidden: usize,
}

impl Settings {
    /// Those of a configuration.
    pub fn of(config: &Config) -> Self {
        Self { hosting: config.hosting.clone(), looker: Looker::new(&config.hosting) }
    }

    /// The host of the hosting platform.
    ///
    /// # Errors
    /// Where none is set.
    pub fn platform_host(&self) -> Result<&str, Refusal> {
        self.hosting.platform_host.as_deref().ok_or_else(|| {
            Refusal::new(
                R::PlatformHostRequired,
                "Domains need the host of the hosting platform: give --platform-host HOST, or set \
                 PETSTORE_PLATFORM_HOST, as the service has it.",
            )
        })
    }
}

impl Project {
    /// Opens the project of a configuration's database.
    ///
    /// # Errors
    /// Where the file is not there, is not ours or cannot be opened.
    pub fn open(config: &Config) -> Result<Self, crate::Error> {
        if !config.database.exists() {
            return Err(format!("there is no database {}", config.database.display()).into());
        }
        Ok(Self { store: Writer::open(&config.database)?, settings: Settings::of(config) })
    }

    /// What it is told from outside its database.
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Waits no longer than this for the lock of another process.
    pub(super) fn be_patient(&mut self, patience: Duration) {
        self.store.be_patient(patience);
    }

    /// All that is to be seen.
    ///
    /// # Errors
    /// Where the database cannot be read, as with all that follow.
    pub fn overview(&self) -> Refused<Overview> {
        Ok(Overview::of(&self.store.project()?, &self.settings, unix_time())?)
    }

    /// What is paid for.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn plan(&self) -> Refused<Plan> {
        Ok(self.store.project()?.plan()?)
    }

    /// Sets what is paid for. Domains that are there stay, whatever the plan.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn set_plan(&mut self, plan: Plan) -> Refused<()> {
        self.store.change_project(|project| Ok(project.set_plan(plan)?))
    }

    /// Publishes the built-in site, with the static files of a folder beside it: all of them, or nothing
    /// changes.
    ///
    /// # Errors
    /// Where the folder cannot be published as it is.
    pub fn deploy(&mut self, folder: Option<&Path>) -> Refused<Deployed> {
        let invalid = |line| Refusal::new(R::InvalidFolder, line);
        let folder = folder.map(Folder::look_through).transpose().map_err(invalid)?.unwrap_or_default();
        let deploy = self.store.change_project(|project| Ok::<_, Refusal>(project.add_deploy()?))?;
        let mut left = folder.files.iter().peekable();
        while left.peek().is_some() {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while bytes < BATCH_BYTES
                && let Some(found) = left.next()
            {
                let content = found.read().map_err(invalid)?;
                bytes += content.len();
                // What gains less than a tenth is not worth the reader's time.
                let gzip = gzip(&content).filter(|packed| packed.len() < content.len() / 10 * 9);
                let (path, content_type) = (found.path.clone(), found.content_type());
                batch.push(SiteFile { path, content_type, tag: tag_of(&content), content, gzip });
            }
            self.store.change_project(|project| {
                for file in &batch {
                    was_kept(project.add_file(deploy, file)?)?;
                }
                Ok::<_, Refusal>(())
            })?;
        }
        self.store.change_project(|project| {
            was_kept(project.go_live(deploy, unix_time())?)?;
            Ok::<_, Refusal>(project.keep_deploys(MAX_DEPLOYS)?)
        })?;
        Ok(Deployed { id: deploy, files: folder.files.len(), hidden: folder.hidden })
    }

    /// The deploys that are kept, the newest first.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn deploys(&self) -> Refused<Vec<Deploy>> {
        Ok(self.store.project()?.deploys()?)
    }

    /// Has an earlier deploy be served again: this one, or the one before the one that is served. Returns its
    /// number.
    ///
    /// # Errors
    /// Where there is none.
    pub fn roll_back(&mut self, id: Option<i64>) -> Refused<i64> {
        self.store.change_project(|project| {
            let deploys = project.deploys()?;
            let live = deploys.iter().find(|deploy| deploy.is_live).map(|deploy| deploy.id);
            let wanted = |deploy: &&Deploy| match id {
                Some(id) => deploy.id == id,
                None => live.is_some_and(|live| deploy.id < live),
            };
            let Some(found) = deploys.iter().find(wanted) else {
                let which = id.map_or("earlier deploy".to_owned(), |id| format!("deploy {id}"));
                return Err(Refusal::new(
                    R::UnknownDeploy,
                    format!(
                        "There is no {which} to go back to; petstore site list shows those that are kept."
                    ),
                ));
            };
            project.go_live(found.id, unix_time())?;
            Ok(found.id)
        })
    }

    /// Adds a domain. Its DNS record is yet to be made.
    ///
    /// # Errors
    /// Where the plan or the deploy is missing, or the name cannot be one of the project.
    pub fn add(&mut self, text: &str) -> Refused<DomainView> {
        let settings = &self.settings;
        self.store.change_project(|project| {
            if project.plan()? == Plan::Free {
                let message = "Domains need the plan pro or enterprise, and this project has the plan free. \
                               'petstore site plan pro' changes it.";
                return Err(Refusal::new(R::PlanRequired, message));
            }
            if !project.is_deployed()? {
                let message = "A domain needs a site to show, and this project was never deployed. \
                               'petstore site deploy' does that.";
                return Err(Refusal::new(R::DeployRequired, message));
            }
            let platform = settings.platform_host()?;
            let name = name::parse(text, platform).map_err(|line| Refusal::new(R::InvalidDomain, line))?;
            let domains = project.domains()?;
            if domains.iter().any(|domain| domain.name == name) {
                return Err(Refusal::new(
                    R::DomainExists,
                    format!("The project has the domain {name} already."),
                ));
            }
            if domains.len() >= MAX_DOMAINS {
                let message = format!("The project has {MAX_DOMAINS} domains, and may have no more.");
                return Err(Refusal::new(R::TooManyDomains, message));
            }
            let domain = Domain::new(name, unix_time());
            project.put_domain(&domain)?;
            Ok(DomainView::of(domain, platform))
        })
    }

    /// Asks DNS about a domain, and keeps what was seen. Takes up to 20 s.
    ///
    /// # Errors
    /// Where there is no such domain.
    pub fn check(&mut self, text: &str, look: Look) -> Refused<DomainView> {
        let name = self.find(text)?;
        let seen = self.settings.looker.look(&name, self.settings.platform_host()?, look);
        self.keep(&name, &seen)
    }

    /// Keeps what was seen of a domain.
    ///
    /// # Errors
    /// Where it was removed meanwhile.
    pub fn keep(&mut self, name: &str, seen: &Seen) -> Refused<DomainView> {
        let platform = self.settings.platform_host()?;
        self.store.change_project(|project| {
            let now = unix_time();
            let domain = known(project, name)?.at(now).after(seen.event, seen.reason.clone(), now);
            project.put_domain(&domain)?;
            // The first that may be served is what the others stand for.
            if domain.state == DomainState::Verified
                && project.primary()?.is_none()
                && project.redirect(name)?.is_none()
            {
                project.set_primary(name)?;
            }
            Ok(DomainView::of(known(project, name)?, platform))
        })
    }

    /// Notes that a trusted proxy has passed on HTTPS requests for these names.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn note_served(&mut self, names: &[String]) -> Refused<()> {
        self.store.change_project(|project| {
            let now = unix_time();
            for name in names {
                // It may have been removed meanwhile.
                if let Some(domain) = project.domain(name)? {
                    project.put_domain(&domain.at(now).after(DomainEvent::Served, None, now))?;
                }
            }
            Ok(())
        })
    }

    /// Names that were right once, and whose DNS is to be looked at again at this Unix time, in seconds: after a
    /// day, or after an hour where it could not be asked. The one that has waited longest comes first.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn due(&self, now: i64) -> Refused<Vec<String>> {
        let mut domains = self.store.project()?.domains()?;
        let is_due = |domain: &Domain| {
            let is_unknown = domain.reason.as_ref().is_some_and(|reason| reason.code == DNS_UNAVAILABLE);
            let wait = if is_unknown { HOUR } else { DAY };
            domain.state.is_served() && domain.checked_at.is_none_or(|at| at < now.saturating_sub(wait))
        };
        domains.retain(is_due);
        domains.sort_by_key(|domain| domain.checked_at);
        Ok(domains.into_iter().map(|domain| domain.name).collect())
    }

    /// Has a domain be the one that the others stand for.
    ///
    /// # Errors
    /// Where it is not verified, or only leads elsewhere.
    pub fn set_primary(&mut self, text: &str) -> Refused<()> {
        let name = self.find(text)?;
        self.store.change_project(|project| {
            let domain = known(project, &name)?;
            if !domain.state.is_served() {
                let message = format!(
                    "{name} is not verified yet. 'petstore domain verify {name}' looks at its record."
                );
                return Err(Refusal::new(R::NotVerified, message));
            }
            if let Some(redirect) = project.redirect(&name)? {
                let message = format!("{name} only leads to {}. Remove that redirect first.", redirect.to);
                return Err(Refusal::new(R::InvalidRedirect, message));
            }
            Ok(project.set_primary(&name)?)
        })
    }

    /// Removes a domain, and the redirects from it and to it, which are returned. It is not served from the
    /// next request on.
    ///
    /// # Errors
    /// Where there is no such domain.
    pub fn remove(&mut self, text: &str) -> Refused<Vec<Redirect>> {
        let name = self.find(text)?;
        self.store.change_project(|project| {
            let mut redirects = project.redirects()?;
            redirects.retain(|redirect| redirect.from == name || redirect.to == name);
            if !project.remove_domain(&name)? {
                return Err(unknown(&name));
            }
            Ok(redirects)
        })
    }

    /// Has a domain lead to another one, or to the project's name on the platform.
    ///
    /// # Errors
    /// Where it would lead nowhere, in a circle, or through another redirect.
    pub fn add_redirect(&mut self, from: &str, to: &str, status: u16) -> Refused<Redirect> {
        let invalid = |message: String| Err(Refusal::new(R::InvalidRedirect, message));
        if !REDIRECT_STATUSES.contains(&status) {
            return invalid(format!("The status of a redirect must be 301, 302, 307 or 308, not {status}."));
        }
        let from = self.find(from)?;
        let address = self.settings.hosting.address();
        let is_address =
            address.as_deref().is_some_and(|address| to.trim_end_matches('.').eq_ignore_ascii_case(address));
        let to = if is_address { address.unwrap_or_default() } else { self.find(to)? };
        self.store.change_project(|project| {
            let domain = known(project, &from)?;
            if from == to {
                return invalid(format!("{from} cannot lead to itself."));
            }
            // It may have been removed meanwhile.
            if !is_address && !known(project, &to)?.state.is_served() {
                return invalid(format!("{to} is not verified yet, so a request for it would get 421."));
            }
            if domain.is_primary {
                return invalid(format!(
                    "{from} is primary, so others lead to it. Make another domain primary first."
                ));
            }
            let others = project.redirects()?;
            if let Some(next) = others.iter().find(|other| other.from == to) {
                return invalid(format!("{to} itself leads to {}. Have {from} lead there.", next.to));
            }
            if let Some(other) = others.iter().find(|other| other.to == from) {
                return invalid(format!("{} leads to {from}. Have it lead to {to} first.", other.from));
            }
            let redirect = Redirect { from, to, status };
            project.put_redirect(&redirect)?;
            Ok(redirect)
        })
    }

    /// Removes the redirect from a domain.
    ///
    /// # Errors
    /// Where there is none.
    pub fn remove_redirect(&mut self, from: &str) -> Refused<()> {
        let from = self.find(from)?;
        self.store.change_project(|project| {
            if !project.remove_redirect(&from)? {
                return Err(Refusal::new(R::UnknownRedirect, format!("There is no redirect from {from}.")));
            }
            Ok(())
        })
    }

    /// The name of a domain that is there, as it is kept.
    ///
    /// # Errors
    /// Where it is not there.
    pub fn find(&self, text: &str) -> Refused<String> {
        // Whatever was taken in another time can be named, too.
        let name = name::normal(text);
        known(&self.store.project()?, &name).map(|domain| domain.name)
    }
}

fn known(project: &ProjectReads, name: &str) -> Refused<Domain> {
    project.domain(name)?.ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Refusal {
    let shown: String = name.chars().take(80).filter(|c| !c.is_control()).collect();
    Refusal::new(
        R::UnknownDomain,
        format!("The project has no domain '{shown}'; petstore domain list shows those it has."),
    )
}

fn was_kept(was_kept: bool) -> Refused<()> {
    if was_kept {
        return Ok(());
    }
    Err(Refusal::new(R::UnknownDeploy, "Another deploy has begun meanwhile, and this one gave way to it."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reason;
    use crate::testing::Folder as TestFolder;

    fn project() -> (TestFolder, Project) {
        let folder = TestFolder::new();
        let store = Writer::open(&folder.database()).unwrap();
        let mut config = Config::default();
        config.hosting.platform_host = Some("sites.test".to_owned());
        let mut project = Project { store, settings: Settings::of(&config) };
        project.set_plan(Plan::Pro).unwrap();
        project.deploy(None).unwrap();
        (folder, project)
    }

    fn seen(event: DomainEvent, code: &str) -> Seen {
        let reason = (!code.is_empty()).then(|| Reason { code: code.to_owned(), message: String::new() });
        Seen { event, reason }
    }

    fn code<T: std::fmt::Debug>(refused: Refused<T>) -> &'static str {
        refused.unwrap_err().code.as_str()
    }

    #[test]
    fn domain_is_due_after_a_day_and_sooner_where_nothing_is_known() {
        let (_folder, mut project) = project();
        for name in ["new.test", "a.test", "b.test"] {
            project.add(name).unwrap();
        }
        project.keep("a.test", &seen(DomainEvent::Right, "")).unwrap();
        project.keep("b.test", &seen(DomainEvent::Right, DNS_UNAVAILABLE)).unwrap();
        let now = unix_time();
        assert_eq!(project.due(now).unwrap(), [""; 0]);
        assert_eq!(project.due(now + HOUR + 9).unwrap(), ["b.test"]);
        let mut due = project.due(now + DAY + 9).unwrap();
        due.sort();
        assert_eq!(due, ["a.test", "b.test"]);
    }

    #[test]
    fn first_verified_domain_is_primary_until_it_is_removed() {
        let (_folder, mut project) = project();
        project.add("a.test").unwrap();
        project.add("b.test").unwrap();
        assert!(!project.keep("a.test", &seen(DomainEvent::Wrong, "wrong_target")).unwrap().is_primary);
        assert!(project.keep("b.test", &seen(DomainEvent::Right, "")).unwrap().is_primary);
        assert!(!project.keep("a.test", &seen(DomainEvent::Right, "")).unwrap().is_primary);
        project.remove("b.test").unwrap();
        assert_eq!(project.overview().unwrap().primary, None);
        assert_eq!(code(project.keep("b.test", &seen(DomainEvent::Right, ""))), "unknown_domain");
    }

    #[test]
    fn redirects_make_no_chains() {
        let (_folder, mut project) = project();
        for name in ["a.test", "b.test", "c.test"] {
            project.add(name).unwrap();
        }
        assert_eq!(code(project.add_redirect("a.test", "b.test", 301)), "invalid_redirect", "not verified");
        for name in ["a.test", "b.test", "c.test"] {
            project.keep(name, &seen(DomainEvent::Right, "")).unwrap();
        }
        assert_eq!(code(project.add_redirect("a.test", "b.test", 301)), "invalid_redirect", "primary");
        project.set_primary("b.test").unwrap();
        project.add_redirect("a.test", "b.test", 301).unwrap();
        for (from, to) in
            [("b.test", "a.test"), ("b.test", "c.test"), ("c.test", "a.test"), ("c.test", "c.test")]
        {
            assert_eq!(code(project.add_redirect(from, to, 301)), "invalid_redirect", "{from} {to}");
        }
        project.add_redirect("c.test", "PETSTORE.sites.test.", 307).unwrap();
        project.add_redirect("a.test", "petstore.sites.test", 308).unwrap();
        assert_eq!(code(project.add_redirect("b.test", "a.test", 303)), "invalid_redirect");
        assert_eq!(code(project.add_redirect("b.test", "sites.test", 301)), "unknown_domain");
    }

    #[test]
    fn project_has_a_bound_of_domains() {
        let (_folder, mut project) = project();
        for number in 0..MAX_DOMAINS {
            project.add(&format!("a{number}.test")).unwrap();
        }
        assert_eq!(code(project.add("one-more.test")), "too_many_domains");
    }
}
