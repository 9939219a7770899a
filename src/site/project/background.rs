//! The background work of a running service for its project: it checks the DNS of domains on demand and from time to time,
//! and notes which domains are requested over HTTPS. A single thread does one task after the other, so a name server that
//! never answers delays no request.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::sleep;
use std::time::Duration;

use super::Project;
use super::domains::platform_host;
use super::error::Refusal;
use super::overview::{DomainView, Overview};
use super::verify::check_dns;
use crate::base::clock::unix_time;
use crate::base::config::Hosting;
use crate::base::error::Error;
use crate::base::threads::start_thread;
use crate::model::{Domain, DomainState};
use crate::store::Reader;

/// How long the thread waits after a failed write, since each HTTPS request can cause the next one.
const PAUSE: Duration = Duration::from_secs(1);
/// How often the thread looks for domains whose check is due.
const TICK: Duration = Duration::from_secs(60);
/// How long a change waits for the lock of another process. The admin address has other requests to answer, and the
/// service cannot end before the change does.
const PATIENCE: Duration = Duration::from_secs(1);

/// The upkeep of a running service's project. When it is dropped, its thread ends after the task under way.
pub struct Upkeep {
    hosting: Hosting,
    project: Arc<Mutex<Project>>,
    /// The tasks that wait or are under way: at most two for each domain.
    pending: Arc<Mutex<BTreeSet<Task>>>,
    /// `None` if no hosting platform is set, so that no domain is served.
    tasks: Option<Sender<Task>>,
}

/// A task of the thread, with the name of a domain.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
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
        project.store.set_busy_timeout(PATIENCE);
        let hosting = project.hosting.clone();
        let (project, pending) = (Arc::new(Mutex::new(project)), Arc::default());
        let mut upkeep = Self { hosting, project, pending, tasks: None };
        if upkeep.hosting.platform_host.is_some() {
            let (sender, tasks) = channel();
            upkeep.tasks = Some(sender);
            let (hosting, pending) = (upkeep.hosting.clone(), Arc::clone(&upkeep.pending));
            // The service ends without waiting for DNS.
            let project = Arc::downgrade(&upkeep.project);
            start_thread("project", move || run(&project, &hosting, &pending, &tasks))?;
        }
        Ok(upkeep)
    }

    /// Notes that a trusted proxy has forwarded an HTTPS request for a domain. Does not wait.
    pub fn note_served(&self, name: &str) {
        self.begin(Task::NoteServed(name.to_owned()));
    }

    /// Begins a check of a domain unless one is under way. Does not wait.
    ///
    /// # Errors
    /// `PLATFORM_HOST_REQUIRED` if no platform is set.
    pub fn begin_check(&self, name: &str) -> Result<(), Refusal> {
        platform_host(&self.hosting)?;
        self.begin(Task::Check(name.to_owned()));
        Ok(())
    }

    fn begin(&self, task: Task) {
        if let Some(tasks) = &self.tasks
            && lock(&self.pending).insert(task.clone())
        {
            // The thread takes tasks as long as there is a sender.
            let _ = tasks.send(task);
        }
    }

    /// Returns whether a check of this domain was asked for and is not done yet.
    pub fn is_checking(&self, name: &str) -> bool {
        lock(&self.pending).contains(&Task::Check(name.to_owned()))
    }

    /// Returns the state of the project as a connection for reading sees it, even while a change is under way.
    ///
    /// # Errors
    /// `STORAGE_UNAVAILABLE` if the database cannot be read.
    pub fn overview(&self, database: &Reader) -> Result<Overview, Refusal> {
        Ok(Overview::of(database, &self.hosting, unix_time())?)
    }

    /// Locks the project for a change.
    pub fn project(&self) -> MutexGuard<'_, Project> {
        lock(&self.project)
    }
}

/// Does the tasks until nobody can send any more. Checks that are due wait for those that were asked for.
fn run(
    project: &Weak<Mutex<Project>>,
    hosting: &Hosting,
    pending: &Mutex<BTreeSet<Task>>,
    tasks: &Receiver<Task>,
) {
    let mut due: Vec<String> = Vec::new();
    let mut wait = Duration::ZERO;
    loop {
        let task = match tasks.recv_timeout(wait) {
            Ok(task) => Some(task),
            Err(RecvTimeoutError::Timeout) => due.pop().map(Task::Check),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let done = match &task {
            Some(Task::Check(name)) => {
                let finding = check_dns(name, hosting);
                change(project, |project| {
                    let (domain, is_news) = project.keep(name, &finding)?;
                    if is_news {
                        log_news(&domain);
                    }
                    Ok(())
                })
            }
            Some(Task::NoteServed(name)) => change(project, |project| project.note_served(name)),
            None => change(project, |project| project.due(unix_time()).map(|names| due = names)),
        };
        if let Some(task) = &task {
            lock(pending).remove(task);
        }
        if let Err(refusal) = done {
            log::warn!("cannot keep the state of the domains: {refusal}");
            sleep(PAUSE);
        }
        wait = if due.is_empty() { TICK } else { Duration::ZERO };
    }
}

/// Changes the project, unless the service has ended.
fn change(
    project: &Weak<Mutex<Project>>,
    work: impl FnOnce(&mut Project) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    project.upgrade().map_or(Ok(()), |project| work(&mut lock(&project)))
}

/// Logs the new state of a domain after a check.
fn log_news(domain: &DomainView) {
    let DomainView { domain: Domain { name, state, message, .. }, state_text, .. } = domain;
    let is_bad = !domain.is_in_order() && *state != DomainState::PendingDns;
    let level = if is_bad { log::Level::Warn } else { log::Level::Info };
    let (state, message) = (state.as_str(), message.as_deref().unwrap_or_default());
    log::log!(level, "the domain {name} is {state}: {state_text}. {message}");
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::project::tests::{code, project};

    #[test]
    fn nothing_is_checked_without_a_platform() {
        let (_folder, mut project) = project();
        project.hosting.platform_host = None;
        let upkeep = Upkeep::start(project).unwrap();
        assert_eq!(code(upkeep.begin_check("pets.example.com")), "platform_host_required");
        assert!(!upkeep.is_checking("pets.example.com"));
    }
}
