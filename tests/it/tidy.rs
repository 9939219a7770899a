//! The repository keeps its promises about itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use petstore::{Config, SETTINGS, VARIABLES};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Every file under a folder, by its path within the repository.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let path = format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap());
        if !root().join(&path).is_dir() {
            found.push(path.into());
        } else if !path.ends_with("/target") && !path.ends_with("/__pycache__") {
            found.extend(files(&path));
        }
    }
    found
}

/// Those of Rust.
fn sources(folder: &str) -> Vec<PathBuf> {
    files(folder)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .collect()
}

#[test]
fn lock_file_is_small_and_without_an_async_runtime() {
    let lock = read("Cargo.lock");
    let packages: Vec<&str> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("name = "))
        .filter(|name| !name.starts_with("\"petstore"))
        .collect();
    // 27 of them are for the feature cluster, and 10 of these for Windows alone.
    assert!(packages.len() <= 110, "{}", packages.len());
    for runtime in [
        "tokio",
        "async-std",
        "smol",
        "futures-executor",
        "async-executor",
    ] {
        assert!(
            !packages.contains(&format!("\"{runtime}\"").as_str()),
            "{runtime}"
        );
    }
}

/// The rows of a document's table whose first column has this heading, as cells without their backticks.
fn table(document: &str, heading: &str) -> Vec<Vec<String>> {
    let document = read(document);
    let cells = |row: &str| {
        row.replace('`', "")
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let table = document.lines().map(|line| line.strip_prefix('|'));
    let table =
        table.skip_while(|row| row.is_none_or(|row| !row.starts_with(&format!(" {heading} |"))));
    // Below the headings there is a line of dashes.
    table.skip(2).map_while(|row| row.map(cells)).collect()
}

#[test]
fn readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(
        lines <= 200,
        "{lines} lines: say it in the site's pages or src/README.md"
    );
}

/// The README names the operations of the interface, and the guide the other ones.
#[cfg(feature = "site")]
#[test]
fn operations_are_named_as_they_are() {
    let named = |document: &str, heading| -> BTreeSet<String> {
        table(document, heading)
            .into_iter()
            .map(|row| row[0].clone())
            .collect()
    };
    let mut experimental = Config::new();
    experimental.experimental = true;
    let document: serde_json::Value =
        serde_json::from_str(&petstore::openapi(&experimental)).unwrap();
    let described = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            let methods = item
                .as_object()
                .unwrap()
                .keys()
                .filter(|key| *key != "parameters");
            methods.map(move |method| format!("{} /v1{path}", method.to_uppercase()))
        });
    assert_eq!(named("README.md", "operation"), described.collect());
    let all = petstore::operations().map(|(method, path)| format!("{method} {path}"));
    let others = all.filter(|name| !name.contains(" /v1/"));
    assert_eq!(
        named("src/site/pages/install.md", "request"),
        others.collect()
    );
}

#[test]
fn readme_names_settings_as_they_are_and_the_site_all() {
    let rows = table("README.md", "flag");
    let mut settings = SETTINGS
        .iter()
        .map(|s| [s.usage(), s.variable(), s.default.to_owned()]);
    for row in rows.iter().filter(|row| !row[0].is_empty()) {
        let named = [0, 1, 3].map(|i| row[i].clone());
        assert!(
            settings.any(|setting| setting == named),
            "{named:?} differs, or is out of order"
        );
    }
    let page = read("src/site/pages/configuration.md");
    assert!(page.contains("{{settings}}") && page.contains("{{variables}}"));
    for row in rows.iter().filter(|row| row[0].is_empty()) {
        let is_known = VARIABLES
            .iter()
            .any(|known| known.name == row[1] && known.default == row[3]);
        assert!(is_known, "{row:?}");
    }
}

/// Where the members of a pet are listed by hand.
const MEMBER_LISTS: &[&str] = &[
    "README.md",
    "scripts/test.d/recover",
    "src/site/files/pets-edit.js",
    "src/site/files/pets-save.js",
    "src/site/files/table.js",
    "src/site/pages/data.md",
    "src/site/pages/troubleshooting.md",
];

