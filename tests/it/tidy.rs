//! What the repository promises of itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use petstore::{Config, Deadlines, LIMITS, SETTINGS};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Every file of Rust below a folder, by its path within the repository.
fn sources(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let path = format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap());
        if root().join(&path).is_dir() {
            files.extend(sources(&path));
        } else if path.ends_with(".rs") {
            files.push(path.into());
        }
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

#[test]
fn readme_names_the_settings_as_they_are() {
    let flags = readme_table("flag").into_iter().filter(|row| !row[0].is_empty());
    let named: Vec<[String; 3]> = flags.map(|row| [0, 1, 3].map(|i| row[i].clone())).collect();
    let settings =
        SETTINGS.iter().map(|s| [format!("--{} {}", s.flag, s.value), s.variable(), s.default.to_owned()]);
    assert_eq!(named, settings.collect::<Vec<_>>());
}

#[test]
fn defaults_of_the_settings_are_those_of_the_config() {
    for setting in SETTINGS {
        let (mut config, default) = (Config::default(), setting.default);
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
    let named: Vec<[String; 4]> =
        readme_table("deadline").into_iter().map(|row| [0, 1, 2, 3].map(|i| row[i].clone())).collect();
    let deadlines = Deadlines::default();
    let rows = deadlines.table().map(|row| {
        [
            row.name.to_owned(),
            format!("{} s", row.most.as_secs()),
            row.span.to_owned(),
            row.then.replace('`', ""),
        ]
    });
    assert_eq!(named, rows);
    // Such as "Deadlines { head: 10s, body: 30s }", so that none can be forgotten in the table.
    let fields = rows.map(|[name, most, ..]| format!("{name}: {}", most.replace(' ', ""))).join(", ");
    assert_eq!(format!("{deadlines:?}"), format!("Deadlines {{ {fields} }}"));
}

#[test]
fn readme_names_the_alerts_as_they_are() {
    let named: Vec<String> = readme_table("alert").into_iter().map(|row| row[0].clone()).collect();
    let rules = read("scripts/deploy/alerts.yml");
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ").map(str::to_owned));
    assert_eq!(named, alerts.collect::<Vec<_>>());
}

#[test]
fn every_file_of_tests_is_run() {
    let main = read("tests/it/main.rs");
    for file in sources("tests/it") {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(name == "main" || main.contains(&format!("\nmod {name};\n")), "{name} is not in main.rs");
    }
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

#[test]
fn parts_that_log_are_those_that_are_told() {
    // The access log has a name of its own.
    let mut parts = BTreeSet::from(["access".to_owned()]);
    for file in sources("src") {
        let text = code(&read(&file));
        if ["error!(", "warn!(", "info!(", "debug!("]
            .iter()
            .any(|word| text.contains(&format!("log::{word}")))
        {
            let room = file.iter().nth(1).unwrap().to_str().unwrap();
            parts.insert(room.trim_end_matches(".rs").to_owned());
        }
    }
    // It logs under the names of those that it serves.
    parts.remove("quiet_log");
    let told = read("src/cli/logging.rs");
    let told = told.split("const PARTS").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    let told = told.split('"').skip(1).step_by(2).map(str::to_owned);
    assert_eq!(told.collect::<BTreeSet<_>>(), parts);
}

#[test]
fn gate_announces_all_its_refusals() {
    let codes = |text: &str| -> BTreeSet<String> {
        let rest = text.split("Code::").skip(1);
        rest.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric()).collect()).collect()
    };
    let (mut announced, mut made) = (BTreeSet::new(), BTreeSet::new());
    for file in sources("src/gate").iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = code(&read(file));
        match text.split_once("const REFUSALS: &[Code] = &[").and_then(|(_, rest)| rest.split_once("];")) {
            Some((table, rest)) => {
                announced.extend(codes(table));
                made.extend(codes(rest));
            }
            None => made.extend(codes(&text)),
        }
    }
    assert_eq!(announced, made);
}

