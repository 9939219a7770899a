//! The service under test: the real executable, and what can befall it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Output, Stdio};

use crate::run::{has_failed, wait_for};
use support::harness::{Folder, KEY, Process, petstore};

pub struct Service {
    /// `None` only at the end.
    folder: Option<Folder>,
    pub database: PathBuf,
    process: Option<(Process, BufReader<ChildStdout>)>,
    /// How much of its log has been looked at.
    read: u64,
}

impl Service {
    /// A service that has not started, with a folder for its database.
    pub fn new() -> Self {
        let folder = Folder::new();
        Self {
            database: folder.database(),
            folder: Some(folder),
            process: None,
            read: 0,
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.as_ref().expect("a folder").path()
    }

    fn log(&self) -> PathBuf {
        self.path().join("service.log")
    }

    /// Starts it, on an address that no other process of this machine listens on by chance.
    pub fn start(&mut self, words: &[&str]) -> SocketAddr {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .expect("a log");
        let [.., high, low] = std::process::id().to_be_bytes();
        let listen = format!("127.77.{high}.{}:0", low.max(1));
        let mut command =
            petstore(&[&["serve", "--experimental", "--listen", &listen], words].concat());
        command.env("PETSTORE_API_KEY", KEY);
        if !words.contains(&"--ephemeral") {
            command.env("PETSTORE_DATABASE", &self.database);
        }
        let mut process = Process::spawn(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(log),
        );
        let mut out = BufReader::new(process.child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        let Some(address) = line
            .trim_end()
            .strip_prefix("petstore listening on http://")
        else {
            panic!("the service did not start: {line}{}", self.news());
        };
        self.process = Some((process, out));
        address.parse().expect("an address")
    }

    pub fn signal(&self, name: &str) {
        if let Some((process, _)) = &self.process {
            process.signal(name);
        }
    }

    /// From now on, the service meets a full disk, until the process that is returned ends.
    pub fn fail_writes(&self) -> Process {
        let (process, _) = self.process.as_ref().expect("a service");
        let mut strace = Command::new("strace");
        strace.args([
            "-f",
            "-e",
            "trace=pwrite64",
            "-e",
            "inject=pwrite64:error=ENOSPC",
            "-o",
            "/dev/null",
            "-p",
        ]);
        strace
            .arg(process.child.id().to_string())
            .stderr(Stdio::piped());
        let mut strace = Process::spawn(&mut strace);
        let mut line = String::new();
        let err = strace.child.stderr.as_mut().expect("a pipe");
        BufReader::new(err).read_line(&mut line).expect("a line");
        assert!(line.contains("attached"), "{line}");
        strace
    }

    /// Lets no file of the service grow beyond this size, such as `4096` or `unlimited`.
    pub fn limit_files(&self, size: &str) {
        let (process, _) = self.process.as_ref().expect("a service");
        let words = [
            "--pid",
            &process.child.id().to_string(),
            &format!("--fsize={size}:"),
        ];
        assert!(
            Command::new("prlimit")
                .args(words)
                .status()
                .expect("prlimit")
                .success()
        );
    }

    /// Fails if it has ended by itself.
    pub fn expect_alive(&mut self) {
        if self
            .process
            .as_mut()
            .is_some_and(|(process, _)| process.has_ended())
        {
            panic!("the service ended by itself: {}", self.news());
        }
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.expect_alive();
        self.process = None;
        self.look_at_log();
    }

    /// Ends it with SIGTERM, which must succeed.
    pub fn terminate(&mut self) {
        self.expect_alive();
        self.signal("TERM");
        let Some((mut process, _)) = self.process.take() else {
            return;
        };
        wait_for("the end of the service", || process.has_ended());
        let status = process.child.wait().expect("a status");
        assert!(status.success(), "after SIGTERM: {status}: {}", self.news());
        self.look_at_log();
    }

    /// A panic in the log is a fault, whoever got which response.
    fn look_at_log(&mut self) {
        let news = self.news();
        assert!(!news.contains("panic"), "{news}");
    }

    /// The log since the last look.
    pub fn news(&mut self) -> String {
        let mut news = String::new();
        if let Ok(mut log) = File::open(self.log()) {
            let _ = log
                .seek(SeekFrom::Start(self.read))
                .and_then(|_| log.read_to_string(&mut news));
        }
        self.read += news.len() as u64;
        news
    }

    /// A command on its database.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = petstore(words);
        command
            .env("PETSTORE_DATABASE", &self.database)
            .stdin(Stdio::null());
        command
    }

    /// Runs a command on its database, which must succeed.
    pub fn succeed(&self, words: &[&str]) -> String {
        let output = self.command(words).output().expect("a command that runs");
        expect_success(words, &output);
        String::from_utf8(output.stdout).expect("text")
    }
}

pub fn expect_success(words: &[&str], output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "petstore {words:?} ended with {}: {said}",
        output.status
    );
}

impl Drop for Service {
    /// Leaves the files of a run that has failed where they are.
    fn drop(&mut self) {
        self.process = None;
        if has_failed() {
            eprintln!("The files are kept in {}.", self.path().display());
            std::mem::forget(self.folder.take());
        }
    }
}
