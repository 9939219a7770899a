//! `petstore export` and `petstore import`, alone and alongside a running server.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Output, Stdio};

use crate::messages;
use support::harness::{
    Folder, KEY, Process, Server, add_key, output, petstore, program, run, terminal,
};
use support::wait::wait_until;

/// Pets whose names are hard to write.
const ODD: &[&str] = &[
    r#"{"name":"","categoryId":1}"#,
    r#"{"name":" a ","categoryId":-9223372036854775808,"status":"sold"}"#,
    r#"{"name":"\"a\",\"b\"","categoryId":1,"status":"pending"}"#,
    r#"{"name":"a\r\nb\nc\rd","categoryId":1}"#,
    r#"{"name":"a\u0000b\u001f\u007f","categoryId":1,"status":"available"}"#,
    r#"{"name":"é😀\u202e\ufeff\\","categoryId":9223372036854775807}"#,
];

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[track_caller]
fn export(database: &Path, format: &str) -> String {
    let output = run(&["export", "--format", format], database);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    text(output.stdout)
}

/// Runs an import from standard input.
fn import(database: &Path, words: &[&str], input: &str) -> Output {
    start_import(database, words, input).output()
}

fn start_import(database: &Path, words: &[&str], input: &str) -> Process {
    start_import_to(Stdio::piped(), database, words, input)
}

fn start_import_to(err: Stdio, database: &Path, words: &[&str], input: &str) -> Process {
    // The file stays open longer than it has a name.
    let folder = Folder::new();
    let path = folder.path().join("input");
    std::fs::write(&path, input).unwrap();
    let create = if words.contains(&"--update") {
        &[][..]
    } else {
        &["--create"]
    };
    let mut command = petstore(&[&["import"], create, words].concat());
    let input = Stdio::from(File::open(&path).unwrap());
    Process::spawn(
        command
            .env("PETSTORE_DATABASE", database)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(err),
    )
}

#[track_caller]
fn expect_imported(output: Output, said: &str) {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // The ids and the way back follow, if there are any.
    let error = text(output.stderr);
    let (before, _) = error.split_once("to undo it: ").unwrap_or((&error, ""));
    let last = before.lines().next_back().unwrap_or_default();
    assert_eq!(
        last.split([';', ',']).next(),
        said.split([';', ',']).next(),
        "{last}"
    );
    let left_out = |line: &str| {
        line.split(", left out ")
            .nth(1)
            .map(|rest| rest.split([';', ',']).next().map(str::to_owned))
    };
    assert_eq!(left_out(last), left_out(said), "{last}");
    assert_eq!(text(output.stdout), "");
}

/// Expects a failure with these lines on standard error.
#[track_caller]
fn expect_refused(output: Output, lines: &[&str]) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(output.stdout, b"");
    assert_eq!(text(output.stderr).lines().collect::<Vec<_>>(), lines);
}

fn pets(count: usize) -> String {
    (1..=count)
        .map(|i| format!("{{\"name\":\"{i}\",\"categoryId\":1,\"status\":\"sold\"}}\n"))
        .collect()
}

#[test]
fn export_is_what_the_interface_serves() {
    let server = Server::start();
    let mut served = String::new();
    for (id, body) in (1..).zip(ODD) {
        server.create(body).expect(201);
        served += &(text(server.get(&format!("/v1/pets/{id}")).body) + "\n");
    }
    assert_eq!(export(&server.folder.database(), "ndjson"), served);
    let csv = export(&server.folder.database(), "csv");
    assert!(csv.starts_with("id,name,categoryId,status"), "{csv}");
    for row in [
        "1,,1,",
        "2, a ,-9223372036854775808,sold",
        "3,\"\"\"a\"\",\"\"b\"\"\",1,pending",
        "4,\"a\r\nb\nc\rd\",1,",
    ] {
        assert!(csv.contains(&format!("\r\n{row}")), "{row}: {csv}");
    }
}

