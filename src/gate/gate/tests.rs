//! The gate, round by round in the test's own thread: its sockets are real, the addresses of its clients are not.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix;
use std::sync::Arc;

use mio::Interest;
use mio::net::UnixStream;

use super::shutdown::LAST_WORDS;
use super::*;
use crate::addresses::Peer;
use crate::client::ClientState;
use crate::lanes::tests::{MEMORY, config, open};
use crate::listen::Listen;
use crate::testing::{FarEnd, all, answer, expect};
use petstore_base::error::ErrorKind;
use petstore_base::testing::{Folder, PATIENCE};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A client on another machine.
const fn far(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, number))
}

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

/// A request whose body takes three reads.
fn post() -> String {
    let body = "x".repeat(40_000);
    format!(
        "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 40000\r\n\r\n{body}"
    )
}

struct Bench {
    gate: Gate,
    events: Events,
    /// The address at which the gate accepts clients.
    address: SocketAddr,
    /// A listener for the connections that the test itself accepts.
    listener: TcpListener,
    _folder: Folder,
}

impl Bench {
    /// How the service has ended, if it has.
    fn end(&mut self) -> Option<Result<(), String>> {
        self.gate
            .end()
            .map(|ended| ended.map_err(|error| error.to_string()))
    }

    /// A gate without lanes.
    fn new(max_connections: usize) -> Self {
        Self::start(max_connections, Folder::new(), Vec::new())
    }

    /// A gate with a lane for one request that reads, and the lane's far end.
    fn with_lane(max_connections: usize) -> (Self, unix::net::UnixStream) {
        let folder = Folder::new();
        let path = folder.0.join("lane");
        let far_end = FarEnd::bind(&path);
        let lane = open(&path, LaneKind::Read, 1);
        let bench = Self::start(max_connections, folder, vec![lane]);
        (bench, far_end.accept())
    }

    fn start(max_connections: usize, folder: Folder, lanes: Vec<OpenLane>) -> Self {
        let listening = Listening::bind(&(LOOPBACK, 0).into()).unwrap();
        let address = listening.address.tcp().unwrap();
        let mut config = config(lanes);
        config.limits.connections = max_connections;
        let mut gate = Gate::new(listening, config, Stopper::default()).unwrap();
        // Who lingers here does so until the test has seen it.
        gate.shared.deadlines.linger = PATIENCE;
        let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
        Self {
            gate,
            events: Events::with_capacity(EVENTS),
            address,
            listener,
            _folder: folder,
        }
    }

    /// Accepts a client that has sent this already, and that seems to come from this address.
    fn admit(&mut self, address: IpAddr, sent: &str) -> TcpStream {
        let client = connect(self.listener.local_addr().unwrap(), sent);
        let stream = self.listener.accept().unwrap().0;
        let mut seen = vec![0; sent.len()];
        while !sent.is_empty() && stream.peek(&mut seen).unwrap() < sent.len() {}
        stream.set_nonblocking(true).unwrap();
        self.gate.admit(
            mio::net::TcpStream::from_std(stream),
            Peer::Tcp((address, 9).into()),
        );
        client
    }

    /// Runs rounds until the condition is met.
    fn until(&mut self, is_so: impl Fn(&Gate) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so(&self.gate) {
            assert!(Instant::now() < end, "the condition is not met");
            self.gate.round(&mut self.events);
        }
    }

    /// Has a connection driven.
    fn drive(&mut self, slot: usize) {
        self.gate.connections.ready.push_back(slot);
        self.gate.advance();
    }

    fn free_memory(&mut self) {
        if self.gate.connections.held > self.gate.connections.max_held {
            self.gate.free_memory();
        }
    }

    fn states(&self) -> Vec<ClientState> {
        self.gate
            .connections
            .open
            .iter()
            .map(|(_, connection)| connection.client.state())
            .collect()
    }

    /// Closes a client.
    fn close(&mut self, slot: usize) {
        self.gate.connections.open[slot]
            .client
            .close(&self.gate.shared);
        self.drive(slot);
    }
}

fn connect(address: SocketAddr, sent: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(sent.as_bytes()).unwrap();
    client
}

