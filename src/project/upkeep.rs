//! What a running service does for its project besides answering requests: it checks the DNS of domains on demand and
//! from time to time, and keeps which domains are requested over HTTPS. Each check runs in a thread of its own, so a name
//! server that never answers delays nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Project;
use super::dns_check::{check_dns, platform_addresses};
use super::finding::Finding;
use super::overview::{DomainView, Overview};
use super::record::is_apex;
use super::refusal::{Refusal, RefusalCode};
use crate::clock::unix_time;
use crate::config::Hosting;
use crate::error::Error;
use crate::log_line::{self, OfServer, log_line};
use crate::model::CertificateCount;
use crate::store::Database;

/// The most checks at once. Those that nobody asked for leave half of them to people.
const MAX_CHECKS: usize = 8;
/// How long the thread waits after a failed write before it writes again.
const PAUSE: Duration = Duration::from_secs(10);
/// How often the thread looks for domains whose check is due.
const TICK: Duration = Duration::from_secs(60);
/// How long a change waits for the lock of another process. The admin address has other requests to answer, and the
/// service cannot end before the change does.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most names that wait to be kept. The next request repeats a name that is dropped.
const MAX_SERVED: usize = 64;

/// The upkeep of a running service's project. Dropping it ends its thread; checks under way end by themselves.
pub struct Upkeep {
    shared: Arc<Shared>,
    /// `None` if no hosting platform is set, so that no domain is served.
    served: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    hosting: Hosting,
    project: Mutex<Project>,
    /// The domains whose check is under way.
    under_way: Mutex<BTreeSet<String>>,
    /// The addresses of the platform host, as the last check of an apex domain found them.
    addresses: Mutex<Vec<IpAddr>>,
    /// The certificates that the proxy asked for since the last count was written. The empty name is that of all names
    /// that are no domains.
    certificates: Mutex<BTreeMap<String, CertificateCount>>,
}

/// Keeps what the check of a name found.
type Keep = fn(&Shared, &str, &Finding);

impl Upkeep {
    /// Takes over the project of a service, and starts the thread if a hosting platform is set.
    ///
    /// # Errors
    /// [`ErrorKind::Resources`](crate::ErrorKind::Resources) if the thread cannot be started.
    pub fn start(mut project: Project) -> Result<Self, Error> {
        project.store.be_patient(PATIENCE);
        let hosting = project.hosting.clone();
        let has_platform = hosting.platform_host.is_some();
        let shared = Arc::new(Shared {
            hosting,
            project: Mutex::new(project),
            under_way: Mutex::default(),
            addresses: Mutex::default(),
            certificates: Mutex::default(),
        });
        if !has_platform {
            return Ok(Self { shared, served: None, thread: None });
        }
        let (served, names) = sync_channel(MAX_SERVED);
        let of_thread = Arc::clone(&shared);
        let run = move || of_thread.run(&names);
        let thread = log_line::start("project", run)?;
        Ok(Self { shared, served: Some(served), thread: Some(thread) })
    }

    /// Notes that a trusted proxy has passed on an HTTPS request for a domain. Does not wait.
    pub fn note_served(&self, name: &str) {
        if let Some(served) = &self.served {
            // The next request repeats a name that finds no room.
            let _ = served.try_send(name.to_owned());
        }
    }

    /// Counts that the proxy asked for the certificate of a domain, or of another name if that is empty. Does not wait.
    pub fn note_certificate(&self, name: &str, is_allowed: bool) {
        if self.served.is_some() {
            let (allowed, last_at) = (i64::from(is_allowed), unix_time());
            let more = CertificateCount { allowed, denied: 1 - allowed, last_at };
            lock(&self.shared.certificates).entry(name.to_owned()).or_default().add(more);
        }
    }

    /// Returns the state of the project as a connection for reading sees it, even while a change is under way.
    ///
    /// # Errors
    /// [`RefusalCode::StorageUnavailable`] if the database cannot be read.
    pub fn overview(&self, database: &Database) -> Result<Overview, Refusal> {
        let addresses = lock(&self.shared.addresses).clone();
        Ok(Overview::of(&database.project(), &self.shared.hosting, &addresses, unix_time())?)
    }

    /// Locks the project for a change.
    pub fn project(&self) -> MutexGuard<'_, Project> {
        lock(&self.shared.project)
    }

    /// Returns whether a check of this domain is under way.
    pub fn is_checking(&self, name: &str) -> bool {
        lock(&self.shared.under_way).contains(name)
    }

    /// Begins a check of a domain unless one is under way. Does not wait.
    ///
    /// # Errors
    /// [`RefusalCode::TooManyChecks`].
    pub fn begin(&self, name: &str) -> Result<(), Refusal> {
        self.shared.begin(name, MAX_CHECKS, Shared::keep)
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        // The thread ends when nobody can send to it any more.
        self.served = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            log_line!(error, "the thread for the project has died");
        }
    }
}

