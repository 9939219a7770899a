//! `petstore export` and `petstore import`, alone and alongside a running server.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use crate::messages;
use support::harness::{Folder, KEY, Process, Server, add_key, petstore, run, terminal};
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
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
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
    let mut command = petstore(&[&["import", "--create"], words].concat());
    let input = Stdio::from(File::open(&path).unwrap());
    Process::spawn(command.env("PETSTORE_DATABASE", database).stdin(input).stdout(Stdio::piped()).stderr(err))
}

#[track_caller]
fn expect_imported(output: Output, said: &str) {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let last = text(output.stderr).lines().last().unwrap_or_default().to_owned();
    // The ids follow, if there are any.
    assert_eq!(last.split("; its ids are from ").next(), Some(said), "{last}");
    assert_eq!(text(output.stdout), "");
}

/// Expects a failure with these lines on standard error, apart from the progress.
#[track_caller]
fn expect_refused(output: Output, lines: &[&str]) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(output.stdout, b"");
    let said = text(output.stderr);
    let is_progress = |line: &&str| line.starts_with("written up to line ");
    assert_eq!(said.lines().filter(|line| !is_progress(line)).collect::<Vec<_>>(), lines);
}

fn pets(count: usize) -> String {
    (1..=count).map(|i| format!("{{\"name\":\"{i}\",\"categoryId\":1,\"status\":\"sold\"}}\n")).collect()
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
    ODD.iter().chain(ODD).for_each(|body| drop(server.create(body).expect(201).json()));
    assert!(run(&["pet", "delete", "1", "5", "8"], &server.folder.database()).status.success());
    for format in ["ndjson", "csv"] {
        let exported = export(&server.folder.database(), format);
        let folder = Folder::new();
        let words = ["--format", format, "--keep-ids"];
        expect_imported(import(&folder.database(), &words, &exported), "imported 9");
        assert_eq!(export(&folder.database(), format), exported);
        // Without the flag the pets get new ids, here in another database.
        let other = Folder::new();
        expect_imported(import(&other.database(), &words[..2], &exported), "imported 9");
        let ids = export(&other.database(), "ndjson");
        let ids = ids.lines().map(|line| line.split([':', ',']).nth(1).unwrap().parse().unwrap());
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
    let import =
        |words: &[&str]| run(&[&["import", file.to_str().unwrap()], words].concat(), &folder.database());
    for words in [&[][..], &["--dry-run"], &["--create", "--dry-run"]] {
        let output = import(words);
        let said = text(output.stderr);
        let (code, expected) = if words.len() < 2 {
            (1, "; give the right file with --database, or make it with --create\n")
        } else {
            (0, "would import 1\n")
        };
        assert!(output.status.code() == Some(code) && said.ends_with(expected), "{words:?}: {said}");
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
    let exported = |count: usize| assert_eq!(export(&folder.database(), "ndjson").lines().count(), count);
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
        command.env("PETSTORE_DATABASE", folder.database()).stdout(full()).stderr(full());
        assert_eq!(Process::spawn(&mut command).output().status.code(), Some(0), "{words:?}");
        exported(left);
    }
}

#[test]
fn reader_who_has_enough_ends_an_export_quietly() {
    let folder = Folder::new();
    let long = format!("{{\"name\":\"{}\",\"categoryId\":1}}\n", "x".repeat(60_000));
    expect_imported(import(&folder.database(), &[], &long.repeat(20)), "imported 20");
    let mut process = Process::start(petstore(&["export"]).env("PETSTORE_DATABASE", folder.database()));
    let mut line = String::new();
    BufReader::new(process.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"id\":1,"));
    let output = process.output();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn refused_lines_are_named_and_nothing_is_written() {
    let folder = Folder::new();
    let input =
        "{\"name\":\"a\",\"categoryId\":1}\n{\"name\":\"b\"}\n\n{\"name\":\"c\",\"categoryId\":1.5}\nx\n";
    let refused = [
        "Line 2: The field 'categoryId' is missing; it must be a 64-bit integer (int64). Found: {\"name\":\"b\"}",
        "Line 4: The field 'categoryId' must be a 64-bit integer (int64), not a number with a fraction. \
         Found: {\"name\":\"c\",\"categoryId\":1.5}",
        "Line 5: The line must be one JSON object with 'name' and 'categoryId': expected value at column 1. Found: x",
    ];
    let nothing = format!("petstore: 3 lines are {}", messages::REFUSED_ROWS);
    expect_refused(import(&folder.database(), &[], input), &[&refused[..], &[&nothing]].concat());
    assert!(!folder.database().exists());
    let output = import(&folder.database(), &["--skip-invalid"], input);
    assert_eq!(text(output.stderr.clone()).lines().take(3).collect::<Vec<_>>(), refused);
    expect_imported(output, "imported 1, left out 3");
    assert_eq!(export(&folder.database(), "ndjson"), "{\"id\":1,\"name\":\"a\",\"categoryId\":1}\n");
}

#[test]
fn id_that_cannot_be_kept_is_refused_with_its_line() {
    let folder = Folder::new();
    let line = |id: &str| format!("{{\"id\":{id},\"name\":\"a\",\"categoryId\":1}}\n");
    let input: String = ["5", "3", "5", "9223371036854775808", "9223372036854775808"].map(line).concat();
    let expected = "Line 4: The field 'id' must be an integer from 1 to 9223371036854775807, not a number";
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
    let output = import(&folder.database(), &["--keep-ids", "--skip-invalid"], &input);
    expect_imported(output, "imported 2, left out 3");
    assert!(run(&["pet", "delete", "3", "5"], &folder.database()).status.success());
    let had = format!("petstore: ids cannot be kept: {} {}", folder.database().display(), messages::NOT_NEW);
    expect_refused(import(&folder.database(), &["--keep-ids"], &line("7")), &[&had]);
}

/// A pipe that takes nothing more until somebody reads what is in it.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(b"\n").is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    (reader, writer)
}