#[test]
fn members_are_in_every_list_of_them() {
    let document: serde_json::Value =
        serde_json::from_str(&petstore::openapi(&Config::new())).unwrap();
    let members = document["components"]["schemas"]["NewPet"]["properties"]
        .as_object()
        .unwrap();
    for (name, path) in members
        .keys()
        .flat_map(|name| MEMBER_LISTS.iter().map(move |path| (name, path)))
    {
        // As a flag, a column of a table, or a label, `categoryId` is a category.
        let word = name.strip_suffix("Id").unwrap_or(name);
        assert!(
            read(path).contains(word),
            "{path} lacks {name}, see To add a column to pets in src/README.md"
        );
    }
    let commands: String = read("src/cli/pets.rs").split_whitespace().collect();
    for name in members.keys() {
        let flag = format!("Flag::with(\"{}\"", name.strip_suffix("Id").unwrap_or(name));
        assert!(commands.contains(&flag), "pet set has no flag for {name}");
    }
    // What the recipe for a damaged database does not name is lost.
    let recipe = read("src/site/pages/troubleshooting.md");
    let table = read("src/site/files/table.js");
    for name in members.keys() {
        assert!(
            table.contains(&format!("\"{name}\":")),
            "writePet in table.js lacks {name}"
        );
        assert!(
            recipe.contains(&format!("'{name}', ")),
            "the recipe for a damaged database loses {name}"
        );
    }
}

/// Every document for people except the changelog.
fn documents() -> Vec<PathBuf> {
    let pages = std::fs::read_dir(root().join("src/site/pages")).unwrap();
    let pages = pages.map(|page| PathBuf::from("src/site/pages").join(page.unwrap().file_name()));
    let others = [
        "README.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "src/DESIGN.md",
        "src/README.md",
        "scripts/deploy/README.md",
        "scripts/bench.d/results.md",
    ];
    pages.chain(others.map(PathBuf::from)).collect()
}

#[test]
fn documents_name_every_command_and_flag() {
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_petstore"))
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (commands, _) = help.split_once("\nSettings").unwrap();
    let documents: String = documents().iter().map(read).collect();
    let is_word = |word: &&str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    for line in commands.lines().map(str::trim_start) {
        let name = if line.starts_with("petstore ") {
            line.split("  ")
                .next()
                .unwrap()
                .split(' ')
                .take_while(is_word)
                .collect::<Vec<_>>()
                .join(" ")
        } else if line.starts_with("--") {
            line.split(' ').next().unwrap().to_owned()
        } else {
            continue;
        };
        // Another name of `verify` needs no words of its own.
        assert!(
            documents.contains(&name) || name.ends_with("reverify"),
            "no document names {name}"
        );
    }
}

