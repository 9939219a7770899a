//! A pet store inventory service over HTTP, on an embedded SQLite database, without an async runtime.
//!
//! ```no_run
//! # fn main() -> Result<(), petstore::Error> {
//! let config = petstore::Config::new().database("pets.db").api_key("secret");
//! let server = petstore::Server::start(config)?;
//! println!("listening on {}", server.address());
//! server.wait()
//! # }
//! ```
//!
//! [`Server`] runs the service. [`Inventory`] adds, reads and changes pets without HTTP. [`KeyRing`] manages API keys.
//! [`changes`] tells what has happened to pets. [`backup`], [`check`] and [`restore`] work on a whole database, [`export`] and [`Import`] on all its pets. Each
//! failure is an [`Error`] whose [`ErrorKind`] a program can match:
//!
//! ```
//! use petstore::{Config, ErrorKind, Server};
//!
//! match Server::start(Config::new().database("no/such/folder/pets.db")) {
//!     Err(error) if error.kind() == ErrorKind::DatabaseMissing => println!("create the folder first"),
//!     Err(error) => println!("{error}"),
//!     Ok(server) => drop(server),
//! }
//! ```
//!
//! # Embedding
//!
//! The default feature `cli` is for the executable alone: the command line, signals, the logger, the allocator and the
//! limit of open files. A program that embeds the library turns it off with `default-features = false` and decides these
//! things itself; `examples/embed.rs` is such a program, and `examples/own_routes.rs` one with routes of its own, on
//! tiny_http. The default feature `site` is the published project: the pages, custom domains and their DNS checks.
//!
//! If your program can have a limit on the size of files (`RLIMIT_FSIZE`, `ulimit -f`), let it ignore or handle SIGXFSZ, as
//! the executable does. Otherwise the system ends the whole process when a create reaches the limit; with the signal
//! ignored, that create gets a 503.
//!
//! The library logs through the crate `log`. The target `petstore::access` has a line for each request, at `info`, with
//! its parts as key-value pairs. The other targets are modules, such as `petstore_gate::gate` and `petstore::store`. An
//! operator should look at `warn` and `error`. With the feature `cluster`, a logger must omit the target `ureq_proto`
//! at the level `trace`: its lines contain the password of the database.
//!
//! All threads of the library have names, such as `gate`, `reader-0` and `writer`. Those of tiny_http, up to six a lane, have
//! the name of your program, and stay for five seconds after a stop, without work: a test that starts many servers in a
//! row needs a limit of threads for all of them.
//!
//! With the feature `cluster`, an address that begins with `rqlites://` needs cryptography for TLS, which the program chooses:
//! it calls [`CryptoProvider::install_default`](https://docs.rs/rustls/0.23/rustls/crypto/struct.CryptoProvider.html) first.
//!
//! Cargo links one SQLite (`links = "sqlite3"`), so no other package may bring its own, as diesel and sqlx do. It is compiled
//! as libsqlite3-sys does, unless your workspace has the lines `LIBSQLITE3_FLAGS` and `CFLAGS` of petstore's
//! `.cargo/config.toml`. They leave out what petstore does not use, such as FTS and R-trees.
//!
//! The executable uses mimalloc. An allocator that is slow when one thread frees the memory of another can cost a tenth
//! of the speed.
//!
//! # Inside
//!
//! A request passes three rooms: the package `petstore-gate` reads it from the network and passes it to a worker, `app` checks its key,
//! finds its operation and calls its handler, and the handler calls `store`. `src/README.md` describes them all.

// Code that only the site or the command line uses, and that needs no optional crate, is compiled without them too. Only
// the build with both warns of unused code, except for the modules that replace those of the site.
#![cfg_attr(
    not(all(feature = "site", feature = "cli")),
    allow(
        dead_code,
        unused_imports,
        reason = "only the site or the command line uses it"
    )
)]

mod admin;
mod app;
#[cfg(feature = "cli")]
mod cli;
mod config;
#[doc(hidden)]
#[cfg(all(any(test, fuzzing), feature = "site"))]
pub mod fuzzing;
mod model;
mod ops;
mod server;
mod site;
mod store;

pub use config::{Config, Ephemeral};
pub use model::{
    ApiKey, ChangeKind, KeyScope, NewPet, Pet, PetChange, PetCounts, PetPatch, PetStatus,
};
pub use ops::changes::{ChangeOptions, changes, changes_kept, keep_changes, newest_change};
pub use ops::inventory::{Inventory, ListOptions};
pub use ops::keys::{Expiry, KeyRing, RingState, fingerprint, keys as api_keys, new_api_key};
pub use ops::maintenance::{
    Backup, Restored, RestoredKeys, Soundness, Stop, backup, backup_to, check, restore,
};
pub use ops::pet_store::PetIds;
pub use ops::transfer::{Format, Import, ImportIds, ImportOptions, Imported, Source, export};
pub use petstore_base::error::{Error, ErrorKind, Expected};
pub use petstore_base::secret::Secret;
pub use petstore_gate::{Address, Deadlines, Listen, Network};
pub use petstore_hosting::Hosting;
#[cfg(feature = "site")]
pub use petstore_hosting::{
    Deploy, DnsRecord, Domain, DomainState, DomainView, Overview, Plan, Redirect, Refusal,
    RefusalCode, Removed,
};
pub use server::{HealthCheck, Server, Stopper, drill};
#[cfg(feature = "site")]
pub use site::hosting::Project;
pub use site::openapi::print as openapi;
#[cfg(feature = "cluster")]
pub use store::cluster::set_database_password;

/// The executable.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::run as main;
/// For the tests of the documents.
#[doc(hidden)]
pub use config::{SETTINGS, VARIABLES};

// The command line uses what this file names alone: the public interface, and these. `petstore` is its name for the crate.
#[cfg(feature = "cli")]
extern crate self as petstore;
#[cfg(feature = "cli")]
pub(crate) use {
    config::Setting,
    ops::changes::{change_head, print_change},
    petstore_base::clock::{parse_rfc3339, past, rfc3339, rfc3339_millis, unix_millis, unix_time},
    petstore_base::environment::{flaw, from_environment},
    petstore_base::files::{create_private, flush_folder, folder_of},
    petstore_base::json::Json,
    petstore_base::metrics::note_dropped_log_lines,
    petstore_base::threads::start_thread,
    store::cluster::{exists as database_exists, is_cluster},
};

/// Lists the method and the path of every operation of the HTTP interface, such as `("GET", "/v1/pets")`. `GET`
/// stands for `HEAD` as well. Those of [`Config::experimental`](Config#structfield.experimental) are left out.
///
/// ```
/// assert!(petstore::operations().any(|operation| operation == ("POST", "/v1/pets")));
/// ```
pub fn operations() -> impl Iterator<Item = (&'static str, &'static str)> {
    app::api::router(false)
        .operations()
        .map(|operation| (operation.method(), operation.path))
}
