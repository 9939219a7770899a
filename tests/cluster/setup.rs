//! The processes: three nodes of rqlite, two instances of petstore, and `HAProxy` before them.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, RwLock};

use support::rqlite_nodes::Nodes;

/// The key of the clients, which every instance has.
pub const KEY: &str = "cluster-key";
/// How many instances run.
pub const INSTANCES: usize = 2;

pub struct Stage {
    pub nodes: RwLock<Nodes>,
    database: String,
    folder: PathBuf,
    pub instances: Vec<Instance>,
    pub balancer: SocketAddr,
    haproxy: Mutex<Child>,
}

/// An instance of petstore, which keeps its address when it is started again.
pub struct Instance {
    pub address: SocketAddr,
    process: Mutex<Option<Child>>,
}

fn program() -> String {
    std::env::var("PETSTORE").unwrap_or_else(|_| env!("CARGO_BIN_EXE_petstore").to_owned())
}

/// An address of this process alone.
fn free(last: u8) -> SocketAddr {
    let [low, high] = (std::process::id() as u16).to_le_bytes();
    let ip = [127, high | 64, low, 200 + last];
    TcpListener::bind((std::net::Ipv4Addr::from(ip), 0))
        .unwrap()
        .local_addr()
        .unwrap()
}

impl Stage {
    pub fn new() -> Self {
        let nodes = Nodes::start(3);
        let (database, folder) = (nodes.address(), nodes.folder().to_owned());
        let instances: Vec<Instance> = (0..INSTANCES)
            .map(|i| Instance {
                address: free(i as u8),
                process: Mutex::new(None),
            })
            .collect();
        let balancer = free(INSTANCES as u8);
        let haproxy = Mutex::new(haproxy(&folder, balancer, &instances));
        let stage = Self {
            nodes: RwLock::new(nodes),
            database,
            folder,
            instances,
            balancer,
            haproxy,
        };
        // At once, so that they make the schema at the same time.
        std::thread::scope(|scope| {
            let stage = &stage;
            (0..INSTANCES).for_each(|i| drop(scope.spawn(move || stage.start_instance(i))));
        });
        stage
    }

    /// A command of petstore on the cluster.
    pub fn petstore(&self, words: &[&str]) -> Output {
        Command::new(program())
            .args(words)
            .env_clear()
            .env("PETSTORE_DATABASE", &self.database)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Starts an instance, and waits until it listens. One that finds no leader ends, and is started again, as a
    /// supervisor does.
    pub fn start_instance(&self, i: usize) {
        let instance = &self.instances[i];
        let log = self.folder.join(format!("petstore-{i}"));
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        loop {
            let mut child = Command::new(program())
                .args([
                    "serve",
                    "--experimental",
                    "--listen",
                    &instance.address.to_string(),
                ])
                .env_clear()
                .env("PETSTORE_DATABASE", &self.database)
                .env("PETSTORE_API_KEY", KEY)
                .env("TMPDIR", std::env::temp_dir())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(log.try_clone().unwrap())
                .spawn()
                .unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap())
                .read_line(&mut line)
                .unwrap();
            if line.starts_with("petstore listening") {
                *instance.process.lock().unwrap() = Some(child);
                return;
            }
            let _ = child.wait();
        }
    }

    /// Sends a signal to an instance, such as `STOP`.
    pub fn signal_instance(&self, i: usize, name: &str) {
        if let Some(child) = &mut *self.instances[i].process.lock().unwrap() {
            let _ = Command::new("kill")
                .args([&format!("-{name}"), &child.id().to_string()])
                .status();
        }
    }

    pub fn kill_instance(&self, i: usize) {
        if let Some(mut child) = self.instances[i].process.lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The logs of the instances.
    pub fn logs(&self) -> String {
        let log = |i: usize| {
            std::fs::read_to_string(self.folder.join(format!("petstore-{i}"))).unwrap_or_default()
        };
        (0..INSTANCES).map(log).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        (0..INSTANCES).for_each(|i| self.kill_instance(i));
        let mut haproxy = self.haproxy.lock().unwrap();
        let _ = haproxy.kill();
        let _ = haproxy.wait();
    }
}

/// `HAProxy` as `scripts/deploy/haproxy.cfg` sets it up, but without TLS, and for these instances.
fn haproxy(folder: &std::path::Path, balancer: SocketAddr, instances: &[Instance]) -> Child {
    let line = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        ["frontend", ..] => format!("{line}\n    bind {balancer}\n"),
        ["bind", ..] | ["http-request", "redirect" | "return", ..] => String::new(),
        ["server", name, address, ..] => {
            match ["one", "two"].iter().position(|known| *known == name) {
                Some(i) => line.replace(address, &instances[i].address.to_string()) + "\n",
                None => String::new(),
            }
        }
        _ => format!("{line}\n"),
    };
    let config: String = include_str!("../../scripts/deploy/haproxy.cfg")
        .lines()
        .map(line)
        .collect();
    let file = folder.join("haproxy.cfg");
    std::fs::write(&file, config).unwrap();
    let log = std::fs::File::create(folder.join("haproxy.log")).unwrap();
    Command::new("haproxy")
        .env("PATH", "/usr/sbin:/usr/bin:/bin")
        .arg("-db")
        .arg("-f")
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("scripts/cluster needs haproxy (Debian: haproxy)")
}