/// The lines of the code blocks of a page.
fn pasted(page: &str) -> Vec<String> {
    let text = read(page);
    text.split("```")
        .skip(1)
        .step_by(2)
        .flat_map(str::lines)
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn first_evening_names_what_is_there() {
    let lines = pasted("src/site/pages/first-evening.md");
    let (words, all) = (
        lines.iter().flat_map(|line| line.split([' ', '\'', '"'])),
        lines.join("\n"),
    );
    let help = std::process::Command::new(env!("CARGO_BIN_EXE_petstore"))
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for line in lines.iter().filter(|line| line.starts_with("petstore ")) {
        let command: Vec<&str> = line
            .split(' ')
            .take_while(|w| w.chars().all(|c| c.is_ascii_lowercase()))
            .collect();
        let name = if command.contains(&"key") {
            command[..3].join(" ")
        } else {
            command.join(" ")
        };
        assert!(help.contains(&name), "{line}");
        let mut flags = line.split(' ').filter(|word| word.starts_with("--"));
        assert!(flags.all(|flag| help.contains(flag)), "{line}");
    }
    for word in words {
        if word.starts_with("petstore")
            && [".service", ".socket", ".timer"]
                .iter()
                .any(|end| word.ends_with(end))
        {
            assert!(root().join("scripts/deploy").join(word).exists(), "{word}");
        }
        if let Some((name, _)) = word
            .split_once('=')
            .filter(|(name, _)| name.starts_with("PETSTORE_"))
        {
            let mut known = SETTINGS
                .iter()
                .map(|s| s.variable())
                .chain(VARIABLES.iter().map(|v| v.name.to_owned()));
            assert!(known.any(|known| known == name), "{name}");
        }
    }
    // The units have the folders, and the socket the address, of the page.
    for (file, has, path) in [
        (
            "petstore.service",
            "%S/petstore/petstore.db",
            "/var/lib/petstore/petstore.db",
        ),
        (
            "petstore.service",
            "%S/petstore/first-key",
            "/var/lib/petstore/first-key",
        ),
        (
            "petstore.service",
            "EnvironmentFile=-/etc/petstore.env",
            ">>/etc/petstore.env",
        ),
        (
            "petstore-backup.service",
            "--to %S/petstore-backups",
            "/var/lib/petstore-backups/",
        ),
        (
            "Caddyfile",
            "reverse_proxy 127.0.0.1:8080",
            "scripts/deploy/Caddyfile",
        ),
    ] {
        assert!(
            read(format!("scripts/deploy/{file}")).contains(has) && all.contains(path),
            "{file}: {path}"
        );
    }
    assert!(root().join("scripts/release").exists() && all.contains("scripts/release"));
}

#[test]
fn units_that_the_guide_enables_can_be_enabled() {
    let mut units = 0;
    for page in files("src/site/pages") {
        let page = read(&page);
        let lines = page
            .lines()
            .filter_map(|line| line.split_once("systemctl enable --now "));
        for word in lines.flat_map(|(_, units)| units.split(' ')) {
            let unit = word.replace("@8081", "");
            let name = if unit.contains('.') {
                unit
            } else {
                format!("{unit}.service")
            };
            let file = root().join("scripts/deploy").join(&name);
            if file.exists() {
                units += 1;
                assert!(read(file).contains("\n[Install]\n"), "{name}");
            }
        }
    }
    assert!(units > 8, "{units}");
}

#[test]
fn quickstart_shows_what_the_first_start_prints() {
    let printed: String = ["src/cli/serve.rs", "src/cli/first_key.rs"]
        .map(read)
        .concat();
    let page = read("src/site/pages/quickstart.md");
    for line in [
        "The database had no API key, so this one was created. It is shown only once:",
        "To add a pet and to list all pets:",
        "To try it in a browser, which keeps this address in its history:",
    ] {
        assert!(printed.contains(line) && page.contains(line), "{line}");
    }
}

/// The anchor that GitHub makes for a heading.
fn anchor(heading: &str) -> String {
    let text = heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .replace(' ', "-");
    text.chars()
        .filter(|c| c.is_alphanumeric() || "-_".contains(*c))
        .collect()
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    for document in documents() {
        let text = read(&document);
        for link in text
            .split("](")
            .skip(1)
            .map(|rest| rest.split(')').next().unwrap())
        {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let path = match file.strip_prefix("/docs/") {
                Some(page) => PathBuf::from(format!("src/site/pages/{page}.md")),
                None if file.is_empty() => document.clone(),
                None if file.starts_with('/') || file.contains(':') => continue,
                None => document.with_file_name(file),
            };
            let is_there = root().join(&path).exists();
            let has_heading = || {
                let is_setting = SETTINGS.iter().any(|setting| setting.flag == heading);
                is_setting
                    || read(&path)
                        .lines()
                        .any(|l| l.starts_with('#') && anchor(l) == heading)
            };
            assert!(
                is_there && (heading.is_empty() || has_heading()),
                "{}: {link}",
                document.display()
            );
        }
    }
}

#[test]
fn defaults_of_the_settings_are_those_of_the_config() {
    for setting in SETTINGS.iter() {
        let (mut config, default) = (Config::default(), setting.default);
        // A default in words cannot be set.
        if !default.is_empty() && !default.contains(' ') {
            let Some(set) = setting.set else { continue };
            assert_eq!(set(&mut config, default), Ok(()), "--{}", setting.flag);
            assert_eq!(
                format!("{config:?}"),
                format!("{:?}", Config::default()),
                "--{}",
                setting.flag
            );
        }
    }
}

#[test]
fn deadlines_and_limits_are_documented() {
    let page = read("src/site/pages/limits.md");
    assert!(page.contains("{{deadlines}}") && page.contains("{{limits}}"));
}

#[test]
fn alerts_are_documented_as_they_are() {
    let named = table("src/site/pages/monitoring.md", "Alert");
    let named: Vec<String> = named.into_iter().map(|row| row[0].clone()).collect();
    let rules = read("scripts/deploy/alerts.yml");
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: ").map(str::to_owned));
    assert_eq!(named, alerts.collect::<Vec<_>>());
}

/// The names of all tests of a folder, each with the name of its file, such as `keys::last_use_is_listed`.
fn tests(folder: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in sources(folder) {
        let (text, module) = (read(&file), file.file_stem().unwrap().to_str().unwrap());
        // Between the attribute and the function there may be other attributes.
        let after = text
            .split("#[test]\n")
            .skip(1)
            .filter_map(|rest| rest.split_once("fn "));
        names.extend(
            after.filter_map(|(_, rest)| Some(format!("{module}::{}", rest.split_once('(')?.0))),
        );
    }
    names
}

#[test]
fn each_claim_on_security_names_tests_that_are_there() {
    let tests: BTreeSet<String> = ["src", "tests"].into_iter().flat_map(tests).collect();
    let document = read("SECURITY.md");
    let quoted = |text: &str| -> Vec<String> {
        text.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let is_name = |word: &String| {
        let is_of_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        word.bytes().all(is_of_name) && word.matches('_').count() > 1
    };
    for name in quoted(&document).iter().filter(|word| is_name(word)) {
        let is_it = |test: &String| {
            test.split_once("::")
                .is_some_and(|(_, function)| function == name)
        };
        assert!(tests.iter().any(is_it), "there is no test {name}");
    }
    let mut rows = document
        .lines()
        .filter(|line| line.starts_with("| ") && !line.ends_with("| tests |"));
    assert!(rows.clone().count() > 20);
    assert!(rows.all(|row| {
        row.rsplit('|')
            .nth(1)
            .is_some_and(|cell| quoted(cell).iter().any(is_name))
    }));
}

#[test]
fn every_file_of_tests_is_run() {
    let main = read("tests/it/main.rs");
    for file in sources("tests/it") {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(
            name == "main" || main.contains(&format!("\nmod {name};\n")),
            "{name} is not in main.rs"
        );
    }
}

#[test]
fn modules_that_scripts_name_are_there() {
    let script = read("scripts/test").replace("\\\n", "");
    let slow = script
        .split("\nslow=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .unwrap();
    for module in slow.split_whitespace() {
        assert!(
            root().join(format!("tests/it/{module}.rs")).exists(),
            "scripts/test skips {module}"
        );
    }
    let script = read("scripts/test.d/cluster");
    for module in script
        .split_whitespace()
        .filter_map(|word| word.strip_suffix("::"))
    {
        let is_it = |file: &PathBuf| file.with_extension("").iter().any(|part| part == module);
        assert!(
            sources("src").iter().any(is_it),
            "scripts/test.d/cluster tests {module}"
        );
    }
}

#[test]
fn each_exception_of_the_cluster_is_a_test_and_has_a_reason() {
    let names = tests("tests/it");
    for line in read("tests/cluster/exceptions").lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, reason) = line
            .split_once("  ")
            .unwrap_or_else(|| panic!("no reason: {line}"));
        assert!(
            names.iter().any(|test| test.starts_with(name)),
            "{name} is no test"
        );
        assert!(!reason.trim().is_empty(), "{line}");
    }
}

#[test]
fn documents_name_only_paths_that_are_there() {
    let folders = ["src/", "scripts/", "tests/", "examples/"];
    for document in documents() {
        let text = read(&document);
        let quoted = text
            .split('`')
            .filter(|word| folders.iter().any(|folder| word.starts_with(folder)));
        // A path may be followed by the words of a command line.
        for path in quoted.filter_map(|words| words.split_whitespace().next()) {
            assert!(root().join(path).exists(), "{}: {path}", document.display());
        }
    }
}

/// Words that may appear only in some rooms. A room is a file or a folder.
const WORDS: &[(&str, &[&str])] = &[
    (
        "rusqlite",
        &[
            "src/store",
            "src/cluster/statement.rs",
            "src/cluster/tests.rs",
            "src/hosting/project/testing/",
        ],
    ),
    // With the colons, because comments elsewhere mention it.
    ("tiny_http::", &["src/gate/worker/"]),
    ("simple_dns", &["src/hosting/project/dns"]),
    ("publicsuffix::", &["src/hosting/project/suffix.rs"]),
];

#[test]
fn rooms_keep_to_themselves() {
    for file in sources("src") {
        let text = read(&file);
        for (word, rooms) in WORDS {
            let at_home = rooms.iter().any(|room| file.starts_with(room));
            assert!(
                at_home || !text.contains(word),
                "{word} stands in {}",
                file.display()
            );
        }
    }
}

/// The law of the house. A folder of `src` names only itself and what stands to its right. Tests may name what they like.
/// Between packages, cargo holds the walls.
const LAW: &str = "cli server admin site config app ops store model";
/// The packages in `src`, each in a folder of its own.
const PACKAGES: [&str; 4] = ["base", "cluster", "gate", "hosting"];

/// The code of a file, in which each path is as if the packages were modules of one: `petstore_base::http` and, within that
/// package, `crate::http` are `crate::base::http`.
fn code_of(file: &Path) -> String {
    let mut code = code(&read(file));
    for package in PACKAGES {
        if file.starts_with(format!("src/{package}")) {
            code = code.replace("crate::", &format!("crate::{package}::"));
        }
        code = code.replace(
            &format!("petstore_{package}::"),
            &format!("crate::{package}::"),
        );
    }
    code
}

/// The room of a path such as `net/gate/mod.rs` or `net::gate::Gate`: a folder of `src`, or what stands below a folder
/// that only groups others.
fn room(path: &str) -> String {
    let mut names = path
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|name| !name.is_empty());
    let group = names.next().unwrap();
    match names
        .next()
        .filter(|_| ["site", "app", "ops", "gate", "base"].contains(&group))
    {
        Some(room) => format!("{group}::{room}"),
        None => group.to_owned(),
    }
}