/// Starts an import, and ends it by SIGTERM while another process holds the lock of the database. Returns the
/// line with which to continue.
fn interrupted(folder: &Folder, words: &[&str], input: &str) -> String {
    add_key(&folder.database(), &["ci"]);
    let other = rusqlite::Connection::open(folder.database()).unwrap();
    let (logged, err) = full_pipe();
    let process = start_import_to(err.into(), &folder.database(), words, input);
    wait_until("the first batch", || other.query_row("SELECT 1 FROM pets", [], |_| Ok(())).is_ok());
    // It cannot go on before its progress is read, so it leaves the lock to others.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    process.signal("TERM");
    let said = BufReader::new(logged).lines().map(Result::unwrap).last().unwrap();
    let output = process.output();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let line = said.strip_prefix("petstore: interrupted; everything up to line ");
    let line = line.and_then(|rest| rest.strip_suffix(" is written; continue with --resume")).expect(&said);
    (line.parse::<u64>().unwrap() + 1).to_string()
}

#[test]
fn interrupted_import_goes_on_where_it_said() {
    let count = 20_000;
    let all: Vec<String> = (1..=count).map(|i| i.to_string()).collect();

    let folder = Folder::new();
    let from = interrupted(&folder, &[], &pets(count));
    let left = count + 1 - from.parse::<usize>().unwrap();
    assert!(left > 0);
    let output = import(&folder.database(), &["--from-line", &from], &pets(count));
    expect_imported(output, &format!("imported {left}"));
    assert_eq!(names(&folder.database()), all);
}

#[test]
fn interrupted_import_that_keeps_ids_adds_none_twice() {
    let count = 20_000;
    let input: String =
        (1..=count).map(|i| format!("{{\"id\":{},\"name\":\"{i}\",\"categoryId\":1}}\n", 2 * i)).collect();
    let folder = Folder::new();
    let from: u64 = interrupted(&folder, &["--keep-ids"], &input).parse().unwrap();
    let there = export(&folder.database(), "ndjson");
    let go_on =
        |from: u64| import(&folder.database(), &["--keep-ids", "--from-line", &from.to_string()], &input);
    let early = text(go_on(from - 1).stderr);
    let expected = format!(
        "petstore: an import of this input ended early: everything up to line {} is written; ",
        from - 1
    );
    assert!(early.starts_with(&expected), "{early}");
    assert_eq!(export(&folder.database(), "ndjson"), there);
    expect_imported(go_on(from), &format!("imported {}", count + 1 - from));
    assert_eq!(export(&folder.database(), "ndjson"), input);
}

/// The names of the pets, in the order of their ids.
fn names(database: &Path) -> Vec<String> {
    let exported = export(database, "csv");
    exported.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().to_owned()).collect()
}