#[test]
fn deadline_of_any_length_can_be_waited_for() {
    let mut config = config(Vec::new());
    config.limits.deadlines.head = Duration::MAX;
    let listening = Listening::bind(&(LOOPBACK, 0).into()).unwrap();
    let gate = Gate::new(listening, config, Stopper::default()).unwrap();
    let end = gate.shared.now.checked_add(gate.shared.deadlines.head);
    assert!(end.is_some());
}

#[test]
fn address_has_a_quarter_of_the_connections_unless_many_may_stand_behind_it() {
    let mut bench = Bench::new(8);
    bench.gate.shared.intake.trusted = TrustedProxies(vec!["192.0.2.9/32".parse().unwrap()]);
    let mut inside = vec![bench.admit(far(1), ""), bench.admit(far(1), "")];
    let response = all(bench.admit(far(1), GET));
    assert!(
        response.starts_with("HTTP/1.1 503 ") && response.contains("This address has"),
        "{response}"
    );
    assert_eq!(bench.gate.connections.open.len(), 2);
    for exempt in [far(9), LOOPBACK] {
        inside.extend((0..3).map(|_| bench.admit(exempt, "")));
    }
    assert_eq!(bench.states(), [ClientState::Idle; 8]);
}

#[test]
fn newcomer_evicts_an_idle_client_before_an_older_one_with_a_request() {
    let mut bench = Bench::new(2);
    let (_older, idle) = (bench.admit(far(1), GET), bench.admit(far(2), ""));
    let _newcomer = bench.admit(far(3), GET);
    assert_eq!(all(idle), "", "closed for a newcomer");
    assert_eq!(bench.states(), [ClientState::Waiting; 2]);
}

#[test]
fn newcomer_evicts_an_idle_client_or_else_the_oldest_with_a_request() {
    let mut bench = Bench::new(2);
    let idle = bench.admit(far(1), "");
    let (oldest, _other) = (bench.admit(far(2), GET), bench.admit(far(3), GET));
    assert_eq!(all(idle), "", "closed for a newcomer");
    assert_eq!(bench.states(), [ClientState::Waiting; 2]);
    let _newcomer = bench.admit(far(4), GET);
    let response = all(oldest);
    assert!(
        response.starts_with("HTTP/1.1 503 ") && response.contains("Retry-After"),
        "{response}"
    );
    assert_eq!(bench.states(), [ClientState::Waiting; 2]);
}

#[test]
fn newcomer_is_rejected_if_nobody_can_be_evicted() {
    let (mut bench, mut lane) = Bench::with_lane(1);
    let _served = bench.admit(far(1), GET);
    assert_eq!(bench.gate.connections.open.len(), 1);
    bench.until(|gate| gate.dispatcher.lanes[0].load() == 1);
    expect(&mut lane, "/");
    let response = all(bench.admit(far(2), GET));
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    assert_eq!(bench.states(), [ClientState::Inside(LaneKind::Read)]);
}

#[test]
fn health_check_evicts_nobody_and_needs_no_free_connection() {
    let mut bench = Bench::new(1);
    let client = bench.admit(far(1), GET);
    let (mut here, there) = unix::net::UnixStream::pair().unwrap();
    here.write_all(GET.as_bytes()).unwrap();
    there.set_nonblocking(true).unwrap();
    bench.gate.stopper.add_health_check(there);
    bench.gate.accept_health_checks();
    assert_eq!(bench.states(), [ClientState::Waiting; 2]);
    let _newcomer = bench.admit(far(2), GET);
    assert!(
        all(client).starts_with("HTTP/1.1 503 "),
        "the oldest is evicted"
    );
    assert_eq!(
        bench.states(),
        [ClientState::Waiting; 2],
        "and not the health check"
    );
}

#[test]
fn head_that_is_turned_away_gets_no_body() {
    let mut bench = Bench::new(4);
    let address = IpAddr::from([192, 0, 2, 1]);
    let _first = bench.admit(address, "");
    for (method, has_body) in [("HEAD", false), ("GET", true)] {
        let client = bench.admit(
            address,
            &format!("{method} / HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\n\r\n"),
        );
        let response = all(client);
        assert!(
            response.starts_with("HTTP/1.1 503 ") && response.contains(": mine\r\n"),
            "{response}"
        );
        assert_eq!(!response.ends_with("\r\n\r\n"), has_body, "{response}");
    }
}

