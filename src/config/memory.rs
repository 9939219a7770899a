//! The memory for clients: its range, and a default that fits into the memory that the process may have.

use std::ops::RangeInclusive;
use std::path::Path;

use petstore_base::files::bytes_after;

const MIB: usize = 1024 * 1024;
/// The allowed range. The minimum fits two copies of the largest response, a deployed file of 2 MiB.
pub const BOUNDS: RangeInclusive<usize> = 4 * MIB..=1024 * MIB;
/// The largest default.
const MOST: usize = 64 * MIB;
/// The default is the memory that the process may have, divided by this. The rest is for SQLite, threads, and the
/// kernel's buffers of sockets and files, which count towards a cgroup's limit as well.
const SHARE: usize = 4;

/// The texts that [`parse`] accepts.
pub const EXPECTED: &str = "a size from 4MiB to 1GiB, such as 16MiB";

/// Reads a number and its unit, `KiB`, `MiB` or `GiB`.
pub fn parse(text: &str) -> Option<usize> {
    let units = [("KiB", 1024), ("MiB", MIB), ("GiB", 1024 * MIB), ("", 1)];
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let bytes = number
        .parse::<usize>()
        .ok()
        .filter(|_| is_number)?
        .checked_mul(*unit)?;
    Some(bytes).filter(|bytes| BOUNDS.contains(bytes))
}

/// The default: a quarter of the memory that the process may have.
pub fn default() -> usize {
    share_of(limit(Path::new("/")))
}

fn share_of(limit: Option<u64>) -> usize {
    let share = limit
        .and_then(|bytes| usize::try_from(bytes).ok())
        .map_or(MOST, |bytes| bytes / SHARE);
    share.clamp(*BOUNDS.start(), MOST)
}

/// Returns the bytes that the process may have: the lowest limit of its cgroups and their ancestors (cgroups(7)), or
/// the machine's memory if that is less. `None` if the system reports neither. `root` is the root of the file system.
fn limit(root: &Path) -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(root.join(path)).ok();
    let machine = read("proc/meminfo".as_ref()).unwrap_or_default();
    let total = bytes_after("MemTotal:", &machine);
    let groups = read("proc/self/cgroup".as_ref()).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(":/")?;
        let (folder, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            // Version 1.
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // In a container, its own cgroup is at the root, and the path may not exist. Missing folders are skipped.
        let limit = |group| {
            read(&Path::new(folder).join::<&Path>(group).join(file))?
                .trim()
                .parse()
                .ok()
        };
        Path::new(group).ancestors().filter_map(limit).min()
    });
    limits.chain(total).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::testing::Folder;

    #[test]
    fn size_has_a_number_and_a_unit() {
        for (text, bytes) in [
            ("16MiB", 16 * MIB),
            ("4096KiB", 4 * MIB),
            ("1GiB", 1024 * MIB),
            ("4194304", 4 * MIB),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in [
            "", "MiB", "16", "16 MiB", "16MB", "16mib", "-16MiB", "+16MiB", "1.5GiB", "2GiB",
            "3MiB",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("99999999999999999999GiB"), None);
        assert_eq!(parse("99999999999999999GiB"), None);
    }

    #[test]
    fn share_is_a_quarter_within_bounds() {
        let mib = |limit: Option<u64>| share_of(limit.map(|mib| mib << 20)) / MIB;
        assert_eq!(
            [Some(8), Some(64), Some(128), Some(256), Some(65_536), None].map(mib),
            [4, 16, 32, 64, 64, 64]
        );
    }

    /// The limit in a system with these files.
    fn limit_with(files: &[(&str, &str)]) -> Option<u64> {
        let root = Folder::new();
        for (path, text) in files {
            let path = root.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        limit(&root.0)
    }

    #[test]
    fn least_limit_counts_and_otherwise_the_machine() {
        let machine = ("proc/meminfo", "MemFree: 5 kB\nMemTotal:       1000 kB\n");
        let second = ("proc/self/cgroup", "0::/a/b\n");
        let first = (
            "proc/self/cgroup",
            "3:cpu:/other\n2:hugetlb,memory:/a\n0::/\n",
        );
        assert_eq!(limit_with(&[]), None);
        assert_eq!(limit_with(&[machine]), Some(1_024_000));
        assert_eq!(limit_with(&[machine, second]), Some(1_024_000));
        let above = ("sys/fs/cgroup/a/memory.max", "70000\n");
        assert_eq!(
            limit_with(&[
                machine,
                second,
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                above
            ]),
            Some(70_000)
        );
        assert_eq!(
            limit_with(&[second, ("sys/fs/cgroup/memory.max", "50000\n")]),
            Some(50_000),
            "a container"
        );
        let unlimited = (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(limit_with(&[machine, first, unlimited]), Some(1_024_000));
        let limited = ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "40000\n");
        let other = (
            "sys/fs/cgroup/memory/other/memory.limit_in_bytes",
            "30000\n",
        );
        assert_eq!(
            limit_with(&[machine, first, unlimited, limited, other]),
            Some(40_000)
        );
    }
}
