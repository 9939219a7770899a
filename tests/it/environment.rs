//! Settings that only the environment gives: secrets, themselves or in files, and variables that are misspelt.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::harness::{Folder, KEY, Server, expect_refusal, output, petstore};

/// Writes a file with a key that only its owner can read.
fn secret(folder: &Folder, content: &str, mode: u32) -> PathBuf {
    let path = folder.path().join("secret");
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

/// A start with the key in a file.
fn serve(folder: &Folder, path: &Path) -> Command {
    let mut command = petstore(&["--listen", "127.0.0.1:0"]);
    command
        .env("PETSTORE_DATABASE", folder.database())
        .env("PETSTORE_API_KEY_FILE", path);
    command
}

#[test]
fn api_key_comes_from_a_file_and_one_that_all_can_read_is_warned_of() {
    for (mode, warns) in [(0o600, false), (0o440, false), (0o644, true)] {
        let folder = Folder::new();
        let path = secret(&folder, &format!("{KEY}\n"), mode);
        let server = Server::start_in(folder, |command| {
            command
                .env_remove("PETSTORE_API_KEY")
                .env("PETSTORE_API_KEY_FILE", &path)
        });
        server
            .create(r#"{"name":"Rex","categoryId":1}"#)
            .expect(201);
        let logged = server.stop();
        let warning = format!(
            "every user of this machine can read the secret in {}",
            path.display()
        );
        assert_eq!(logged.contains(&warning), warns, "{mode:o}: {logged}");
    }
}

#[test]
fn unusable_file_of_a_secret_is_refused_with_its_variable() {
    let folder = Folder::new();
    let missing = folder.path().join("missing");
    let said = format!("PETSTORE_API_KEY_FILE: cannot use {missing:?}: ");
    expect_refusal(output(&mut serve(&folder, &missing)), 2, &said);
    for content in [
        "",
        "\n",
        "two words",
        "key \n",
        "key\r\r\n",
        "'key'\n",
        "\u{feff}key\n",
    ] {
        let path = secret(&folder, content, 0o600);
        expect_refusal(
            output(&mut serve(&folder, &path)),
            2,
            "PETSTORE_API_KEY_FILE: ",
        );
    }
    let mut odd = missing.clone().into_os_string();
    odd.push("\r");
    expect_refusal(
        output(&mut serve(&folder, odd.as_ref())),
        2,
        &format!("PETSTORE_API_KEY_FILE: cannot use {odd:?}: "),
    );
    let mut quoted = petstore(&["--listen", "127.0.0.1:0"]);
    quoted
        .env("PETSTORE_DATABASE", folder.database())
        .env("PETSTORE_API_KEY", "\"key\"");
    expect_refusal(
        output(&mut quoted),
        2,
        "PETSTORE_API_KEY has white space or quotes around it",
    );
    let both = output(serve(&folder, &missing).env("PETSTORE_API_KEY", KEY));
    expect_refusal(
        both,
        2,
        "PETSTORE_API_KEY and PETSTORE_API_KEY_FILE are both set",
    );
    assert!(!folder.database().exists());
}

#[cfg(feature = "cluster")]
#[test]
fn unusable_file_of_a_password_is_refused_with_its_variable() {
    let folder = Folder::new();
    let mut command = petstore(&["check", "--database", "rqlite://pets@127.0.0.1:1"]);
    command.env(
        "PETSTORE_DATABASE_PASSWORD_FILE",
        folder.path().join("missing"),
    );
    expect_refusal(
        output(&mut command),
        1,
        "PETSTORE_DATABASE_PASSWORD_FILE: cannot use \"",
    );
    command.env("PETSTORE_DATABASE_PASSWORD", "hush");
    expect_refusal(output(&mut command), 1, "are both set");
}

#[test]
fn unknown_variable_is_warned_of_with_the_nearest_one() {
    let server = Server::start_with(|command| {
        command
            .env("PETSTORE_WORKER", "2")
            .env("PETSTORE_SERVICE_HOST", "10.0.0.1")
    });
    let logged = server.stop();
    let warning = "PETSTORE_WORKER is unknown and has no effect; did you mean PETSTORE_WORKERS?";
    assert!(
        logged.contains(warning) && !logged.contains("PETSTORE_SERVICE"),
        "{logged}"
    );
    let folder = Folder::new();
    let added = output(
        petstore(&["key", "add", "ci"])
            .env("PETSTORE_DATABASE", folder.database())
            .env("PETSTORE_DATABSE", folder.path().join("other.db")),
    );
    assert!(
        String::from_utf8_lossy(&added.stderr).contains("did you mean PETSTORE_DATABASE?"),
        "{added:?}"
    );
}

#[test]
fn database_whose_name_a_file_of_variables_has_spoilt_is_not_made() {
    let folder = Folder::new();
    for left in ["\r", "\n", " ", "\t"] {
        for words in [
            &["--listen", "127.0.0.1:0"][..],
            &["key", "add", "ci", "--create"],
            &["check"],
        ] {
            let name = format!("{}{left}", folder.database().display());
            let refused = output(petstore(words).env("PETSTORE_DATABASE", name));
            expect_refusal(refused, 2, "PETSTORE_DATABASE has white space or ");
        }
    }
    let quoted = format!("\"{}\"", folder.database().display());
    expect_refusal(
        output(&mut petstore(&["check", "--database", &quoted])),
        2,
        "--database has white space or quotes around it",
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn empty_variables_count_as_not_set_and_flags_without_a_value_have_variables() {
    let folder = Folder::new();
    let required = output(
        petstore(&["--listen", "127.0.0.1:0"])
            .env("PETSTORE_DATABASE", folder.path().join("pets.db"))
            .env("PETSTORE_REQUIRE_DATABASE", "true"),
    );
    expect_refusal(required, 1, crate::messages::DATABASE_MISSING);
    let server = Server::start_in(folder, |command| {
        command
            .env("PETSTORE_REQUIRE_DATABASE", "false")
            .env("PETSTORE_API_KEY_FILE", "")
            .envs(
                [
                    "PETSTORE_LOG_FORMAT",
                    "PETSTORE_WORKERS",
                    "PETSTORE_BASE_URL",
                    "PETSTORE_READ_ONLY",
                ]
                .map(|name| (name, "")),
            )
    });
    server
        .create(r#"{"name":"Rex","categoryId":1}"#)
        .expect(201);
    let folder = server.kill();
    let server = Server::start_in(folder, |command| {
        command
            .env("PETSTORE_REQUIRE_DATABASE", "true")
            .env("PETSTORE_READ_ONLY", "true")
    });
    server
        .create(r#"{"name":"Rex","categoryId":1}"#)
        .expect(503);
}
