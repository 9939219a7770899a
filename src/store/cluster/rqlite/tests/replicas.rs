//! Nodes that do not have what the leader has.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use petstore_base::error::ErrorKind;

/// Three nodes with five pets, and the place of the leader.
fn with_pets() -> (Nodes, PathBuf, usize) {
    let (nodes, path) = cluster(3);
    let pets: Vec<Work> = (0..5).map(|i| create(&format!("pet {i}."))).collect();
    commit(&mut open(&path), &pets);
    let leader = nodes.leader();
    assert_eq!(compare(&path).unwrap(), [""; 0]);
    (nodes, path, leader)
}

/// Changes the SQLite file of one node behind its back, and leaves its counter of changes as it was.
fn change(nodes: &Nodes, i: usize, sql: &str) {
    let file = nodes.folder().join(format!("data-{i}/db.sqlite"));
    let file = rusqlite::Connection::open(file).unwrap();
    file.busy_timeout(Duration::from_secs(5)).unwrap();
    let kept = "CREATE TEMP TABLE kept AS SELECT changes FROM cluster_changes";
    let back = "UPDATE cluster_changes SET changes = (SELECT changes FROM kept)";
    file.execute_batch(&format!("BEGIN IMMEDIATE; {kept}; {sql}; {back}; COMMIT"))
        .unwrap();
}

#[test]
fn node_with_other_content_is_named_and_check_fails() {
    for sql in [
        "UPDATE pets SET name = 'pet 7.' WHERE id = 2",
        "UPDATE pets SET name = name || 'x' WHERE id = 2",
        "UPDATE pets SET status = 'sold' WHERE id = 2",
        "UPDATE pets SET category_id = 9223372036854775807 WHERE id = 2",
        "DELETE FROM pets WHERE id = 2",
        "UPDATE pets SET id = 9 WHERE id = 2; UPDATE pets SET id = 2 WHERE id = 3; UPDATE pets SET id = 3 WHERE id = 9; \
         UPDATE sqlite_sequence SET seq = 5 WHERE name = 'pets'",
        "INSERT INTO api_keys (digest, name, read_only, created_at) VALUES (zeroblob(32), 'ci', 0, 0)",
    ] {
        let (nodes, path, leader) = with_pets();
        let other = (leader + 1) % 3;
        change(&nodes, other, sql);
        let found = crate::check(&path).unwrap();
        let expected = format!(
            "{} has other pets or settings than the leader; keep a copy of it",
            nodes.host(other)
        );
        assert!(
            found.faults[0].starts_with(&expected),
            "{sql}: {:?}",
            found.faults
        );
        assert_eq!(
            (found.faults.len(), found.kind, found.pets),
            (1, Some(ErrorKind::ReplicasDiffer), 5)
        );
    }
}

/// Loses a create on one node, as after a full disk: SQLite did not write, and rqlite went on.
#[test]
fn node_that_missed_a_create_is_named_before_and_after_the_next_one() {
    let (nodes, path, leader) = with_pets();
    let other = (leader + 1) % 3;
    change(
        &nodes,
        other,
        "DELETE FROM pets WHERE id = 5; UPDATE sqlite_sequence SET seq = 4 WHERE name = 'pets'",
    );
    let found = compare(&path).unwrap();
    let behind = format!("{} has ids up to 4 and", nodes.host(other));
    assert!(
        found.len() == 1 && found[0].starts_with(&behind),
        "{found:?}"
    );
    commit(&mut open(&path), &[create("Rex"), create("Tom")]);
    run(&path, "DELETE FROM pets WHERE id = 1");
    let found = compare(&path).unwrap();
    assert!(
        found.len() == 1 && found[0].starts_with(&nodes.host(other).to_string()),
        "{found:?}"
    );
}

#[test]
fn no_node_is_to_be_replaced_if_the_leader_differs_from_most() {
    let (nodes, path, leader) = with_pets();
    change(&nodes, leader, "DELETE FROM pets WHERE id = 2");
    let found = compare(&path).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .all(|line| line.contains("restart no node") && !line.contains("replace")),
        "{found:?}"
    );
}

#[test]
fn host_that_cannot_be_compared_is_named_with_the_reason() {
    let (mut nodes, path, leader) = with_pets();
    let other = (leader + 1) % 3;
    // The leader comes first, so that a new client asks it first.
    let path = (0..leader).fold(path, |path, _| turned(&path));
    let found = |expected: &str, path: &Path| {
        let found = compare(path).unwrap();
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    };
    nodes.kill(other);
    found(
        &format!("{} cannot be compared with the leader: ", nodes.host(other)),
        &path,
    );
    let users = nodes.folder().join("others.json");
    std::fs::write(
        &users,
        r#"[{"username":"a","password":"b","perms":["all"]}]"#,
    )
    .unwrap();
    nodes.change(["-auth".to_owned(), users.to_str().unwrap().to_owned()]);
    nodes.start_node(other);
    let deadline = Instant::now() + petstore_base::testing::PATIENCE;
    while nodes.ask(other, "GET", "/readyz", b"").is_none() {
        assert!(Instant::now() < deadline, "the node does not answer");
        thread::sleep(Duration::from_millis(20));
    }
    found("(401)", &path);
    nodes.kill(other);
    let listener = std::net::TcpListener::bind((nodes.host(other).ip(), 4001)).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let answer =
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 14\r\n\r\n{\"results\":[]}";
            stream.write_all(answer).unwrap();
        }
    });
    found("the response is not from rqlite", &path);
}

#[test]
fn pets_of_all_slices_are_compared() {
    let (nodes, path, leader) = with_pets();
    // Some slices end early because of long texts.
    run(
        &path,
        "INSERT INTO pets (name, category_id) WITH RECURSIVE n (i) AS (SELECT 6 UNION ALL SELECT i + 1 FROM n \
         WHERE i < 9000) SELECT 'pet ' || i || CASE WHEN i % 1000 < 4 THEN hex(zeroblob(250000)) ELSE '.' END, 1 FROM n",
    );
    assert_eq!(compare(&path).unwrap(), [""; 0]);
    let other = (leader + 1) % 3;
    change(
        &nodes,
        other,
        "UPDATE pets SET name = replace(name, '8', '7') WHERE id = 8008",
    );
    let found = compare(&path).unwrap();
    assert!(
        found.len() == 1 && found[0].starts_with(&nodes.host(other).to_string()),
        "{found:?}"
    );
}

#[test]
fn nodes_are_compared_while_pets_are_created_and_changed() {
    let (nodes, path, leader) = with_pets();
    let found_under_load = |times: usize| -> Vec<_> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut cluster = open(&turned(&path));
                for i in 0.. {
                    commit(&mut cluster, &[create(&format!("another {i}"))]);
                    run(
                        &path,
                        "UPDATE pets SET category_id = category_id + 1 WHERE id IN (1, 4)",
                    );
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let found = (0..times).map(|_| compare(&path)).collect();
            is_over.store(true, Ordering::Relaxed);
            found
        })
    };
    let found = found_under_load(20);
    assert!(
        found
            .iter()
            .all(|found| found.as_ref().is_ok_and(Vec::is_empty)),
        "{found:?}"
    );
    let other = (leader + 1) % 3;
    change(
        &nodes,
        other,
        "UPDATE pets SET name = 'pet 7.' WHERE id = 2",
    );
    let found = found_under_load(1).remove(0).unwrap();
    assert!(
        found.len() == 1 && found[0].starts_with(&nodes.host(other).to_string()),
        "{found:?}"
    );
}
