//! The client against real nodes, which are killed, frozen and replaced by a liar. Needs `RQLITED`: run by
//! `scripts/test.d/cluster`.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Mutex;

use rusqlite::params;
use support::rqlite_nodes::{NodeOptions, Nodes};

use super::*;
use petstore_base::testing::Folder;

const PATIENCE: Duration = Duration::from_secs(60);

fn client_of(address: &str, password: Option<&str>) -> Client {
    Client::new(ClusterAddress::parse(address).unwrap(), password).unwrap()
}

/// A cluster with an empty table `t`, and a client.
fn cluster() -> (Nodes, Client) {
    let nodes = Nodes::start(3);
    let client = client_of(&nodes.address(), None);
    create(&client);
    (nodes, client)
}

fn create(client: &Client) {
    let table = "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER UNIQUE, name TEXT, digest BLOB) STRICT";
    client.write(&[Statement::plain(table)], PATIENCE).unwrap();
}

fn insert(number: i64) -> Statement {
    Statement::new("INSERT INTO t (number) VALUES (?)", params![number]).unwrap()
}

fn numbers(client: &Client) -> Vec<i64> {
    let rows = client.read(
        &[Statement::plain("SELECT number FROM t ORDER BY id")],
        STRONG,
        PATIENCE,
    );
    rows.unwrap()[0]
        .iter()
        .map(|row| row[0].integer().unwrap())
        .collect()
}

/// Writes a row, so that a repetition of the request adds no second one.
fn write_once(client: &Client, number: i64) -> Result<Vec<StatementAnswer>, ClusterFailure> {
    let statement = Statement::new(
        "INSERT INTO t (number) VALUES (?) ON CONFLICT DO NOTHING",
        params![number],
    )
    .unwrap();
    client.write(&[statement], PATIENCE)
}

