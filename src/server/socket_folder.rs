//! The private folder of the lanes' sockets.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The private folder of the lanes' sockets, removed at the end.
pub struct SocketFolder(pub PathBuf);

/// How its name begins.
const FOLDER_PREFIX: &str = "petstore-lanes-";
/// A folder younger than this may belong to a service that is just starting.
const STARTING: Duration = Duration::from_secs(60);

impl SocketFolder {
    pub fn new() -> Result<Self, String> {
        use std::os::unix::fs::DirBuilderExt;
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let random = getrandom::u64().map_err(|error| format!("cannot get random bits: {error}"))?;
        let path = parent.join(format!("{FOLDER_PREFIX}{random:016x}"));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| format!("cannot make the folder {} (TMPDIR): {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes the folders of services that were killed: nobody listens at their sockets.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX);
        let is_old = || entry.metadata().and_then(|data| data.modified()).ok()?.elapsed().ok();
        if is_ours && is_old().is_some_and(|age| age > STARTING) {
            let writer = std::os::unix::net::UnixStream::connect(entry.path().join("write"));
            if writer.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}