#[test]
fn import_of_an_export_gives_the_same_export() {
    let server = Server::start();
    ODD.iter()
        .chain(ODD)
        .for_each(|body| drop(server.create(body).expect(201).json()));
    assert!(
        run(&["pet", "delete", "1", "5", "8"], &server.folder.database())
            .status
            .success()
    );
    for format in ["ndjson", "csv"] {
        let exported = export(&server.folder.database(), format);
        let folder = Folder::new();
        let words = ["--format", format, "--keep-ids"];
        expect_imported(import(&folder.database(), &words, &exported), "imported 9");
        assert_eq!(export(&folder.database(), format), exported);
        // Without the flag the pets get new ids, here in another database.
        let other = Folder::new();
        expect_imported(
            import(&other.database(), &words[..2], &exported),
            "imported 9",
        );
        let ids = export(&other.database(), "ndjson");
        let ids = ids
            .lines()
            .map(|line| line.split([':', ',']).nth(1).unwrap().parse().unwrap());
        assert_eq!(ids.collect::<Vec<i64>>(), (1..=9).collect::<Vec<_>>());
        let server = Server::start_in(folder, |command| command);
        assert_eq!(server.create(ODD[0]).expect(201).json()["id"], 13);
    }
}

#[test]
fn import_makes_a_database_only_if_asked_to() {
    let folder = Folder::new();
    let file = folder.path().join("pets.ndjson");
    std::fs::write(&file, ODD[0]).unwrap();
    let import = |words: &[&str]| {
        run(
            &[&["import", file.to_str().unwrap()], words].concat(),
            &folder.database(),
        )
    };
    for words in [&[][..], &["--dry-run"], &["--create", "--dry-run"]] {
        let output = import(words);
        let said = text(output.stderr);
        let (code, expected) = if words.is_empty() {
            (
                1,
                "; give the right file with --database, or make it with --create\n",
            )
        } else {
            (0, "compared with no database, as there is no ")
        };
        assert!(
            output.status.code() == Some(code) && said.contains(expected),
            "{words:?}: {said}"
        );
        assert!(!folder.database().exists(), "{words:?}");
    }
    expect_imported(import(&["--create"]), "imported 1");
    expect_imported(import(&["--again"]), "imported 1");
}

#[test]
fn command_succeeds_though_nobody_can_read_its_output() {
    let folder = Folder::new();
    add_key(&folder.database(), &["ci"]);
    let file = folder.path().join("pets.ndjson");
    std::fs::write(&file, pets(3)).unwrap();
    let copy = folder.path().join("copy.db");
    let exported =
        |count: usize| assert_eq!(export(&folder.database(), "ndjson").lines().count(), count);
    for (words, left) in [
        (&["import", file.to_str().unwrap()][..], 3),
        (&["pet", "delete", "1"], 2),
        (&["key", "revoke", "ci"], 2),
        (&["backup", copy.to_str().unwrap()], 2),
        (&["pet", "delete", "2"], 1),
        (&["restore", copy.to_str().unwrap()], 2),
    ] {
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let mut command = petstore(words);
        command
            .env("PETSTORE_DATABASE", folder.database())
            .stdout(full())
            .stderr(full());
        assert_eq!(
            Process::spawn(&mut command).output().status.code(),
            Some(0),
            "{words:?}"
        );
        exported(left);
    }
}

