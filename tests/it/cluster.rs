//! The address of a cluster as the database, in a build that cannot open one.
#![cfg(not(feature = "cluster"))]

use petstore::{
    Config, ErrorKind, Format, Import, ImportOptions, Inventory, KeyRing, Server, Source,
};

use support::harness::{Folder, Process, expect_refusal, petstore};

/// The commands that work on a database, each with operands that it takes.
const COMMANDS: &[&str] = &[
    "serve",
    "serve --read-only",
    "key add ci",
    "key list",
    "key rotate ci",
    "key revoke ci",
    "backup copy.db",
    "backup --to .",
    "check",
    "restore backup.db",
    "pet status 1 sold",
    "pet delete 1",
    "export",
    "import pets.ndjson",
];
#[cfg(feature = "site")]
const OF_SITE: &[&str] = &[
    "site plan",
    "site deploy .",
    "domain add pets.example",
    "domain list",
    "domain verify pets.example",
    "domain remove pets.example",
];
#[cfg(not(feature = "site"))]
const OF_SITE: &[&str] = &[];

#[test]
fn every_command_refuses_a_cluster_in_one_line_that_says_how_to_build_it() {
    let folder = Folder::new();
    std::fs::write(
        folder.path().join("pets.ndjson"),
        r#"{"name":"Rex","categoryId":1}"#,
    )
    .unwrap();
    std::fs::write(folder.path().join("backup.db"), "").unwrap();
    // A password must not be in the line, nor an address that only looks right.
    for address in [
        "rqlite://one,two,three/",
        "rqlites://pets:hush@one",
        "RQLITE://",
    ] {
        for command in COMMANDS.iter().chain(OF_SITE) {
            let words: Vec<&str> = command.split(' ').collect();
            let mut program = petstore(&words);
            program
                .current_dir(folder.path())
                .env("PETSTORE_DATABASE", address);
            if command.starts_with("serve") {
                program
                    .env("PETSTORE_LISTEN", "127.0.0.1:0")
                    .env("PETSTORE_API_KEY", "key");
            }
            let output = Process::start(&mut program).output();
            assert!(
                !String::from_utf8_lossy(&output.stderr).contains("hush"),
                "{command}"
            );
            expect_refusal(output, 1, "cargo build --release --features cluster");
        }
        let names = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, ["backup.db", "pets.ndjson"], "{address}");
    }
}

#[test]
fn embedding_program_gets_an_error_for_a_cluster() {
    let config = Config::new()
        .listen(([127, 0, 0, 1], 0))
        .database("rqlite://one,two,three/");
    let database = config.database.as_path();
    let go_on = &|| false;
    let source = Source::File("/dev/null".into());
    let kinds = [
        KeyRing::open(database).err(),
        petstore::api_keys(database).err(),
        petstore::backup(database, "copy.db".as_ref(), go_on).err(),
        petstore::check(database).err(),
        petstore::restore(
            "copy.db".as_ref(),
            database,
            petstore::RestoredKeys::Automatic,
            go_on,
        )
        .err(),
        petstore::export(database, Format::Csv, &mut Vec::new()).err(),
        Inventory::open(database).err(),
        Import::check(database, source, ImportOptions::default(), |_, _| {}).err(),
        Server::start(config.clone()).err(),
    ];
    for (i, error) in kinds.into_iter().enumerate() {
        assert_eq!(
            error.map(|error| error.kind()),
            Some(ErrorKind::ClusterUnsupported),
            "{i}"
        );
    }
}
