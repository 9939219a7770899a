//! The gate, for the fuzzers: its reader next to a second one, a client fed in pieces, and the whole with its budget.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{Read as _, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mio::Events;

use super::strict_tests::{Read, Request, read};
use super::{Cors, Gate, GateConfig, Listening, Stopper};
use crate::addresses::Peer;
use crate::client::{Client, ClientState, Shared};
use crate::connections::{Connection, READ_BYTES};
use crate::lane::{LaneKind, LaneRequest, LaneResponse};
use crate::lanes::OpenLane;
use crate::limits::{Deadlines, Limits};
use crate::refusal::Refusal;
use crate::testing::{FarEnd, OnLane, request, respond_with};
use crate::wire::head::Intake;
use crate::wire::request_id::RequestIds;
use crate::wire::request_reader::{RequestReader, Step};
use crate::wire::response_head::GeneralFields;
use petstore_base::http::limits::{MAX_BODY_BYTES, MAX_HEAD_BYTES};
use petstore_base::http::{Response, Size};
use petstore_base::metrics::Metrics;
use petstore_base::testing::Folder;
use petstore_base::testing::fuzzing::Parts;

const FORWARDED: [&str; 4] = ["Authorization", "Content-Type", "Host", "X"];

/// An input in which `0xfe`, a byte and a count stand for 64 times the count of such bytes, so that small inputs reach large
/// bounds.
fn expanded(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let [first, rest @ ..] = bytes {
        bytes = match (*first, rest) {
            (0xfe, [byte, count, rest @ ..]) => {
                out.extend(std::iter::repeat_n(*byte, usize::from(*count) * 64));
                rest
            }
            (byte, rest) => {
                out.push(byte);
                rest
            }
        };
    }
    out
}

/// Reads requests one after the other, and compares each with the result of a second reader.
pub fn gate_reader(bytes: &[u8]) {
    let (input, mut at) = (expanded(bytes), 0);
    let mut intake = Intake {
        forwarded: FORWARDED.to_vec(),
        ..Intake::default()
    };
    loop {
        let (ours, strict) = (ours(&input[at..], &mut intake), read(&input[at..]));
        match (ours, strict) {
            (Ok(Some((asked, written, persists, length))), Read::Request(request)) => {
                at += request.length;
                assert_eq!((length, persists), (request.length, request.persists));
                is_same(&asked, &written, &request);
            }
            // Extensions and trailer fields are bounded together; the exact count does not matter.
            (Err(431), Read::Request(request)) => {
                return assert!(
                    request.head > 16 << 10 || request.dropped > 7 << 10,
                    "{request:?}"
                );
            }
            (Ok(None), Read::Incomplete) | (Err(_), Read::Refused) => return,
            // What cannot become a request any more is refused early.
            (Err(status), Read::Incomplete) => return assert_ne!(status, 408),
            (ours, strict) => panic!("{ours:?} is {strict:?}"),
        }
    }
}

/// Method and target, the request as it goes down a lane, whether the connection persists, and the bytes that it took.
type Ours = (Vec<u8>, Vec<u8>, bool, usize);

/// The request at the start of an input; `None` if it is incomplete, and the status if it is refused.
fn ours(input: &[u8], intake: &mut Intake) -> Result<Option<Ours>, u16> {
    let (mut reader, mut request) = (RequestReader::default(), LaneRequest::default());
    let mut at = 0;
    loop {
        let (consumed, step) = reader.advance(&input[at..], false, intake, &mut request);
        at += consumed;
        match step {
            Step::More => return Ok(None),
            Step::Continue | Step::Head(Ok(())) => {}
            Step::Head(Err(error)) | Step::Reject(error) => return Err(error.reason.status()),
            Step::Request(_) => {
                let persists = reader.head.is_some_and(|head| head.keep_alive);
                let mut written = Vec::new();
                request.write(2, b"id", &mut written);
                return Ok(Some((request.line().to_vec(), written, persists, at)));
            }
        }
    }
}

/// Compares a request on the lane with the result of the second reader.
fn is_same(asked: &[u8], written: &[u8], request: &Request) {
    assert_eq!(asked, [&request.method[..], &request.target].join(&b' '));
    let on_lane = OnLane::parse(written);
    assert_eq!([on_lane.method, on_lane.target].join(" ").as_bytes(), asked);
    assert_eq!((on_lane.ticket, &*on_lane.id), (2, "id"));
    assert_eq!(on_lane.body, request.body);
    let fields = request.fields.iter().filter_map(|(name, value)| {
        let name = FORWARDED
            .into_iter()
            .find(|known| known.as_bytes().eq_ignore_ascii_case(name))?;
        let value = value.iter().map(|byte| {
            if byte.is_ascii() {
                char::from(*byte)
            } else {
                '\x7f'
            }
        });
        Some((name.to_owned(), value.collect::<String>()))
    });
    assert_eq!(on_lane.fields, fields.collect::<Vec<_>>());
}

