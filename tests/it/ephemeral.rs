//! `serve --ephemeral`: a service for the tests of its clients.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use support::client::{Connection, Reply, get, post, with_body};
use support::harness::{
    Folder, KEY, Process, Server, add_key, after, expect_refusal, output, petstore, program,
    terminal,
};
use support::wait::wait_until;

use crate::backup::succeed;

/// Starts one whose folder for temporary files is that of the test.
fn start(flags: &[&str]) -> Server {
    start_in(Folder::new(), flags)
}

fn start_in(folder: Folder, flags: &[&str]) -> Server {
    let temporary = folder.path().to_owned();
    Server::start_in(folder, |command| {
        command
            .arg("--ephemeral")
            .args(flags)
            .env("TMPDIR", temporary)
    })
}

/// The databases in a folder for temporary files.
fn databases(folder: &Folder) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap();
    entries
        .map(|entry| entry.unwrap().path().join("pets.db"))
        .filter(|path| path.exists())
        .collect()
}

#[test]
fn sample_is_the_same_everywhere_and_the_database_goes_with_the_process() {
    let (one, other) = (start(&["--sample", "30"]), start(&["--sample", "30"]));
    let pets = one.connect().get_all("/v1/pets", KEY);
    assert_eq!(pets, other.connect().get_all("/v1/pets", KEY));
    assert_eq!(pets.len(), 30);
    assert_eq!(
        String::from_utf8(one.get("/v1/pets?limit=4").body).unwrap(),
        r#"[{"id":1,"name":"Bella","categoryId":1,"status":"available"},{"id":2,"name":"Charlie","categoryId":2,"status":"pending"},{"id":3,"name":"Luna","categoryId":3,"status":"sold"},{"id":4,"name":"Max","categoryId":4}]"#
    );
    let created = one.create(r#"{"name":"Rex","categoryId":1}"#);
    assert_eq!(created.expect(201).header("Location"), Some("/v1/pets/31"));
    assert_eq!(databases(&one.folder).len(), 1);
    assert!(
        !one.folder.database().exists(),
        "PETSTORE_DATABASE is another one"
    );
    one.signal("TERM");
    let mut one = one;
    assert!(one.ended().0.success());
    assert_eq!(fs::read_dir(one.folder.path()).unwrap().count(), 0);
    drop(other);
}

#[test]
fn folder_of_a_killed_service_is_removed_by_the_next() {
    let folder = start(&[]).kill();
    let [left] = &databases(&folder)[..] else {
        panic!("no database is left")
    };
    let next = start_in(folder, &[]);
    assert!(!left.exists());
    assert_eq!(databases(&next.folder).len(), 1);
}

#[test]
fn service_whose_database_is_deleted_ends() {
    let mut server = start(&[]);
    let database = databases(&server.folder).pop().unwrap();
    fs::remove_dir_all(database.parent().unwrap()).unwrap();
    let (status, _, log) = server.ended();
    assert!(
        status.code() == Some(1) && !log.contains("cp /proc"),
        "{log}"
    );
    assert_eq!(fs::read_dir(server.folder.path()).unwrap().count(), 0);
}

#[test]
fn folder_for_temporary_files_may_have_a_long_path() {
    let folder = Folder::new();
    let long = folder.path().join("x".repeat(200));
    fs::create_dir(&long).unwrap();
    let server = Server::start_with(|command| command.arg("--ephemeral").env("TMPDIR", &long));
    server
        .create(r#"{"name":"Rex","categoryId":1}"#)
        .expect(201);
    server.stop();
    let backup = folder.path().join("backup.db");
    let backup = backup.to_str().unwrap();
    add_key(&folder.database(), &["ci"]);
    succeed(&["backup", backup], &folder.database());
    let drill = output(petstore(&["check", "--restored", backup]).env("TMPDIR", &long));
    let said = String::from_utf8(drill.stdout).unwrap();
    assert!(said.contains("can be restored"), "{said}");
    assert_eq!(fs::read_dir(&long).unwrap().count(), 0);
}

/// A command that serves while a shell script runs.
fn serving(folder: &Folder, script: &str) -> Command {
    let mut command = petstore(&[
        "serve",
        "--ephemeral",
        "--sample",
        "2",
        "--",
        "sh",
        "-c",
        script,
    ]);
    command
        .env("TMPDIR", folder.path())
        .env_remove("PETSTORE_API_KEY")
        .env_remove("PETSTORE_LISTEN");
    command
}

#[test]
fn command_gets_url_and_key_and_its_exit_code_is_that_of_the_service() {
    let folder = Folder::new();
    let list = r#""$PROGRAM" healthcheck >/dev/null &&
        curl -fsS "$PETSTORE_URL/v1/pets?limit=1" -H "Authorization: Bearer $PETSTORE_API_KEY""#;
    for (end, code) in [("", 0), ("; exit 7", 7), ("; kill -9 $$", 128 + 9)] {
        let mut service = serving(&folder, &format!("{list}{end}"));
        let done = service.env("PROGRAM", program()).output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{end}");
        let pet = r#"[{"id":1,"name":"Bella","categoryId":1,"status":"available"}]"#;
        assert_eq!(
            String::from_utf8_lossy(&done.stdout),
            pet,
            "only the output of the command"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn command_has_absolute_paths_and_its_end_is_known_if_the_parent_ignores_it() {
    let folder = Folder::new();
    let script =
        "cd /; test -S \"$PETSTORE_SOCKET\" && echo \"$PETSTORE_LISTEN $PETSTORE_ADMIN\"; exit 7";
    let service = serving(&folder, script);
    let ignoring = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])";
    let mut command = Command::new("python3");
    command
        .args(["-c", ignoring])
        .arg(service.get_program())
        .args(service.get_args())
        .env_remove("PETSTORE_API_KEY")
        .env("PETSTORE_LISTEN", "unix:a.sock")
        .env("PETSTORE_ADMIN", "unix:b.sock")
        .env("TMPDIR", folder.path())
        .current_dir(folder.path());
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(7), "{done:?}");
    let place = fs::canonicalize(folder.path()).unwrap();
    let said = format!("unix:{0}/a.sock unix:{0}/b.sock\n", place.display());
    assert_eq!(String::from_utf8_lossy(&done.stdout), said);
}

#[test]
fn signals_reach_the_command_and_the_service_ends_after_it() {
    let folder = Folder::new();
    for (signal, code) in [("TERM", 4), ("INT", 5), ("HUP", 6), ("QUIT", 7)] {
        let ready = folder.path().join("ready");
        let script = format!(
            "trap 'exit {code}' {signal}; touch {}; while :; do sleep 0.01; done",
            ready.display()
        );
        let service = serving(&folder, &script);
        // Under nohup, as these tests may run, the command would never get a SIGHUP.
        let mut child = Command::new("env")
            .args([
                "--default-signal=HUP,INT,QUIT,TERM",
                "--unset=PETSTORE_API_KEY",
                "--unset=PETSTORE_LISTEN",
            ])
            .arg(service.get_program())
            .args(service.get_args())
            .env("TMPDIR", folder.path())
            .stdin(std::process::Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the command to run", || ready.exists());
        fs::remove_file(&ready).unwrap();
        assert!(
            Command::new("kill")
                .args([&format!("-{signal}"), &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// Prints each signal that reaches it, until SIGTERM does, or for a minute.
const COUNTING: &str = "import signal
signal.alarm(60)
signals = {signal.SIGINT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
caught = None
while caught != signal.SIGTERM:
    print(caught, flush=True)
    caught = signal.sigwait(signals)
";

#[test]
fn signal_of_a_terminal_or_of_kill_reaches_the_command_once() {
    let folder = Folder::new();
    // Standard input may be a file while the terminal is there.
    for input in ["", "</dev/null"] {
        let (mut terminal, end) = terminal();
        let script = format!(r#"exec "$0" --ephemeral -- python3 -c "$COUNTING" {input}"#);
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "sh", "-c", &script])
            .arg(program())
            .env("TMPDIR", folder.path())
            .env("COUNTING", COUNTING);
        let mut service = Process::start_with_input(&mut command, end.into());
        let mut printed = BufReader::new(service.child.stdout.take().unwrap()).lines();
        let mut expect = |line: &str| assert_eq!(printed.next().unwrap().unwrap(), line, "{input}");
        expect("None");
        service.signal("INT");
        expect("2");
        // Only after the service has taken the other SIGINT: two that wait for a process are one.
        terminal.write_all(b"\x03").unwrap();
        expect("2");
        service.signal("TERM");
        assert!(printed.next().is_none(), "it came twice {input}");
        assert!(service.ended().success());
    }
}

#[test]
fn command_inherits_the_limit_that_petstore_had_and_no_descriptor() {
    let folder = Folder::new();
    let script = "ulimit -Sn; ulimit -Hn; ls /proc/self/fd";
    let limit = "ulimit -Sn 333 && exec 3<&0 </dev/null && export LISTEN_FDS=1 LISTEN_PID=$$";
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut service = serving(&folder, script);
    let service = Process::start_with_input(
        after(&mut service, limit),
        std::os::fd::OwnedFd::from(socket).into(),
    );
    let direct = output(after(
        Command::new("sh").args(["-c", script]),
        "ulimit -Sn 333",
    ));
    let done = service.output();
    assert!(direct.stdout.starts_with(b"333\n"));
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&direct.stdout),
        "{done:?}"
    );
}

#[test]
fn command_does_not_run_after_a_signal_during_the_start() {
    let folder = Folder::new();
    let mut starting = petstore(&["--ephemeral", "--sample", "300000", "--", "echo", "ran"]);
    starting
        .env("TMPDIR", folder.path())
        .stdout(std::process::Stdio::piped());
    let child = starting.spawn().unwrap();
    wait_until("the database to be made", || !databases(&folder).is_empty());
    assert!(
        Command::new("kill")
            .arg(child.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    let done = child.wait_with_output().unwrap();
    assert_eq!(
        (done.status.code(), &done.stdout[..]),
        (Some(128 + 15), &b""[..])
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn command_after_nohup_ignores_a_hangup_as_without_petstore() {
    let folder = Folder::new();
    let service = serving(
        &folder,
        "kill -HUP $$; kill -HUP $PPID; kill -TERM $PPID; while :; do sleep 0.01; done",
    );
    let mut ignoring = Command::new("sh");
    ignoring
        .args(["-c", r#"trap '' HUP; exec "$0" "$@""#])
        .arg(service.get_program())
        .args(service.get_args());
    let done = ignoring
        .env("TMPDIR", folder.path())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(128 + 15), "{done:?}");
}

#[test]
fn commands_of_petstore_in_the_command_use_the_database_of_the_service() {
    let folder = Folder::new();
    let script = r#"
        set -e
        "$PROGRAM" healthcheck >/dev/null
        curl -fsS -X POST "http://$PETSTORE_ADMIN/internal/reset"
        key=$("$PROGRAM" key add ci)
        exec curl -fsS --unix-socket "$PETSTORE_SOCKET" "$PETSTORE_URL/v1/pets?limit=1" \
            -H "Authorization: Bearer ${PETSTORE_EPHEMERAL-$key}""#;
    let mut service = serving(&folder, script);
    service
        .env("PETSTORE_EPHEMERAL", "true")
        .env("PETSTORE_ADMIN", "0")
        .env("PROGRAM", program());
    service.env(
        "PETSTORE_LISTEN",
        format!("unix:{}", folder.path().join("s").display()),
    );
    let done = service
        .env("PETSTORE_DATABASE", "another.db")
        .output()
        .unwrap();
    assert!(
        done.status.success() && done.stdout.starts_with(br#"[{"id":1,"#),
        "{done:?}"
    );
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    for (words, said) in [
        (
            &["--ephemeral", "--database", "pets.db"][..],
            "--ephemeral and --database cannot be combined",
        ),
        (
            &["--ephemeral", "--first-key-file", "key"],
            "cannot be combined",
        ),
        (&["--sample", "5"], "--sample needs --ephemeral"),
        (
            &["serve", "--", "true"],
            "a command after -- needs --ephemeral",
        ),
        (&["--ephemeral", "--"], "-- needs a command"),
        (&["--ephemeral", "--", ""], "-- needs a command"),
        (&["--fail", "0.5"], "--fail needs --ephemeral"),
        (
            &["--ephemeral", "--fail", "1.5"],
            "--fail must be a number from 0 to 1",
        ),
        (&["--ephemeral", "--fail", "NaN"], "--fail must be"),
        (
            &["--ephemeral", "--sample", "-1"],
            "--sample must be a number",
        ),
        (&["--delay", "300"], "--delay needs --ephemeral"),
        (
            &["--ephemeral", "--delay", "300-100"],
            "--delay must be milliseconds up to 60000",
        ),
        (
            &["--ephemeral", "--delay", "60001"],
            "--delay must be milliseconds",
        ),
    ] {
        expect_refusal(output(&mut petstore(words)), 2, said);
    }
    for (program, code, said) in [
        (
            "/nowhere/at-all",
            127,
            "cannot run /nowhere/at-all: No such file or directory (os error 2)\n",
        ),
        ("/", 126, "cannot run /: Permission denied (os error 13)\n"),
    ] {
        expect_refusal(
            output(&mut petstore(&["--ephemeral", "--", program])),
            code,
            said,
        );
    }
}

#[test]
fn key_is_printed_with_lines_for_curl_that_work() {
    let folder = Folder::new();
    let mut command = petstore(&["--ephemeral", "--listen", "127.0.0.1:0"]);
    let mut process = Process::start(command.env("TMPDIR", folder.path()));
    let shown = process.take_first_lines(10);
    let key = shown
        .lines()
        .find_map(|line| line.strip_prefix("    petstore_"))
        .expect(&shown);
    let curl: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("    curl "))
        .collect();
    assert_eq!(curl.len(), 2, "{shown}");
    let ask = |line: &str| output(Command::new("sh").args(["-c", &format!("{line} -fsS")]));
    assert!(curl.iter().all(|line| line.contains(key)));
    assert!(ask(curl[0]).status.success());
    assert_eq!(
        ask(curl[1]).stdout,
        br#"[{"id":1,"name":"Rex","categoryId":1}]"#
    );
}

/// How a create ends for its client: `created`, the code of a failure, or `broken`.
fn outcome(server: &Server, name: usize) -> String {
    let mut connection = server.connect();
    connection.send(post(
        "/v1/pets",
        KEY,
        &format!(r#"{{"name":"{name}","categoryId":1}}"#),
    ));
    match connection.reply_unless_ended() {
        Some(reply) if reply.status == 201 => "created".to_owned(),
        Some(reply) => {
            let code = reply.expect(503).json()["code"]
                .as_str()
                .unwrap()
                .to_owned();
            // The advice of the real failure.
            let advice = "Send it again, with the same Idempotency-Key if it had one.";
            assert_eq!(
                String::from_utf8_lossy(&reply.body).contains(advice),
                code == "outcome_unknown",
                "{reply:?}"
            );
            code
        }
        None => "broken".to_owned(),
    }
}

#[test]
fn part_of_the_requests_fails_as_asked_and_in_the_same_way_again() {
    let run = || {
        let server = start(&["--fail", "0.5"]);
        let outcomes: Vec<String> = (0..200).map(|name| outcome(&server, name)).collect();
        for _ in 0..20 {
            server.ask("GET", "/healthz", "").expect(200);
            server.ask("GET", "/openapi.json", "").expect(200);
        }
        let database = rusqlite::Connection::open(databases(&server.folder).remove(0)).unwrap();
        let mut statement = database.prepare("SELECT name FROM pets").unwrap();
        let names = statement
            .query_map([], |row| row.get::<_, String>(0))
            .unwrap();
        let kept: BTreeSet<usize> = names.map(|name| name.unwrap().parse().unwrap()).collect();
        (outcomes, kept)
    };
    let (outcomes, kept) = run();
    for (expected, least, done) in [
        ("created", 70, &[true][..]),
        ("overloaded", 15, &[false]),
        ("outcome_unknown", 15, &[false, true]),
        ("broken", 15, &[false, true]),
    ] {
        let ended: Vec<usize> = (0..200).filter(|i| outcomes[*i] == expected).collect();
        assert!(ended.len() >= least, "{expected}: {ended:?}");
        let was_done: BTreeSet<bool> = ended.iter().map(|i| kept.contains(i)).collect();
        assert_eq!(was_done.into_iter().collect::<Vec<_>>(), done, "{expected}");
    }
    assert_eq!(run(), (outcomes, kept));
}

#[test]
fn reads_fail_too_and_a_client_that_retries_gets_through() {
    let server = start(&["--sample", "5", "--fail", "0.7"]);
    let (mut failed, mut lists) = (0, Vec::new());
    while lists.len() < 10 {
        let mut connection = server.connect();
        connection.send(get("/v1/pets", KEY));
        match connection.reply_unless_ended() {
            Some(reply) if reply.status == 200 => lists.push(reply.json()),
            reply => {
                if let Some(reply) = reply {
                    reply.expect_error(
                        503,
                        "overloaded",
                        "This failure is intentional. The service has more requests",
                    );
                }
                failed += 1;
            }
        }
    }
    assert!(lists.iter().all(|list| list.as_array().unwrap().len() == 5));
    assert!(failed >= 10, "{failed}");
}

#[test]
fn request_fails_as_it_wants_if_the_service_may_fail() {
    let ask = |server: &Server, wanted: &str| {
        server.send(format!(
            "POST /v1/pets HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {KEY}\r\nPrefer: {wanted}\r\n\
             Content-Type: application/json\r\nContent-Length: 27\r\n\r\n{{\"name\":\"x\",\"categoryId\":1}} "
        ))
    };
    let server = start(&["--fail", "0"]);
    for (wanted, status, code) in [
        ("code=503", 503, "overloaded"),
        ("code=outcome_unknown", 503, "outcome_unknown"),
        ("code=401", 401, "unauthorized"),
        ("code=599", 400, "bad_request"),
    ] {
        let reply = ask(&server, wanted);
        assert_eq!(reply.expect(status).json()["code"], code);
    }
    assert_eq!(server.connect().get_all("/v1/pets", KEY).len(), 0);
    ask(&server, "return=minimal").expect(201);
    // Without --fail it is a preference that the service does not know.
    ask(&start(&[]), "code=503").expect(201);
}

#[test]
fn access_log_of_an_ephemeral_service_has_the_query_and_what_the_client_sent() {
    let folder = Folder::new();
    let mut server = serving(
        &folder,
        r#"curl -fsS "$PETSTORE_URL/v1/pets?limit=7" -H "Authorization: Bearer $PETSTORE_API_KEY" -H "X-Own: 1"
           curl -fsS "$PETSTORE_URL/v1/pets" --json '{"name":"x","categoryId":1}' -H "Idempotency-Key: secret" \
               -H "Authorization: Bearer $PETSTORE_API_KEY""#,
    );
    let done = output(server.env("RUST_LOG", "petstore::access=info"));
    let log = String::from_utf8(done.stderr).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].contains(" GET /v1/pets?limit=7 200 "), "{log}");
    assert!(lines[0].ends_with(" fields=Accept,Authorization"), "{log}");
    assert!(
        lines[1].ends_with(" created=3 fields=Accept,Authorization,Content-Type,Idempotency-Key"),
        "{log}"
    );
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn responses_are_held_back_and_hold_up_no_worker() {
    let server = start(&["--sample", "3", "--delay", "300-400", "--workers", "1"]);
    let began = Instant::now();
    let mut connections: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for (i, connection) in connections.iter_mut().enumerate() {
        let create = || post("/v1/pets", KEY, r#"{"name":"Rex","categoryId":1}"#);
        connection.send(if i % 2 == 0 {
            get("/v1/pets", KEY)
        } else {
            create()
        });
    }
    let replies: Vec<u16> = connections
        .iter_mut()
        .map(|connection| connection.reply().status)
        .collect();
    let took = began.elapsed();
    assert_eq!(replies, [200, 201].repeat(10));
    assert!(
        Duration::from_millis(300) <= took && took < Duration::from_secs(3),
        "{took:?}"
    );
    // The same connection serves the next request, and the end of the service does not wait.
    connections[0].get("/v1/pets", KEY).expect(200);
    server.stop();
}

/// Returns a service to its first state.
fn reset(server: &Server) -> Reply {
    let mut connection = Connection::open(server.admin.unwrap());
    connection.send("POST /internal/reset HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    connection.reply()
}

#[test]
fn reset_is_not_for_pages_of_other_sites() {
    let server = start(&["--sample", "5", "--admin", "0"]);
    let home = server.admin.unwrap();
    server
        .connect()
        .post("/v1/pets", KEY, r#"{"name":"Rex","categoryId":1}"#)
        .expect(201);
    for (fields, status) in [
        (
            format!("Host: {home}\r\nOrigin: http://evil.example\r\n"),
            403,
        ),
        (format!("Host: {home}\r\nOrigin: null\r\n"), 403),
        (format!("Host: evil.example:{}\r\n", home.port()), 421),
        (
            "Host: evil.example\r\nOrigin: http://evil.example\r\n".to_owned(),
            421,
        ),
    ] {
        let mut connection = Connection::open(home);
        connection.send(format!(
            "POST /internal/reset HTTP/1.1\r\n{fields}Content-Length: 0\r\n\r\n"
        ));
        connection.reply().expect(status);
    }
    assert_eq!(
        server.connect().get_all("/v1/pets", KEY).len(),
        6,
        "nothing was reset"
    );
}

#[test]
fn reset_brings_back_pets_ids_retries_keys_and_whatever_is_remembered() {
    let server = start(&["--sample", "5", "--admin", "0"]);
    let ci = add_key(&databases(&server.folder)[0], &["ci"]);
    let mut connection = server.connect();
    let create = with_body(
        "POST",
        "/v1/pets",
        KEY,
        "Idempotency-Key: one\r\n",
        r#"{"name":"Rex","categoryId":1}"#,
    );
    for _ in 0..2 {
        let pets = connection.get("/v1/pets", KEY).json();
        assert_eq!(pets.as_array().unwrap().len(), 5);
        connection.send(&create);
        let created = connection.reply();
        assert_eq!(created.expect(201).header("Location"), Some("/v1/pets/6"));
        assert_eq!(created.header("Idempotency-Replayed"), None);
        assert_eq!(connection.get_all("/v1/pets", KEY).len(), 6);
        reset(&server).expect(204);
        connection.get("/v1/pets", &ci).expect(401);
        let ci = add_key(&databases(&server.folder)[0], &["ci"]);
        connection.get("/v1/pets/5", &ci).expect(200);
    }
}

#[test]
fn reset_begins_the_failures_again() {
    let server = start(&["--fail", "0.5", "--admin", "0"]);
    let outcomes = || {
        (0..30)
            .map(|name| outcome(&server, name))
            .collect::<Vec<_>>()
    };
    let first = outcomes();
    assert_ne!(outcomes(), first);
    reset(&server).expect(204);
    assert_eq!(outcomes(), first);
}

#[test]
fn service_with_a_database_of_its_own_is_not_reset() {
    let server = Server::start_with(|command| command.args(["--admin", "0"]));
    server.fill(["Rex"]);
    reset(&server).expect_error(404, "not_found", "--ephemeral");
    assert_eq!(server.connect().get_all("/v1/pets", KEY).len(), 1);
}

#[test]
fn recipe_of_the_guide_for_a_job_works() {
    let page = include_str!("../../src/site/pages/testing.md");
    let lines: Vec<&str> = page.split("```\n").nth(3).unwrap().lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let folder = Folder::new();
    std::os::unix::fs::symlink(program(), folder.path().join("petstore")).unwrap();
    let script = lines.join("\n");
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap()
    );
    // A test that fails leaves nothing behind that the next run meets.
    for (script, is_well) in [(script.clone() + "\nfalse", false), (script, true)] {
        for program in ["sh", "bash"] {
            let mut shell = Command::new(program);
            shell.args(["-e", "-c", &script]).current_dir(folder.path());
            let done = output(
                shell
                    .env_clear()
                    .env("PATH", &path)
                    .env("TMPDIR", folder.path()),
            );
            assert_eq!(done.status.success(), is_well, "{program}: {done:?}");
            assert_eq!(
                serde_json::from_slice::<Vec<serde_json::Value>>(&done.stdout)
                    .unwrap()
                    .len(),
                20
            );
            assert!(databases(&folder).is_empty(), "the service has ended");
        }
    }
}
