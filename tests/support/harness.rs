//! Starts the real executable with its own database, and cleans up afterwards.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::client::{Connection, Reply, request};
use crate::cluster_pool::{self, Borrowed};
use crate::wait::wait_until;

/// The begin of the line that a service prints once it is ready.
const LISTENING: &str = "petstore listening on ";
/// The key that most tests use; given by the environment.
pub const KEY: &str = "test-key";

/// A folder that is removed at the end of the test, and the database of the test.
pub struct Folder {
    path: PathBuf,
    /// The cluster that takes the place of a file.
    cluster: OnceLock<Option<Borrowed>>,
}

impl Folder {
    #[expect(
        clippy::new_without_default,
        reason = "it creates a folder on the disk"
    )]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("petstore-test-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self {
            path,
            cluster: OnceLock::new(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The database: a file in the folder that does not exist yet, or an empty cluster.
    pub fn database(&self) -> PathBuf {
        let cluster = self.cluster.get_or_init(Borrowed::new);
        cluster.as_ref().map_or_else(
            || self.path.join("pets.db"),
            |cluster| cluster.address().into(),
        )
    }

    /// The database as petstore shows it: without what belongs to this machine alone.
    pub fn shown(&self) -> String {
        self.database()
            .to_str()
            .unwrap()
            .split('?')
            .next()
            .unwrap()
            .to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The executable under test: the one that cargo has built for the tests, or the one that `PETSTORE` names.
pub fn program() -> OsString {
    let named = std::env::var_os("PETSTORE").or_else(|| std::env::var_os("CARGO_BIN_EXE_petstore"));
    named.expect("cargo names the executable in CARGO_BIN_EXE_petstore")
}

/// The executable, without petstore's environment variables.
pub fn petstore(words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(words)
        .env_clear()
        .env("TMPDIR", std::env::temp_dir());
    command
}

/// The executable as a user who is not root, who may do everything.
pub fn as_nobody(words: &[&str]) -> Command {
    let mut command = petstore(words);
    if is_root() {
        command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(program())
            .args(words);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("TMPDIR", std::env::temp_dir());
    }
    command
}

/// True if the tests run as root.
pub fn is_root() -> bool {
    output(Command::new("id").arg("-u"))
        .stdout
        .starts_with(b"0\n")
}

/// Makes a shell run this first, and then the command in its own place, such as after `ulimit`.
pub fn after<'c>(command: &'c mut Command, script: &str) -> &'c mut Command {
    let program = command.get_program().to_owned();
    let words: Vec<OsString> = command.get_args().map(OsString::from).collect();
    let variables: Vec<(OsString, OsString)> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.into(), value?.into())))
        .collect();
    *command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(format!("{script} && exec \"$0\" \"$@\""))
        .arg(program)
        .args(words);
    command.env_clear().envs(variables)
}

/// Runs it to its end.
#[track_caller]
pub fn run(words: &[&str], database: &Path) -> Output {
    output(petstore(words).env("PETSTORE_DATABASE", database))
}

