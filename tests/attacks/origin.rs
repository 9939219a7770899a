//! Where attackers come from: addresses of the loopback network that are not the innocents'.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};

/// Connections from one address, which then has ports left, whatever old connections linger.
const FROM_ONE_ADDRESS: usize = 5000;
/// Open files beside those of a crowd: of this process, and of the server, which also leaves some free.
const OTHER_FILES: u64 = 700;
/// What a segment holds on a real network. On the loopback network it is so large that the operating
/// system takes in a whole page for a client who reads nothing.
const SEGMENT_BYTES: u32 = 1460;
/// The receive buffer of who does not want to receive.
const SMALL_BUFFER: usize = 4096;

/// A source of connections.
#[derive(Default)]
pub struct Origin {
    address: Option<Ipv4Addr>,
    count: usize,
}

impl Origin {
    /// A socket with a fresh address.
    pub fn socket(&mut self) -> Socket {
        static LAST: AtomicU32 = AtomicU32::new(Ipv4Addr::new(127, 0, 1, 0).to_bits());
        if self.count.is_multiple_of(FROM_ONE_ADDRESS) {
            self.address = Some(Ipv4Addr::from_bits(LAST.fetch_add(1, Ordering::Relaxed) + 1));
        }
        self.count += 1;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        socket.bind(&SocketAddr::from((self.address.unwrap(), 0)).into()).unwrap();
        socket.set_tcp_nodelay(true).unwrap();
        socket
    }

    /// A socket of who makes the server keep its replies.
    pub fn narrow_socket(&mut self) -> Socket {
        let socket = self.socket();
        socket.set_tcp_mss(SEGMENT_BYTES).unwrap();
        socket.set_recv_buffer_size(SMALL_BUFFER).unwrap();
        socket
    }
}

/// So many connections, or as many as the open files allow.
pub fn many(connections: usize) -> usize {
    static LIMIT: LazyLock<u64> = LazyLock::new(|| {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
        maximum.unwrap_or(u64::MAX)
    });
    connections.min(usize::try_from(LIMIT.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX))
}