/// Each room with each other one that it names.
fn arrows() -> BTreeSet<(String, String)> {
    let mut arrows = BTreeSet::new();
    for file in shipped().filter(|file| file.components().count() > 2) {
        let module = file
            .strip_prefix("src")
            .unwrap()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs");
        let module = module.trim_end_matches("/mod");
        let own = room(module);
        let mut code = code_of(&file);
        assert!(
            !code.contains("super::super::"),
            "{}: begin with crate::",
            file.display()
        );
        if own == module.replace('/', "::") {
            code = code.replace(
                "super::",
                &format!("crate::{}::", own.split("::").next().unwrap()),
            );
        }
        for path in code.split("crate::").skip(1) {
            assert!(
                !path.starts_with('{'),
                "{}: a search finds only a path in full",
                file.display()
            );
            let named = room(path);
            if named != own {
                arrows.insert((own.clone(), named));
            }
        }
    }
    arrows
}

#[test]
fn rooms_name_only_what_stands_to_their_right() {
    let groups: Vec<&str> = LAW.split([' ', ',']).collect();
    let place = |room: &str| {
        let group = room.split("::").next().unwrap();
        let place = LAW
            .split(' ')
            .position(|place| place.split(',').any(|name| name == group));
        (
            place.unwrap_or_else(|| panic!("{group} has no place in the law")),
            group.to_owned(),
        )
    };
    let is_walled = |room: &str| PACKAGES.iter().any(|package| room.starts_with(package));
    let within = arrows()
        .into_iter()
        .filter(|(room, named)| !is_walled(room) && !is_walled(named));
    for (room, named) in within {
        let (from, to) = (place(&room), place(&named));
        assert!(
            from.0 < to.0 || from.1 == to.1,
            "{room} names {named}, and may not"
        );
    }
    for entry in std::fs::read_dir(root().join("src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            name.contains('.')
                || name == "fuzzing"
                || PACKAGES.contains(&name.as_str())
                || groups.contains(&name.as_str()),
            "{name}"
        );
    }
}

