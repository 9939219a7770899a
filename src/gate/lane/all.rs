//! The gate's work on its lanes: requests down, answers up, and what to do when one breaks off.

use std::io::{self, ErrorKind};

use crate::gate::client::State;
use crate::gate::lane::Ticket;
use crate::gate::wire::answer::Malformed;
use crate::gate::wire::head::Kind;
use crate::gate::{Gate, MAX_HELD};
use crate::http::{ApiError, Code};

impl Gate {
    /// Sends waiting requests down the lanes, as far as those have room.
    pub(in crate::gate) fn dispatch(&mut self) {
        for kind in [Kind::Read, Kind::Write] {
            // Responses that nobody takes hold up the requests that would make more of them.
            while self.held.responses <= MAX_HELD {
                let free = self.lanes.iter_mut().filter(|lane| lane.address.kind == kind && lane.has_room());
                let Some(lane) = free.min_by_key(|lane| lane.load()) else { break };
                let queue = match kind {
                    Kind::Read => &mut self.reads,
                    Kind::Write => &mut self.writes,
                };
                let Some(ticket) = queue.pop() else { break };
                let connection = self.connections.get_mut(ticket.slot).filter(|c| c.serial == ticket.serial);
                if let Some(connection) = connection
                    && connection.client.state() == State::Waiting
                {
                    lane.push(ticket, connection.client.request());
                    connection.client.go_inside(&self.shared);
                    self.held.requests -= connection.held.0;
                    connection.held.0 = connection.client.held().0;
                    self.held.requests += connection.held.0;
                }
            }
        }
    }

