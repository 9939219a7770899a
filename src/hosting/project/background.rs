//! The background work of a running service on its project: it checks the DNS of domains, on demand and periodically,
//! and notes HTTPS requests for domains. A thread of its own does one task after the other, so a slow name server
//! delays no request.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::sleep;
use std::time::Duration;

use crate::config::Hosting;
use crate::database::{Reads, Writes};
use crate::model::DomainState;
use crate::project::Project;
use crate::project::domains::Occasion;
use crate::project::error::Refusal;
use crate::project::overview::{DomainView, Overview};
use crate::project::verify::check_dns;
use petstore_base::clock::unix_time;
use petstore_base::error::Error;
use petstore_base::threads::{lock, start_thread};

/// The pause of the thread after a failed write, since each HTTPS request can cause another write.
const PAUSE: Duration = Duration::from_secs(1);
/// The interval at which the thread looks for domains with a due check.
const TICK: Duration = Duration::from_secs(60);
/// The busy timeout of a change. It is short because other requests to the admin address wait meanwhile, and so does
/// the end of the service.
const PATIENCE: Duration = Duration::from_secs(1);

/// The project of a running service, and its background thread. After a drop, the thread ends with its current task.
pub struct Upkeep<W> {
    hosting: Hosting,
    project: Arc<Mutex<Project<W>>>,
    /// The tasks that wait or run: at most two for each domain.
    pending: Arc<Mutex<BTreeSet<Task>>>,
    /// `None` without a hosting platform, when no domain is served.
    tasks: Option<Sender<Task>>,
}

/// A task of the thread, with the name of a domain.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Check(String, Occasion),
    NoteServed(String),
}

impl<W: Writes> Upkeep<W> {
    /// Starts the thread if a hosting platform is configured.
    ///
    /// # Errors
    /// [`ErrorKind::Resources`](petstore_base::error::ErrorKind::Resources) if the thread cannot be started.
    pub fn start(mut project: Project<W>) -> Result<Self, Error> {
        project.store.set_patience(PATIENCE);
        let hosting = project.hosting.clone();
        let (project, pending) = (Arc::new(Mutex::new(project)), Arc::default());
        let mut upkeep = Self {
            hosting,
            project,
            pending,
            tasks: None,
        };
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

    /// Notes that a trusted proxy has forwarded an HTTPS request for a domain. Does not block.
    pub fn note_served(&self, name: &str) {
        self.begin(Task::NoteServed(name.to_owned()));
    }

    /// Begins a check of a domain, unless one waits or runs already. Does not block. Returns the stored name of the
    /// domain.
    ///
    /// # Errors
    /// Those of [`Project::check`].
    pub fn begin_check(&self, text: &str) -> Result<String, Refusal> {
        let name = self.project().may_check(text)?;
        self.begin(Task::Check(name.clone(), Occasion::Request));
        Ok(name)
    }

    fn begin(&self, task: Task) {
        if let Some(tasks) = &self.tasks
            && lock(&self.pending).insert(task.clone())
        {
            // The thread takes tasks as long as there is a sender.
            let _ = tasks.send(task);
        }
    }

    /// Returns whether a requested check of this domain waits or runs.
    pub fn is_checking(&self, name: &str) -> bool {
        lock(&self.pending).contains(&Task::Check(name.to_owned(), Occasion::Request))
    }

    /// Returns the state of the project, read on `database`, so that it does not wait for a change.
    ///
    /// # Errors
    /// `STORAGE_UNAVAILABLE` if the database cannot be read.
    pub fn overview(&self, database: &impl Reads) -> Result<Overview, Refusal> {
        Ok(Overview::of(database, &self.hosting, unix_time())?)
    }

    /// Locks the project for a change.
    pub fn project(&self) -> MutexGuard<'_, Project<W>> {
        lock(&self.project)
    }
}

/// Runs the tasks until the channel is closed. Requested checks come before due ones.
fn run<W: Writes>(
    project: &Weak<Mutex<Project<W>>>,
    hosting: &Hosting,
    pending: &Mutex<BTreeSet<Task>>,
    tasks: &Receiver<Task>,
) {
    let mut due: Vec<String> = Vec::new();
    let mut wait = Duration::ZERO;
    loop {
        let task = match tasks.recv_timeout(wait) {
            Ok(task) => Some(task),
            Err(RecvTimeoutError::Timeout) => {
                due.pop().map(|name| Task::Check(name, Occasion::Schedule))
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let done = match &task {
            Some(Task::Check(name, occasion)) => {
                let finding = check_dns(name, hosting);
                change(project, |project| {
                    let (domain, is_news) =
                        project.record(name, &finding, *occasion, unix_time())?;
                    if is_news {
                        log_news(&domain);
                    }
                    Ok(())
                })
            }
            Some(Task::NoteServed(name)) => change(project, |project| project.note_served(name)),
            None => change(project, |project| {
                project.due(unix_time()).map(|names| due = names)
            }),
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
fn change<W: Writes>(
    project: &Weak<Mutex<Project<W>>>,
    work: impl FnOnce(&mut Project<W>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    project
        .upgrade()
        .map_or(Ok(()), |project| work(&mut lock(&project)))
}

/// Logs the new state of a domain after a check.
fn log_news(view: &DomainView) {
    let domain = &view.domain;
    let is_bad = match domain.state {
        DomainState::PendingDns => false,
        DomainState::CertificateDelayed => true,
        _ => !view.is_in_order(),
    };
    let level = if is_bad {
        log::Level::Warn
    } else {
        log::Level::Info
    };
    log::log!(
        level,
        "the domain {} is {}: {}. {}",
        domain.name,
        domain.state.as_str(),
        view.state_text,
        domain.message.as_deref().unwrap_or_default()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::testing::{code, project};

    #[test]
    fn nothing_is_checked_without_a_platform() {
        let (_folder, mut project) = project();
        project.add("pets.example.com", false).unwrap();
        project.hosting.platform_host = None;
        let upkeep = Upkeep::start(project).unwrap();
        assert_eq!(
            code(upkeep.begin_check("pets.example.com")),
            "platform_host_required"
        );
        assert!(!upkeep.is_checking("pets.example.com"));
    }
}