#[test]
fn values_survive() {
    let (_nodes, client) = cluster();
    let blob = (0..=255).collect::<Vec<u8>>();
    let sql = "INSERT INTO t (number, name, digest) VALUES (?, ?, ?)";
    let names = [
        "",
        "\0a\0",
        "é\u{10ffff}\u{fffd}\"\\\n\u{7f}",
        "'; DROP TABLE t; --",
        " X'41' ",
    ];
    let rows = [
        (Some(i64::MAX), names[0], Some(&blob[..])),
        (Some(i64::MIN), names[1], Some(&[])),
        (Some(0), names[2], None),
        (None, names[3], Some(&[0])),
        (Some(1 << 53 | 1), names[4], Some(&[255])),
    ];
    let insert =
        |(number, name, digest)| Statement::new(sql, params![number, name, digest]).unwrap();
    let statements = rows.map(insert);
    let outcomes = client.write(&statements, PATIENCE).unwrap();
    assert_eq!(
        outcomes
            .iter()
            .map(|outcome| outcome.last_insert_id)
            .collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    assert!(outcomes.iter().all(|outcome| outcome.rows_affected == 1));
    for level in [LINEARIZABLE, STRONG] {
        let read = Statement::plain("SELECT number, name, digest FROM t ORDER BY id");
        let count =
            Statement::new("SELECT count(*) FROM t WHERE name = ?", params![names[1]]).unwrap();
        let read = client.read(&[read, count], level, PATIENCE).unwrap();
        for (row, (number, name, digest)) in read[0].iter().zip(rows) {
            let expected = [
                number.map_or(ClusterValue::Null, ClusterValue::Integer),
                ClusterValue::Text(name.to_owned()),
                digest.map_or(ClusterValue::Null, |bytes| {
                    ClusterValue::Blob(bytes.to_owned())
                }),
            ];
            assert_eq!(*row, expected);
        }
        assert_eq!(
            (read[0].len(), &read[1][0][0]),
            (rows.len(), &ClusterValue::Integer(1)),
            "{level:?}"
        );
    }
}

#[test]
fn transaction_is_whole_or_nothing() {
    let (_nodes, client) = cluster();
    client.write(&[insert(1), insert(2)], PATIENCE).unwrap();
    let failed = client.write(&[insert(3), insert(1), insert(4)], PATIENCE);
    assert_eq!(
        failed,
        Err(ClusterFailure::Statement(
            1,
            "UNIQUE constraint failed: t.number".to_owned()
        ))
    );
    let failed = client.read(
        &[Statement::plain("SELECT colour FROM t")],
        LINEARIZABLE,
        PATIENCE,
    );
    assert_eq!(
        failed,
        Err(ClusterFailure::Statement(
            0,
            "no such column: colour".to_owned()
        ))
    );
    // A statement that cannot be prepared undoes the others too.
    let nowhere = Statement::plain("INSERT INTO nowhere VALUES (1)");
    for (i, statements) in [[nowhere.clone(), insert(5)], [insert(5), nowhere]]
        .into_iter()
        .enumerate()
    {
        let failed = client.write(&statements, PATIENCE);
        assert_eq!(
            failed,
            Err(ClusterFailure::Statement(
                i,
                "no such table: nowhere".to_owned()
            ))
        );
    }
    assert_eq!(numbers(&client), [1, 2]);
}

#[test]
fn any_node_that_is_left_serves() {
    let (mut nodes, client) = cluster();
    for i in 0..3 {
        nodes.kill(i);
        write_once(&client, i64::try_from(i).unwrap()).unwrap();
        nodes.start_node(i);
        nodes.wait_until_ready();
    }
    assert_eq!(numbers(&client), [0, 1, 2]);
    let failures: u64 = client.meters().iter().map(|meter| meter.failures).sum();
    assert!(failures >= 2, "{:?}", client.meters());
}

#[test]
fn client_follows_the_leader_except_to_a_node_that_failed() {
    let (mut nodes, client) = cluster();
    let leader = nodes.leader();
    let requests = |client: &Client, i: usize| client.meters()[i].requests;
    numbers(&client);
    let before = requests(&client, leader);
    (0..5).for_each(|_| drop(numbers(&client)));
    assert_eq!(requests(&client, leader), before + 5);
    // Another node leads. It is first reached through another node, then directly.
    nodes.kill(leader);
    write_once(&client, 1).unwrap();
    let next = nodes.leader();
    nodes.start_node(leader);
    nodes.wait_until_ready();
    // The new leader may have failed as well before it was elected. Pretend that this was long ago.
    let fails = |i: usize, at| client.nodes[i].history().failed_at = at;
    (0..3).for_each(|i| fails(i, None));
    (0..5).for_each(|_| drop(numbers(&client)));
    let before = requests(&client, next);
    numbers(&client);
    assert_eq!(requests(&client, next), before + 1);
    client.follow(&nodes.host(leader).to_string());
    assert_eq!(
        client.favourite.load(Relaxed),
        leader,
        "it failed half a minute ago"
    );
    // The name of an unreachable leader.
    let other = (leader + 1) % 3;
    client.favourite.store(other, Relaxed);
    fails(leader, Some(Instant::now()));
    client.follow(&nodes.host(leader).to_string());
    client.follow("elsewhere:4002");
    assert_eq!(client.favourite.load(Relaxed), other);
}

#[test]
fn frozen_node_costs_its_time_limit_once() {
    let (nodes, client) = cluster();
    // The node that answered last, and then the leader.
    for (number, frozen) in [(1, 0), (2, nodes.leader())] {
        nodes.freeze(frozen);
        write_once(&client, number).unwrap();
        assert_eq!(numbers(&client).last(), Some(&number));
        nodes.thaw(frozen);
        nodes.wait_until_ready();
    }
}

#[test]
fn node_that_is_removed_stops_no_reads_although_nobody_writes() {
    let (mut nodes, client) = cluster();
    let read = || client.read(&[Statement::plain("SELECT 1")], LINEARIZABLE, PATIENCE);
    // rqlite turns the first linearizable read of a leader into a strong one.
    read().unwrap();
    let [gone, other] = [1, 2].map(|i| (nodes.leader() + i) % 3);
    nodes.kill(gone);
    let removed = nodes.ask(
        other,
        "DELETE",
        "/remove",
        format!(r#"{{"id":"{gone}"}}"#).as_bytes(),
    );
    assert_eq!(removed.map(|(status, _)| status), Some(200));
    assert_eq!(read(), Ok(vec![vec![vec![ClusterValue::Integer(1)]]]));
}

#[test]
fn leader_moves_and_no_write_is_lost_or_doubled() {
    let (mut nodes, client) = cluster();
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (done, client) = (&done, &client);
            scope.spawn(move || {
                for number in 0..50 {
                    let number = thread * 1000 + number;
                    write_once(client, number).unwrap();
                    done.lock().unwrap().push(number);
                }
            });
        }
        for _ in 0..2 {
            let (leader, before) = (nodes.leader(), done.lock().unwrap().len());
            while done.lock().unwrap().len() < (before + 20).min(200) {
                std::thread::yield_now();
            }
            nodes.kill(leader);
            assert_ne!(nodes.leader(), leader);
            nodes.start_node(leader);
            nodes.wait_until_ready();
        }
    });
    let (mut done, mut found) = (done.into_inner().unwrap(), numbers(&client));
    done.sort_unstable();
    found.sort_unstable();
    assert_eq!(done, found);
}