/// An import that the next reader of its progress must not wait for: it is killed once it is written and said nothing.
fn killed_before_it_could_report(database: &Path, words: &[&str], input: &str) {
    let (_logged, err) = full_pipe();
    let process = start_import_to(err.into(), database, words, input);
    wait_until("the first batch", || run(&["export"], database).stdout.contains(&b'\n'));
    process.signal("KILL");
    process.output();
}

#[test]
fn killed_import_goes_on_exactly_where_it_was() {
    let count = 60_000;
    for (format, keeps_ids) in [("ndjson", false), ("csv", true)] {
        let input: String = match format {
            "ndjson" => pets(count),
            _ => (1..=count).fold("id,name,categoryId\n".to_owned(), |all, i| all + &format!("{i},{i},1\n")),
        };
        let words: Vec<&str> =
            ["--format", format].into_iter().chain(keeps_ids.then_some("--keep-ids")).collect();
        let resume = [&words[..], &["--resume"]].concat();
        let folder = Folder::new();
        killed_before_it_could_report(&folder.database(), &words, &input);
        // Kills between and within batches, by what the import has said so far.
        for round in 0..6 {
            let mut process = start_import(&folder.database(), &resume, &input);
            let said = BufReader::new(process.child.stderr.take().unwrap()).lines().map(Result::unwrap);
            let last = said.take(1 + round % 3).last().unwrap();
            process.signal("KILL");
            process.output();
            assert!(last.starts_with("written up to line "), "{last}");
        }
        let left = count - names(&folder.database()).len();
        expect_imported(import(&folder.database(), &resume, &input), &format!("imported {left}"));
        assert_eq!(names(&folder.database()), (1..=count).map(|i| i.to_string()).collect::<Vec<_>>());
        // A kill may come too late.
        expect_imported(import(&folder.database(), &resume, &input), "imported 0");
    }
}

#[test]
fn unfinished_import_is_neither_repeated_nor_continued_with_another_input() {
    let (folder, input) = (Folder::new(), pets(20_000));
    let database = folder.database();
    killed_before_it_could_report(&database, &[], &input);
    let there = names(&database).len();
    let unfinished = format!(
        "petstore: an import of this input ended early: everything up to line {there} is written; \
         add the rest with --resume, or all of it once more with --again"
    );
    // Nor from a line that is written, nor with new ids in place of those that were kept.
    for words in [&[][..], &["--from-line", "1"], &["--keep-ids"], &["--dry-run"], &["--skip-invalid"]] {
        expect_refused(import(&database, words, &input), &[&unfinished]);
    }
    let unknown = format!(
        "petstore: {} knows of no import of this input, as it is now and with these options",
        database.display()
    );
    let changed = input.replacen("\"1\"", "\"2\"", 1);
    expect_refused(import(&database, &["--resume"], &changed), &[&unknown]);
    expect_refused(import(&database, &["--resume"], &(input.clone() + "\n")), &[&unknown]);
    let with_ids = import(&database, &["--resume", "--keep-ids"], &input);
    expect_refused(with_ids, &[&unknown]);
    for words in [&["--resume", "--from-line", "2"][..], &["--resume", "--again"]] {
        assert_eq!(import(&database, words, &input).status.code(), Some(2));
    }
    // Another input has nothing to do with it.
    expect_imported(import(&database, &[], ODD[0]), "imported 1");
    expect_imported(import(&database, &["--resume"], &input), &format!("imported {}", 20_000 - there));
    assert_eq!(names(&database).len(), 20_001);
    expect_imported(import(&database, &["--again"], &input), "imported 20000");
}

#[test]
fn input_that_was_imported_is_added_again_only_if_that_is_wanted() {
    let folder = Folder::new();
    let database = folder.database();
    let last = |output: Output| text(output.stderr).lines().last().unwrap_or_default().to_owned();
    let input = pets(5000);
    assert_eq!(last(import(&database, &[], ODD[0])), "imported 1; its ids are from 1 to 1");
    assert_eq!(last(import(&database, &[], &input)), "imported 5000; its ids are from 2 to 5001");
    for words in [&[][..], &["--keep-ids"], &["--from-line", "5000"], &["--dry-run"], &["--skip-invalid"]] {
        let said = last(import(&database, words, &input));
        let when = said.strip_prefix("petstore: this input was imported on 20").expect(&said);
        let rest = "Z, and its pets got ids from 2 to 5001; add it once more with --again";
        assert!(when.ends_with(rest) && when.len() == "26-01-01T00:00:00".len() + rest.len(), "{said}");
    }
    assert_eq!(last(import(&database, &["--resume"], &input)), "imported 0; its ids are from 2 to 5001");
    assert_eq!(names(&database).len(), 5001);
    let again = import(&database, &["--again", "--from-line", "4000"], &input);
    assert_eq!(last(again), "imported 1001; its ids are from 5002 to 6002");
    assert!(last(import(&database, &[], &input)).contains(" ids from 5002 to 6002; "));
    // Another input, if only by a byte.
    assert_eq!(
        last(import(&database, &[], &format!("{input}\n"))),
        "imported 5000; its ids are from 6003 to 11002"
    );
    // A clock that was wrong.
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute_batch("UPDATE imports SET finished_at = 99999999999999").unwrap();
    let said = last(import(&database, &[], &input));
    assert!(said.starts_with("petstore: this input was imported, and its pets got ids"), "{said}");
}