impl Shared {
    fn begin(self: &Arc<Self>, name: &str, most: usize, keep: Keep) -> Result<(), Refusal> {
        let Some(platform) = self.hosting.platform_host.clone() else { return Ok(()) };
        let message = "Too many domains are being checked. Try again in a few seconds.";
        let busy = || Refusal::new(RefusalCode::TooManyChecks, message);
        let mut under_way = lock(&self.under_way);
        if under_way.contains(name) {
            return Ok(());
        }
        if under_way.len() >= most {
            return Err(busy());
        }
        // The service ends without waiting for DNS.
        let (shared, hosting, of) = (Arc::downgrade(self), self.hosting.clone(), name.to_owned());
        let run = move || {
            let finding = check_dns(&of, &platform, &hosting);
            let addresses = is_apex(&of).then(|| platform_addresses(&platform, &hosting));
            if let Some(shared) = shared.upgrade() {
                if let Some(addresses) = addresses.filter(|addresses| !addresses.is_empty()) {
                    *lock(&shared.addresses) = addresses;
                }
                keep(&shared, &of, &finding);
                lock(&shared.under_way).remove(&of);
            }
        };
        log_line::start("dns", run).map_err(|_| busy())?;
        under_way.insert(name.to_owned());
        Ok(())
    }

    /// Keeps what a check found.
    fn keep(&self, name: &str, finding: &Finding) {
        match lock(&self.project).keep(name, finding) {
            Ok((DomainView { state, state_text, message, .. }, is_worse)) => {
                let level = if is_worse { log::Level::Warn } else { log::Level::Info };
                let message = message.unwrap_or_default();
                log::log!(
                    level,
                    "{OfServer}the domain {name} is {}: {state_text}. {message}",
                    state.as_str()
                );
            }
            Err(refusal) => log_line!(warn, "cannot store the DNS check of {name}: {refusal}"),
        }
    }

    /// Keeps what the check of a removed domain found.
    fn keep_removed(&self, name: &str, finding: &Finding) {
        match lock(&self.project).keep_removed(name, finding) {
            Ok(true) => log_line!(
                warn,
                "the domain {name} was removed, but its DNS record still points here: delete the record, so that nobody \
                 else on the platform can serve the name"
            ),
            Ok(false) => {}
            Err(refusal) => {
                log_line!(warn, "cannot store the DNS check of the removed domain {name}: {refusal}");
            }
        }
    }

