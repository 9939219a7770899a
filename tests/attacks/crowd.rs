//! Many attackers in one thread.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use crate::attacker::Member;
use crate::plan::{Reading, Source, Tally};
use crate::source_address::Origin;
use support::wait::PATIENCE;

/// Connections to make before the others get a turn again.
const OPENED_AT_ONCE: usize = 64;
/// Connections that get a turn before more are made.
const DRIVEN_AT_ONCE: usize = 512;
/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// The bytes that a slow reader reads at once, and its pause.
const SIP_BYTES: usize = 1024;
const SIP: Duration = Duration::from_secs(1);

/// All connections, and what they do.
pub struct Crowd {
    address: SocketAddr,
    source: Source,
    reading: Reading,
    pub tally: Tally,
    poll: Poll,
    origin: Origin,
    members: Vec<Option<Member>>,
    /// Places in `members` without a connection.
    absent: Vec<usize>,
    /// Places of the connections that can make progress.
    queue: VecDeque<usize>,
    next_sip: Instant,
    scratch: Vec<u8>,
}

impl Crowd {
    /// Creates the crowd; the connections are made when it runs.
    pub fn new(address: SocketAddr, connections: usize, source: Source, reading: Reading) -> Self {
        Self {
            address,
            source,
            reading,
            tally: Tally::default(),
            poll: Poll::new().unwrap(),
            origin: Origin::default(),
            members: (0..connections).map(|_| None).collect(),
            absent: (0..connections).rev().collect(),
            queue: VecDeque::new(),
            next_sip: Instant::now() + SIP,
            scratch: vec![0; READ_BYTES],
        }
    }

    /// Makes all of them send something else.
    pub fn send(&mut self, source: Source) {
        self.source = source;
        for (place, member) in self.members.iter_mut().enumerate() {
            let Some(member) = member else { continue };
            member.begin_anew();
            if !std::mem::replace(&mut member.queued, true) {
                self.queue.push_back(place);
            }
        }
    }

    /// Closes all connections, and returns what they have seen.
    pub fn leave(self) -> Tally {
        eprintln!("attackers met {:?}", self.tally);
        self.tally
    }

    /// Runs for this long.
    pub fn run(&mut self, span: Duration) {
        let end = Instant::now() + span;
        while Instant::now() < end {
            self.turn();
        }
    }

    /// Runs until `done`; fails after [`PATIENCE`].
    #[track_caller]
    pub fn run_until(&mut self, what: &str, done: impl Fn(&Tally) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done(&self.tally) {
            assert!(
                Instant::now() < end,
                "waited {PATIENCE:?} in vain for {what}: {:?}",
                self.tally
            );
            self.turn();
        }
    }

    /// Runs for this long; those that read replies go on until the first with this status, on a slow machine.
    #[track_caller]
    pub fn run_to(&mut self, span: Duration, status: u16) {
        self.run(span);
        if self.reading.is_eager() {
            self.run_until("a reply", |tally| tally.of(status) > 0);
        }
    }

    /// Makes some connections, and gives a turn to some that can make progress.
    fn turn(&mut self) {
        for _ in 0..OPENED_AT_ONCE {
            let Some(place) = self.absent.pop() else {
                break;
            };
            self.open(place);
        }
        let is_busy = !self.queue.is_empty() || !self.absent.is_empty();
        let timeout = if is_busy {
            Duration::ZERO
        } else {
            Duration::from_millis(10)
        };
        let mut events = Events::with_capacity(1024);
        match self.poll.poll(&mut events, Some(timeout)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            polled => polled.unwrap(),
        }
        for event in &events {
            let Token(place) = event.token();
            let Some(member) = &mut self.members[place] else {
                continue;
            };
            member.readable |= event.is_readable() || event.is_error();
            member.writable |= event.is_writable() || event.is_error();
            if !std::mem::replace(&mut member.queued, true) {
                self.queue.push_back(place);
            }
        }
        for _ in 0..self.queue.len().min(DRIVEN_AT_ONCE) {
            let Some(place) = self.queue.pop_front() else {
                break;
            };
            self.drive(place);
        }
        if self.reading == Reading::Sips && Instant::now() >= self.next_sip {
            self.next_sip += SIP;
            for member in self.members.iter_mut().flatten() {
                let _ = member.stream.read(&mut self.scratch[..SIP_BYTES]);
            }
        }
    }

    fn open(&mut self, place: usize) {
        let socket = if self.reading.is_eager() {
            self.origin.socket()
        } else {
            self.origin.narrow_socket()
        };
        socket.set_nonblocking(true).unwrap();
        // Connecting goes on in the background, and the first write shows the result.
        let _ = socket.connect(&self.address.into());
        let mut stream = mio::net::TcpStream::from_std(TcpStream::from(socket));
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll
            .registry()
            .register(&mut stream, Token(place), interest)
            .unwrap();
        self.members[place] = Some(Member::new(stream));
        self.tally.opened += 1;
    }

    /// Reads once and writes once. If there is more to do, the connection stays in the queue.
    fn drive(&mut self, place: usize) {
        let Some(member) = &mut self.members[place] else {
            return;
        };
        member.queued = false;
        let mut goes_on = true;
        if member.writable {
            goes_on = member.write(&mut self.source, &mut self.tally);
        }
        if self.reading.is_eager() {
            // A request that is refused before its end has a reply all the same.
            goes_on = if member.readable {
                member.read(&mut self.scratch, &mut self.tally)
            } else {
                true
            };
        }
        if !goes_on {
            self.members[place] = None;
            self.tally.ended += 1;
            if self.reading == Reading::AllAndComeAgain {
                self.absent.push(place);
            }
        } else if member.can_get_on(self.reading) {
            member.queued = true;
            self.queue.push_back(place);
        }
    }
}