#[test]
fn turns_are_by_address_unless_many_may_stand_behind_it() {
    let mut bench = Bench::new(100);
    let addresses = [far(1), far(1), far(2), LOOPBACK, LOOPBACK, far(1)];
    let _clients = addresses.map(|address| bench.admit(address, GET));
    let waiting = &mut bench.gate.dispatcher.waiting[LaneKind::Read as usize];
    let order: Vec<_> = std::iter::from_fn(|| waiting.pop())
        .map(|client| client.slot)
        .collect();
    assert_eq!(order, [0, 2, 3, 4, 1, 5]);
}

#[test]
fn client_counts_for_the_address_that_its_proxy_names() {
    let mut bench = Bench::new(100);
    let request = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n";
    let _clients = (bench.admit(LOOPBACK, request), bench.admit(far(1), ""));
    let addresses = &bench.gate.connections.addresses;
    assert_eq!(
        (
            addresses.connections_of(LOOPBACK),
            addresses.connections_of(far(1))
        ),
        (0, 2)
    );
}

#[test]
fn last_response_ends_our_side() {
    let mut bench = Bench::new(100);
    let response = all(bench.admit(far(1), "nonsense\r\n\r\n"));
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert_eq!(bench.states(), [ClientState::Lingering]);
}

#[test]
fn end_that_comes_with_the_last_bytes_is_noticed() {
    let mut bench = Bench::new(100);
    let mut client = bench.admit(far(1), "");
    client.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    bench.until(|gate| gate.connections.open.is_empty());
    assert!(all(client).starts_with("HTTP/1.1 400 "));
}

#[test]
fn reset_connection_is_removed_by_a_read_and_by_a_write() {
    let mut bench = Bench::new(100);
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n";
    for writes in [false, true] {
        let client = bench.admit(far(1), head);
        client.peek(&mut [0; 1]).unwrap();
        // Closed with the 100 Continue unread, which resets the connection.
        drop(client);
        // The event itself is passed over.
        while !bench.events.iter().any(|event| event.is_error()) {
            bench
                .gate
                .poll
                .poll(&mut bench.events, Some(PATIENCE))
                .unwrap();
        }
        bench.events.clear();
        let connection = &mut bench.gate.connections.open[0];
        connection.readable = !writes;
        if writes {
            connection.client.evict(&mut bench.gate.shared);
        }
        bench.drive(0);
        assert_eq!(bench.states(), [], "writes: {writes}");
    }
}

#[test]
fn client_that_sends_much_does_not_hold_up_others() {
    let mut bench = Bench::new(100);
    let _client = bench.admit(far(1), &post());
    assert_eq!(
        (bench.states(), bench.gate.connections.unread.len()),
        (vec![ClientState::Body], 1)
    );
    assert_eq!(bench.gate.timeout(), Some(Duration::ZERO));
    bench.gate.read_on();
    assert_eq!(
        (bench.states(), bench.gate.connections.unread.len()),
        (vec![ClientState::Waiting], 0)
    );
}

/// The slots of the clients whose request still waits, once these bytes are held and memory is freed.
fn not_evicted(bench: &mut Bench, held: &[usize]) -> Vec<usize> {
    for (slot, bytes) in held.iter().enumerate() {
        bench.gate.connections.held =
            bench.gate.connections.held - bench.gate.connections.open[slot].held + bytes;
        bench.gate.connections.open[slot].held = *bytes;
    }
    bench.free_memory();
    let waiting =
        |slot: &usize| bench.gate.connections.open[*slot].client.state() == ClientState::Waiting;
    (0..held.len()).filter(waiting).collect()
}

#[test]
fn largest_of_the_address_that_holds_the_most_are_evicted_first() {
    let mut bench = Bench::new(100);
    let addresses = [far(1), far(2), far(2), far(2), far(3)];
    let _clients = addresses.map(|address| bench.admit(address, GET));
    let (mebibyte, rest) = (1024 * 1024, MEMORY - 60 * 1024 * 1024);
    let held = [
        20 * mebibyte,
        14 * mebibyte,
        16 * mebibyte,
        10 * mebibyte,
        rest,
    ];
    assert_eq!(
        not_evicted(&mut bench, &held),
        [0, 1, 2, 3, 4],
        "all may be held"
    );
    let held = [
        20 * mebibyte,
        14 * mebibyte,
        16 * mebibyte,
        10 * mebibyte,
        rest + 1,
    ];
    assert_eq!(not_evicted(&mut bench, &held), [0, 1, 3, 4]);
    assert!(bench.gate.connections.held < 49 * mebibyte);
}