#[test]
fn ids_that_are_kept_are_reported_across_interruptions() {
    let folder = Folder::new();
    // In a descending order, so that the least id comes last.
    let input: String = (1..=20_000)
        .rev()
        .map(|id| format!("{{\"id\":{},\"name\":\"a\",\"categoryId\":1}}\n", 3 * id))
        .collect();
    interrupted(&folder, &["--keep-ids"], &input);
    let output = import(&folder.database(), &["--resume", "--keep-ids"], &input);
    assert!(text(output.stderr).ends_with("; its ids are from 3 to 60000\n"));
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
    let output = import(&database, &["--dry-run", "--skip-invalid"], &format!("x\n{}", pets(2)));
    expect_imported(output, "would import 2, left out 1");
    let had = format!("petstore: ids cannot be kept: {} {}", database.display(), messages::NOT_NEW);
    let with_id = "{\"id\":1,\"name\":\"a\",\"categoryId\":1}";
    expect_refused(import(&database, &["--dry-run", "--keep-ids"], with_id), &[&had]);
    assert_eq!(export(&database, "ndjson"), before);
}

#[test]
fn import_that_goes_on_twice_adds_each_pet_once() {
    let (folder, input) = (Folder::new(), pets(60_000));
    killed_before_it_could_report(&folder.database(), &[], &input);
    let all = [(); 3].map(|()| start_import(&folder.database(), &["--resume"], &input));
    let ended = all.map(|process| process.output().status.code());
    assert!(ended.contains(&Some(0)), "{ended:?}");
    assert_eq!(names(&folder.database()), (1..=60_000).map(|i| i.to_string()).collect::<Vec<_>>());
}

#[test]
fn terminal_shows_what_it_would_obey() {
    let server = Server::start();
    let name = "\\u001b]0;owned\\u0007\\r\\n\\u007f\\u009b\\u202e\\u2066\\u200f\\u061cé";
    for name in [name, "a\\u001bb"] {
        server.create(&format!("{{\"name\":\"{name}\",\"categoryId\":1}}")).expect(201);
    }
    for (words, shown_name) in [
        (&["export"][..], name.to_owned()),
        (&["export", "--format", "csv"], name.replace("\\r\\n", "\\u000d\\u000a")),
        (&["pet", "status", "1", "sold"], name.to_owned()),
    ] {
        let (mut screen, out) = terminal();
        let mut command = petstore(words);
        command.env("PETSTORE_DATABASE", server.folder.database()).stdout(out);
        let process = Process::spawn(&mut command);
        drop(command);
        let mut shown = Vec::new();
        // Fails at its end, once nobody has the terminal open.
        let _ = screen.read_to_end(&mut shown);
        assert!(process.output().status.success());
        let shown = text(shown);
        assert!(shown.contains(&shown_name), "{words:?}: {shown:?}");
        let obeyed = |c: char| {
            c.is_control() && c != '\r' && c != '\n' || "\u{202e}\u{2066}\u{200f}\u{61c}".contains(c)
        };
        assert!(!shown.contains(obeyed), "{words:?}: {shown:?}");
        assert!(shown.contains('é') && shown.lines().count() <= 3, "{words:?}: {shown:?}");
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
            connection.post("/v1/pets", KEY, r#"{"name":"created","categoryId":1}"#).expect(201);
            created += 1;
        }
        expect_imported(importing.join().unwrap(), &format!("imported {count}"));
        created
    });
    let exported = export(&server.folder.database(), "csv");
    let imported: Vec<&str> = exported.lines().filter(|line| line.contains(",1,sold")).collect();
    assert_eq!((imported.len(), exported.lines().count()), (count, 1 + count + created));
    let last =
        server.get(&format!("/v1/pets?status=sold&after={}", imported[count - 2].split_once(',').unwrap().0));
    assert_eq!(last.json()[0]["name"], count.to_string());
}