#[test]
fn reader_who_has_enough_ends_an_export_quietly() {
    let folder = Folder::new();
    let long = format!("{{\"name\":\"{}\",\"categoryId\":1}}\n", "x".repeat(60_000));
    expect_imported(
        import(&folder.database(), &[], &long.repeat(20)),
        "imported 20",
    );
    let mut process =
        Process::start(petstore(&["export"]).env("PETSTORE_DATABASE", folder.database()));
    let mut line = String::new();
    BufReader::new(process.child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.starts_with("{\"id\":1,"));
    let output = process.output();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn refused_lines_are_named_and_nothing_is_written() {
    let folder = Folder::new();
    let input = "{\"name\":\"a\",\"categoryId\":1}\n{\"name\":\"b\"}\n\n{\"name\":\"c\",\"categoryId\":1.5}\nx\n";
    let refused = [
        "Line 2: The field 'categoryId' is missing; it must be a 64-bit integer (int64). Found: {\"name\":\"b\"}",
        "Line 4: The field 'categoryId' must be a 64-bit integer (int64), not a number with a fraction. \
         Found: {\"name\":\"c\",\"categoryId\":1.5}",
        "Line 5: The line must be one JSON object with 'name' and 'categoryId': expected value at column 1. Found: x",
    ];
    let nothing = format!("petstore: 3 lines are {}", messages::REFUSED_ROWS);
    expect_refused(
        import(&folder.database(), &[], input),
        &[&refused[..], &[&nothing]].concat(),
    );
    assert!(!folder.database().exists());
    let output = import(&folder.database(), &["--skip-invalid"], input);
    assert_eq!(
        text(output.stderr.clone())
            .lines()
            .take(3)
            .collect::<Vec<_>>(),
        refused
    );
    expect_imported(output, "imported 1, left out 3");
    assert_eq!(
        export(&folder.database(), "ndjson"),
        "{\"id\":1,\"name\":\"a\",\"categoryId\":1}\n"
    );
}

#[test]
fn id_that_cannot_be_kept_is_refused_with_its_line() {
    let folder = Folder::new();
    let line = |id: &str| format!("{{\"id\":{id},\"name\":\"a\",\"categoryId\":1}}\n");
    let input: String = ["5", "3", "5", "9223371036854775808", "9223372036854775808"]
        .map(line)
        .concat();
    let expected =
        "Line 4: The field 'id' must be an integer from 1 to 9223371036854775807, not a number";
    let found = |id: &str| format!("Found: {}", line(id).trim_end());
    expect_refused(
        import(&folder.database(), &["--keep-ids"], &input),
        &[
            "Line 3: The id 5 is given more than once.",
            &format!("{expected} out of bounds. {}", found("9223371036854775808")),
            &format!(
                "{} beyond int64. {}",
                expected.replace("Line 4", "Line 5"),
                found("9223372036854775808")
            ),
            &format!("petstore: 3 lines are {}", messages::REFUSED_ROWS),
        ],
    );
    let output = import(
        &folder.database(),
        &["--keep-ids", "--skip-invalid"],
        &input,
    );
    expect_imported(output, "imported 2, left out 3");
    assert!(
        run(&["pet", "delete", "3", "5"], &folder.database())
            .status
            .success()
    );
    let had = format!(
        "petstore: ids cannot be kept: {} {}",
        folder.database().display(),
        messages::NOT_NEW
    );
    expect_refused(
        import(&folder.database(), &["--keep-ids"], &line("7")),
        &[&had],
    );
}

/// The names of the pets, in the order of their ids.
fn names(database: &Path) -> Vec<String> {
    let exported = export(database, "csv");
    exported
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(1).unwrap().to_owned())
        .collect()
}

/// The last line on standard error.
fn last(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    error.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn killed_import_has_added_nothing_or_all() {
    let (folder, input) = (Folder::new(), pets(60_000));
    let (mut kills, mut ms) = (0, 1);
    loop {
        let process = start_import(&folder.database(), &[], &input);
        std::thread::sleep(std::time::Duration::from_millis(ms));
        process.signal("KILL");
        let output = process.output();
        // The kill may have come before the database was whole.
        let exported = run(&["export"], &folder.database());
        let there = text(exported.stdout).lines().count();
        if there > 0 {
            assert_eq!(there, 60_000);
            break;
        }
        // An import that fails by itself would never add all.
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
        (kills, ms) = (kills + 1, ms + ms / 2 + 1);
    }
    assert!(kills > 3, "{kills}");
    let again = import(&folder.database(), &[], &input);
    assert!(
        last(&again).starts_with("petstore: this input was imported on "),
        "{again:?}"
    );
    let all: Vec<String> = (1..=60_000).map(|i| i.to_string()).collect();
    assert_eq!(
        names(&folder.database()),
        all,
        "in the order of the lines, and without gaps"
    );
}

/// The state of a process, such as `T` if it is stopped.
fn state(process: &Process) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.child.id())).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

#[test]
fn stopped_import_holds_up_nobody() {
    let folder = Folder::new();
    add_key(&folder.database(), &["ci"]);
    let other = rusqlite::Connection::open(folder.database()).unwrap();
    let free = || {
        other
            .execute_batch("BEGIN IMMEDIATE")
            .and_then(|()| other.execute_batch("ROLLBACK"))
    };
    // While it reads.
    let mut command = petstore(&["import"]);
    let piped = command
        .env("PETSTORE_DATABASE", folder.database())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        // The system does not stop a group of processes whose parents are not in the session (POSIX, SIGTSTP).
        .process_group(0);
    let mut reading = Process::spawn(piped);
    let mut stdin = reading.child.stdin.take().unwrap();
    stdin.write_all(pets(5000).as_bytes()).unwrap();
    reading.signal("TSTP");
    wait_until("the stop", || state(&reading) == Some('T'));
    free().unwrap();
    reading.signal("CONT");
    drop(stdin);
    assert_eq!(reading.output().status.code(), Some(0));
    // While it waits for the lock, and then writes: it stops after its commit.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writing = start_import(&folder.database(), &[], ODD[0]);
    let catches = || {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", writing.child.id())).unwrap();
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() >> (20 - 1) & 1 == 1
    };
    wait_until("the import to put stops off", catches);
    writing.signal("TSTP");
    assert_ne!(state(&writing), Some('T'));
    other.execute_batch("ROLLBACK").unwrap();
    wait_until("the stop after the commit", || state(&writing) == Some('T'));
    assert_eq!(names(&folder.database()).len(), 5001);
    free().unwrap();
    writing.signal("CONT");
    expect_imported(writing.output(), "imported 1");
}