    /// Takes the answers of a lane to their clients. `is_ending` says that the lane's last bytes came
    /// together with its end.
    pub(in crate::gate) fn serve_lane(&mut self, index: usize, is_ending: bool) {
        loop {
            let received = self.lanes[index].receive(&mut self.scratch, is_ending);
            let input = self.lanes[index].take_input();
            let delivered = self.deliver(index, &input);
            self.lanes[index].give_back(input, *delivered.as_ref().unwrap_or(&0));
            match received.and_then(|more| delivered.map(|_| more)) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.fail_lane(index, &error),
            }
        }
    }

    /// Takes the whole answers in `input` to their clients; returns how many bytes they were.
    fn deliver(&mut self, index: usize, input: &[u8]) -> io::Result<usize> {
        let mut consumed = 0;
        while let Some((ticket, answer, length)) = self.lanes[index]
            .next_answer(&input[consumed..])
            .map_err(|Malformed| io::Error::from(ErrorKind::InvalidData))?
        {
            consumed += length;
            let Some(slot) = self.holder(ticket) else { continue };
            let connection = &mut self.connections[slot];
            if answer.is_bare_failure() {
                log::error!("a worker failed to answer; status {}", answer.status);
                connection.client.fail(ApiError::new(Code::Internal), &mut self.shared);
            } else {
                connection.client.answer(&answer, &mut self.shared);
            }
            self.drive(slot);
        }
        Ok(consumed)
    }

    /// The slot of the client who still waits for the answer to this ticket.
    fn holder(&self, ticket: Ticket) -> Option<usize> {
        let connection = self.connections.get(ticket.slot)?;
        (connection.serial == ticket.serial && connection.client.state() == State::Inside)
            .then_some(ticket.slot)
    }

    /// Sends the requests that this round has brought, those of a lane in one write.
    pub(in crate::gate) fn flush_lanes(&mut self) {
        for index in 0..self.lanes.len() {
            if let Err(error) = self.lanes[index].flush(self.poll.registry()) {
                self.fail_lane(index, &error);
            }
        }
    }

    /// Answers for a lane that broke off, and opens it anew.
    fn fail_lane(&mut self, index: usize, error: &io::Error) {
        let tickets = self.lanes[index].fail();
        log::error!("lane {index} failed with {} requests on it: {error}", tickets.len());
        for ticket in tickets {
            if let Some(slot) = self.holder(ticket) {
                self.connections[slot].client.fail(ApiError::new(Code::Overloaded), &mut self.shared);
                self.drive(slot);
            }
        }
        self.reopen_lanes();
    }

    pub(in crate::gate) fn reopen_lanes(&mut self) {
        for (index, lane) in self.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_open()) {
            match lane.reopen(self.poll.registry()) {
                Ok(()) => log::warn!("lane {index} is open again"),
                Err(error) => log::error!("cannot open lane {index} again: {error}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::unix::net::{UnixListener, UnixStream};

    use crate::config::Deadlines;
    use crate::gate::{Gate, Kind, LaneAddress, Listening, Settings, Stopper};
    use crate::store::tests::Folder;

    /// A gate in front of lanes that the test itself serves.
    struct Bench {
        _folder: Folder,
        lane: UnixListener,
        address: std::net::SocketAddr,
        stopper: Stopper,
        gate: std::thread::JoinHandle<()>,
    }

    fn bench(window: usize) -> Bench {
        let folder = Folder::new();
        let path = folder.0.join("lane");
        let lane = UnixListener::bind(&path).unwrap();
        let listening = Listening::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listening.address().unwrap();
        let lanes = vec![LaneAddress { path, kind: Kind::Read, window }];
        let deadlines = Deadlines::default();
        let settings = Settings { max_connections: 100, max_refused: 1, deadlines, lanes };
        let (gate, stopper) = Gate::new(listening, settings).unwrap();
        let gate = std::thread::spawn(move || gate.run());
        Bench { _folder: folder, lane, address, stopper, gate }
    }

    impl Bench {
        fn ask(&self, path: &str) -> TcpStream {
            let mut client = TcpStream::connect(self.address).unwrap();
            write!(client, "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
            client
        }

        fn stop(self) {
            self.stopper.stop();
            self.gate.join().unwrap();
        }
    }

    /// Reads one request from the lane and returns its path.
    fn request(lane: &mut UnixStream) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            lane.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        String::from_utf8(head).unwrap().split(' ').nth(1).unwrap().to_owned()
    }

    fn answer(lane: &mut UnixStream, body: &str) {
        write!(lane, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    }

    fn all(mut client: TcpStream) -> String {
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn broken_lane_costs_its_requests_a_503_and_is_opened_anew() {
        for garbage in [&b""[..], b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na"] {
            let bench = bench(64);
            let (mut lane, _) = bench.lane.accept().unwrap();
            let (first, second) = (bench.ask("/first"), bench.ask("/second"));
            request(&mut lane);
            request(&mut lane);
            lane.write_all(garbage).unwrap();
            drop(lane);
            for client in [first, second] {
                let response = all(client);
                assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
                assert!(response.ends_with("\"code\":\"overloaded\",\"message\":\"The service has more requests than it can take; try again in a moment.\",\"status\":503}"), "{response}");
            }
            let third = bench.ask("/third");
            let (mut lane, _) = bench.lane.accept().unwrap();
            assert_eq!(request(&mut lane), "/third");
            answer(&mut lane, "well");
            assert!(all(third).ends_with("\r\n\r\nwell"));
            bench.stop();
        }
    }

    #[test]
    fn unasked_answer_breaks_the_lane_and_reaches_nobody() {
        let bench = bench(64);
        let (mut lane, _) = bench.lane.accept().unwrap();
        let client = bench.ask("/mine");
        request(&mut lane);
        answer(&mut lane, "mine");
        answer(&mut lane, "nobody's");
        assert!(all(client).ends_with("mine"));
        bench.lane.accept().unwrap();
        bench.stop();
    }

    #[test]
    fn bare_failure_of_the_library_gets_the_error_body() {
        let bench = bench(64);
        let (mut lane, _) = bench.lane.accept().unwrap();
        let client = bench.ask("/x");
        request(&mut lane);
        lane.write_all(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n").unwrap();
        let response = all(client);
        assert!(
            response.starts_with("HTTP/1.1 500 ") && response.contains("\"code\":\"internal_error\""),
            "{response}"
        );
        bench.stop();
    }

    #[test]
    fn requests_beyond_the_window_wait_their_turn() {
        let bench = bench(1);
        let (mut lane, _) = bench.lane.accept().unwrap();
        let first = bench.ask("/1");
        assert_eq!(request(&mut lane), "/1");
        let second = bench.ask("/2");
        answer(&mut lane, "one");
        assert!(all(first).ends_with("one"));
        assert_eq!(request(&mut lane), "/2");
        answer(&mut lane, "two");
        assert!(all(second).ends_with("two"));
        bench.stop();
    }

    #[test]
    fn client_who_resets_the_connection_before_the_response_holds_up_nobody() {
        let bench = bench(64);
        let (mut lane, _) = bench.lane.accept().unwrap();
        let mut client = TcpStream::connect(bench.address).unwrap();
        let head = "GET /reset HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n";
        client.write_all(head.as_bytes()).unwrap();
        client.peek(&mut [0; 1]).unwrap();
        client.write_all(b"x").unwrap();
        assert_eq!(request(&mut lane), "/reset");
        lane.read_exact(&mut [0; 1]).unwrap();
        // Closed with the 100 Continue unread, which resets the connection.
        drop(client);
        answer(&mut lane, "reset");
        let client = bench.ask("/here");
        assert_eq!(request(&mut lane), "/here");
        answer(&mut lane, "here");
        assert!(all(client).ends_with("here"));
        bench.stop();
    }

    #[test]
    fn answer_for_a_client_who_has_gone_is_thrown_away() {
        let bench = bench(64);
        let (mut lane, _) = bench.lane.accept().unwrap();
        drop(bench.ask("/gone"));
        request(&mut lane);
        let client = bench.ask("/here");
        request(&mut lane);
        answer(&mut lane, "gone");
        answer(&mut lane, "here");
        assert!(all(client).ends_with("here"));
        bench.stop();
    }
}