#[test]
fn rooms_make_no_circle() {
    assert_no_circle(arrows());
}

fn assert_no_circle(mut left: BTreeSet<(String, String)>) {
    // Nothing is in a circle that names nothing or that nothing names. Remove the arrows at such ends until none are
    // left, or circles are.
    while !left.is_empty() {
        let naming: BTreeSet<String> = left.iter().map(|(from, _)| from.clone()).collect();
        let named: BTreeSet<String> = left.iter().map(|(_, to)| to.clone()).collect();
        let before = left.len();
        left.retain(|(from, to)| naming.contains(to) && named.contains(from));
        assert_ne!(left.len(), before, "a circle is among {left:?}");
    }
}

/// The files of `src` that ship.
fn shipped() -> impl Iterator<Item = PathBuf> {
    let is_of_tests = |path: &str| {
        [
            "/testing/",
            "/fuzzing/",
            "/examples/",
            "tests.rs",
            "/tests/",
        ]
        .iter()
        .any(|part| path.contains(part))
    };
    sources("src")
        .into_iter()
        .filter(move |path| !is_of_tests(path.to_str().unwrap()))
}

/// A statement of a batch goes through `Reader::statement`, which notices if SQLite ends the transaction. These files
/// have none: they begin no batch, or end with its failure.
#[test]
fn only_files_without_statements_of_a_batch_have_the_connection() {
    let has_connection = |path: &PathBuf| code(&read(path)).contains(".raw()");
    let found: Vec<PathBuf> = shipped().filter(has_connection).collect();
    let names: BTreeSet<&str> = found.iter().map(|path| path.to_str().unwrap()).collect();
    let allowed = ["backup", "checkpoint", "read_only", "snapshot", "startup"];
    let allowed = allowed.map(|name| format!("src/store/sqlite/{name}.rs"));
    assert_eq!(names, allowed.iter().map(String::as_str).collect());
}