#[test]
fn cluster_without_a_quorum_is_unavailable_and_heals() {
    let (mut nodes, client) = cluster();
    let leader = nodes.leader();
    let others: Vec<usize> = (0..3).filter(|&i| i != leader).collect();
    others.iter().for_each(|&i| nodes.kill(i));
    let patience = Duration::from_secs(1);
    let failed = client.write(&[insert(1)], patience).unwrap_err();
    assert!(matches!(failed, ClusterFailure::Node(_)), "{failed:?}");
    let read = client.read(&[Statement::plain("SELECT 1")], STRONG, patience);
    assert!(matches!(read, Err(ClusterFailure::Node(_))), "{read:?}");
    others.iter().for_each(|&i| nodes.start_node(i));
    nodes.wait_until_ready();
    write_once(&client, 2).unwrap();
    nodes.kill(0);
    nodes.kill(1);
    nodes.kill(2);
    assert!(matches!(
        client.write(&[insert(1)], patience),
        Err(ClusterFailure::Node(Trouble {
            may_be_done: false,
            ..
        }))
    ));
}

#[test]
fn wrong_password_is_named_and_no_password_is_ever_shown() {
    let user = Some(("pets".to_owned(), "hush-hush".to_owned()));
    let nodes = Nodes::start_with(
        3,
        NodeOptions {
            user,
            ..NodeOptions::default()
        },
    );
    let address = nodes.address().replace("rqlite://", "rqlite://pets@");
    let client = client_of(&address, Some("hush-hush"));
    create(&client);
    assert_eq!(numbers(&client), [0; 0]);
    for (address, password) in [
        (address.clone(), Some("hush-wrong")),
        (address.clone(), None),
        (nodes.address(), None),
    ] {
        let wrong = client_of(&address, password);
        for failed in [
            wrong.rqlite_version(PATIENCE).unwrap_err(),
            wrong.write(&[insert(1)], PATIENCE).unwrap_err(),
        ] {
            assert!(
                matches!(
                    failed,
                    ClusterFailure::Node(Trouble {
                        kind: ErrorKind::PasswordRefused,
                        may_be_done: false,
                        ..
                    })
                ),
                "{failed:?}"
            );
            assert!(!failed.to_string().contains("hush"), "{failed}");
            assert_eq!(Error::from(failed).kind(), ErrorKind::PasswordRefused);
        }
        assert_eq!(wrong.meters()[0].requests, 1, "it is not tried again");
    }
    assert!(
        Client::new(ClusterAddress::parse("rqlite://one").unwrap(), Some("")).is_ok(),
        "it is none"
    );
    let line = Client::new(ClusterAddress::parse("rqlite://one").unwrap(), Some("hush"))
        .err()
        .unwrap()
        .to_string();
    assert!(line.contains("no user") && !line.contains("hush"), "{line}");
}

