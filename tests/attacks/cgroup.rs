//! A small container: a cgroup with a limit on its memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where cgroups are, and the file with the limit: versions 1 and 2.
const HOMES: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
    ("/sys/fs/cgroup", "memory.max"),
];

/// A cgroup, which is removed at the end.
pub struct Group(PathBuf);

impl Group {
    /// Makes one whose processes may have this many MiB together; `None` if this user or this system makes none.
    pub fn new(mib: u64) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let make = |(home, limit): &(&str, &str)| {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path =
                Path::new(home).join(format!("petstore-test-{}-{count}", std::process::id()));
            fs::create_dir(&path).ok()?;
            let group = Self(path);
            fs::write(group.0.join(limit), (mib << 20).to_string())
                .ok()
                .map(|()| group)
        };
        HOMES.iter().find_map(make)
    }

    /// The command with which a shell enters it.
    pub fn script(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
