//! The kinds of the library's errors, as an embedding program meets them. None of these calls goes through the
//! command line.

use std::net::TcpListener;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use petstore::{
    ChangeOptions, Config, Error, ErrorKind, Expiry, Import, ImportIds, ImportOptions, Inventory,
    KeyRing, KeyScope, Listen, NewPet, PetPatch, Server, Source, changes, keep_changes,
};

use support::harness::{Folder, change};

/// A configuration for this database and a free port.
fn config(database: PathBuf) -> Config {
    Config::new().listen(([127, 0, 0, 1], 0)).database(database)
}

/// The kind of the failure to start.
#[track_caller]
fn start(database: PathBuf, change: impl FnOnce(&mut Config)) -> ErrorKind {
    let mut config = config(database);
    change(&mut config);
    Server::start(config)
        .expect_err("the start must fail")
        .kind()
}

/// A new database with one key, named `ci`.
fn new_database(folder: &Folder) -> PathBuf {
    let mut ring = KeyRing::open(&folder.database()).unwrap();
    ring.add("ci", None, KeyScope::Full, |_| Ok(())).unwrap();
    folder.database()
}

#[track_caller]
fn expect<T>(result: Result<T, Error>, kind: ErrorKind) {
    assert_eq!(result.err().expect("the task must fail").kind(), kind);
}

#[test]
fn start_distinguishes_settings_and_addresses() {
    let folder = Folder::new();
    let database = || folder.database();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let deaf: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let key = |config: &mut Config| config.api_key = Some("two words".into());
    assert_eq!(start(database(), key), ErrorKind::Config("api_key"));
    assert_eq!(
        start(database(), |config| config.workers = 0),
        ErrorKind::Config("workers")
    );
    assert_eq!(
        start(database(), |config| config.listen = address.into()),
        ErrorKind::AddressInUse
    );
    assert_eq!(
        start(database(), |config| config.admin = Some(address.into())),
        ErrorKind::AddressInUse
    );
    // Reserved for documentation (RFC 5737).
    let elsewhere = |config: &mut Config| config.listen = ([192, 0, 2, 1], 80).into();
    assert_eq!(start(database(), elsewhere), ErrorKind::AddressUnavailable);
    let passed = |config: &mut Config| config.listen = Listen::Socket(Arc::new(deaf));
    assert_eq!(start(database(), passed), ErrorKind::SocketUnusable);
    assert_eq!(
        start(database(), |config| config.open_files = Some(9)),
        ErrorKind::Resources
    );
    assert!(!database().exists());
}

#[test]
fn start_distinguishes_databases() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    let refused = |database: PathBuf| start(database, |_| {});
    assert_eq!(refused(at("nowhere/pets.db")), ErrorKind::DatabaseMissing);
    std::fs::write(
        at("text"),
        "not a database, but long enough to be looked at",
    )
    .unwrap();
    assert_eq!(refused(at("text")), ErrorKind::DatabaseForeign);
    change(&at("theirs"), "CREATE TABLE theirs (x)");
    assert_eq!(refused(at("theirs")), ErrorKind::DatabaseForeign);
    std::fs::write(at("lost-wal"), "log").unwrap();
    assert_eq!(refused(at("lost")), ErrorKind::LogOrphaned);

    let database = new_database(&folder);
    let server = Server::start(config(database.clone())).unwrap();
    assert_eq!(refused(database.clone()), ErrorKind::DatabaseInUse);
    drop(server);
    change(&database, "DROP INDEX pets_by_status");
    assert_eq!(refused(database.clone()), ErrorKind::SchemaChanged);
    change(&database, "DROP TABLE api_keys");
    assert_eq!(refused(database.clone()), ErrorKind::DatabaseDamaged);
    change(&database, "PRAGMA user_version = 99");
    assert_eq!(refused(database), ErrorKind::DatabaseNewer);
}

#[test]
fn lost_database_is_why_a_service_has_ended() {
    let folder = Folder::new();
    let server = Server::start(config(folder.database())).unwrap();
    std::fs::rename(folder.database(), folder.path().join("away")).unwrap();
    expect(server.wait(), ErrorKind::DatabaseMoved);
}

#[test]
fn keys_and_pets_are_distinguished() {
    let folder = Folder::new();
    expect(
        petstore::api_keys(&folder.database()),
        ErrorKind::DatabaseMissing,
    );
    expect(
        Inventory::open_to_read(&folder.database()),
        ErrorKind::DatabaseMissing,
    );
    let database = new_database(&folder);
    let mut ring = KeyRing::open(&database).unwrap();
    let ready = |_: &str| Ok(());
    expect(
        ring.add("ci", None, KeyScope::Full, ready),
        ErrorKind::KeyExists,
    );
    expect(
        ring.add("a b", None, KeyScope::Full, ready),
        ErrorKind::InvalidInput,
    );
    expect(
        ring.add("old", Some(1), KeyScope::Full, ready),
        ErrorKind::InvalidInput,
    );
    expect(
        ring.rotate("bob", Duration::ZERO, Expiry::Kept, ready),
        ErrorKind::KeyUnknown,
    );
    expect(ring.revoke("bob", None), ErrorKind::KeyUnknown);
    expect(ring.revoke("ci", Some("x")), ErrorKind::KeyUnknown);
    change(&database, "UPDATE api_keys SET expires_at = 1");
    expect(
        ring.rotate("ci", Duration::ZERO, Expiry::Kept, ready),
        ErrorKind::KeyExpired,
    );
    let mut inventory = Inventory::open(&database).unwrap();
    expect(
        inventory.update(&[1], &PetPatch::new()),
        ErrorKind::PetUnknown,
    );
    expect(inventory.delete(&[1]), ErrorKind::PetUnknown);
}

