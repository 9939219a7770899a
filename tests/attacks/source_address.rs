//! The addresses of attackers: loopback addresses other than the innocent clients'.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};

/// Connections from one address, few enough that ports are left even if old connections linger.
const FROM_ONE_ADDRESS: usize = 5000;
/// Open files other than a crowd's: of this process and of the server, which also keeps some free.
const OTHER_FILES: u64 = 700;
/// The size of a segment on a real network. On the loopback network a segment is so large that the operating
/// system buffers a whole page for a client that reads nothing.
const SEGMENT_BYTES: u32 = 1460;
/// The receive buffer of a client that does not read.
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
            self.address = Some(Ipv4Addr::from_bits(
                LAST.fetch_add(1, Ordering::Relaxed) + 1,
            ));
        }
        self.count += 1;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        socket
            .bind(&SocketAddr::from((self.address.unwrap(), 0)).into())
            .unwrap();
        socket.set_tcp_nodelay(true).unwrap();
        socket
    }

    /// A socket of a client that makes the server hold its replies.
    pub fn narrow_socket(&mut self) -> Socket {
        let socket = self.socket();
        socket.set_tcp_mss(SEGMENT_BYTES).unwrap();
        socket.set_recv_buffer_size(SMALL_BUFFER).unwrap();
        socket
    }
}

/// This many connections, or as many as the open files allow.
pub fn many(connections: usize) -> usize {
    static LIMIT: LazyLock<u64> = LazyLock::new(|| {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: maximum,
                maximum,
            },
        )
        .unwrap();
        maximum.unwrap_or(u64::MAX)
    });
    connections.min(usize::try_from(LIMIT.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX))
}
