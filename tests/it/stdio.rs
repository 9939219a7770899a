//! A standard output or error that is full, closed or not read stops nothing.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use support::client::Connection;
use support::harness::{Folder, KEY, Process, Server, petstore, serve};
use support::wait::wait_until;

/// A server whose log goes to a file.
struct Logged {
    process: Process,
    log: PathBuf,
    address: SocketAddr,
    _folder: Folder,
}

impl Logged {
    /// Starts one with this standard output; the log has the address.
    fn start(out: impl Into<Stdio>) -> Self {
        Self::start_with(serve, out)
    }

    fn start_with(command: impl FnOnce(&Folder) -> Command, out: impl Into<Stdio>) -> Self {
        let folder = Folder::new();
        let log = folder.path().join("log");
        let mut command = command(&folder);
        command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(File::create(&log).unwrap());
        let process = Process::spawn(&mut command);
        let mut address = None;
        wait_until("the address in the log", || {
            let logged = std::fs::read_to_string(&log).unwrap();
            let words = logged
                .split("listens on http://")
                .nth(1)
                .and_then(|rest| rest.split(": ").next());
            address = words.and_then(|word| word.parse().ok());
            address.is_some()
        });
        Self {
            process,
            log,
            address: address.unwrap(),
            _folder: folder,
        }
    }

    fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Sends a request, stops the server, and returns its log.
    #[track_caller]
    fn serves_and_ends(mut self) -> String {
        Connection::open(self.address)
            .get("/v1/pets", KEY)
            .expect(200);
        self.process.signal("TERM");
        let status = self.process.ended();
        assert!(status.success(), "{status} {}", self.logged());
        self.logged()
    }
}

/// A full pipe, and its end that nobody reads.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    for size in [4096, 1] {
        while rustix::io::write(&writer, &vec![0; size]).is_ok() {}
    }
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    (reader, writer)
}

#[test]
fn full_standard_output_is_in_the_log() {
    let server = Logged::start(File::options().write(true).open("/dev/full").unwrap());
    let address = server.address;
    let logged = server.serves_and_ends();
    assert!(
        logged.contains("cannot write to standard output"),
        "{logged}"
    );
    assert!(
        logged.contains(&format!("the service listens on http://{address}")),
        "{logged}"
    );
}

#[test]
fn log_has_a_priority_and_no_date_in_the_journal_alone() {
    for (more, begins) in [(0, "<6>[INFO  petstore::cli::serve] petstore "), (1, "[20")] {
        let command = |folder: &Folder| {
            let file = File::create(folder.path().join("log"))
                .unwrap()
                .metadata()
                .unwrap();
            let mut command = serve(folder);
            command.env(
                "JOURNAL_STREAM",
                format!("{}:{}", file.dev(), file.ino() + more),
            );
            command
        };
        let logged = Logged::start_with(command, Stdio::null()).serves_and_ends();
        assert!(
            logged.lines().all(|line| line.starts_with(&begins[..3])),
            "{logged}"
        );
        assert!(logged.starts_with(begins), "{logged}");
    }
}

#[test]
fn key_that_can_be_guessed_is_a_warning() {
    for (key, is_warned) in [("secret", true), ("secret-8", false)] {
        let folder = Folder::new();
        let mut command = petstore(&["--listen", "0"]);
        command
            .env("PETSTORE_API_KEY", key)
            .env("PETSTORE_DATABASE", folder.database());
        let mut process = Process::start(&mut command);
        process.take_first_line();
        process.signal("TERM");
        let logged = String::from_utf8(process.output().stderr).unwrap();
        assert_eq!(
            logged.contains("fewer than 8 characters"),
            is_warned,
            "{logged}"
        );
    }
}

#[test]
fn filter_of_the_log_that_is_misspelt_is_named() {
    let logged = |filter: &str| {
        let command = |folder: &Folder| {
            let mut command = serve(folder);
            command
                .env("RUST_LOG", filter)
                .args(["--listen", "127.0.0.1:0"]);
            command
        };
        Logged::start_with(command, Stdio::null()).serves_and_ends()
    };
    assert!(logged("verbose").contains("'verbose' in RUST_LOG has no effect: "));
    assert!(!logged("petstore::access=info").contains("RUST_LOG"));
}

/// The command, started by a shell that changes its streams.
fn by_shell(folder: &Folder, streams: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("exec \"$0\" --listen 127.0.0.1:0 {streams}")]);
    command.arg(petstore(&[]).get_program());
    command.env_clear().env("TMPDIR", std::env::temp_dir());
    command
        .env("PETSTORE_API_KEY", KEY)
        .env("PETSTORE_DATABASE", folder.database());
    command
}

#[test]
fn closed_standard_output_stops_nothing() {
    Logged::start_with(|folder| by_shell(folder, ">&-"), Stdio::null()).serves_and_ends();
}

#[test]
fn standard_error_that_is_full_closed_or_not_read_stops_nothing() {
    for streams in ["2>/dev/full", "2>&-"] {
        let folder = Folder::new();
        serves_and_ends_by_its_first_line(by_shell(&folder, streams).stderr(Stdio::null()));
    }
    let (_reader, writer) = full_pipe();
    let folder = Folder::new();
    serves_and_ends_by_its_first_line(serve(&folder).env("RUST_LOG", "info").stderr(writer));
}

#[track_caller]
fn serves_and_ends_by_its_first_line(command: &mut Command) {
    let mut process = Process::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()));
    let line = process.take_first_line();
    let address = line
        .trim_end()
        .strip_prefix("petstore listening on http://")
        .unwrap()
        .parse()
        .unwrap();
    let mut connection = Connection::open(address);
    for _ in 0..1000 {
        connection.get("/v1/pets", KEY).expect(200);
    }
    process.signal("TERM");
    drop(connection);
    assert!(process.ended().success());
}

#[test]
fn first_line_is_printed_without_a_log_too() {
    let server = Server::start_with(|command| command.env("RUST_LOG", "off"));
    assert_eq!(server.stop(), "");
}