/// Words that stand in some rooms only; a room is a file or a folder.
const WORDS: &[(&str, &[&str])] = &[
    ("rusqlite", &["src/store"]),
    // With the colons, as comments elsewhere speak of it.
    ("tiny_http::", &["src/worker/"]),
    ("mio::", &["src/gate"]),
    ("simple_dns", &["src/dns"]),
    ("publicsuffix::", &["src/domains"]),
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

/// Which rooms the code of a room may name, in the order in which a request meets them. A room is a folder or
/// a file of `src`. `lib` stands for what `src/lib.rs` itself declares, which is `Error`. Tests may name what
/// they like.
const ARROWS: &[(&str, &[&str])] = &[
    // The executable: it sees only what the library makes public.
    ("cli", &[]),
    (
        "server",
        &[
            "admin",
            "config",
            "domains",
            "gate",
            "metrics",
            "quiet_log",
            "worker",
            "service",
            "site",
            "keys",
            "store",
            "lib",
        ],
    ),
    ("clock", &[]),
    ("config", &[]),
    ("dns", &[]),
    ("http", &[]),
    ("metrics", &[]),
    ("quiet_log", &[]),
    ("testing", &[]),
    ("gate", &["clock", "config", "http", "metrics", "quiet_log"]),
    ("worker", &["http", "lib"]),
    // Of `worker` it names the trait by which a worker calls it, so that the worker need not know it.
    (
        "service",
        &[
            "clock",
            "config",
            "domains",
            "http",
            "metrics",
            "quiet_log",
            "worker",
            "api",
            "keys",
            "model",
            "store",
        ],
    ),
    (
        "admin",
        &["clock", "config", "domains", "http", "json", "metrics", "quiet_log", "service", "worker", "store"],
    ),
    ("api", &["clock", "http", "json", "model", "store"]),
    // The interface description says what the tables of `api` say.
    ("site", &["clock", "config", "http", "api", "json", "model"]),
    ("json", &[]),
    ("model", &["json"]),
    ("keys", &["clock", "store", "lib"]),
    ("transfer", &["json", "model", "store", "lib"]),
    ("domains", &["api", "clock", "config", "dns", "http", "model", "store", "lib"]),
    ("maintenance", &["clock", "store", "lib"]),
    ("store", &["json", "model"]),
];

fn arrows() -> BTreeSet<(String, String)> {
    let arrows =
        ARROWS.iter().flat_map(|(room, named)| named.iter().map(|n| (room.to_string(), n.to_string())));
    arrows.collect()
}

#[test]
fn rooms_name_only_the_rooms_that_the_table_allows() {
    let (lib, allowed) = (read("src/lib.rs"), arrows());
    let (mut found, mut rooms) = (BTreeSet::new(), BTreeSet::new());
    for file in sources("src") {
        let within: Vec<&str> = file.iter().skip(1).map(|part| part.to_str().unwrap()).collect();
        let room = match within[0].trim_end_matches(".rs") {
            "lib" => continue,
            "main" => "cli",
            room => room,
        };
        rooms.insert(room.to_owned());
        if within.last().is_some_and(|name| name.ends_with("tests.rs")) {
            continue;
        }
        let is_module_of_its_folder = within.last() == Some(&"mod.rs");
        let depth = within.len() - usize::from(is_module_of_its_folder);
        for name in names_in_crate(&code(&read(&file)), depth) {
            let named = home(&name, &lib);
            if named != room {
                let arrow = (room.to_owned(), named.to_owned());
                assert!(allowed.contains(&arrow), "{} names {named}, and {room} may not", file.display());
                found.insert(arrow);
            }
        }
    }
    assert_eq!(allowed.difference(&found).collect::<Vec<_>>(), Vec::<&_>::new(), "allowed and not used");
    assert_eq!(rooms, ARROWS.iter().map(|(room, _)| room.to_string()).collect(), "each room has its row");
}

#[test]
fn arrows_between_rooms_make_no_circle() {
    let mut left = arrows();
    // What names nobody who names others is in no circle; what is left in the end is.
    while !left.is_empty() {
        let naming: BTreeSet<String> = left.iter().map(|(room, _)| room.clone()).collect();
        let before = left.len();
        left.retain(|(_, named)| naming.contains(named));
        assert_ne!(left.len(), before, "a circle is among {left:?}");
    }
}

#[test]
fn names_are_found_in_every_kind_of_path() {
    let text = "use crate::a::B;\nuse crate::{c::{D, e}, f};\n// crate::comment\nlet x = crate::g::h();\n\
        use super::super::i;\nuse super::own;\n#[cfg(test)]\nmod tests {\n    use crate::test;\n}\nuse crate::j;\n";
    assert_eq!(names_in_crate(&code(text), 2), ["a", "c", "f", "g", "i", "j"]);
}

/// A file without its comments, and without the modules that are made for tests only.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        let item = if line == "#[cfg(test)]" { lines.next().unwrap() } else { line };
        if item != line && item.contains("mod ") && item.ends_with('{') {
            // As rustfmt has it, the module ends with the next brace that is not indented.
            lines.find(|line| *line == "}").unwrap();
        } else {
            code += item;
            code.push('\n');
        }
    }
    code
}

/// The names that stand behind `crate::`, or behind as many `super::` as lead there from this depth.
fn names_in_crate(code: &str, depth: usize) -> Vec<String> {
    let code = code.replace(&"super::".repeat(depth), "crate::");
    let word = |path: &str| -> String {
        path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut names = Vec::new();
    for path in code.split("crate::").skip(1) {
        let Some(group) = path.strip_prefix('{') else {
            names.push(word(path));
            continue;
        };
        let mut nesting = 0;
        let mut members = vec![String::new()];
        for character in group.chars() {
            match character {
                '{' => nesting += 1,
                '}' if nesting == 0 => break,
                '}' => nesting -= 1,
                ',' if nesting == 0 => members.push(String::new()),
                _ if nesting == 0 => members.last_mut().unwrap().push(character),
                _ => {}
            }
        }
        names.extend(members.iter().map(|member| word(member)).filter(|name| !name.is_empty()));
    }
    names
}

/// The room of a name of the crate: itself, or that from which `src/lib.rs` has the name, or `lib`.
fn home<'a>(name: &'a str, lib: &'a str) -> &'a str {
    if name.starts_with(char::is_lowercase) {
        return name;
    }
    let has = |uses: &str| uses.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
    let uses = lib.split("pub use ").skip(1).filter_map(|uses| uses.split(';').next()).find(|uses| has(uses));
    uses.and_then(|uses| uses.split("::").next()).unwrap_or("lib")
}
