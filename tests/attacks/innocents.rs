//! Clients that ask for little, and must get it whatever others do.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::replies::Replies;
use support::client::{get, post};
use support::harness::KEY;
use support::wait::wait_until;

/// From one round of requests to the next.
const EVERY: Duration = Duration::from_millis(50);
/// When a client stops waiting. It is longer than allowed, so that the figures show more.
const GIVE_UP: Duration = Duration::from_secs(20);

/// The result of one request.
#[derive(Clone)]
pub struct Answer {
    /// Which request it was.
    pub what: &'static str,
    pub waited: Duration,
    /// The flaw in it.
    pub failure: Option<String>,
}

/// The reaction of a client whose connection was closed before it sent a request.
#[derive(Clone, Copy, PartialEq)]
pub enum Patience {
    /// It counts as a failure.
    None,
    /// Retries at once on another connection, as RFC 9112 (section 9.3.1) allows.
    ComeAgain,
}

/// Two clients: one makes a connection for each request, the other keeps its connection.
pub struct Innocents {
    stopping: Arc<AtomicBool>,
    answers: Arc<Mutex<Vec<Answer>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Innocents {
    pub fn start(address: SocketAddr, patience: Patience) -> Self {
        let (stopping, answers) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let threads = [false, true].map(|keeps| {
            let (stopping, answers) = (Arc::clone(&stopping), Arc::clone(&answers));
            std::thread::spawn(move || go_on(address, keeps, patience, &stopping, &answers))
        });
        let innocents = Self {
            stopping,
            answers,
            threads: threads.into(),
        };
        innocents.wait_for(12);
        innocents
    }

    /// Waits until they have this many more answers.
    fn wait_for(&self, count: usize) {
        let count = self.answers.lock().unwrap().len() + count;
        wait_until("the innocents' answers", || {
            self.answers.lock().unwrap().len() >= count
        });
    }

    /// Stops them, and returns their answers.
    pub fn stop(mut self) -> Vec<Answer> {
        self.stopping.store(true, Ordering::SeqCst);
        self.threads
            .drain(..)
            .for_each(|thread| thread.join().unwrap());
        std::mem::take(&mut *self.answers.lock().unwrap())
    }
}

impl Drop for Innocents {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
    }
}

fn go_on(
    address: SocketAddr,
    keeps: bool,
    patience: Patience,
    stopping: &AtomicBool,
    answers: &Mutex<Vec<Answer>>,
) {
    let requests = [
        ("healthz", 200, get("/healthz", KEY)),
        ("list", 200, get("/v1/pets", KEY)),
        (
            "create",
            201,
            post(
                "/v1/pets",
                KEY,
                r#"{"name":"Rex","categoryId":3,"status":"sold"}"#,
            ),
        ),
    ];
    let mut stream = None;
    while !stopping.load(Ordering::SeqCst) {
        let round = Instant::now();
        for (what, expected, request) in &requests {
            let asked = Instant::now();
            let was_kept = stream.is_some();
            let mut answer = ask(&mut stream, address, request.as_bytes());
            if was_kept && patience == Patience::ComeAgain && answer.as_ref().is_err_and(is_closed)
            {
                stream = None;
                answer = ask(&mut stream, address, request.as_bytes());
            }
            let failure = match answer {
                Ok(status) if status == *expected => None,
                Ok(status) => Some(status.to_string()),
                Err(error) => Some(error.to_string()),
            };
            if failure.is_some() || !keeps {
                stream = None;
            }
            answers.lock().unwrap().push(Answer {
                what,
                waited: asked.elapsed(),
                failure,
            });
        }
        std::thread::sleep(EVERY.saturating_sub(round.elapsed()));
    }
}

/// Sends a request, and returns the status of its reply. Without a connection, makes one.
fn ask(stream: &mut Option<TcpStream>, address: SocketAddr, request: &[u8]) -> io::Result<u16> {
    let stream = match stream {
        Some(stream) => stream,
        None => stream.insert(connect(address)?),
    };
    stream.write_all(request)?;
    let mut replies = Replies::default();
    let mut status = None;
    let mut piece = [0; 16 * 1024];
    loop {
        match stream.read(&mut piece)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => replies.take(&piece[..count], |reply| status = Some(reply.status)),
        }
        if let Some(status) = status {
            return Ok(status);
        }
    }
}

/// True if the connection was gone.
fn is_closed(error: &io::Error) -> bool {
    [
        ErrorKind::UnexpectedEof,
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
    ]
    .contains(&error.kind())
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, GIVE_UP)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(GIVE_UP))?;
    stream.set_write_timeout(Some(GIVE_UP))?;
    Ok(stream)
}

/// How long they waited.
pub struct Figures {
    count: usize,
    p50: Duration,
    p99: Duration,
    pub max: Duration,
}

impl Figures {
    pub fn of<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Self {
        let mut waits: Vec<Duration> = answers.into_iter().map(|answer| answer.waited).collect();
        waits.sort_unstable();
        let at = |percent: usize| {
            waits.get((waits.len() * percent / 100).min(waits.len().saturating_sub(1)))
        };
        let at = |percent| at(percent).copied().unwrap_or_default();
        Self {
            count: waits.len(),
            p50: at(50),
            p99: at(99),
            max: at(100),
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        let (p50, p99, max) = (ms(self.p50), ms(self.p99), ms(self.max));
        write!(
            f,
            "p50 {p50:.1}, p99 {p99:.1}, max {max:.1} ms of {}",
            self.count
        )
    }
}
