//! What a running service does for its project besides answering requests: it checks the DNS of domains on demand and
//! from time to time, and notes which domains are requested over HTTPS. All of it happens in one thread, one task after
//! the other, so a name server that never answers delays no request.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::sleep;
use std::time::Duration;

use super::Project;
use super::check::check_dns;
use super::overview::{DomainView, Overview};
use super::refusal::{Refusal, RefusalCode};
use crate::clock::unix_time;
use crate::config::Hosting;
use crate::error::Error;
use crate::log_line::{self, OfServer, log_line};
use crate::model::DomainState;
use crate::store::Database;

/// The most tasks that wait.
const MAX_TASKS: usize = 64;
/// How long the thread waits after a failed write, which every request could repeat.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the thread looks for domains whose check is due.
const TICK: Duration = Duration::from_secs(60);
/// How long a change waits for the lock of another process. The admin address has other requests to answer, and the
/// service cannot end before the change does.
const PATIENCE: Duration = Duration::from_secs(1);

/// The upkeep of a running service's project. When it is dropped, its thread ends after the task under way.
pub struct Upkeep {
    shared: Arc<Shared>,
    /// `None` if no hosting platform is set, so that no domain is served.
    tasks: Option<SyncSender<Task>>,
}

struct Shared {
    hosting: Hosting,
    project: Mutex<Project>,
    /// The domains whose check was asked for and is not done yet.
    checking: Mutex<BTreeSet<String>>,
}

/// What the thread does for the domain of this name.
enum Task {
    Check(String),
    NoteServed(String),
}

impl Upkeep {
    /// Takes over the project of a service, and starts the thread if a hosting platform is set.
    ///
    /// # Errors
    /// [`ErrorKind::Resources`](crate::ErrorKind::Resources) if the thread cannot be started.
    pub fn start(mut project: Project) -> Result<Self, Error> {
        project.store.be_patient(PATIENCE);
        let hosting = project.hosting.clone();
        let has_platform = hosting.platform_host.is_some();
        let shared = Arc::new(Shared { hosting, project: Mutex::new(project), checking: Mutex::default() });
        if !has_platform {
            return Ok(Self { shared, tasks: None });
        }
        let (sender, tasks) = sync_channel(MAX_TASKS);
        // The service ends without waiting for DNS.
        let of_thread = Arc::downgrade(&shared);
        log_line::start("project", move || run(&of_thread, &tasks))?;
        Ok(Self { shared, tasks: Some(sender) })
    }

    /// Notes that a trusted proxy has passed on an HTTPS request for a domain. Does not wait.
    pub fn note_served(&self, name: &str) {
        if let Some(tasks) = &self.tasks {
            // The next request repeats a name that finds no room.
            let _ = tasks.try_send(Task::NoteServed(name.to_owned()));
        }
    }

    /// Returns the state of the project as a connection for reading sees it, even while a change is under way.
    ///
    /// # Errors
    /// [`RefusalCode::StorageUnavailable`] if the database cannot be read.
    pub fn overview(&self, database: &Database) -> Result<Overview, Refusal> {
        Ok(Overview::of(database, &self.shared.hosting, unix_time())?)
    }

    /// Locks the project for a change.
    pub fn project(&self) -> MutexGuard<'_, Project> {
        lock(&self.shared.project)
    }

    /// Returns whether a check of this domain was asked for and is not done yet.
    pub fn is_checking(&self, name: &str) -> bool {
        lock(&self.shared.checking).contains(name)
    }

    /// Asks for a check of a domain unless one is under way. Does not wait.
    ///
    /// # Errors
    /// [`RefusalCode::TooManyChecks`].
    pub fn begin_check(&self, name: &str) -> Result<(), Refusal> {
        let mut checking = lock(&self.shared.checking);
        if let Some(tasks) = &self.tasks
            && !checking.contains(name)
        {
            let message = "Too many domains are being checked. Try again in a few seconds.";
            let busy = |_| Refusal::new(RefusalCode::TooManyChecks, message);
            tasks.try_send(Task::Check(name.to_owned())).map_err(busy)?;
            checking.insert(name.to_owned());
        }
        Ok(())
    }
}

/// Does the tasks until nobody can send any more. Checks that are due wait for those that were asked for.
fn run(shared: &Weak<Shared>, tasks: &Receiver<Task>) {
    let mut due: Vec<String> = Vec::new();
    let mut wait = Duration::ZERO;
    loop {
        let task = match tasks.recv_timeout(wait) {
            Ok(task) => Some(task),
            Err(RecvTimeoutError::Timeout) => due.pop().map(Task::Check),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let done = match &task {
            Some(Task::Check(name)) => check(shared, name),
            Some(Task::NoteServed(name)) => change(shared, |project| project.note_served(name)),
            None => change(shared, |project| project.due(unix_time()).map(|names| due = names)),
        };
        if let Err(refusal) = done {
            log_line!(warn, "cannot keep the state of the domains: {refusal}");
            sleep(PAUSE);
        }
        wait = if due.is_empty() { TICK } else { Duration::ZERO };
    }
}

/// Changes the project, unless the service has ended.
fn change(
    shared: &Weak<Shared>,
    work: impl FnOnce(&mut Project) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    shared.upgrade().map_or(Ok(()), |shared| work(&mut lock(&shared.project)))
}

/// Checks the DNS of a domain and keeps the finding. The service may end meanwhile.
fn check(shared: &Weak<Shared>, name: &str) -> Result<(), Refusal> {
    let hosting = shared.upgrade().map(|shared| shared.hosting.clone()).unwrap_or_default();
    let Some(platform) = &hosting.platform_host else { return Ok(()) };
    let finding = check_dns(name, platform, &hosting);
    let kept = change(shared, |project| {
        let (domain, is_news) = project.keep(name, &finding)?;
        if is_news {
            log_news(&domain);
        }
        Ok(())
    });
    if let Some(shared) = shared.upgrade() {
        lock(&shared.checking).remove(name);
    }
    kept
}

/// Logs that a check has changed what is known of a domain.
fn log_news(domain: &DomainView) {
    let is_bad = !domain.is_in_order() && domain.state != DomainState::PendingDns;
    let level = if is_bad { log::Level::Warn } else { log::Level::Info };
    let DomainView { name, state, state_text, message, .. } = domain;
    let (state, message) = (state.as_str(), message.as_deref().unwrap_or_default());
    log::log!(level, "{OfServer}the domain {name} is {state}: {state_text}. {message}");
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
