//! Advice for the operator after a failure. The library's messages describe the failure; this file adds flags and
//! commands, by the kind of the error.
//!
//! No advice may lose data: none may say to delete or overwrite a file.

use std::io::ErrorKind::NotFound;
use std::path::Path;

use petstore::{Error, ErrorKind, SETTINGS};

use super::command::Invocation;
use super::manual::quote;

/// Returns the message of an error, with the advice for its kind, on one line.
pub fn line(error: &Error, call: &Invocation) -> String {
    match on_service(error, call).or_else(|| advice(error, call)) {
        Some(advice) => format!("{error}; {advice}"),
        None => error.to_string(),
    }
}

/// The database of the service of this machine, which its settings name, or the unit; `None` if there is none, and empty
/// if it is not known for sure. A user who may not look there gets it too.
pub fn database_of_service() -> Option<String> {
    let settings = std::fs::read_to_string("/etc/petstore.env");
    if settings
        .as_ref()
        .is_err_and(|error| error.kind() != NotFound)
        || Path::new("/etc/systemd/system/petstore.service.d").exists()
    {
        return Some(String::new());
    }
    let settings = settings.unwrap_or_default();
    let mut given = settings.lines().filter_map(|line| line.split_once('='));
    // What systemd reads in another way, such as a backslash, is the name of no file.
    let path = given
        .rfind(|(name, _)| name.trim() == "PETSTORE_DATABASE")
        .map_or("/var/lib/petstore/petstore.db", |(_, path)| {
            path.trim().trim_matches(['"', '\''])
        });
    Path::new(path)
        .try_exists()
        .unwrap_or(true)
        .then(|| path.to_owned())
}

/// If there is no database in this folder, returns the command with that of the service.
fn on_service(error: &Error, call: &Invocation) -> Option<String> {
    let has_file = call.command == "check" && !call.operands.is_empty();
    if error.kind() != ErrorKind::DatabaseMissing || has_file || call.is_on("database") {
        return None;
    }
    let path = quote(&database_of_service().filter(|path| !path.is_empty())?);
    let words = std::env::args_os().skip(1);
    let words: String = words
        .map(|word| format!(" {}", quote(&word.to_string_lossy())))
        .collect();
    Some(format!(
        "to use that of the service: petstore --database {path}{words}"
    ))
}

/// The flag that names the database of a call, for a command that the operator may paste; empty for the default.
pub fn database_flag(call: &Invocation) -> String {
    call.setting("database")
        .map_or(String::new(), |path| format!(" --database {}", quote(path)))
}

