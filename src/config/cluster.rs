//! How an rqlite cluster is reached, in addition to its address.

use std::path::PathBuf;

use super::Config;
use super::setting::{Setting, put};
use crate::error::is_cluster;

/// What `--database` is.
pub const DATABASE: &str = if cfg!(feature = "cluster") {
    "the SQLite file; serve, import and key add create it if it does not exist; or a cluster: rqlite://USER@HOST,HOST,HOST/"
} else {
    "the SQLite file; serve, import and key add create it if it does not exist"
};

/// The environment variables with the password.
pub const PASSWORD: [&str; 3] = ["PETSTORE_DATABASE_PASSWORD", "the password of the user of a cluster", ""];
pub const PASSWORD_FILE: [&str; 3] =
    ["PETSTORE_DATABASE_PASSWORD_FILE", "a file with the password, in place of the password itself", ""];

pub const CA: Setting = Setting::new("database-ca", "FILE")
    .built_if(cfg!(feature = "cluster"))
    .help("certificate authorities for a cluster at rqlites://, in PEM")
    .default("those of the system")
    .set(|config, text| {
        let file = Some(text).filter(|text| !text.is_empty());
        put(&mut config.database_ca, file.map(|file| Some(PathBuf::from(file))), "a file name")
    });

pub const ALLOW_OLD: Setting = Setting::new("allow-old-rqlite", "")
    .built_if(cfg!(feature = "cluster"))
    .help("accept rqlite before 9.4, also during an upgrade: reads are slower, and a power cut can lose acknowledged pets")
    .set(|config, text| {
        put(
            &mut config.allow_old_rqlite,
            ["0", "1"].iter().position(|known| *known == text).map(|i| i == 1),
            "0 or 1",
        )
    });

impl Config {
    /// Moves the cluster settings into the address, so that functions need only the address. They replace the options
    /// that it has. A file stays as it is.
    ///
    /// ```
    /// let mut config = petstore::Config::default();
    /// config.database = "rqlites://one,two,three".into();
    /// config.allow_old_rqlite = true;
    /// config.database_ca = Some("ca.pem".into());
    /// config.join_access();
    /// assert_eq!(config.database, std::path::Path::new("rqlites://one,two,three?allow-old&ca=ca.pem"));
    /// ```
    pub fn join_access(&mut self) {
        let allow = std::mem::take(&mut self.allow_old_rqlite).then(|| "allow-old".to_owned());
        // The file comes last, because its name may have any character.
        let ca = self.database_ca.take().map(|file| format!("ca={}", file.to_string_lossy()));
        let options: Vec<String> = allow.into_iter().chain(ca).collect();
        if is_cluster(&self.database) && !options.is_empty() {
            let address = self.database.to_string_lossy();
            let hosts = address.split('?').next().unwrap_or_default();
            self.database = format!("{hosts}?{}", options.join("&")).into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_move_into_the_address_and_a_file_stays_as_it_is() {
        let joined = |database: &str, allow: &str| {
            let mut config = Config { database: database.into(), ..Config::default() };
            (ALLOW_OLD.set.unwrap())(&mut config, allow)?;
            (CA.set.unwrap())(&mut config, "/a?b.pem")?;
            config.join_access();
            Ok(config.database.to_str().unwrap().to_owned())
        };
        for (database, allow, expected) in [
            ("rqlites://one", "1", "rqlites://one?allow-old&ca=/a?b.pem"),
            ("rqlites://one", "0", "rqlites://one?ca=/a?b.pem"),
            ("rqlites://one/?allow-old&ca=x?y", "0", "rqlites://one/?ca=/a?b.pem"),
            ("/a?b.db", "1", "/a?b.db"),
        ] {
            assert_eq!(joined(database, allow).as_deref(), Ok(expected));
        }
        let mut config = Config { database: "rqlites://one/?ca=x?y".into(), ..Config::default() };
        config.join_access();
        assert_eq!(config.database, PathBuf::from("rqlites://one/?ca=x?y"));
        for allow in ["", "true", "2"] {
            assert_eq!(joined("rqlites://one", allow), Err("0 or 1"));
        }
        assert_eq!((CA.set.unwrap())(&mut Config::default(), ""), Err("a file name"));
    }
}