#[test]
fn input_that_was_imported_is_added_again_only_if_that_is_wanted() {
    let folder = Folder::new();
    let database = folder.database();
    let input = pets(4000);
    let said = |words: &[&str], input: &str| text(import(&database, words, input).stderr);
    let undo = |range: &str| {
        format!(
            "to undo it: petstore pet delete {range} --database {}\n",
            database.display()
        )
    };
    assert_eq!(
        said(&[], ODD[0]),
        format!("imported 1; its ids are from 1 to 1\n{}", undo("1"))
    );
    assert_eq!(
        said(&[], &input),
        format!(
            "imported 4000; its ids are from 2 to 4001\n{}",
            undo("2..4001")
        )
    );
    for words in [
        &[][..],
        &["--keep-ids"],
        &["--new-ids"],
        &["--dry-run"],
        &["--skip-invalid"],
    ] {
        let input = if words == ["--keep-ids"] {
            "{\"id\":9,\"name\":\"a\",\"categoryId\":1}"
        } else {
            &input
        };
        let said = last(&import(&database, words, input));
        if words == ["--keep-ids"] {
            assert!(said.contains(messages::NOT_NEW), "{said}");
            continue;
        }
        let when = said
            .strip_prefix("petstore: this input was imported on 20")
            .expect(&said);
        let rest = "Z, and its pets got ids from 2 to 4001";
        assert!(
            when.contains(rest) && when.ends_with("; add it once more with --again"),
            "{said}"
        );
    }
    assert_eq!(names(&database).len(), 4001);
    let again = said(&["--again"], &input);
    assert!(
        again.starts_with("imported 4000; its ids are from 4002 to 8001\n"),
        "{again}"
    );
    assert!(said(&[], &input).contains(" ids from 4002 to 8001; "));
    // Another input, if only by a byte.
    assert!(
        said(&[], &format!("{input}\n"))
            .starts_with("imported 4000; its ids are from 8002 to 12001\n")
    );
    // The way back, as it is printed.
    let undone = run(&["pet", "delete", "8002..12001"], &database);
    assert_eq!(text(undone.stdout), "deleted 4000\n");
    assert_eq!(names(&database).len(), 8001);
    let undone = run(&["pet", "delete", "7000..12001"], &database);
    assert_eq!(
        text(undone.stdout),
        "deleted 1002; 4000 ids of the range have no pet\n"
    );
    // A clock that was wrong.
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection
        .execute_batch("UPDATE imports SET at = 99999999999999")
        .unwrap();
    let said = said(&[], &input);
    assert!(
        said.starts_with("petstore: this input was imported, and its pets got ids"),
        "{said}"
    );
}

