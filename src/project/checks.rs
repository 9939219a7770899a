//! What a running service does for its domains beside its requests: it looks at their DNS when it is asked to
//! and once a day, and notes which of them are asked for over HTTPS. Each look has a thread of its own, so that
//! a name server that never answers holds up nobody.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::look::Look;
use super::overview::Overview;
use super::project::{Project, Settings};
use super::refusal::{Refusal, RefusalCode, Refused};
use crate::clock::unix_time;
use crate::store::Database;

/// The most looks at once. Those of once a day leave half of them to people.
const MAX_CHECKS: usize = 8;
/// How long it is not tried again to note names, where it failed.
const PAUSE: Duration = Duration::from_secs(10);
/// How often it is seen whether a look is due.
const TICK: Duration = Duration::from_secs(60);
/// How long a change waits for the lock of another process. The admin address has other requests to answer, and
/// the end of the service waits for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most names that wait to be noted. One that finds no room is asked for again.
const MAX_SERVED: usize = 64;

/// Hands over names that a trusted proxy has passed on an HTTPS request for.
#[derive(Clone)]
pub struct ServedNames(SyncSender<Message>);

enum Message {
    Served(String),
    Stop,
}

impl ServedNames {
    /// Notes a name; does not wait.
    pub fn note(&self, name: &str) {
        // The next request says it again.
        let _ = self.0.try_send(Message::Served(name.to_owned()));
    }
}

/// The project of a running service, and the looks under way.
#[derive(Clone)]
pub struct Checks {
    settings: Arc<Settings>,
    project: Arc<Mutex<Project>>,
    under_way: Arc<Mutex<BTreeSet<String>>>,
}

impl Checks {
    /// Looks at domains of this project.
    pub fn new(mut project: Project) -> Self {
        project.be_patient(PATIENCE);
        let settings = Arc::new(project.settings().clone());
        Self { settings, project: Arc::new(Mutex::new(project)), under_way: Arc::default() }
    }

    /// What is to be seen in the snapshot of a connection that reads, whoever works on the project meanwhile.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn overview(&self, database: &Database) -> Refused<Overview> {
        Ok(Overview::of(&database.project()?, &self.settings, unix_time())?)
    }

    /// The project, for a moment.
    pub fn project(&self) -> MutexGuard<'_, Project> {
        lock(&self.project)
    }

    /// Whether a look at this domain is under way.
    pub fn is_checking(&self, name: &str) -> bool {
        lock(&self.under_way).contains(name)
    }

    /// Begins a look at a domain, where none is under way. Takes no time.
    ///
    /// # Errors
    /// Where there are too many.
    pub fn begin(&self, name: &str, look: Look) -> Refused<()> {
        self.begin_within(name, look, MAX_CHECKS)
    }

    fn begin_within(&self, name: &str, look: Look, most: usize) -> Refused<()> {
        let busy = || {
            let message = "As many verifications are under way as may be. Try again in some seconds.";
            Refusal::new(RefusalCode::TooManyChecks, message)
        };
        let mut under_way = lock(&self.under_way);
        if under_way.contains(name) {
            return Ok(());
        }
        if under_way.len() >= most {
            return Err(busy());
        }
        let settings = Arc::clone(&self.settings);
        // The end of the service does not wait for DNS.
        let (place, of, list) = (Arc::downgrade(&self.project), name.to_owned(), Arc::clone(&self.under_way));
        let run = move || {
            check(&place, &settings, &of, look);
            lock(&list).remove(&of);
        };
        let thread = std::thread::Builder::new().name("dns".to_owned()).spawn(run);
        thread.map_err(|_| busy())?;
        under_way.insert(name.to_owned());
        Ok(())
    }

    /// Begins the looks of once a day, a few at a time.
    fn begin_due(&self) {
        let due = self.project().due(unix_time());
        match due {
            Ok(names) => {
                let begin = |name: &String| self.begin_within(name, Look::Record, MAX_CHECKS / 2);
                let _ = names.iter().try_for_each(begin);
            }
            Err(refusal) => log::warn!("cannot look which domains are due: {refusal}"),
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at a domain, and keeps what was seen if the service still runs.
fn check(project: &Weak<Mutex<Project>>, settings: &Settings, name: &str, look: Look) {
    let Some(platform) = &settings.hosting.platform_host else { return };
    let seen = settings.looker.look(name, platform, look);
    let Some(project) = project.upgrade() else { return };
    match lock(&project).keep(name, &seen) {
        Ok(domain) => {
            let message = domain.message.unwrap_or_default();
            log::info!("the domain {name} is {}. {message}", domain.state.as_str());
        }
        Err(refusal) => log::warn!("what was seen of the domain {name} is not kept: {refusal}"),
    }
}

/// The thread beside the requests. Dropping it ends it.
pub struct DomainCare {
    sender: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl DomainCare {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where no thread is to be had.
    pub fn start(checks: Checks) -> Result<Self, crate::Error> {
        let (sender, receiver) = sync_channel(MAX_SERVED);
        let run = move || care(&checks, &receiver);
        let thread = std::thread::Builder::new().name("domains".to_owned()).spawn(run);
        let thread = Some(thread.map_err(|error| crate::Error::no_thread(&error))?);
        Ok(Self { sender, thread })
    }

    /// Where requests are noted.
    pub fn served_names(&self) -> ServedNames {
        ServedNames(self.sender.clone())
    }
}

impl Drop for DomainCare {
    fn drop(&mut self) {
        let _ = self.sender.send(Message::Stop);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            log::error!("the thread for domains has died");
        }
    }
}

fn care(checks: &Checks, receiver: &Receiver<Message>) {
    // After a failure it is tried again a while later: the requests go on, and say it again.
    let mut paused_until: Option<Instant> = None;
    loop {
        let mut names = match receiver.recv_timeout(TICK) {
            Ok(Message::Served(name)) => vec![name],
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                checks.begin_due();
                continue;
            }
        };
        for message in receiver.try_iter() {
            match message {
                Message::Served(name) if !names.contains(&name) => names.push(name),
                Message::Served(_) => {}
                Message::Stop => return,
            }
        }
        if paused_until.is_some_and(|until| Instant::now() < until) {
            continue;
        }
        if let Err(refusal) = checks.project().note_served(&names) {
            paused_until = Some(Instant::now() + PAUSE);
            log::warn!("that {} is asked for over HTTPS is not kept yet: {refusal}", names.join(", "));
        }
    }
}
