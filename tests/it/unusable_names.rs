//! Names that no file can have: each gets a message of its own.

use std::process::{Command, Output};

use support::harness::{Folder, add_key, expect_refusal, is_root, output, program, run};

const TOO_LONG: &str = ": File name too long";

#[test]
fn name_that_is_too_long_is_reported_as_that() {
    let folder = Folder::new();
    add_key(&folder.database(), &["ci"]);
    let long = folder.path().join("x".repeat(300));
    let long = long.to_str().unwrap();
    // Short enough itself, but not for the file that becomes it.
    let almost = folder.path().join("x".repeat(250));
    for words in [
        &["backup", long][..],
        &["backup", almost.to_str().unwrap()],
        &["check", long],
        &["restore", long],
        &["import", long],
        &["--listen", "127.0.0.1:0", "--database", long],
    ] {
        expect_refusal(run(words, &folder.database()), 1, TOO_LONG);
    }
}

#[test]
fn name_that_sqlite_gives_to_a_log_or_a_journal_is_refused() {
    let folder = Folder::new();
    add_key(&folder.database(), &["ci"]);
    for end in ["-wal", "-shm", "-journal"] {
        let name = folder.path().join(format!("other.db{end}"));
        let said = "-wal, -shm or -journal";
        expect_refusal(
            run(&["backup", name.to_str().unwrap()], &folder.database()),
            1,
            said,
        );
        for words in [
            &["--listen", "127.0.0.1:0"][..],
            &["restore", "backup.db"],
            &["import", "--create"],
            &["key", "add", "ci", "--create"],
        ] {
            expect_refusal(run(words, &name), 2, said);
        }
        assert!(!name.exists());
    }
}

/// Runs a command without `--database`, on a machine that a script has prepared.
fn on_machine(script: &str, words: &[&str], folder: &Folder) -> Output {
    let mut command = Command::new("unshare");
    // Whoever is not root becomes it in a namespace of users.
    command
        .args(if is_root() { &["-m"][..] } else { &["-rm"] })
        .args(["sh", "-ec"])
        .arg(format!(
            r#"mount -t tmpfs none /var/lib; mount -t tmpfs none /etc; {script} exec "$0" "$@""#
        ))
        .arg(program())
        .args(words)
        .env_remove("PETSTORE_DATABASE")
        .current_dir(folder.path());
    output(&mut command)
}

/// The commands in the code blocks of a page of the guide, without what follows a pipe or a redirection.
fn commands_of(page: &str) -> Vec<String> {
    let page = page.replace("\\\n", " ");
    let blocks = page.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(|block| block.lines().skip(1));
    let commands = lines.filter_map(|line| line.trim().strip_prefix("petstore "));
    commands
        // A service would not end.
        .filter(|command| {
            !["serve", "-", "listening"]
                .iter()
                .any(|it| command.starts_with(it))
        })
        .map(|command| command.replace(" --follow", ""))
        .map(|command| {
            let mut quote = None;
            let is_outside = |c: char| {
                match quote {
                    None if matches!(c, '"' | '\'') => quote = Some(c),
                    Some(open) if c == open => quote = None,
                    _ => {}
                }
                quote.is_none() && matches!(c, '|' | '>' | '<')
            };
            let end = command.find(is_outside).unwrap_or(command.len());
            command[..end].trim().to_owned()
        })
        .collect()
}

#[test]
fn every_command_of_the_guide_runs_where_it_is_pasted() {
    let folder = Folder::new();
    let database = folder.path().join("of-the-service.db");
    add_key(&database, &["ci", "--create"]);
    let mut count = 0;
    for page in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/site/pages")).unwrap() {
        let path = page.unwrap().path();
        // The nodes of a cluster have other paths.
        if path.ends_with("cluster.md") {
            continue;
        }
        for command in commands_of(&std::fs::read_to_string(&path).unwrap()) {
            count += 1;
            let script = format!(
                r#"
                mkdir /var/lib/petstore
                cp of-the-service.db /var/lib/petstore/petstore.db
                echo 0 >told
                petstore() {{ "$program" "$@" </dev/null >/dev/null; }}
                program=$0
                petstore {command} 2>said && exit
                [ $? = 1 ]
                cat said >&2
                line=$(sed -n 's/.*to use that of the service: petstore//p' said)
                [ -n "$line" ] || exit 1
                eval "petstore $line"
                exit
                "#
            );
            let ran = on_machine(&script, &[], &folder);
            let said = String::from_utf8_lossy(&ran.stderr);
            let told = format!("{}: petstore {command}\n{said}", path.display());
            assert_ne!(ran.status.code(), Some(2), "{told}");
        }
    }
    assert!(count > 50, "{count} commands");
}