/// A file names another if a path in its code leads to it, or to something in it, also by way of a re-export: `crate::a::C`
/// leads to the file of `a::b` if `a` has `pub use b::C`. A file may name the modules that it is in.
#[test]
fn files_make_no_circle() {
    let files = shipped().filter(|file| !file.to_str().unwrap().contains("/no_"));
    let module = |file: &Path| {
        let path = file.with_extension("").to_str().unwrap().replace('/', "::");
        path.trim_start_matches("src::")
            .trim_end_matches("::mod")
            .trim_end_matches("::lib")
            .to_owned()
    };
    let files: BTreeMap<String, PathBuf> = files.map(|file| (module(&file), file)).collect();
    let exported: BTreeMap<String, String> = files
        .iter()
        .flat_map(|(own, file)| exports(own, &code_of(file)))
        .collect();
    let mut arrows = BTreeSet::new();
    for (own, file) in files
        .iter()
        .filter(|(own, _)| !own.ends_with("lib") && own.as_str() != "main")
    {
        let text = code_of(file)
            .replace("crate::", "\0crate::")
            .replace("super::", "\0super::");
        let text = text.replace("super::\0", "super::");
        for start in text.split('\0').skip(1) {
            let mut named = Vec::new();
            leaves("", start, &mut named);
            for path in named {
                let mut home = origin(&full_path(own, &path), &exported);
                while !home.is_empty() && !files.contains_key(&home) {
                    home = home
                        .rsplit_once("::")
                        .map_or_else(String::new, |(above, _)| above.to_owned());
                }
                // An operation has a handler, which takes a call, which has its operation: two files are one unit.
                if home == "app::endpoint::handler" {
                    home = "app::endpoint::operation".to_owned();
                }
                if !home.is_empty() && !format!("{own}::").starts_with(&format!("{home}::")) {
                    arrows.insert((own.clone(), home));
                }
            }
        }
    }
    assert!(
        arrows.contains(&("site::html::page".to_owned(), "site::openapi".to_owned())),
        "this test no longer sees that site/html/page.rs uses site/openapi.rs"
    );
    assert_no_circle(arrows);
}

