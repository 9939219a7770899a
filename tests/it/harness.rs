//! Starts the real executable with a database of its own, and clears up after it.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use crate::client::{Connection, Reply};
use crate::wait::wait_until;

/// The key that most tests use; given by the environment.
pub const KEY: &str = "test-key";

/// A folder that is removed at the end of the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("petstore-test-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn database(&self) -> PathBuf {
        self.0.join("pets.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The executable, with an environment that says nothing.
pub fn petstore(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_petstore"));
    command.args(words).env_clear().env("TMPDIR", std::env::temp_dir());
    command
}

/// Runs it to its end.
#[track_caller]
pub fn run(words: &[&str], database: &Path) -> Output {
    output(petstore(words).env("PETSTORE_DATABASE", database))
}

/// Runs a command to its end.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    let mut process = Process::start(command);
    let printed = keep(process.child.stdout.take().unwrap(), "out");
    let logged = keep(process.child.stderr.take().unwrap(), "log");
    let status = process.ended();
    Output { status, stdout: printed.join().unwrap(), stderr: logged.join().unwrap() }
}

/// The executable, with its standard input as the socket that a supervisor passes. The shell keeps its number
/// as the program's.
pub fn passed() -> Command {
    let mut command = Command::new("sh");
    let script = r#"exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" serve"#;
    command.args(["-c", script, env!("CARGO_BIN_EXE_petstore")]);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("TMPDIR", std::env::temp_dir());
    command
}

/// A process that does not outlive its test.
struct Process {
    child: Child,
    name: String,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        Self::start_with_input(command, Stdio::null())
    }

    fn start_with_input(command: &mut Command, input: Stdio) -> Self {
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap(), name: format!("{command:?}") }
    }

    /// The first line that it prints, and the pipe with the rest.
    #[track_caller]
    fn first_line(&mut self) -> (String, BufReader<ChildStdout>) {
        let mut out = BufReader::new(self.child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            (line, out)
        });
        wait_until(&format!("the first line of {}", self.name), || reader.is_finished());
        reader.join().unwrap()
    }

    /// Waits for its end.
    #[track_caller]
    fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until(&format!("the end of {}", self.name), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running server.
pub struct Server {
    /// Where it says that it listens, such as `http://127.0.0.1:8080`.
    pub place: String,
    /// Of no use where it listens on a Unix socket.
    pub address: SocketAddr,
    /// Where it serves metrics, where it was told to.
    pub admin: Option<SocketAddr>,
    /// Before the folder, as fields are dropped in this order.
    process: Process,
    pub folder: Folder,
    /// What it printed after the first line, and what it logged, once it has ended.
    printed: Option<JoinHandle<Vec<u8>>>,
    logged: Option<JoinHandle<Vec<u8>>>,
}

impl Server {
    /// Starts one with a new database and [`KEY`].
    pub fn start() -> Self {
        Self::start_in(Folder::new(), |command| command)
    }

    /// Starts one with a new database and [`KEY`], and with something changed.
    pub fn start_with(change: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        Self::start_in(Folder::new(), change)
    }

    /// Starts one on the database in `folder`.
    pub fn start_in(folder: Folder, change: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let mut command = petstore(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("PETSTORE_API_KEY", KEY).env("PETSTORE_DATABASE", folder.database());
        change(&mut command);
        let has_admin = command.get_args().any(|word| word == "--admin");
        Self::started(Process::start(&mut command), has_admin, folder)
    }

    /// Starts one on the database in `folder`, and passes it a listening socket as a supervisor does.
    pub fn start_on(
        socket: impl Into<OwnedFd>,
        folder: Folder,
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let mut command = passed();
        command.env("PETSTORE_API_KEY", KEY).env("PETSTORE_DATABASE", folder.database());
        change(&mut command);
        Self::started(Process::start_with_input(&mut command, socket.into().into()), false, folder)
    }

    fn started(mut process: Process, has_admin: bool, folder: Folder) -> Self {
        let logged = keep(process.child.stderr.take().unwrap(), "log");
        let (line, mut out) = process.first_line();
        let Some(address) = line.trim_end().strip_prefix("petstore listening on ") else {
            drop(process);
            panic!("did not start: {line:?} {}", text(logged));
        };
        let place = address.to_owned();
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let address = place.strip_prefix("http://").map_or(nowhere, |address| address.parse().unwrap());
        let admin = has_admin.then(|| {
            // Both lines come in one piece.
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            line.trim_end().strip_prefix("petstore admin on http://").unwrap().parse().unwrap()
        });
        let printed = Some(keep(out, "out"));
        Self { place, address, admin, process, folder, printed, logged: Some(logged) }
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    /// One GET with [`KEY`] on a connection of its own.
    #[track_caller]
    pub fn get(&self, target: &str) -> Reply {
        self.connect().get(target, KEY)
    }

    /// One creation with [`KEY`] on a connection of its own.
    #[track_caller]
    pub fn create(&self, body: &str) -> Reply {
        self.connect().post("/v1/pets", KEY, body)
    }

    /// Creates animals with these names and without a status.
    pub fn fill<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut connection = self.connect();
        for name in names {
            connection.post("/v1/pets", KEY, &format!(r#"{{"name":"{name}","categoryId":1}}"#)).expect(201);
        }
    }

    /// What `ps` and `kill` call it.
    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Waits for its end: how it ended, and what it had printed and logged.
    #[track_caller]
    pub fn ended(&mut self) -> (ExitStatus, String, String) {
        let status = self.process.ended();
        (status, text(self.printed.take().unwrap()), text(self.logged.take().unwrap()))
    }

    /// Kills it, and hands out its folder.
    pub fn kill(mut self) -> Folder {
        self.process.child.kill().unwrap();
        self.ended();
        self.folder
    }

    /// Ends it with SIGTERM, and returns what it had logged.
    #[track_caller]
    pub fn stop(mut self) -> String {
        self.signal("TERM");
        let (status, _, logged) = self.ended();
        assert!(status.success(), "{status}");
        logged
    }
}

/// Reads a pipe to its end, and repeats it for whoever reads a failed test.
fn keep(mut pipe: impl Read + Send + 'static, what: &'static str) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).lines().for_each(|line| eprintln!("[petstore {what}] {line}"));
        bytes
    })
}

/// What a pipe that was kept had said.
fn text(kept: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&kept.join().unwrap()).into_owned()
}