/// Feeds a client in pieces, whose sizes the first bytes choose, and in pieces as large as the gate reads. It gets the
/// same responses, and never holds more than one request and one response.
pub fn gate_client(bytes: &[u8]) {
    let mut parts = Parts(bytes);
    let sizes = [parts.byte(), parts.byte(), parts.byte()].map(|size| 1 + usize::from(size));
    let input = expanded(parts.0);
    assert_eq!(converse(&input, &[READ_BYTES]), converse(&input, &sizes));
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// The most that a client holds: a request of the largest size, the bytes of one more read, and a response with the
/// request in it. A buffer may be twice as large as its content.
const MAX_HELD: usize = 2 * (2 * (MAX_HEAD_BYTES + MAX_BODY_BYTES) + READ_BYTES);

/// Everything that a client gets for an input, except a 100 Continue, which depends on how soon the body comes.
fn converse(mut input: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut shared = Shared {
        now: Instant::now(),
        deadlines: Deadlines::default(),
        intake: Intake {
            ids: RequestIds(0),
            forwarded: FORWARDED.to_vec(),
            ..Intake::default()
        },
        general: GeneralFields::new("petstore", &Cors::default()),
        draining: false,
        refuse: Box::new(Refusal::into_response),
        metrics: Metrics::default(),
    };
    // The same date in every response.
    shared.general.refresh(0);
    let mut client = Client::new(Peer::Tcp(([192, 0, 2, 1], 9).into()), &shared);
    let (mut out, mut is_whole) = (Vec::new(), true);
    let mut sizes = sizes.iter().cycle().copied();
    let mut size = || sizes.next().unwrap_or(1);
    while client.state() != ClientState::Closed {
        if is_whole && client.output().starts_with(CONTINUE) {
            client.consume_output(CONTINUE.len(), &mut shared);
        } else if !client.output().is_empty() {
            let count = size().min(client.output().len());
            is_whole = count == client.output().len();
            out.extend_from_slice(&client.output()[..count]);
            client.consume_output(count, &mut shared);
        } else if let ClientState::Ready(kind) = client.state() {
            respond(&mut client, kind, &mut shared);
        } else if input.is_empty() {
            assert!(client.wants_input());
            client.end(&mut shared);
        } else {
            assert!(client.wants_input());
            let (piece, rest) = input.split_at(size().min(input.len()));
            client.receive(piece, &mut shared);
            input = rest;
        }
        assert!(client.held() <= MAX_HELD, "{}", client.held());
        assert_eq!(
            client.deadline.is_none(),
            matches!(client.state(), ClientState::Ready(_) | ClientState::Closed)
        );
    }
    assert_eq!(client.held(), 0);
    out
}

/// Handles a request by its target: loses it, passes it on, or responds with the request.
fn respond(client: &mut Client, kind: LaneKind, shared: &mut Shared) {
    let mut written = Vec::new();
    client.request.write(2, client.id(), &mut written);
    client.enter(ClientState::Waiting, shared);
    let asked = client.request.line().to_vec();
    client.go_inside(kind, shared);
    match asked.last() {
        Some(b'0') => client.expire(shared),
        Some(b'1') if kind == LaneKind::Read => {
            client.enter(ClientState::Ready(LaneKind::Write), shared);
        }
        _ => client.respond(
            &LaneResponse::of(&Response::new(200, written), &mut Vec::new()),
            shared,
        ),
    }
}

/// The limits of a small gate.
const PLACES: usize = 16;
const BUDGET: usize = 256 * 1024;
/// The most that is held for a client that has just been refused.
const REFUSAL: usize = 2048;

/// A gate with real sockets. Its clients connect, send, read, are late and leave as the bytes say, and its one lane
/// answers now and then. What is held and counted is right after each step, and nothing is left in the end.
pub fn gate_budget(bytes: &[u8]) {
    static FAR_END: LazyLock<Mutex<(Folder, FarEnd)>> = LazyLock::new(|| {
        let folder = Folder::for_sockets();
        let far_end = FarEnd::bind(&folder.0.join("lane"));
        Mutex::new((folder, far_end))
    });
    let far_end = FAR_END.lock().unwrap_or_else(PoisonError::into_inner);
    let mut small = SmallGate::new(far_end.0.0.join("lane"));
    let mut lane = far_end.1.accept();
    let mut parts = Parts(bytes);
    while !parts.0.is_empty() {
        small.act(&mut lane, &mut parts);
        small.step();
    }
    small.clients.clear();
    while !small.gate.connections.open.is_empty() {
        small.step();
    }
    assert_eq!(small.gate.connections.held, 0);
}

struct SmallGate {
    gate: Gate,
    events: Events,
    clients: Vec<UnixStream>,
}

impl SmallGate {
    fn new(path: std::path::PathBuf) -> Self {
        let config = GateConfig {
            limits: Limits {
                connections: PLACES,
                memory: BUDGET,
                ..Limits::default()
            },
            lanes: vec![OpenLane {
                stream: UnixStream::connect(path).unwrap(),
                kind: LaneKind::Read,
                window: 1,
            }],
            forwarded: FORWARDED.to_vec(),
            size: |line| {
                if line.ends_with(b"0") {
                    Size::Small
                } else {
                    Size::Large
                }
            },
            ..GateConfig::default()
        };
        let listening = Listening::bind(&([127, 0, 0, 1], 0).into()).unwrap();
        let mut gate = Gate::new(listening, config, Stopper::default()).unwrap();
        gate.shared.intake.ids = RequestIds(0);
        Self {
            gate,
            events: Events::with_capacity(256),
            clients: Vec::new(),
        }
    }

    /// Does one thing that clients, the lane or the clock do.
    fn act(&mut self, lane: &mut UnixStream, parts: &mut Parts) {
        let (what, which, amount) = (
            parts.byte() % 8,
            usize::from(parts.byte()),
            usize::from(parts.byte()),
        );
        if what == 0 {
            return self.connect(amount as u8);
        }
        if self.clients.is_empty() {
            return;
        }
        let which = which % self.clients.len();
        let mut client = &self.clients[which];
        // A client may be refused meanwhile, and then its socket takes and gives nothing.
        let mut send = |bytes: &[u8]| drop(client.write(bytes));
        match what {
            1 => send(format!("GET /{amount} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()),
            2 => {
                let length = amount * 256;
                send(
                    format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n")
                        .as_bytes(),
                );
            }
            3 => send(&vec![b'x'; amount * 128]),
            4 => send(parts.bytes(amount)),
            5 => drop(client.read(&mut vec![0; 256 * amount])),
            6 if amount % 2 == 0 => drop(self.clients.swap_remove(which)),
            6 => self.expire(amount),
            _ if self.gate.dispatcher.lanes[0].load() > 0 => {
                let (ticket, _) = request(lane);
                respond_with(lane, ticket, &Response::new(200, vec![b'x'; amount * 256]));
            }
            _ => {}
        }
    }

    /// Accepts a client from one of a few addresses; one of them is exempt from the limits per address.
    fn connect(&mut self, address: u8) {
        let address = match address % 8 {
            0 => [127, 0, 0, 1],
            number => [192, 0, 2, number],
        };
        let (here, there) = UnixStream::pair().unwrap();
        [&here, &there]
            .into_iter()
            .for_each(|stream| stream.set_nonblocking(true).unwrap());
        self.gate
            .admit(OwnedFd::from(there).into(), Peer::Tcp((address, 9).into()));
        self.clients.push(here);
    }

    /// Has the deadline of a client pass.
    fn expire(&mut self, which: usize) {
        let connections = self
            .gate
            .connections
            .open
            .iter_mut()
            .map(|(_, connection)| &mut connection.client);
        let mut late: Vec<_> = connections
            .filter(|client| client.deadline.is_some())
            .collect();
        let count = late.len().max(1);
        let Some(client) = late.get_mut(which % count) else {
            return;
        };
        client.deadline = Some(self.gate.shared.now);
        self.gate.next_tick = self.gate.shared.now;
    }

    /// One round of the gate without waiting, and the invariants after it.
    fn step(&mut self) {
        let gate = &mut self.gate;
        gate.wait(&mut self.events, Some(Duration::ZERO));
        gate.read_on();
        gate.dispatcher
            .dispatch(&mut gate.connections, &gate.shared);
        gate.tick();
        gate.dispatcher.flush(gate.poll.registry()).unwrap();
        let connections = &gate.connections;
        let held = connections
            .open
            .iter()
            .map(|(_, connection)| connection.held);
        assert_eq!(connections.held, held.sum::<usize>());
        assert!(
            connections.held <= BUDGET + PLACES * REFUSAL,
            "{}",
            connections.held
        );
        assert!(connections.open.len() <= PLACES);
        for (_, connection) in &connections.open {
            assert_eq!(connection.held, connection.client.held());
            let is_same = |other: &Connection| other.address_index == connection.address_index;
            let count = connections
                .open
                .iter()
                .filter(|(_, other)| is_same(other))
                .count();
            assert_eq!(
                connections.addresses.known[connection.address_index].connections,
                count
            );
            assert!(connection.is_exempt || count <= PLACES / 4);
        }
    }
}