#[test]
fn old_version_is_refused_unless_it_is_allowed() {
    let nodes = Nodes::start(1);
    let address = nodes.address();
    let version = Client::connect(&address, PATIENCE)
        .unwrap()
        .rqlite_version(PATIENCE)
        .unwrap();
    let refused = Client::connect(address.trim_end_matches("?allow-old"), PATIENCE);
    match refused {
        Err(error) => {
            assert!(is_old(&version));
            assert_eq!(error.kind(), ErrorKind::RqliteOlder);
            assert!(error.to_string().contains(&version), "{error}");
        }
        Ok(_) => assert!(!is_old(&version)),
    }
    for (version, expected) in [
        ("8", true),
        ("8.26.8", true),
        ("9.3.17", true),
        ("9.4", false),
        ("9.4.5", false),
        ("10.0.0-rc1", false),
    ] {
        assert_eq!(is_old(version), expected, "{version}");
    }
}

/// Makes a certificate authority and the certificate of a node with this address, in PEM.
fn certificates(folder: &std::path::Path, ip: std::net::IpAddr) {
    let script = format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca \
            -keyout ca.key -out ca.pem -addext basicConstraints=critical,CA:TRUE &&
         openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=node -keyout node.key -out node.csr &&
         printf 'subjectAltName=IP:{ip}\\nbasicConstraints=CA:FALSE\\n' >node.ext &&
         openssl x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile node.ext -out node.pem"
    );
    let made = Command::new("sh")
        .current_dir(folder)
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}

#[test]
fn tls_needs_the_authority_that_is_named() {
    let folder = Folder::new();
    let mut nodes = Nodes::start(1);
    certificates(&folder.0, nodes.host(0).ip());
    let host = nodes.host(0);
    let file = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    nodes.kill(0);
    nodes.change([
        "-http-cert".to_owned(),
        file("node.pem"),
        "-http-key".to_owned(),
        file("node.key"),
    ]);
    nodes.start_node(0);
    let client = client_of(
        &format!("rqlites://{host}/?allow-old&ca={}", file("ca.pem")),
        None,
    );
    create(&client);
    assert_eq!(numbers(&client), [0; 0]);
    // Another authority of the same name, and those of the system.
    let other = Folder::new();
    certificates(&other.0, host.ip());
    let other = format!("rqlites://{host}/?ca={}", other.0.join("ca.pem").display());
    for address in [other, format!("rqlites://{host}")] {
        let failed = client_of(&address, None)
            .rqlite_version(Duration::ZERO)
            .unwrap_err();
        let ClusterFailure::Node(Trouble {
            text: why,
            may_be_done: false,
            ..
        }) = failed
        else {
            panic!("{failed:?}")
        };
        assert!(why.contains("certificate"), "{why}");
    }
    let plain = client_of(&format!("rqlite://{host}"), None)
        .rqlite_version(Duration::ZERO)
        .unwrap_err();
    assert!(plain.to_string().contains("HTTPS"), "{plain}");
}

#[test]
fn authorities_that_cannot_be_read_are_named() {
    let folder = Folder::new();
    let file = folder.0.join("ca.pem");
    let refusal = || {
        let address = format!("rqlites://one/?ca={}", file.display());
        Client::new(ClusterAddress::parse(&address).unwrap(), None)
            .err()
            .unwrap()
    };
    assert_eq!(refusal().kind(), ErrorKind::FileMissing);
    std::fs::write(&file, "no certificate").unwrap();
    assert_eq!(refusal().kind(), ErrorKind::InvalidInput);
    assert!(refusal().to_string().contains("ca.pem"));
}