#[test]
fn edited_export_changes_the_pets_or_is_refused() {
    let server = Server::start();
    let database = server.folder.database();
    ODD.iter()
        .for_each(|body| _ = server.create(body).expect(201));
    for format in ["ndjson", "csv"] {
        let exported = export(&database, format);
        let words = |more: &[&'static str]| [&["--format", format], more].concat();
        let refused = format!(
            "petstore: {} ids of the input are those of pets in {}: 1, 2, 3, 4, 5, 6; \
             --update changes these pets, and --new-ids adds all of the input as new pets",
            ODD.len(),
            database.display()
        );
        for more in [&[][..], &["--dry-run"]] {
            expect_refused(import(&database, &words(more), &exported), &[&refused]);
        }
        let output = import(&database, &words(&["--update"]), &exported);
        assert_eq!(text(output.stderr), "6 the same, 0 changed\n");
        assert_eq!(export(&database, format), exported);
    }
    let update =
        |format, input: &str| last(&import(&database, &["--update", "--format", format], input));
    assert_eq!(
        update("csv", "id,status\n2,\n1,sold\n3,pending\n"),
        "1 the same, 2 changed: 2, 1"
    );
    assert_eq!(
        update("ndjson", "{\"id\":4,\"name\":\"Rex\"}"),
        "0 the same, 1 changed: 4"
    );
    let output = import(
        &database,
        &["--update", "--dry-run", "--format", "csv"],
        "id,name\n1,x\n4,Rex\n",
    );
    assert_eq!(text(output.stderr), "1 the same, 1 would change: 1\n");
    let pet = |id: i64| server.get(&format!("/v1/pets/{id}")).json();
    assert_eq!(
        (&pet(1)["status"], &pet(2)["status"], &pet(3)["status"]),
        (&"sold".into(), &serde_json::Value::Null, &"pending".into())
    );
    assert_eq!(
        (&pet(4)["name"], &pet(4)["categoryId"]),
        (&"Rex".into(), &1.into())
    );
    let before = export(&database, "ndjson");
    let unknown = format!(
        "petstore: 2 ids of the input are those of no pet in {}: 9, 7",
        database.display()
    );
    assert!(update("csv", "id,name\n1,x\n9,x\n7,x\n").starts_with(&unknown));
    assert!(update("csv", "id,name\n1,x\n1,y\n").contains("1 line is refused"));
    assert!(update("csv", "name\nx\n").contains("the column 'id' is missing"));
    assert!(update("ndjson", "{\"name\":\"x\"}").contains("1 line is refused"));
    assert_eq!(export(&database, "ndjson"), before);
    // New ids, if that is wanted, or if no pet has one.
    let output = import(&database, &["--new-ids"], &before);
    assert!(text(output.stderr).starts_with("imported 6; its ids are from 7 to 12\n"));
    let strings = before
        .replace("{\"id\":", "{\"id\":\"")
        .replace(",\"name\"", "\",\"name\"");
    let refused = last(&import(&database, &["--dry-run"], &strings));
    assert!(
        refused.contains(" ids of the input are those of pets in "),
        "{refused}"
    );
    assert!(
        last(&import(
            &database,
            &["--skip-invalid", "--update"],
            "{\"name\":\"new\"}"
        ))
        .starts_with("0 the same, left out 1")
    );
    let new = text(import(&database, &["--update"], "{\"name\":\"new\"}").stderr);
    assert!(
        new.starts_with("Line 1: The row has no id. Import new pets "),
        "{new}"
    );
    let input = "{\"id\":99,\"name\":\"a\",\"categoryId\":1}\n{\"id\":\"A-7\",\"name\":\"b\",\"categoryId\":1}\n";
    let refused = text(import(&database, &[], input).stderr);
    assert!(refused.contains("as new pets with --new-ids"), "{refused}");
    let input = input.replace("A-7", "");
    let output = import(&database, &[], &input.repeat(2));
    let said =
        "imported 4, with new ids in place of those of the input; its ids are from 13 to 16\n";
    assert!(text(output.stderr).starts_with(said));
}

#[test]
fn import_that_is_only_checked_needs_no_right_to_write() {
    let server = Server::start();
    server.create(ODD[1]).expect(201);
    let database = server.folder.database();
    let before = export(&database, "ndjson");
    expect_refused(
        import(&database, &["--dry-run"], "x\n{}"),
        &[
            "Line 1: The line must be one JSON object with 'name' and 'categoryId': expected value at column 1. Found: x",
            "Line 2: The field 'name' is missing; it must be a string. Found: {}",
            &format!("petstore: 2 lines are {}", messages::REFUSED_ROWS),
        ],
    );
    let output = import(
        &database,
        &["--dry-run", "--skip-invalid"],
        &format!("x\n{}", pets(2)),
    );
    expect_imported(output, "would import 2, left out 1");
    let had = format!(
        "petstore: ids cannot be kept: {} {}",
        database.display(),
        messages::NOT_NEW
    );
    let with_id = "{\"id\":1,\"name\":\"a\",\"categoryId\":1}";
    expect_refused(
        import(&database, &["--dry-run", "--keep-ids"], with_id),
        &[&had],
    );
    assert_eq!(export(&database, "ndjson"), before);
}

#[test]
fn terminal_shows_what_it_would_obey() {
    let server = Server::start();
    let name = "\\u001b]0;owned\\u0007\\r\\n\\u007f\\u009b\\u202e\\u2066\\u200f\\u061cé";
    for name in [name, "a\\u001bb"] {
        server
            .create(&format!("{{\"name\":\"{name}\",\"categoryId\":1}}"))
            .expect(201);
    }
    for (words, shown_name) in [
        (&["export"][..], name.to_owned()),
        (
            &["export", "--format", "csv"],
            name.replace("\\r\\n", "\\u000d\\u000a"),
        ),
        (&["pet", "status", "1", "sold"], name.to_owned()),
    ] {
        let (mut screen, out) = terminal();
        let mut command = petstore(words);
        command
            .env("PETSTORE_DATABASE", server.folder.database())
            .stdout(out);
        let process = Process::spawn(&mut command);
        drop(command);
        let mut shown = Vec::new();
        // Fails at its end, once nobody has the terminal open.
        let _ = screen.read_to_end(&mut shown);
        assert!(process.output().status.success());
        let shown = text(shown);
        assert!(shown.contains(&shown_name), "{words:?}: {shown:?}");
        let obeyed = |c: char| {
            c.is_control() && c != '\r' && c != '\n'
                || "\u{202e}\u{2066}\u{200f}\u{61c}".contains(c)
        };
        assert!(!shown.contains(obeyed), "{words:?}: {shown:?}");
        assert!(
            shown.contains('é') && shown.lines().count() <= 3,
            "{words:?}: {shown:?}"
        );
    }
    assert!(export(&server.folder.database(), "csv").contains("\u{1b}]0;owned\u{7}\r\n"));
}

#[test]
fn import_and_creates_of_a_running_server_take_turns() {
    let server = Server::start();
    let count = 30_000;
    let created = std::thread::scope(|scope| {
        let importing = scope.spawn(|| import(&server.folder.database(), &[], &pets(count)));
        let mut connection = server.connect();
        let mut created = 0;
        while !importing.is_finished() {
            connection
                .post("/v1/pets", KEY, r#"{"name":"created","categoryId":1}"#)
                .expect(201);
            created += 1;
        }
        expect_imported(importing.join().unwrap(), &format!("imported {count}"));
        created
    });
    let exported = export(&server.folder.database(), "csv");
    let imported: Vec<&str> = exported
        .lines()
        .filter(|line| line.contains(",1,sold"))
        .collect();
    assert_eq!(
        (imported.len(), exported.lines().count()),
        (count, 1 + count + created)
    );
    let last = server.get(&format!(
        "/v1/pets?status=sold&after={}",
        imported[count - 2].split_once(',').unwrap().0
    ));
    assert_eq!(last.json()[0]["name"], count.to_string());
}

#[test]
fn empty_input_has_no_pets() {
    let folder = Folder::new();
    // A command before the pipe may have failed.
    for (input, words) in [
        ("", &[][..]),
        ("\n \n", &["--skip-invalid"]),
        ("", &["--dry-run"]),
    ] {
        let output = import(&folder.database(), words, input);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let error = text(output.stderr);
        assert!(error.ends_with(" has no pets\n"), "{error}");
    }
    expect_imported(
        import(
            &folder.database(),
            &["--format", "csv"],
            "name,categoryId\n",
        ),
        "imported 0",
    );
    let output = import(
        &folder.database(),
        &["--update", "--format", "csv"],
        "id,name\n",
    );
    assert_eq!(text(output.stderr), "0 the same, 0 changed\n");
}

#[test]
fn byte_order_mark_is_ignored_and_an_array_is_refused() {
    let folder = Folder::new();
    let marked = format!("\u{feff}{}\n", ODD[1]);
    expect_imported(import(&folder.database(), &[], &marked), "imported 1");
}

#[test]
fn what_the_interface_prints_is_imported_without_changing_a_number() {
    let server = Server::start();
    for (i, number) in (0..).zip([i64::MAX, i64::MIN, 9_007_199_254_740_993]) {
        for j in 0..4 {
            let name = ["a},{", "\\\"]", "[\\\\", "\\né\\u0000"][(i + j) % 4];
            server
                .create(&format!("{{\"name\":\"{name}\",\"categoryId\":{number}}}"))
                .expect(201);
        }
    }
    let (folder, exported) = (Folder::new(), export(&server.folder.database(), "ndjson"));
    let printed = text(server.get("/v1/pets").body);
    let import = |name: &str, words: &[&str]| {
        let file = folder.path().join(name);
        run(
            &[&["import", file.to_str().unwrap(), "--create"], words].concat(),
            &folder.database(),
        )
    };
    std::fs::write(folder.path().join("pets.json"), &printed).unwrap();
    let output = import("pets.json", &[]);
    assert!(text(output.stderr).contains("pets.json is a JSON array, or "));
    // The way that the guide names.
    let guide = include_str!("../../src/site/pages/data.md");
    let line = guide
        .lines()
        .find(|line| line.starts_with("python3 -c "))
        .unwrap();
    let mut shell = std::process::Command::new("sh");
    assert!(
        shell
            .args(["-ec", line])
            .current_dir(folder.path())
            .status()
            .unwrap()
            .success()
    );
    expect_imported(import("pets.ndjson", &["--keep-ids"]), "imported 12");
    assert_eq!(export(&folder.database(), "ndjson"), exported);
}

#[test]
fn pets_that_a_backup_lacks_are_found_as_the_guide_says() {
    let folder = Folder::new();
    // As a double, it is equal to the ids around it.
    let last = 9_223_371_036_854_775_800_i64;
    let pet = |id| format!("{{\"id\":{id},\"name\":\"Ré \u{85}x\",\"categoryId\":{id}}}\n");
    for (file, ids) in [
        ("petstore-2026-11-22T06-25-40Z.db", 0..=1),
        ("old.db", 0..=3),
    ] {
        let pets: String = ids.map(|i| pet(last - 1 + i)).collect();
        let added = import(
            &folder.path().join(file),
            &["--keep-ids", "--create"],
            &pets,
        );
        assert!(added.status.success(), "{added:?}");
    }
    std::os::unix::fs::symlink(program(), folder.path().join("petstore")).unwrap();
    let guide = include_str!("../../src/site/pages/machines.md");
    let begin = guide.find("petstore export --database").unwrap();
    let lines = &guide[begin..guide.find("petstore import late.ndjson").unwrap()];
    let mut shell = std::process::Command::new("sh");
    shell.args(["-ec", lines]).current_dir(folder.path());
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let done = output(shell.env("PATH", path));
    assert!(done.status.success(), "{done:?}");
    assert_eq!(
        std::fs::read_to_string(folder.path().join("late.ndjson")).unwrap(),
        pet(last + 1) + &pet(last + 2)
    );
}

#[test]
fn quote_that_nobody_closes_swallows_no_line() {
    let folder = Folder::new();
    let rows: String = (0..990).map(|i| format!("n{i},1\n")).collect();
    for input in [
        "name,categoryId\n\"a,1\nb,2\nc,3\n",
        &format!("name,categoryId\na,1\n\"b,2\n{rows}"),
    ] {
        let output = import(
            &folder.database(),
            &["--format", "csv", "--skip-invalid"],
            input,
        );
        let (first, last) = if input.len() < 100 { (2, 4) } else { (3, 993) };
        let said = format!(
            "petstore: lines {first} to {last}: A quoted field has no closing quote. Found: \"{{}}; \
             a quote there may be missing, so nothing was imported"
        );
        let [before, after] = said.split("{}").collect::<Vec<_>>()[..] else {
            panic!("{said}")
        };
        let error = text(output.stderr);
        assert!(
            error.starts_with(before) && error.trim_end().ends_with(after),
            "{error}"
        );
        assert!(
            error.len() < 300 && output.status.code() == Some(1),
            "{error}"
        );
    }
    // A later quote seems to close it; or the rest of the row is wrong.
    for (rows, lines) in [
        (
            "\"a,1\nb,2\n\"c\",3\nd,4\n",
            "lines 2 to 4: A field with a quote",
        ),
        ("\"a,1\n\"\",2\n\"c\"", "lines 2 to 4: A field with a quote"),
        ("a,\"1\r\nb,\",2\r\n", "lines 2 to 3: The row has 3 fields"),
        (
            "\"a,1\nb\",x\nc,2\n",
            "lines 2 to 3: The column 'categoryId' must be",
        ),
    ] {
        for words in [&["--skip-invalid"][..], &[]] {
            let words = [&["--format", "csv"], words].concat();
            let output = import(
                &folder.database(),
                &words,
                &format!("name,categoryId\n{rows}"),
            );
            let error = text(output.stderr);
            assert!(
                error.starts_with(&format!("petstore: {lines}")),
                "{rows:?} {words:?}: {error}"
            );
        }
    }
    // A name of several lines, and a row that can be recognised.
    let input = "name,categoryId\n\"a\nb\",1\n\"c\"d,1\n\"e\r\n\r\n\",2\n\"f,3";
    let output = import(
        &folder.database(),
        &["--format", "csv", "--skip-invalid"],
        input,
    );
    expect_imported(output, "imported 2, left out 2");
}

#[test]
fn rejected_lines_are_printed_up_to_a_limit() {
    for (count, more) in [
        (20, None),
        (21, Some("and 1 more like these")),
        (30_000, Some("and 29980 more like these")),
    ] {
        let output = import(
            &Folder::new().database(),
            &[],
            &"{\"name\":1}\n".repeat(count),
        );
        let said = text(output.stderr);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 21 + usize::from(more.is_some()));
        assert!(
            lines[19].starts_with("Line 20: ") && more.is_none_or(|more| lines[20] == more),
            "{said}"
        );
        let nothing = format!("petstore: {count} lines are {}", messages::REFUSED_ROWS);
        assert_eq!(*lines.last().unwrap(), nothing);
    }
}

#[test]
fn file_is_read_and_what_cannot_be_is_named() {
    let folder = Folder::new();
    let file = folder.path().join("pets.csv");
    std::fs::write(&file, "name,categoryId\n\"a\nb\",1\n").unwrap();
    let file = file.to_str().unwrap();
    // The ending says that it is CSV.
    expect_imported(
        run(&["import", file, "--create"], &folder.database()),
        "imported 1",
    );
    let json = folder.path().join("pets.ndjson");
    std::fs::write(&json, ODD[0]).unwrap();
    let kept = folder.path().join("kept.ndjson");
    std::fs::write(&kept, ODD[0].replace('{', "{\"id\":7,")).unwrap();
    let kept = kept.to_str().unwrap();
    let (json, folder_name) = (json.to_str().unwrap(), folder.path().to_str().unwrap());
    for (words, code, said) in [
        (&["import", "/nowhere"][..], 1, messages::FILE_MISSING),
        (&["import", folder_name], 1, "Is a directory"),
        (
            &["import", file, "--format", "xml"],
            2,
            "--format must be 'ndjson', 'csv', 'excel' or 'excel-semicolon', not 'xml'",
        ),
        (
            &["import", file, "--update", "--new-ids"],
            2,
            "only one of --keep-ids, --new-ids and --update",
        ),
        (
            &["import", json, "--format", "csv"],
            1,
            "pets.ndjson is JSON, not CSV",
        ),
        (
            &["import", file, "--format", "ndjson"],
            1,
            "is not NDJSON, as no line begins with '{', and the first is 'name,categoryId'; if it is CSV, add --format csv",
        ),
        (&["import", kept, "--keep-ids"], 1, messages::NOT_NEW),
        (&["export", "--format", ""], 2, "--format"),
        (
            &["export", "--database", "/nowhere"],
            1,
            messages::DATABASE_MISSING,
        ),
    ] {
        let output = run(words, &folder.database());
        let error = text(output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
        assert!(
            error.contains(said) && error.lines().count() == 1,
            "{words:?}: {error}"
        );
    }
}

#[test]
fn csv_of_other_programs_is_read() {
    let folder = Folder::new();
    let script = r#"
import csv, random, sys
random.seed(7)
names = ["".join(random.choice('ab ,;\t"\'\r\né\u202e😀') for _ in range(random.randrange(9))) for _ in range(300)]
for dialect in ("excel", "unix"):
    # Without a quote, this dialect writes a carriage return as it is, and most programs read it as the end of a line.
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)[dialect == "unix":]:
        for tail in ([], ["", ""]):
            with open(f"{dialect}-{quoting}-{len(tail)}.csv", "w", newline="", encoding="utf-8-sig") as file:
                out = csv.writer(file, dialect, quoting=quoting)
                out.writerow(["name", "categoryId", "status"] + tail)
                for i, name in enumerate(names):
                    out.writerow([name, [i, float(i)][i % 2], ["sold", ""][i % 2]] + tail)
                out.writerow(["", "", ""] + tail)
with open("tabs.csv", "w", newline="") as file:
    csv.writer(file, "excel-tab").writerows([["name", "categoryId"], ["a", 1]])
sys.stdout.write("".join(name + "\0" for name in names))
"#;
    let mut python = std::process::Command::new("python3");
    let made = python
        .args(["-c", script])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let expected: Vec<String> = text(made.stdout)
        .split_terminator('\0')
        .map(str::to_owned)
        .collect();
    let mut count = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let (path, other) = (entry.unwrap().path(), Folder::new());
        let output = run(
            &["import", "--create", path.to_str().unwrap()],
            &other.database(),
        );
        if path.ends_with("tabs.csv") {
            expect_imported(output, "imported 1");
            continue;
        }
        expect_imported(output, "imported 300");
        let exported = export(&other.database(), "ndjson");
        let pets = exported
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        for ((i, pet), name) in (0..).zip(pets).zip(&expected) {
            assert_eq!(
                (&pet["name"], &pet["categoryId"]),
                (&name.as_str().into(), &serde_json::json!(i))
            );
        }
        count += 1;
    }
    assert_eq!(count, 10);
}