fn advice(error: &Error, call: &Invocation) -> Option<String> {
    // A command with a file as its operand, such as `check FILE`, may fail because of that file, not the database.
    let has_file = matches!(call.command, "check" | "restore") && !call.operands.is_empty();
    let text = match error.kind() {
        ErrorKind::Config(field) => {
            let flag = field.replace('_', "-");
            let has_flag = SETTINGS
                .iter()
                .any(|setting| setting.flag == flag && !setting.is_switch());
            return has_flag.then(|| format!("change --{flag}"));
        }
        ErrorKind::AddressInUse => "stop the program that listens there, or choose another address",
        ErrorKind::AddressUnavailable => "choose another address",
        ErrorKind::DatabaseLocked => "stop the other process, or try again",
        ErrorKind::DatabaseInUse => "stop the service first",
        ErrorKind::DatabaseNewer => "use the version that wrote it, or a later one",
        ErrorKind::DatabaseUnreachable => {
            "check --database, and that this machine reaches most nodes"
        }
        ErrorKind::OutcomeUnknown => "find out whether it was done before you repeat it",
        ErrorKind::BackupUnsound => "choose another backup",
        ErrorKind::ClusterOutdated => {
            "wait for a restore, or run a killed one again; else restart the service"
        }
        ErrorKind::DatabaseMissing
            if matches!(call.command, "import" | "key add") && !call.has("create") =>
        {
            "give the right file with --database, or make it with --create"
        }
        ErrorKind::DatabaseMissing if !has_file => "give the right file with --database",
        ErrorKind::DatabaseForeign if !has_file => "give another file with --database",
        ErrorKind::DatabaseDamaged | ErrorKind::SchemaChanged if call.command == "backup" => {
            "petstore check{database} shows what is wrong"
        }
        ErrorKind::DatabaseDamaged if call.command == "check" && !has_file => {
            "check again: if that finds nothing, the disk had failed to read. Otherwise restore a backup with \
             petstore restore FILE{database}, which keeps the damaged database under another name"
        }
        // SQLite may report a failed read of the disk as damage.
        ErrorKind::DatabaseDamaged if !has_file => {
            "run petstore check{database}: if that finds nothing, the disk had failed to read; try again. Otherwise restore a backup with \
             petstore restore FILE{database}, which keeps the damaged database under another name"
        }
        ErrorKind::SchemaChanged if error.to_string().contains(" was rebuilt, ") => {
            "move the pets: petstore export{database}, then petstore import --keep-ids --create into a new database, which leaves keys, \
             site and domains behind"
        }
        ErrorKind::SchemaChanged => "repair it with sqlite3, and try again",
        ErrorKind::DatabaseMoved if !call.config.read_only => {
            "give the file its name back, next to its -wal, and start again; if it is gone, restore a backup, or what the service has saved next to it: petstore restore FILE{database}"
        }
        ErrorKind::ClusterUnsupported => {
            "build petstore with it: cargo build --release --features cluster"
        }
        ErrorKind::PasswordRefused => {
            "compare PETSTORE_DATABASE_PASSWORD with auth.json on all nodes"
        }
        ErrorKind::RqliteOlder => {
            "upgrade rqlite, or go on with ?allow-old at the end of --database"
        }
        ErrorKind::DatabaseNotNew => {
            "import without --keep-ids, or choose a new database with --database"
        }
        ErrorKind::LogForeign => {
            "first copy both files into another folder, and look at them there with sqlite3, without the -wal or -journal and then \
             with it. Then put back what belongs together, or restore a backup: petstore restore FILE{database} keeps both files"
        }
        ErrorKind::LogOrphaned => {
            "give the database its name back, next to its -wal or -journal; if it is gone, move that file into another folder, and \
             restore a backup"
        }
        ErrorKind::KeyUnknown => "petstore key list{database} shows the keys",
        ErrorKind::KeyExists => "choose another name; petstore key rotate{database} replaces a key",
        ErrorKind::KeyExpired => "set the expiry of the new key with --expires",
        ErrorKind::PetExists => {
            "--update changes these pets, and --new-ids adds all of the input as new pets"
        }
        ErrorKind::ImportedBefore => "add it once more with --again",
        ErrorKind::ChangesNotKept => {
            "petstore changes keep 90d{database} records them from then on"
        }
        ErrorKind::InvalidRows => {
            "correct the input or --format, or leave these lines out with --skip-invalid"
        }
        ErrorKind::FileExists if call.command == "serve" => {
            "move the file away, or choose another name"
        }
        ErrorKind::FileExists => "choose another name",
        ErrorKind::Conflict => "try again",
        ErrorKind::PermissionDenied => {
            "run petstore as a user who is allowed to, as the service does"
        }
        ErrorKind::FileSystemReadOnly => {
            "mount it for writing, or name it in ReadWritePaths= of the unit; or the disk fails: see dmesg"
        }
        ErrorKind::DiskFull => {
            "make room, but do not delete the -wal and -shm files of the database"
        }
        _ => return None,
    };
    Some(text.replace("{database}", &database_flag(call)))
}

#[cfg(test)]
mod tests {
    use super::super::all;
    use super::*;
    use petstore::Config;

    /// Kinds with advice.
    const KINDS: &[ErrorKind] = &[
        ErrorKind::Config("listen"),
        ErrorKind::AddressInUse,
        ErrorKind::AddressUnavailable,
        ErrorKind::DatabaseLocked,
        ErrorKind::DatabaseInUse,
        ErrorKind::DatabaseNewer,
        ErrorKind::DatabaseUnreachable,
        ErrorKind::BackupUnsound,
        ErrorKind::Conflict,
        ErrorKind::DatabaseMissing,
        ErrorKind::DatabaseForeign,
        ErrorKind::DatabaseDamaged,
        ErrorKind::SchemaChanged,
        ErrorKind::DatabaseMoved,
        ErrorKind::ClusterOutdated,
        ErrorKind::RqliteOlder,
        ErrorKind::PasswordRefused,
        ErrorKind::DatabaseNotNew,
        ErrorKind::LogForeign,
        ErrorKind::LogOrphaned,
        ErrorKind::KeyUnknown,
        ErrorKind::KeyExists,
        ErrorKind::KeyExpired,
        ErrorKind::PetExists,
        ErrorKind::ImportedBefore,
        ErrorKind::ChangesNotKept,
        ErrorKind::InvalidRows,
        ErrorKind::FileExists,
        ErrorKind::PermissionDenied,
        ErrorKind::FileSystemReadOnly,
        ErrorKind::DiskFull,
    ];