/// A server that answers each connection with the next of these responses, and then closes it. For `None`, it sends
/// nothing until the client gives up.
fn liar(answers: Vec<Option<Vec<u8>>>) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("rqlite://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 65536];
            let _ = stream.read(&mut buffer).unwrap();
            match answer {
                Some(bytes) => drop(stream.write_all(&bytes)),
                None => while stream.read(&mut buffer).is_ok_and(|count| count > 0) {},
            }
        }
    });
    (address, thread)
}

fn response(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nX-Rqlite-Version: v9.4.0\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

/// 1,000,000 pets took 86 s.
#[test]
fn follower_has_as_long_for_a_whole_database_as_the_leader() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = client_of(
        &format!("rqlite://{}", listener.local_addr().unwrap()),
        None,
    );
    let (told, tell) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let asked = |end: &str| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(end.as_bytes()) {
                let mut buffer = [0; 1024];
                let count = stream.read(&mut buffer).unwrap();
                assert!(count > 0, "{}", String::from_utf8_lossy(&asked));
                asked.extend_from_slice(&buffer[..count]);
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
                .unwrap();
            String::from_utf8(asked)
                .unwrap()
                .lines()
                .next()
                .unwrap()
                .to_owned()
        };
        told.send([asked("file"), asked("\r\n\r\n")]).unwrap();
    });
    client.load(b"file", PATIENCE).unwrap();
    client.download(&mut Vec::new(), PATIENCE).unwrap();
    let path = format!("timeout={}s HTTP/1.1", WHOLE.as_secs());
    assert_eq!(
        tell.recv_timeout(PATIENCE).unwrap(),
        [
            format!("POST /db/load?{path}"),
            format!("GET /db/backup?{path}")
        ]
    );
}