/// What a module re-exports: each path that leads to something by way of it, and the path within the module itself.
fn exports(own: &str, code: &str) -> Vec<(String, String)> {
    let mut exports = Vec::new();
    for start in ["pub use ", "pub(crate) use "]
        .iter()
        .flat_map(|start| code.split(start).skip(1))
    {
        let mut paths = Vec::new();
        leaves("", start, &mut paths);
        for path in paths {
            let name = path.rsplit("::").next().unwrap();
            let full = match path.split("::").next().unwrap() {
                "crate" | "super" => full_path(own, &path),
                _ => format!("{own}::{path}"),
            };
            exports.push((format!("{own}::{name}"), full));
        }
    }
    exports
}

/// A path from the root, such as `store::Reader` for `super::Reader` in `store::pets`.
fn full_path(own: &str, path: &str) -> String {
    let rest = path.trim_start_matches("super::");
    let parents = (path.len() - rest.len()) / "super::".len();
    let kept = own.split("::").count() - parents;
    let above: String = own
        .split("::")
        .take(kept)
        .map(|part| format!("{part}::"))
        .collect();
    rest.strip_prefix("crate::")
        .map_or_else(|| above + rest, str::to_owned)
}

/// Where something stands that a path leads to by way of re-exports.
fn origin(path: &str, exported: &BTreeMap<String, String>) -> String {
    let mut path = path.to_owned();
    // Longer chains would be circles.
    for _ in 0..8 {
        let parts: Vec<&str> = path.split("::").collect();
        let followed = (1..=parts.len()).rev().find_map(|count| {
            let full = exported.get(&parts[..count].join("::"))?;
            Some([&[full.as_str()], &parts[count..]].concat().join("::"))
        });
        match followed {
            Some(full) if full != path => path = full,
            _ => break,
        }
    }
    path
}

/// Adds the paths of a tree such as `a::{b, c::D as E}` to those that are found. Returns the code after it.
fn leaves<'c>(prefix: &str, code: &'c str, found: &mut Vec<String>) -> &'c str {
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let (path, mut rest) = code.split_at(code.find(|c| !is_of_path(c)).unwrap_or(code.len()));
    let path = format!("{prefix}{path}");
    if !path.ends_with("::") || !rest.starts_with('{') {
        found.push(path);
        return rest;
    }
    while !rest.starts_with('}') {
        rest = leaves(&path, rest[1..].trim_start(), found);
        rest = &rest[rest.find([',', '}']).unwrap()..];
        if rest[1..].trim_start().starts_with('}') {
            rest = rest[1..].trim_start();
        }
    }
    &rest[1..]
}