#[test]
fn empty_input_has_no_pets_and_the_last_line_may_be_the_first() {
    let folder = Folder::new();
    expect_imported(import(&folder.database(), &[], ""), "imported 0");
    expect_imported(import(&folder.database(), &["--format", "csv"], "name,categoryId\n"), "imported 0");
    expect_imported(import(&folder.database(), &["--from-line", "2"], &pets(2)), "imported 1");
    let beyond = "petstore: line 3 is beyond the end: the last line is 2";
    expect_refused(import(&folder.database(), &["--from-line", "3"], &pets(2)), &[beyond]);
}

#[test]
fn import_that_could_write_nothing_goes_on_where_it_began() {
    let folder = Folder::new();
    let nowhere = folder.path().join("nowhere/pets.db");
    let said =
        |from_line: &[&str]| text(import(&nowhere, from_line, &format!("{}\n", ODD[0]).repeat(2)).stderr);
    let advice = "; give the right file with --database";
    assert!(said(&[]).ends_with(&format!("; nothing was written{advice}\n")), "{}", said(&[]));
    let from_second = said(&["--from-line", "2"]);
    let expected = format!("; everything up to line 1 is written{advice}\n");
    assert!(from_second.ends_with(&expected), "{from_second}");
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
            server.create(&format!("{{\"name\":\"{name}\",\"categoryId\":{number}}}")).expect(201);
        }
    }
    let (folder, exported) = (Folder::new(), export(&server.folder.database(), "ndjson"));
    let printed = text(server.get("/v1/pets").body);
    let import = |name: &str, words: &[&str]| {
        let file = folder.path().join(name);
        run(&[&["import", file.to_str().unwrap(), "--create"], words].concat(), &folder.database())
    };
    std::fs::write(folder.path().join("pets.json"), &printed).unwrap();
    let output = import("pets.json", &[]);
    assert!(text(output.stderr).contains("pets.json is a JSON array, or "));
    // The way that the guide names.
    let guide = include_str!("../../src/site/pages/data.md");
    let line = guide.lines().find(|line| line.starts_with("python3 -c ")).unwrap();
    let mut shell = std::process::Command::new("sh");
    assert!(shell.args(["-ec", line]).current_dir(folder.path()).status().unwrap().success());
    expect_imported(import("pets.ndjson", &["--keep-ids"]), "imported 12");
    assert_eq!(export(&folder.database(), "ndjson"), exported);
}

#[test]
fn quote_that_nobody_closes_swallows_no_line() {
    let folder = Folder::new();
    let rows: String = (0..990).map(|i| format!("n{i},1\n")).collect();
    for input in ["name,categoryId\n\"a,1\nb,2\nc,3\n", &format!("name,categoryId\na,1\n\"b,2\n{rows}")] {
        let output = import(&folder.database(), &["--format", "csv", "--skip-invalid"], input);
        let (first, last) = if input.len() < 100 { (2, 4) } else { (3, 993) };
        let said = format!(
            "petstore: lines {first} to {last}: A quoted field has no closing quote. Found: \"{{}}; \
             a quote there may be missing, so nothing was written"
        );
        let [before, after] = said.split("{}").collect::<Vec<_>>()[..] else { panic!("{said}") };
        let error = text(output.stderr);
        assert!(error.starts_with(before) && error.trim_end().ends_with(after), "{error}");
        assert!(error.len() < 300 && output.status.code() == Some(1), "{error}");
    }
    // A later quote seems to close it; or the rest of the row is wrong.
    for (rows, lines) in [
        ("\"a,1\nb,2\n\"c\",3\nd,4\n", "lines 2 to 4: A field with a quote"),
        ("\"a,1\n\"\",2\n\"c\"", "lines 2 to 4: A field with a quote"),
        ("a,\"1\r\nb,\",2\r\n", "lines 2 to 3: The row has 3 fields"),
        ("\"a,1\nb\",x\nc,2\n", "lines 2 to 3: The column 'categoryId' must be"),
    ] {
        for words in [&["--skip-invalid"][..], &["--from-line", "4"], &[]] {
            let words = [&["--format", "csv"], words].concat();
            let output = import(&folder.database(), &words, &format!("name,categoryId\n{rows}"));
            let error = text(output.stderr);
            assert!(error.starts_with(&format!("petstore: {lines}")), "{rows:?} {words:?}: {error}");
        }
    }
    // A name of several lines, and a row that can be recognised.
    let input = "name,categoryId\n\"a\nb\",1\n\"c\"d,1\n\"e\r\n\r\n\",2\n\"f,3";
    let output = import(&folder.database(), &["--format", "csv", "--skip-invalid"], input);
    expect_imported(output, "imported 2, left out 2");
}

