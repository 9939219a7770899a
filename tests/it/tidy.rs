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
    for path in ["/v1/pets", "/v1/pets/{petId}", "/v1/store/orders", "/healthz"] {
        assert!(readme.contains(path), "{path}");
    }
}

#[test]
fn rooms_keep_to_themselves() {
    for (word, room) in [("rusqlite", "src/store/"), ("tiny_http::", "src/worker/"), ("mio::", "src/gate/")] {
        for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
            let names_it = std::fs::read_to_string(&file).unwrap().contains(word);
            assert!(
                !names_it || file.to_string_lossy().contains(room),
                "{word} stands in {}",
                file.display()
            );
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