#[test]
fn failures_of_backups_are_distinguished() {
    let folder = Folder::new();
    let (copy, text) = (folder.path().join("copy.db"), folder.path().join("text"));
    std::fs::write(&text, "not a database, but long enough to be looked at").unwrap();
    let backup = |file: &Path| petstore::backup(&folder.database(), file, &|| false);
    let keys = petstore::RestoredKeys::Automatic;
    let restore = |file: &Path| petstore::restore(file, &folder.database(), keys, &|| false);
    expect(backup(&copy), ErrorKind::DatabaseMissing);
    let database = new_database(&folder);
    expect(
        backup(&folder.path().join("nowhere/copy.db")),
        ErrorKind::FileMissing,
    );
    expect(
        petstore::backup(&database, &copy, &|| true),
        ErrorKind::Interrupted,
    );
    assert!(!copy.exists());
    backup(&copy).unwrap();
    expect(backup(&copy), ErrorKind::FileExists);
    expect(restore(&text), ErrorKind::BackupUnsound);
    expect(restore(&folder.path().join("none")), ErrorKind::FileMissing);
    change(&copy, "DROP INDEX pets_by_status");
    expect(restore(&copy), ErrorKind::SchemaChanged);
    change(&copy, "DROP TABLE api_keys");
    expect(restore(&copy), ErrorKind::BackupUnsound);
    change(&copy, "PRAGMA user_version = 99");
    expect(restore(&copy), ErrorKind::DatabaseNewer);
    expect(petstore::check(&text), ErrorKind::DatabaseForeign);
}

#[test]
fn failures_of_the_record_are_distinguished() {
    let folder = Folder::new();
    let mut inventory = Inventory::open(&folder.database()).unwrap();
    inventory.add(&NewPet::new("Rex", 1)).unwrap();
    let read = |after| {
        let mut options = ChangeOptions::default();
        options.after = after;
        changes(&folder.database(), &options, |_| ControlFlow::Continue(()))
    };
    expect(read(None), ErrorKind::ChangesNotKept);
    keep_changes(&folder.database(), Some(Duration::from_secs(60))).unwrap();
    assert_eq!(read(None).unwrap(), 1);
    expect(read(Some(0)), ErrorKind::ChangesGone);
}

#[test]
fn failures_of_imports_are_distinguished() {
    let folder = Folder::new();
    let check = |text: &'static str, options: ImportOptions| {
        let source = Source::Stream(Box::new(text.as_bytes()));
        Import::check(&folder.database(), source, options, |_, _| {})
    };
    let keeping_ids = || {
        let mut options = ImportOptions::default();
        options.ids = ImportIds::Keep;
        options
    };
    let pet = "{\"id\":1,\"name\":\"Rex\",\"categoryId\":1}\n";
    expect(
        check("{}", ImportOptions::default()),
        ErrorKind::InvalidRows,
    );
    expect(
        check("name,categoryId", ImportOptions::default()),
        ErrorKind::InvalidInput,
    );
    let missing = Source::File(folder.path().join("none"));
    let checked = Import::check(
        &folder.database(),
        missing,
        ImportOptions::default(),
        |_, _| {},
    );
    expect(checked, ErrorKind::FileMissing);
    check(pet, keeping_ids()).unwrap().write().unwrap();
    expect(check(pet, keeping_ids()), ErrorKind::ImportedBefore);
    let mut other = ImportOptions::default();
    expect(
        check(
            "{\"id\":1,\"name\":\"Tom\",\"categoryId\":1}",
            other.clone(),
        ),
        ErrorKind::PetExists,
    );
    other.ids = ImportIds::Update;
    expect(check("{\"id\":2}", other), ErrorKind::PetUnknown);
    let mut again = keeping_ids();
    again.again = true;
    expect(check(pet, again), ErrorKind::DatabaseNotNew);
    let mut dry_run = ImportOptions::default();
    dry_run.dry_run = true;
    let import = check("{\"name\":\"Tom\",\"categoryId\":1}", dry_run).unwrap();
    assert_eq!(import.preview().added, 1);
    assert_eq!(import.write().unwrap().ids, None);
    let mut pets = Vec::new();
    petstore::export(&folder.database(), petstore::Format::Ndjson, &mut pets).unwrap();
    assert_eq!(pets, pet.as_bytes());
}