#[test]
fn rejected_lines_are_printed_up_to_a_limit() {
    for (count, more) in
        [(20, None), (21, Some("and 1 more like these")), (30_000, Some("and 29980 more like these"))]
    {
        let output = import(&Folder::new().database(), &[], &"{\"name\":1}\n".repeat(count));
        let said = text(output.stderr);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 21 + usize::from(more.is_some()));
        assert!(lines[19].starts_with("Line 20: ") && more.is_none_or(|more| lines[20] == more), "{said}");
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
    expect_imported(run(&["import", file, "--create"], &folder.database()), "imported 1");
    let json = folder.path().join("pets.ndjson");
    std::fs::write(&json, ODD[0]).unwrap();
    let (json, folder_name) = (json.to_str().unwrap(), folder.path().to_str().unwrap());
    for (words, code, said) in [
        (&["import", "/nowhere"][..], 1, messages::FILE_MISSING),
        (&["import", folder_name], 1, "Is a directory"),
        (&["import", file, "--format", "xml"], 2, "--format must be 'ndjson' or 'csv', not 'xml'"),
        (&["import", file, "--from-line", "0"], 2, "--from-line"),
        (&["import", json, "--format", "csv"], 1, "pets.ndjson is JSON, not CSV"),
        (
            &["import", file, "--format", "ndjson"],
            1,
            "is not NDJSON, as no line begins with '{', and the first is 'name,categoryId'; if it is CSV, add --format csv",
        ),
        (&["import", json, "--keep-ids"], 1, messages::NOT_NEW),
        (&["export", "--format", ""], 2, "--format"),
        (&["export", "--database", "/nowhere"], 1, messages::DATABASE_MISSING),
    ] {
        let output = run(words, &folder.database());
        let error = text(output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
        assert!(error.contains(said) && error.lines().count() == 1, "{words:?}: {error}");
    }
}

#[test]
fn import_that_is_killed_after_its_last_commit_is_not_added_again() {
    let (folder, input) = (Folder::new(), pets(3));
    // It cannot say that it is done, so it is killed once it is.
    for words in [&[][..], &["--skip-invalid", "--from-line", "3"]] {
        let input = format!("{input}{}", "\n".repeat(words.len()));
        let there = run(&["export"], &folder.database()).stdout.len();
        let (_logged, err) = full_pipe();
        let process = start_import_to(err.into(), &folder.database(), words, &input);
        wait_until("the last commit", || run(&["export"], &folder.database()).stdout.len() > there);
        process.signal("KILL");
        process.output();
        let before = export(&folder.database(), "ndjson");
        let again = import(&folder.database(), words, &input);
        assert_eq!(again.status.code(), Some(1));
        assert!(text(again.stderr).starts_with("petstore: this input was imported on "));
        expect_imported(import(&folder.database(), &["--resume"], &input), "imported 0");
        assert_eq!(export(&folder.database(), "ndjson"), before);
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
    let made = python.args(["-c", script]).current_dir(folder.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let expected: Vec<String> = text(made.stdout).split_terminator('\0').map(str::to_owned).collect();
    let mut count = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let (path, other) = (entry.unwrap().path(), Folder::new());
        let output = run(&["import", "--create", path.to_str().unwrap()], &other.database());
        if path.ends_with("tabs.csv") {
            assert!(text(output.stderr).contains("its header is 'name\\tcategoryId': save it with commas"));
            continue;
        }
        expect_imported(output, "imported 300");
        let exported = export(&other.database(), "ndjson");
        let pets = exported.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        for ((i, pet), name) in (0..).zip(pets).zip(&expected) {
            assert_eq!((&pet["name"], &pet["categoryId"]), (&name.as_str().into(), &serde_json::json!(i)));
        }
        count += 1;
    }
    assert_eq!(count, 10);
}