    /// The thread's work, until nobody can send names any more.
    fn run(self: &Arc<Self>, served: &Receiver<String>) {
        let mut checks_at = Instant::now();
        let mut paused_until = Instant::now();
        loop {
            match served.recv_timeout(checks_at.saturating_duration_since(Instant::now())) {
                Ok(name) => {
                    let names: BTreeSet<String> = std::iter::once(name).chain(served.try_iter()).collect();
                    // After a failure, later requests repeat the names.
                    if Instant::now() >= paused_until && !self.keep_served(names) {
                        paused_until = Instant::now() + PAUSE;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.begin_due();
                    self.keep_certificates();
                    checks_at = Instant::now() + TICK;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.keep_certificates();
                    return;
                }
            }
        }
    }

    /// Returns whether the names were written.
    fn keep_served(&self, names: BTreeSet<String>) -> bool {
        let shown = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let kept = lock(&self.project).note_served(names);
        if let Err(refusal) = &kept {
            log_line!(warn, "cannot record HTTPS requests for {shown} yet: {refusal}");
        }
        kept.is_ok()
    }

    /// Writes which certificates the proxy asked for since the last time.
    fn keep_certificates(&self) {
        let counts = std::mem::take(&mut *lock(&self.certificates));
        if counts.is_empty() {
            return;
        }
        if let Err(refusal) = lock(&self.project).count_certificates(&counts) {
            log_line!(warn, "cannot count the certificates that the proxy asked for yet: {refusal}");
            let mut later = lock(&self.certificates);
            for (name, count) in counts {
                later.entry(name).or_default().add(count);
            }
        }
    }

    /// Begins some of the checks that are due.
    fn begin_due(self: &Arc<Self>) {
        let now = unix_time();
        let due = |project: &Project| Ok::<_, Refusal>((project.due(now)?, project.due_removed(now)?));
        let due = due(&lock(&self.project));
        let (domains, removed) = match due {
            Ok(due) => due,
            Err(refusal) => {
                log_line!(warn, "cannot read which domains are due for a check: {refusal}");
                return;
            }
        };
        let begin = |names: &[String], keep: Keep| {
            // Those that find no room are due again at the next look.
            let _ = names.iter().try_for_each(|name| self.begin(name, MAX_CHECKS / 2, keep));
        };
        begin(&domains, Self::keep);
        begin(&removed, Self::keep_removed);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::tests::{Record, Server};
    use crate::model::{Domain, DomainEvent, DomainState};
    use crate::project::tests::{code, project};
    use crate::testing;
    use crate::testing::Folder;

    /// The upkeep of a project that asks this DNS server, and has a served domain that was never checked.
    fn upkeep(dns: &Server) -> (Folder, Upkeep) {
        let (folder, mut project) = project();
        project.hosting.resolver = Some(dns.address);
        let mut domain = Domain::new("a.test".to_owned(), 0).after(DomainEvent::Right, None, 1);
        domain.checked_at = None;
        project.store.change_project(|project| project.put_domain(&domain)).unwrap();
        (folder, Upkeep::start(project).unwrap())
    }

    #[test]
    fn due_domain_is_checked_and_the_finding_kept() {
        let dns = Server::of(Vec::new());
        let (_folder, upkeep) = upkeep(&dns);
        upkeep.shared.begin_due();
        wait_for_check(&upkeep, "a.test");
        let overview = upkeep.project().overview().unwrap();
        assert_eq!(overview.domains[0].state, DomainState::DnsChanged);
        assert_eq!(upkeep.project().due(unix_time()).unwrap(), [""; 0]);
    }

    /// Waits until a domain's check has ended.
    fn wait_for_check(upkeep: &Upkeep, name: &str) {
        let until = Instant::now() + testing::PATIENCE;
        while upkeep.is_checking(name) {
            assert!(Instant::now() < until, "the check ends");
            std::thread::yield_now();
        }
    }

    #[test]
    fn check_of_an_apex_domain_finds_the_addresses_that_it_may_have() {
        let dns = Server::of(vec![("sites.test", Record::A([192, 0, 2, 1]))]);
        let (folder, upkeep) = upkeep(&dns);
        upkeep.begin("a.test").unwrap();
        wait_for_check(&upkeep, "a.test");
        let reader = crate::store::Reader::open(&folder.database()).unwrap();
        let overview = upkeep.overview(reader.database()).unwrap();
        assert_eq!(overview.domains[0].record.addresses, [IpAddr::from([192, 0, 2, 1])]);
    }

    #[test]
    fn domains_that_are_requested_over_https_are_kept_one_after_the_other() {
        let silent = Server::datagrams(|_| Vec::new());
        let (_folder, upkeep) = upkeep(&silent);
        let other = Domain::new("b.test".to_owned(), 0).after(DomainEvent::Right, None, 1);
        upkeep.project().store.change_project(|project| project.put_domain(&other)).unwrap();
        let until = Instant::now() + testing::PATIENCE;
        for (place, name) in ["a.test", "b.test"].into_iter().enumerate() {
            upkeep.note_served(name);
            let state = || upkeep.project().overview().unwrap().domains[place].state;
            while state() != DomainState::Active {
                assert!(Instant::now() < until, "{name} is kept");
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn certificates_are_counted_by_domain_and_all_other_names_together() {
        let (_folder, upkeep) = upkeep(&Server::of(Vec::new()));
        upkeep.note_certificate("a.test", true);
        upkeep.note_certificate("a.test", false);
        upkeep.note_certificate("", false);
        upkeep.note_certificate("removed.test", false);
        upkeep.shared.keep_certificates();
        upkeep.note_certificate("a.test", true);
        upkeep.shared.keep_certificates();
        let overview = upkeep.project().overview().unwrap();
        let (own, other) = (&overview.domains[0].certificate_requests, &overview.other_certificate_requests);
        assert_eq!((own.allowed, own.denied, other.allowed, other.denied), (2, 1, 0, 2));
        assert!(own.last_at.is_some() && other.last_at.is_some());
    }

    #[test]
    fn certificates_that_cannot_be_written_are_counted_later() {
        let (folder, upkeep) = upkeep(&Server::of(Vec::new()));
        let mut other = crate::store::Writer::open(&folder.database()).unwrap();
        upkeep.note_certificate("a.test", true);
        let kept = other.change_project(|_| {
            upkeep.shared.keep_certificates();
            upkeep.note_certificate("a.test", true);
            Ok::<_, Refusal>(lock(&upkeep.shared.certificates)["a.test"].allowed)
        });
        assert_eq!(kept.unwrap(), 2);
        upkeep.shared.keep_certificates();
        assert_eq!(upkeep.project().overview().unwrap().domains[0].certificate_requests.allowed, 2);
    }

    #[test]
    fn checks_at_once_are_bounded_and_the_end_does_not_wait_for_them() {
        let silent = Server::datagrams(|_| Vec::new());
        let (_folder, upkeep) = upkeep(&silent);
        let until = Instant::now() + testing::PATIENCE;
        while !upkeep.is_checking("a.test") {
            assert!(Instant::now() < until, "the service looks at its start");
            std::thread::yield_now();
        }
        let due = Domain::new("b.test".to_owned(), 0);
        upkeep.project().store.change_project(|project| project.put_domain(&due)).unwrap();
        for number in 1..MAX_CHECKS {
            if number == MAX_CHECKS / 2 {
                upkeep.shared.begin_due();
                assert!(!upkeep.is_checking("b.test"), "checks that nobody asked for leave room");
            }
            upkeep.begin(&format!("{number}.test")).unwrap();
        }
        upkeep.begin("1.test").unwrap();
        assert_eq!(code(upkeep.begin("b.test")), "too_many_checks");
        let since = Instant::now();
        drop(upkeep);
        assert!(since.elapsed() < testing::PATIENCE / 10);
    }
}