/// Adds an API key with these words, such as its name, and returns it.
#[track_caller]
pub fn add_key(database: &Path, words: &[&str]) -> String {
    let added = run(&[&["key", "add", "--create"], words].concat(), database);
    assert!(added.status.success(), "{added:?}");
    String::from_utf8(added.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

/// Changes a database as an operator does with the shell of its engine.
#[track_caller]
pub fn change(database: &Path, statements: &str) {
    match database
        .to_str()
        .and_then(|text| text.strip_prefix("rqlite://"))
    {
        Some(hosts) => cluster_pool::execute(hosts.split(',').next().unwrap(), statements),
        None => rusqlite::Connection::open(database)
            .unwrap()
            .execute_batch(statements)
            .unwrap(),
    }
}

/// Another program's view in place of the pets, which fails for every row, and which nobody can write to.
pub const FAILING_PETS: &str = "ALTER TABLE pets RENAME TO kept;
    CREATE VIEW pets AS SELECT * FROM kept WHERE abs(-9223372036854775807 - 1);";

/// Runs a command to its end.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    Process::start(command).output()
}

/// Expects a failed start or command: this exit code and one plain line that contains `said`.
#[track_caller]
pub fn expect_refusal(output: Output, code: i32, said: &str) {
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{error}");
    // A service starts slowly on a loaded machine.
    let is_one = |line: &&str| !line.contains("still starting: ");
    let lines: Vec<&str> = error.lines().filter(is_one).collect();
    assert_eq!(lines.len(), 1, "{error}");
    assert!(
        lines[0].starts_with("petstore: ") && error.contains(said),
        "{error}"
    );
    assert!(output.stdout.is_empty());
}

/// The executable, with its standard input as the socket that a supervisor passes. The shell keeps its number
/// as the program's.
pub fn passed() -> Command {
    let mut command = Command::new("sh");
    let script = r#"exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" serve"#;
    command.args(["-c", script]).arg(program());
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("TMPDIR", std::env::temp_dir());
    command
}

/// A process that does not outlive its test.
pub struct Process {
    pub child: Child,
    name: String,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        Self::start_on(command, Stdio::piped())
    }

    /// Starts it with another standard output.
    fn start_on(command: &mut Command, out: Stdio) -> Self {
        Self::spawn(
            command
                .stdin(Stdio::null())
                .stdout(out)
                .stderr(Stdio::piped()),
        )
    }

    /// Starts it with another standard input.
    pub fn start_with_input(command: &mut Command, input: Stdio) -> Self {
        Self::spawn(
            command
                .stdin(input)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        )
    }

    /// Starts it with the standard streams that the command has.
    pub fn spawn(command: &mut Command) -> Self {
        Self {
            child: command.spawn().unwrap(),
            name: format!("{command:?}"),
        }
    }

    /// Waits for its end, and returns the output that nobody has taken yet.
    #[track_caller]
    pub fn output(mut self) -> Output {
        let printed = self.child.stdout.take().map(|pipe| keep(pipe, "out"));
        let logged = self.child.stderr.take().map(|pipe| keep(pipe, "log"));
        let status = self.ended();
        let [stdout, stderr] =
            [printed, logged].map(|kept| kept.map(|kept| kept.join().unwrap()).unwrap_or_default());
        Output {
            status,
            stdout,
            stderr,
        }
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([&format!("-{name}"), &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// The first lines that it prints, up to one that is the last, or to the end; and the rest.
    #[track_caller]
    fn first_lines<R: Read + Send + 'static>(
        &self,
        out: R,
        mut is_last: impl FnMut(&str) -> bool + Send + 'static,
    ) -> (String, BufReader<R>) {
        let mut out = BufReader::new(out);
        let reader = std::thread::spawn(move || {
            let mut lines = String::new();
            loop {
                let begin = lines.len();
                out.read_line(&mut lines).unwrap();
                if lines.len() == begin || is_last(&lines[begin..]) {
                    return (lines, out);
                }
            }
        });
        wait_until(&format!("the first lines of {}", self.name), || {
            reader.is_finished()
        });
        reader.join().unwrap()
    }

    /// The first line that it prints to a pipe; nobody reads on.
    #[track_caller]
    pub fn take_first_line(&mut self) -> String {
        self.take_first_lines(1)
    }

    /// The first `count` lines that it prints to a pipe; nobody reads on.
    #[track_caller]
    pub fn take_first_lines(&mut self, count: usize) -> String {
        let (out, mut left) = (self.child.stdout.take().unwrap(), count);
        let is_last = move |_: &str| {
            left -= 1;
            left == 0
        };
        self.first_lines(out, is_last).0
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        wait_until(&format!("the end of {}", self.name), || {
            self.child.try_wait().unwrap().is_some()
        });
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command that serves the database in `folder`, with [`KEY`].
pub fn serve(folder: &Folder) -> Command {
    let mut command = petstore(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .env("PETSTORE_API_KEY", KEY)
        .env("PETSTORE_DATABASE", folder.database());
    command
}

/// The two ends of a terminal: one to read what is shown, and one for the program. Reading fails once the
/// program has ended.
pub fn terminal() -> (File, File) {
    let shown = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&shown).unwrap();
    unlockpt(&shown).unwrap();
    let name = ptsname(&shown, Vec::new()).unwrap().into_string().unwrap();
    (
        shown.into(),
        File::options().read(true).write(true).open(name).unwrap(),
    )
}

/// A running server.
pub struct Server {
    /// The address that it prints, such as `http://127.0.0.1:8080`.
    pub place: String,
    /// Meaningless if it listens on a Unix socket.
    pub address: SocketAddr,
    /// Its admin address, if it has one.
    pub admin: Option<SocketAddr>,
    /// Before the folder, as fields are dropped in this order.
    process: Process,
    pub folder: Folder,
    /// Its output after the first line, and its log, once it has ended.
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
        let mut command = serve(&folder);
        change(&mut command);
        let mut process = Process::start(&mut command);
        let out = process.child.stdout.take().unwrap();
        let has_admin = command.get_args().any(|word| word == "--admin");
        Self::started(folder, process, out, has_admin)
    }

    /// Starts one on the database in `folder`, and passes it a listening socket as a supervisor does.
    pub fn start_on(
        socket: impl Into<OwnedFd>,
        folder: Folder,
        change: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let mut command = passed();
        command
            .env("PETSTORE_API_KEY", KEY)
            .env("PETSTORE_DATABASE", folder.database());
        change(&mut command);
        let mut process = Process::start_with_input(&mut command, socket.into().into());
        let out = process.child.stdout.take().unwrap();
        Self::started(folder, process, out, false)
    }

    /// Starts one without a key, whose standard output is a terminal.
    pub fn start_on_terminal(folder: Folder) -> Self {
        let (terminal, out) = terminal();
        let process = Process::start_on(serve(&folder).env_remove("PETSTORE_API_KEY"), out.into());
        Self::started(folder, process, terminal, false)
    }

    fn started(
        folder: Folder,
        mut process: Process,
        out: impl Read + Send + 'static,
        has_admin: bool,
    ) -> Self {
        let logged = keep(process.child.stderr.take().unwrap(), "log");
        // On a terminal, a first key comes before it.
        let (lines, mut out) = process.first_lines(out, |line| line.starts_with(LISTENING));
        let Some(address) = lines
            .lines()
            .last()
            .and_then(|line| line.strip_prefix(LISTENING))
        else {
            drop(process);
            panic!("did not start: {lines:?} {}", text(logged));
        };
        let place = address.to_owned();
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let address = place
            .strip_prefix("http://")
            .map_or(nowhere, |address| address.parse().unwrap());
        let mut line = String::new();
        if has_admin {
            // Both lines come in one piece.
            out.read_line(&mut line).unwrap();
        }
        // A Unix socket has no such address.
        let admin = line.trim_end().strip_prefix("petstore admin on http://");
        let admin = admin.map(|address| address.parse().unwrap());
        let printed = Some(keep(out, "out"));
        Self {
            place,
            address,
            admin,
            process,
            folder,
            printed,
            logged: Some(logged),
        }
    }

    pub fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    /// One request without a body on a connection of its own, with these header fields, each with its line end.
    #[track_caller]
    pub fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        let mut connection = self.connect();
        connection.send(request(method, target, fields));
        connection.reply_to(method)
    }

    /// One request, whose bytes are these, on a connection of its own.
    #[track_caller]
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> Reply {
        let mut connection = self.connect();
        connection.send(bytes);
        connection.reply()
    }

    /// One GET with [`KEY`] on a connection of its own.
    #[track_caller]
    pub fn get(&self, target: &str) -> Reply {
        self.connect().get(target, KEY)
    }

    /// One create with [`KEY`] on a connection of its own.
    #[track_caller]
    pub fn create(&self, body: &str) -> Reply {
        self.connect().post("/v1/pets", KEY, body)
    }

    /// Creates pets with these names and without a status.
    pub fn fill<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut connection = self.connect();
        for name in names {
            connection
                .post(
                    "/v1/pets",
                    KEY,
                    &format!(r#"{{"name":"{name}","categoryId":1}}"#),
                )
                .expect(201);
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// True once it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    /// Waits for its end: how it ended, and what it had printed and logged.
    #[track_caller]
    pub fn ended(&mut self) -> (ExitStatus, String, String) {
        let status = self.process.ended();
        (
            status,
            text(self.printed.take().unwrap()),
            text(self.logged.take().unwrap()),
        )
    }

    /// Kills it, and returns its folder.
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

/// Reads a pipe to its end, and repeats its lines in the output of the test.
fn keep(mut pipe: impl Read + Send + 'static, what: &'static str) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes)
            .lines()
            .for_each(|line| eprintln!("[petstore {what}] {line}"));
        bytes
    })
}

/// The text of a pipe that was read.
fn text(kept: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&kept.join().unwrap()).into_owned()
}