#[test]
fn missing_database_is_named_with_the_folder_in_which_it_was_looked_for() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("other.db"), "").unwrap();
    let place = std::fs::canonicalize(folder.path()).unwrap();
    let said = format!(
        "there is no database petstore.db in the folder {}; ",
        place.display()
    );
    let installed = "mkdir /var/lib/petstore; touch /var/lib/petstore/petstore.db;";
    let moved = format!(
        "{installed} echo 'PETSTORE_DATABASE=\"{}/other.db\"' >/etc/petstore.env;",
        place.display()
    );
    for (words, typed) in [
        (&["key", "list"][..], "key list"),
        (&["export"], "export"),
        (&["backup", "a copy.db"], "backup 'a copy.db'"),
        (&["check"], "check"),
        (&["pet", "delete", "1"], "pet delete 1"),
        (&["restore", "backup.db"], "restore backup.db"),
    ] {
        let expect = |script: &str, advice: &str| {
            let refused = on_machine(script, words, &folder);
            expect_refusal(refused, 1, &format!("{said}{advice}\n"));
        };
        if words[0] != "restore" {
            expect("", "give the right file with --database");
        }
        let paste = "to use that of the service: petstore --database";
        expect(
            installed,
            &format!("{paste} /var/lib/petstore/petstore.db {typed}"),
        );
        expect(
            &moved,
            &format!("{paste} {}/other.db {typed}", place.display()),
        );
    }
    assert!(!folder.path().join("petstore.db").exists());
}

#[test]
fn database_of_the_service_is_only_named_if_it_is_known_for_sure() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("other db"), "").unwrap();
    let other = std::fs::canonicalize(folder.path())
        .unwrap()
        .join("other db");
    let other = other.display();
    let name = |script: &str| {
        let script =
            format!("mkdir /var/lib/petstore; touch /var/lib/petstore/petstore.db; {script};");
        let refused = on_machine(&script, &["check"], &folder);
        let line = String::from_utf8(refused.stderr).unwrap();
        let named = line.split_once("petstore --database ");
        named.map(|(_, named)| named.trim_end().to_owned())
    };
    let set = |line: &str| name(&format!("cat >/etc/petstore.env <<'E'\n{line}\nE\n:"));
    let (known, unit) = (
        Some(format!("'{other}' check")),
        Some("/var/lib/petstore/petstore.db check".to_owned()),
    );
    assert_eq!(set("#PETSTORE_DATABASE=/srv/x"), unit);
    for line in [
        format!("PETSTORE_DATABASE={other}"),
        format!(" PETSTORE_DATABASE = {other} "),
        format!("PETSTORE_DATABASE=/srv/x\nPETSTORE_DATABASE='{other}'"),
        format!("PETSTORE_DATABASE=\"{other}\"\r"),
    ] {
        assert_eq!(set(&line), known, "{line}");
    }
    for value in [
        "",
        "pets.db",
        "/srv/my\\ pets.db",
        "\"/srv/a\"'b'",
        "/srv/a\\",
    ] {
        assert_eq!(set(&format!("PETSTORE_DATABASE={value}")), None, "{value}");
    }
    for script in [
        "mkdir /etc/petstore.env",
        "mkdir -p /etc/systemd/system/petstore.service.d",
    ] {
        assert_eq!(name(script), None, "{script}");
        let restored = on_machine(&format!("{script};"), &["restore", "backup.db"], &folder);
        expect_refusal(
            restored,
            1,
            "there is no database petstore.db in the folder",
        );
    }
}
