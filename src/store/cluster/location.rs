//! Where a database is: in a file, or in a cluster at an address.

use std::path::{Path, PathBuf};

use petstore_base::error::{Error, ErrorKind, fail};

/// Returns whether a location is the address of a cluster, such as `rqlite://one,two,three/`, or was meant to be one.
pub fn is_cluster(path: &Path) -> bool {
    let mut parts = path
        .as_os_str()
        .as_encoded_bytes()
        .trim_ascii_start()
        .split(|&byte| byte == b':');
    let scheme = parts.next().unwrap_or_default();
    let is_scheme = [&b"rqlite"[..], b"rqlites"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known));
    is_scheme && parts.next().is_some()
}

/// Rejects the address of a cluster in a build that cannot open one.
///
/// # Errors
/// [`ErrorKind::ClusterUnsupported`].
pub fn check_supported(path: &Path) -> Result<(), Error> {
    if cfg!(feature = "cluster") || !is_cluster(path) {
        Ok(())
    } else {
        Err(unsupported())
    }
}

/// The error for the address of a cluster in a build that cannot open one. It does not repeat the address, which may
/// have a password in it.
pub fn unsupported() -> Error {
    let message =
        "the database is a cluster, and this petstore is built without the feature cluster";
    Error::new(ErrorKind::ClusterUnsupported, message)
}

/// Refuses the project of a cluster.
///
/// # Errors
/// [`ErrorKind::Config`], if the location is a cluster, and [`ErrorKind::ClusterUnsupported`].
pub fn require_file(path: &Path) -> Result<(), Error> {
    check_supported(path)?;
    if !is_cluster(path) {
        return Ok(());
    }
    let message = "custom domains and deployed files need a database in a file: a cluster stands behind a balancer, which has \
        names of its own";
    fail(ErrorKind::Config("database"), message)
}

/// The location for a process whose current folder may change: an absolute path, or the address of a cluster as it is.
///
/// # Errors
/// [`ErrorKind::ClusterUnsupported`], and those of the current folder.
pub fn absolute(location: &Path) -> Result<PathBuf, Error> {
    check_supported(location)?;
    if is_cluster(location) {
        return Ok(location.to_owned());
    }
    std::path::absolute(location)
        .map_err(|error| Error::io("cannot find the current folder", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_is_distinguished_from_a_file() {
        for (path, is) in [
            ("rqlite://one", true),
            ("Rqlites://one", true),
            ("rqlite:one", true),
            (" rqlite://one", true),
            ("rqlite", false),
            ("rqlite:/one", true),
            ("/rqlite://one", false),
            ("https://one", false),
            ("", false),
        ] {
            assert_eq!(is_cluster(path.as_ref()), is, "{path}");
            let is_refused = is && cfg!(not(feature = "cluster"));
            assert_eq!(
                check_supported(path.as_ref()).is_err(),
                is_refused,
                "{path}"
            );
        }
    }

    #[test]
    fn path_becomes_absolute() {
        let expected = std::env::current_dir().unwrap().join("pets.db");
        assert_eq!(absolute("pets.db".as_ref()).unwrap(), expected);
    }
}
