//! What the repository promises of itself.

use std::path::{Path, PathBuf};

use petstore::{Config, Deadlines, LIMITS, SETTINGS};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Every file below a folder, by its path within the repository.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let path = format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap());
        if root().join(&path).is_dir() { files.extend(sources(&path)) } else { files.push(path.into()) }
    }
    files
}

#[test]
fn lock_file_is_small_and_without_an_async_runtime() {
    let lock = read("Cargo.lock");
    let packages: Vec<&str> = lock.lines().filter_map(|line| line.strip_prefix("name = ")).collect();
    assert!(packages.len() <= 100, "{}", packages.len());
    for runtime in ["tokio", "async-std", "smol", "futures-executor", "async-executor"] {
        assert!(!packages.contains(&format!("\"{runtime}\"").as_str()), "{runtime}");
    }
}

/// The rows of the README's table whose first column has this heading, as cells without their backticks.
fn readme_table(heading: &str) -> Vec<Vec<String>> {
    let readme = read("README.md");
    let cells = |row: &str| row.replace('`', "").split('|').map(|cell| cell.trim().to_owned()).collect();
    let table = readme.lines().map(|line| line.strip_prefix('|'));
    let table = table.skip_while(|row| row.is_none_or(|row| !row.starts_with(&format!(" {heading} |"))));
    // Below the headings there is a line of dashes.
    table.skip(2).map_while(|row| row.map(cells)).collect()
}

#[test]
fn readme_names_the_operations_as_they_are() {
    let named: Vec<String> = readme_table("operation").into_iter().map(|row| row[0].clone()).collect();
    let operations = petstore::operations().map(|(method, path)| format!("{method} {path}"));
    assert_eq!(named, operations.collect::<Vec<_>>());
}

/// The default that stands in a setting's help text in brackets; empty where it has none.
fn default_in(help: &str) -> &str {
    help.rsplit_once(" [").and_then(|(_, rest)| rest.strip_suffix(']')).unwrap_or_default()
}

#[test]
fn readme_names_the_settings_as_they_are() {
    let flags = readme_table("flag").into_iter().filter(|row| !row[0].is_empty());
    let named: Vec<[String; 3]> = flags.map(|row| [0, 1, 3].map(|i| row[i].clone())).collect();
    let settings = SETTINGS
        .iter()
        .map(|s| [format!("--{} {}", s.flag, s.value), s.variable(), default_in(s.help).to_owned()]);
    assert_eq!(named, settings.collect::<Vec<_>>());
}

#[test]
fn defaults_in_the_help_text_are_those_of_the_config() {
    for setting in SETTINGS {
        let (mut config, default) = (Config::default(), default_in(setting.help));
        // A default in words cannot be set.
        if !default.is_empty() && !default.contains(' ') {
            assert_eq!((setting.set)(&mut config, default), Ok(()), "--{}", setting.flag);
            assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()), "--{}", setting.flag);
        }
    }
}

#[test]
fn readme_names_the_limits_as_they_are() {
    let named: Vec<[String; 3]> =
        readme_table("limit").into_iter().map(|row| [0, 1, 2].map(|i| row[i].clone())).collect();
    let limits =
        LIMITS.iter().map(|l| [l.what.to_owned(), format!("{} {}", l.most, l.unit), l.status.to_string()]);
    assert_eq!(named, limits.collect::<Vec<_>>());
}

#[test]
fn readme_names_the_deadlines_as_they_are() {
    let named: Vec<String> =
        readme_table("deadline").into_iter().map(|row| format!("{}: {}", row[0], row[1])).collect();
    // Such as "Deadlines { head: 10s, body: 30s }", so that none can be forgotten here.
    let deadlines = format!("{:?}", Deadlines::default());
    let fields = deadlines.strip_prefix("Deadlines { ").and_then(|rest| rest.strip_suffix(" }")).unwrap();
    assert_eq!(named.join(", ").replace(" s", "s"), fields);
}

#[test]
fn readme_names_only_paths_that_are_there() {
    let readme = read("README.md");
    let folders = ["src/", "scripts/", "tests/", "examples/"];
    let quoted = readme.split('`').filter(|word| folders.iter().any(|folder| word.starts_with(folder)));
    for path in quoted {
        assert!(root().join(path).exists(), "{path}");
    }
}

/// Words that stand in some rooms only; a room is a file or a folder.
const WORDS: &[(&str, &[&str])] = &[
    ("rusqlite", &["src/store"]),
    // With the colons, as comments elsewhere speak of it.
    ("tiny_http::", &["src/worker/"]),
    ("mio::", &["src/gate"]),
];

#[test]
fn rooms_keep_to_themselves() {
    for file in sources("src") {
        let text = read(&file);
        for (word, rooms) in WORDS {
            let at_home = rooms.iter().any(|room| file.starts_with(room));
            assert!(at_home || !text.contains(word), "{word} stands in {}", file.display());
        }
    }
}