#[test]
fn of_equal_holders_the_one_that_has_been_so_for_the_longest_gives_way() {
    let mut bench = Bench::new(100);
    let mut clients = Vec::new();
    for _ in 0..3 {
        bench.gate.shared.now += TICK;
        clients.push(bench.admit(far(1), GET));
    }
    let third = MEMORY / 3;
    assert_eq!(
        not_evicted(&mut bench, &[third, third + 1, third + 2]),
        [1, 2]
    );
}

#[test]
fn small_ones_give_way_last() {
    let mut bench = Bench::new(1000);
    let _clients: Vec<_> = (0..30).map(|_| bench.admit(LOOPBACK, GET)).collect();
    let _large = bench.admit(far(1), GET);
    let held = [&[4000; 30][..], &[8192]].concat();
    let small: Vec<_> = (0..30).collect();
    bench.gate.connections.max_held = 128_191;
    assert_eq!(not_evicted(&mut bench, &held[..31]), small[..30]);
    bench.gate.connections.max_held = 100_000;
    assert!(
        not_evicted(&mut bench, &held[..30]).len() < 30,
        "there is nobody else"
    );
}

#[test]
fn connections_of_an_address_with_many_are_evicted_until_it_has_few() {
    let mut bench = Bench::new(100);
    let _oldest = bench.admit(far(1), "");
    let _exempt: Vec<_> = (0..20).map(|_| bench.admit(LOOPBACK, "")).collect();
    let many: Vec<_> = (0..18).map(|_| bench.admit(far(2), "")).collect();
    (0..3).for_each(|_| assert!(bench.gate.evict_one()));
    let closed = many.into_iter().take(2).map(all).collect::<String>();
    assert_eq!(closed, "");
    let left = [LOOPBACK, far(1), far(2)]
        .map(|address| bench.gate.connections.addresses.connections_of(address));
    assert_eq!(left, [20, 0, 16]);
}

const HALF: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nx";

#[test]
fn body_that_is_arriving_is_evicted_last_unless_it_stalls() {
    let mut bench = Bench::new(100);
    let (upload, _waiting) = (bench.admit(far(1), HALF), bench.admit(far(2), GET));
    let idle = bench.admit(far(3), "");
    bench.gate.evict_one();
    assert_eq!(all(idle), "");
    bench.gate.evict_one();
    assert_eq!(bench.states(), [ClientState::Body]);
    bench.gate.shared.now += Duration::from_secs(1);
    let _idle = bench.admit(far(4), "");
    bench.gate.evict_one();
    assert!(all(upload).starts_with("HTTP/1.1 503 "));
    assert_eq!(bench.states(), [ClientState::Idle]);
}

#[test]
fn bodies_that_hold_more_than_half_of_the_connections_are_evicted_first() {
    let mut bench = Bench::new(4);
    let mut steady = bench.admit(far(1), HALF.trim_end_matches('x'));
    steady.write_all(b"x").unwrap();
    bench.until(|gate| gate.connections.open[0].client.has_sent_on);
    let (_idle, older, _newer) = (
        bench.admit(far(2), ""),
        bench.admit(far(3), HALF),
        bench.admit(far(4), HALF),
    );
    bench.gate.evict_one();
    assert!(all(older).starts_with("HTTP/1.1 503 "));
    assert_eq!(
        bench.states(),
        [ClientState::Body, ClientState::Idle, ClientState::Body]
    );
}

#[test]
fn candidate_that_sends_a_request_is_not_evicted() {
    let mut bench = Bench::new(100);
    let mut clients = [1, 2, 3].map(|number| bench.admit(far(number), ""));
    bench.gate.evict_one();
    clients[1].write_all(GET.as_bytes()).unwrap();
    bench.until(|gate| gate.connections.open[1].client.state() == ClientState::Waiting);
    bench.gate.evict_one();
    assert_eq!(bench.states(), [ClientState::Waiting]);
    bench.gate.connections.open[1]
        .client
        .go_inside(LaneKind::Read, &bench.gate.shared);
    bench.gate.evict_one();
    assert_eq!(
        bench.states(),
        [ClientState::Inside(LaneKind::Read)],
        "it is never evicted"
    );
}