/// The lines of a file without blank ones, comments and tests. A module of tests is the last item of its file.
fn code(text: &str) -> String {
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"));
    let mut code = String::new();
    let mut is_of_tests = false;
    while let Some(line) = lines.next() {
        let is_module = line.contains("mod ") && line.ends_with('{');
        if is_of_tests && is_module {
            let after = lines.skip_while(|line| *line != "}").nth(1);
            assert_eq!(after, None, "this stands after a module of tests");
            break;
        }
        let is_attribute = line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(any(test");
        let is_declared = is_of_tests && line.ends_with(';');
        if !is_attribute && !is_declared {
            code += line;
            code.push('\n');
        }
        is_of_tests = is_attribute;
    }
    code
}

/// The bytes of code in a file, without indentation: however the lines are broken, they stay the same.
fn size(file: &PathBuf) -> usize {
    code(&read(file))
        .lines()
        .map(|line| line.trim().len())
        .sum()
}

/// `tests/sizes` has the kilobytes of code: a change that needs more says so there. `BLESS=1 cargo test --test it tidy::`
/// writes it. Clippy counts the lines of functions.
#[test]
fn code_is_no_larger_than_its_size_says() {
    let sizes: BTreeMap<PathBuf, usize> =
        shipped().map(|file| (file.clone(), size(&file))).collect();
    for (file, bytes) in &sizes {
        assert!(
            *bytes <= 12_000,
            "{} has {bytes} bytes of code: split it",
            file.display()
        );
    }
    let now = sizes.values().sum::<usize>().div_ceil(1000);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(root().join("tests/sizes"), format!("src {now} kB\n")).unwrap();
    }
    let said = read("tests/sizes");
    let limit = said
        .trim_start_matches("src ")
        .trim_end()
        .trim_end_matches(" kB");
    let limit = limit.parse().unwrap();
    assert!(
        now <= limit,
        "src has {now} kB of code, and tests/sizes says {limit}; BLESS=1 rewrites it"
    );
    if now < limit {
        eprintln!("tests/sizes can be lowered from {limit} to {now}");
    }
}

/// The types that a file of code defines.
fn types(code: &str) -> impl Iterator<Item = &str> {
    let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
    code.lines().filter_map(move |line| {
        let (before, rest) = kinds.iter().find_map(|kind| line.split_once(kind))?;
        // Types within an impl or a trait are indented.
        let is_definition = before.is_empty() || before.starts_with("pub") && before.ends_with(' ');
        words(rest).next().filter(|_| is_definition)
    })
}

/// The comments that begin with What or Whether, and so must often be read twice.
fn riddles(text: &str) -> usize {
    let comments: Vec<&str> = text.lines().map(|line| line.trim()).collect();
    let is_begin = |line: &str| !line.starts_with("//") || line.len() <= 3 || line.ends_with('.');
    let is_riddle = |line: &str| {
        line.starts_with("//") && matches!(words(line).next(), Some("What" | "Whether"))
    };
    comments
        .array_windows()
        .filter(|[before, line]| is_begin(before) && is_riddle(line))
        .count()
}

#[test]
fn everything_is_found_by_its_name() {
    let entries = std::fs::read_dir(root().join("src")).unwrap().count();
    assert!(entries <= 18, "{entries} entries in src");
    let by_path = ["src", "tests"].into_iter().flat_map(sources);
    let by_path: Vec<_> = by_path
        .filter(|file| read(file).contains(concat!("#[", "path")))
        .collect();
    assert_eq!(
        by_path,
        // The tests of examples, and the script of a build.
        [
            "src/gate/tests/hostile.rs",
            "src/site/build.rs",
            "tests/it/embedding.rs"
        ]
        .map(Path::new),
        "a module has its place in the tree"
    );
    let texts: Vec<String> = shipped().map(read).collect();
    let mut files_of: BTreeMap<String, usize> = BTreeMap::new();
    for text in &texts {
        for name in types(&code(text)).collect::<BTreeSet<_>>() {
            *files_of.entry(name.to_owned()).or_default() += 1;
        }
    }
    let common: Vec<_> = files_of.iter().filter(|(_, files)| **files > 1).collect();
    assert!(
        common.len() <= 13,
        "{} type names are defined in several files: {common:?}",
        common.len()
    );
    let riddles: usize = texts.iter().map(|text| riddles(text)).sum();
    assert!(
        riddles <= 80,
        "{riddles} comments begin with What or Whether"
    );
}

/// The words of a text that have three letters or more.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.len() > 2)
}

#[test]
fn mutants_left_out_are_named_as_the_code_names_them() {
    let files: Vec<String> = shipped()
        .map(|file| format!("{} {}", file.display(), read(&file)))
        .collect();
    let known: BTreeSet<&str> = files.iter().flat_map(|text| words(text)).collect();
    let list = read(".cargo/mutants.toml");
    let (_, rows) = list.split_once("exclude_re = [").unwrap();
    for row in rows
        .lines()
        .map(str::trim)
        .filter(|row| row.starts_with(['"', '\'']))
    {
        let is_number = |rest: &str| {
            rest.trim_start_matches('(')
                .starts_with(|c: char| c.is_ascii_digit())
        };
        assert!(
            !row.split(':').skip(1).any(is_number) && !row.contains(r"\d"),
            "{row} has a line number"
        );
        let names: Vec<&str> = words(row).collect();
        for name in &names {
            assert!(known.contains(name), "{row}: src/ does not have {name}");
        }
        // A function is in a file that implements its type.
        for [owner, name] in names.array_windows() {
            let is_pair = row.contains(&format!("{owner}::{name}"));
            let is_impl =
                |line: &str| line.starts_with("impl") && words(line).any(|word| word == *owner);
            let has_both = |text: &String| {
                text.contains(&format!("fn {name}"))
                    && text.lines().any(|line| is_impl(line.trim()))
            };
            let is_function = name.starts_with(|c: char| c.is_ascii_lowercase());
            assert!(
                !is_pair || !is_function || files.iter().any(has_both),
                "{row}: no {owner}::{name}"
            );
        }
    }
}