    fn call(
        command: &'static str,
        operands: &[&str],
        flags: &[(&'static str, &str)],
    ) -> Invocation {
        Invocation {
            child: Vec::new(),
            command,
            config: Config::default(),
            settings: Vec::new(),
            operands: operands.iter().map(|word| (*word).to_owned()).collect(),
            flags: flags
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn advice_names_only_flags_and_commands_that_exist() {
        let is_flag = |name: &str| {
            SETTINGS.iter().any(|setting| setting.flag == name)
                || all()
                    .flat_map(|command| command.flags)
                    .any(|flag| flag.name == name)
        };
        let calls = [call("serve", &[], &[]), call("import", &[], &[])];
        for (kind, call) in KINDS
            .iter()
            .flat_map(|kind| calls.iter().map(move |call| (*kind, call)))
        {
            let advice = advice(&Error::new(kind, ""), call).expect("there is advice");
            let words: Vec<&str> = advice.split([' ', ',', ':', ';']).collect();
            for (i, word) in words.iter().enumerate() {
                if let Some(name) = word.strip_prefix("--") {
                    assert!(is_flag(name), "{kind:?}: {advice}");
                }
                if *word == "petstore" && words.get(i + 1) != Some(&"as") {
                    let named = |command: &str| {
                        words[i + 1..].starts_with(&command.split(' ').collect::<Vec<_>>())
                    };
                    assert!(
                        all().any(|command| named(command.name)),
                        "{kind:?}: {advice}"
                    );
                }
            }
        }
    }

    #[test]
    fn backup_that_is_not_sound_is_looked_into() {
        let backup = call("backup", &[], &[("to", "folder")]);
        let found = advice(&Error::new(ErrorKind::DatabaseDamaged, ""), &backup);
        assert_eq!(found.unwrap(), "petstore check shows what is wrong");
    }

    #[test]
    fn file_of_the_command_is_not_the_database() {
        for kind in [
            ErrorKind::DatabaseMissing,
            ErrorKind::DatabaseForeign,
            ErrorKind::DatabaseDamaged,
        ] {
            let error = Error::new(kind, "");
            assert_eq!(
                advice(&error, &call("check", &["copy.db"], &[])),
                None,
                "{kind:?}"
            );
            assert!(
                advice(&error, &call("check", &[], &[])).is_some(),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn same_failure_is_mended_in_another_way_elsewhere() {
        let exists = Error::new(ErrorKind::FileExists, "");
        assert_eq!(
            advice(&exists, &call("backup", &[], &[])).unwrap(),
            "choose another name"
        );
        assert!(
            advice(&exists, &call("serve", &[], &[]))
                .unwrap()
                .starts_with("move the file away, ")
        );
        let moved = Error::new(ErrorKind::DatabaseMoved, "");
        let mut reader = call("serve", &[], &[]);
        reader.config.read_only = true;
        assert_eq!(advice(&moved, &reader), None);
        let found = advice(&moved, &call("serve", &[], &[])).unwrap();
        assert!(
            found.starts_with("give the file its name back, "),
            "{found}"
        );
    }

    #[test]
    fn no_flag_is_named_for_a_field_that_has_none() {
        let call = call("serve", &[], &[]);
        assert_eq!(
            advice(&Error::new(ErrorKind::Config("ephemeral"), ""), &call),
            None
        );
        let found = advice(&Error::new(ErrorKind::Config("max_connections"), ""), &call);
        assert_eq!(found.as_deref(), Some("change --max-connections"));
    }

    #[test]
    fn message_comes_before_the_advice() {
        let error = Error::new(ErrorKind::KeyUnknown, "there is no key named 'ci'");
        let line = line(&error, &call("key revoke", &["ci"], &[]));
        assert_eq!(
            line,
            "there is no key named 'ci'; petstore key list shows the keys"
        );
    }
}