#[test]
fn requests_of_closed_connections_leave_the_queue() {
    let mut bench = Bench::new(1);
    for _ in 0..10 {
        let _client = bench.admit(far(1), GET);
        assert_eq!(bench.states(), [ClientState::Waiting]);
        bench.close(0);
    }
}

#[test]
fn response_does_not_reach_the_next_one_in_the_slot() {
    let (mut bench, mut lane) = Bench::with_lane(100);
    let _gone = bench.admit(far(1), GET);
    bench.until(|gate| gate.dispatcher.lanes[0].load() == 1);
    let gone = expect(&mut lane, "/");
    bench.close(0);
    let client = bench.admit(far(1), GET);
    answer(&mut lane, gone, "for another");
    bench.until(|gate| {
        matches!(
            gate.connections.open[0].client.state(),
            ClientState::Inside(_)
        )
    });
    let ticket = expect(&mut lane, "/");
    answer(&mut lane, ticket, "its own");
    bench.until(|gate| gate.connections.open[0].client.state() == ClientState::Lingering);
    let response = all(client);
    assert!(response.ends_with("\r\n\r\nits own"), "{response}");
}

#[test]
fn response_that_comes_too_late_is_thrown_away() {
    let (mut bench, mut lane) = Bench::with_lane(100);
    let client = bench.admit(far(1), GET);
    bench.until(|gate| gate.dispatcher.lanes[0].load() == 1);
    let ticket = expect(&mut lane, "/");
    bench.gate.connections.open[0]
        .client
        .expire(&mut bench.gate.shared);
    bench.drive(0);
    answer(&mut lane, ticket, "too late");
    bench.until(|gate| gate.dispatcher.lanes[0].load() == 0);
    let response = all(client);
    assert!(
        response.starts_with("HTTP/1.1 503 ") && !response.contains("too late"),
        "{response}"
    );
    assert_eq!(bench.states(), [ClientState::Lingering]);
}

#[test]
fn small_request_goes_ahead_of_large_ones() {
    let (mut bench, mut lane) = Bench::with_lane(100);
    let [large, small] = ["/large", "/small"].map(|path| GET.replacen('/', path, 1));
    let _clients = [&large, &large, &small].map(|request| bench.admit(LOOPBACK, request));
    bench.until(|gate| gate.dispatcher.lanes[0].load() == 1);
    expect(&mut lane, "/small");
}

#[test]
fn crowd_holds_up_neither_lanes_nor_newcomers() {
    let (mut bench, mut lane) = Bench::with_lane(100);
    let _client = bench.admit(far(1), GET);
    bench.until(|gate| gate.dispatcher.lanes[0].load() == 1);
    let ticket = expect(&mut lane, "/");
    let mut few = Events::with_capacity(2);
    // Until all events so far have been handled.
    while {
        bench.gate.wait(&mut few, Some(Duration::ZERO));
        !few.is_empty()
    } {}
    assert!(
        bench
            .gate
            .listening
            .as_ref()
            .is_some_and(|listening| !listening.is_ready),
        "nobody has come"
    );
    let mut crowd = [0, 1].map(|_| UnixStream::pair().unwrap());
    for (near, far) in &mut crowd {
        bench
            .gate
            .poll
            .registry()
            .register(near, Token(1000), Interest::READABLE)
            .unwrap();
        far.write_all(b"x").unwrap();
    }
    answer(&mut lane, ticket, "x");
    bench.gate.wait(&mut few, Some(Duration::ZERO));
    assert_eq!(
        few.iter()
            .filter(|event| event.token() == Token(1000))
            .count(),
        2
    );
    assert_eq!(
        bench.states(),
        [ClientState::Lingering],
        "it has its response"
    );
    assert!(
        bench
            .gate
            .listening
            .is_some_and(|listening| listening.is_ready),
        "somebody may have come"
    );
}

#[test]
fn gate_sleeps_no_longer_than_there_is_nothing_to_do() {
    let mut bench = Bench::new(100);
    let hour = Duration::from_secs(3600);
    bench.gate.next_tick = Instant::now() + hour;
    let waits_for_the_tick = |gate: &Gate| gate.timeout().is_some_and(|timeout| timeout > hour / 2);
    assert_eq!(bench.gate.timeout(), None, "nobody is there");
    let _client = bench.admit(far(1), "");
    assert!(waits_for_the_tick(&bench.gate), "a client has a deadline");
    bench.close(0);
    assert_eq!(bench.gate.timeout(), None);
    if let Some(listening) = &mut bench.gate.listening {
        listening.is_ready = true;
    }
    assert_eq!(
        bench.gate.timeout(),
        Some(Duration::ZERO),
        "a client may be waiting"
    );
}

