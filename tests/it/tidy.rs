//! What the repository promises of itself.

use std::path::Path;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
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

#[test]
fn readme_names_every_setting() {
    let readme = read("README.md");
    for setting in petstore::SETTINGS {
        assert!(readme.contains(&format!("--{}", setting.flag)), "--{}", setting.flag);
        assert!(readme.contains(&setting.variable()), "{}", setting.variable());
    }
}

#[test]
fn readme_names_every_operation() {
    let readme = read("README.md");
    for path in ["/v1/pets", "/v1/pets/{petId}", "/v1/store/orders", "/healthz", "/readyz"] {
        assert!(readme.contains(path), "{path}");
    }
}

/// Words that stand in some rooms only; a room is a file or a folder.
const ROOMS: &[(&str, &[&str])] = &[
    ("rusqlite", &["src/store"]),
    // With the colons, as comments elsewhere speak of it.
    ("tiny_http::", &["src/worker/"]),
    ("mio::", &["src/gate"]),
];

#[test]
fn rooms_keep_to_themselves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in sources(&root.join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let file = file.strip_prefix(root).unwrap();
        for (word, rooms) in ROOMS {
            let at_home = rooms.iter().any(|room| file.starts_with(room));
            assert!(at_home || !text.contains(word), "{word} stands in {}", file.display());
        }
    }
}

fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(sources(&path)) } else { files.push(path) }
    }
    files
}