#[test]
fn write_without_a_whole_response_has_an_unknown_outcome() {
    let whole = response(r#"{"results":[{"last_insert_id":1,"rows_affected":1}]}"#);
    let endless = [
        &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
        &b"5\r\n[[[[[\r\n".repeat(9),
    ]
    .concat();
    let huge = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}",
        u64::MAX,
        "[".repeat(99)
    )
    .into_bytes();
    for answer in [
        Some(vec![]),
        Some(whole[..20].to_vec()),
        Some(whole[..whole.len() - 1].to_vec()),
        Some(response("")),
        Some(response("\0\u{1b}[31m")),
        Some(response(r#"{"results":[]}"#)),
        Some(response(
            r#"{"results":[{}],"error":"leadership lost while committing log"}"#,
        )),
        Some(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
        Some(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n".to_vec()),
        Some(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n".to_vec()),
        Some(
            b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
                .to_vec(),
        ),
        Some(endless),
        Some(huge),
        Some(
            b"HTTP/1.1 200 OK\r\nX: "
                .iter()
                .copied()
                .chain([b'x'; 200_000])
                .collect(),
        ),
        None,
    ] {
        let shown = answer
            .as_ref()
            .map(|bytes| String::from_utf8_lossy(&bytes[..bytes.len().min(90)]).into_owned());
        let (address, thread) = liar(vec![answer]);
        let client = client_of(&address, None);
        let failed = client.write(&[insert(1)], Duration::ZERO).unwrap_err();
        let ClusterFailure::Node(Trouble {
            text: why,
            may_be_done: true,
            ..
        }) = failed
        else {
            panic!("{shown:?}: {failed:?}")
        };
        assert!(!why.chars().any(char::is_control), "{why:?}");
        assert_eq!(client.meters()[0].requests, 1, "{shown:?}");
        thread.join().unwrap();
    }
}

#[test]
fn harmless_write_and_read_are_sent_again() {
    let whole = response(r#"{"results":[{"last_insert_id":7,"rows_affected":1,"values":[[7]]}]}"#);
    let answers = || {
        vec![
            Some(whole[..whole.len() - 5].to_vec()),
            Some(response("[]")),
            Some(whole.clone()),
        ]
    };
    let (address, thread) = liar(answers());
    let client = client_of(&address, None);
    assert_eq!(
        client.write(&[insert(1)], PATIENCE).unwrap()[0].last_insert_id,
        7
    );
    thread.join().unwrap();
    let (address, thread) = liar(answers());
    let client = client_of(&address, None);
    assert_eq!(
        client
            .read(&[Statement::plain("SELECT 7")], LINEARIZABLE, PATIENCE)
            .unwrap(),
        [[[ClusterValue::Integer(7)]]]
    );
    let meter = &client.meters()[0];
    // On a busy machine, a further try may come too late.
    assert!(
        meter.failures >= 2 && meter.requests == meter.failures + 1,
        "{meter:?}"
    );
    assert!(meter.duration > Duration::ZERO);
    thread.join().unwrap();
}

#[test]
fn host_that_is_not_rqlite_is_named_and_passed_over() {
    let web = || Some(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_vec());
    let missing = Some(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec());
    for (answer, expected) in [(web(), ""), (missing, ": status 404")] {
        let (address, thread) = liar(vec![answer]);
        let failed = client_of(&address, None)
            .rqlite_version(Duration::ZERO)
            .unwrap_err()
            .to_string();
        assert_eq!(
            failed,
            format!(
                "{}: the response is not from rqlite{expected}",
                address.trim_start_matches("rqlite://")
            )
        );
        thread.join().unwrap();
    }
    let (address, thread) = liar(vec![web()]);
    let (node, node_thread) = liar(vec![Some(response("{}"))]);
    let client = client_of(
        &format!("{address},{}", node.trim_start_matches("rqlite://")),
        None,
    );
    assert_eq!(client.rqlite_version(PATIENCE).unwrap(), "9.4.0");
    thread.join().unwrap();
    node_thread.join().unwrap();
}

#[test]
fn name_that_is_not_resolved_is_named_and_nothing_was_written() {
    // Longer than a name can be, so that no DNS server is asked.
    let client = client_of(&format!("rqlite://{}", "a".repeat(64)), None);
    let failed = client.write(&[insert(1)], Duration::ZERO).unwrap_err();
    let ClusterFailure::Node(Trouble {
        text: why,
        may_be_done: false,
        ..
    }) = failed
    else {
        panic!("{failed:?}")
    };
    assert!(
        why.ends_with(": the name of the host cannot be resolved"),
        "{why}"
    );
}

#[test]
fn node_that_hangs_is_passed_over_while_the_others_elect_a_leader() {
    let nobody = || {
        let body = "leader not found\n";
        let head = format!(
            "HTTP/1.1 503 No\r\nX-Rqlite-Version: v9.4.0\r\nContent-Length: {}\r\n",
            body.len()
        );
        Some(format!("{head}Connection: close\r\n\r\n{body}").into_bytes())
    };
    let servers = [
        vec![None, nobody()],
        vec![nobody(), Some(response("{\"results\":[{}]}"))],
        vec![nobody()],
    ];
    let (hosts, threads): (Vec<_>, Vec<_>) = servers
        .into_iter()
        .map(|answers| {
            let (address, thread) = liar(answers);
            (address.replace("rqlite://", ""), thread)
        })
        .unzip();
    let client = client_of(&format!("rqlite://{}", hosts.join(",")), None);
    client.write(&[insert(1)], PATIENCE).unwrap();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let requests: Vec<u64> = client.meters().iter().map(|meter| meter.requests).collect();
    assert_eq!(requests, [2, 2, 1]);
}