#[test]
fn deadlines_are_kept_to_the_tick() {
    let mut bench = Bench::new(100);
    let client = bench.admit(far(1), "");
    let deadline = bench.gate.connections.open[0].client.deadline.unwrap();
    bench.gate.next_tick = deadline;
    bench.gate.shared.now = deadline - Duration::from_nanos(1);
    bench.gate.tick();
    assert_eq!(
        (bench.states(), bench.gate.next_tick),
        (vec![ClientState::Idle], deadline)
    );
    bench.gate.next_tick = bench.gate.shared.now;
    bench.gate.tick();
    assert_eq!(bench.states(), [ClientState::Idle], "not yet");
    bench.gate.shared.now = deadline;
    bench.gate.next_tick = deadline;
    bench.gate.tick();
    assert_eq!(
        (bench.states(), bench.gate.next_tick),
        (vec![], deadline + TICK)
    );
    assert_eq!(all(client), "");
}

#[test]
fn backlog_is_accepted_when_the_service_ends() {
    let mut bench = Bench::new(100);
    let _clients = [connect(bench.address, GET), connect(bench.address, GET)];
    bench.gate.begin_drain();
    assert_eq!(bench.gate.connections.open.len(), 2);
    // A child that another test just starts has a copy of the listener for a moment.
    let began = Instant::now();
    while TcpStream::connect(bench.address).is_ok() {
        assert!(began.elapsed() < PATIENCE, "and nobody else");
    }
}

#[test]
fn backlog_of_a_passed_socket_is_left_to_the_next_service() {
    let mut bench = Bench::new(100);
    let passed = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let _client = connect(passed.local_addr().unwrap(), GET);
    let next = passed.try_clone().unwrap();
    let listening = Listening::bind(&Listen::Socket(Arc::new(passed.into()))).unwrap();
    bench.gate.listening = Some(listening);
    bench.gate.begin_drain();
    assert_eq!(bench.states(), []);
    next.set_nonblocking(true).unwrap();
    next.accept().unwrap();
}

#[test]
fn service_ends_once_all_have_finished() {
    let mut bench = Bench::new(100);
    let _client = bench.admit(far(1), GET);
    assert_eq!(bench.end(), None, "nobody has stopped it");
    bench.gate.stopper.stop();
    assert_eq!(bench.end(), None, "a request has begun");
    assert_eq!(bench.states(), [ClientState::Waiting]);
    bench.close(0);
    assert_eq!(bench.end(), Some(Ok(())));
}

#[test]
fn service_ends_at_its_deadline_whoever_has_not_finished() {
    let mut bench = Bench::new(100);
    let _client = bench.admit(far(1), GET);
    bench.gate.shared.deadlines.drain = PATIENCE;
    bench.gate.stopper.stop();
    assert_eq!(bench.end(), None);
    let by = bench.gate.end_by.unwrap();
    assert!(by > Instant::now() + PATIENCE / 2 && by <= Instant::now() + PATIENCE);
    bench.gate.shared.now = by - Duration::from_nanos(1);
    assert_eq!(bench.end(), None);
    bench.gate.shared.now = by;
    assert_eq!(bench.end(), Some(Ok(())));
}

#[test]
fn service_that_cannot_go_on_gives_its_clients_time_to_read_why() {
    let mut bench = Bench::new(100);
    let client = bench.admit(far(1), GET);
    // The gate is already ending, so its clock stands still from here on.
    bench.gate.stopper.stop();
    assert_eq!(bench.end(), None);
    bench
        .gate
        .stopper
        .fail(Error::new(ErrorKind::Internal, "a worker has died"));
    let failed = Instant::now();
    assert_eq!(bench.end(), None, "the client has not closed yet");
    assert!(all(client).starts_with("HTTP/1.1 503 "));
    let by = bench.gate.end_by.unwrap();
    assert!(by >= failed + LAST_WORDS);
    bench.gate.shared.now = by;
    assert_eq!(bench.end(), Some(Err("a worker has died".to_owned())));
}
