//! The services of a cluster, with real nodes. Needs `RQLITED`: run by `scripts/test.d/cluster`.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::slice;
use std::time::{Duration, Instant};

use super::*;
use crate::app::api::{pets, router};
use crate::app::endpoint::{Handler, Operation, Router};
use crate::app::pipeline::reading::ENOUGH_BYTES;
use crate::app::pipeline::{Authenticator, ReadService, SharedState, WriteService};
use crate::app::settings::ApiSettings;
use crate::model::{ApiKey, KeyScope, NewPet, Page, PetQuery};
use crate::ops::keys::secret::digest;
use crate::store::Reader;
use crate::store::cluster::{CONTENDS_FOR, Work, meters};
use petstore_base::http::Response;
use petstore_base::testing::{Folder, logged};
use petstore_gate::Service;
use support::rqlite_nodes::Nodes;

const SECRET: &str = "secret";

static PAGES: &[Operation] = &[
    Operation::new(
        "/half",
        "half",
        Handler::Get(|_, _| Ok(Response::new(200, vec![b'x'; ENOUGH_BYTES / 2]))),
    ),
    Operation::new(
        "/busy",
        "busy",
        Handler::Get(|_, _| Err(Failure::Fault("as if".to_owned()))),
    ),
];
static WITH_PAGES: Router = Router(&[pets::OPERATIONS, PAGES]);

fn shared() -> SharedState {
    let mut shared = SharedState::for_tests(Authenticator::default());
    shared.settings = Arc::new(ApiSettings {
        is_experimental: true,
        ..ApiSettings::default()
    });
    shared
}

/// The key of all requests.
fn secret() -> ApiKey {
    ApiKey {
        digest: digest(SECRET),
        name: "ci".to_owned(),
        scope: KeyScope::Full,
        created_at: 0,
        expires_at: None,
        last_used_at: None,
    }
}

/// The services of an instance, and the folder of its private database.
struct Instance {
    reads: ClusterReads,
    writes: ClusterWrites,
    path: PathBuf,
    _folder: Folder,
}

/// An instance on a cluster that has the key and the pets `a`, `b` and `c`.
fn instance() -> (Nodes, Instance) {
    let nodes = Nodes::start(1);
    let path: PathBuf = nodes.address().into();
    let mut cluster = Cluster::open(&path).unwrap();
    let mut work: Vec<Work> = ["a", "b", "c"]
        .map(|name| Work::Create {
            new: NewPet::new(name, 1),
            key: None,
        })
        .into();
    work.push(Work::AddKey {
        key: secret(),
        newest: None,
    });
    cluster.commit_all(&work).unwrap();
    let instance = Instance::new(&path);
    (nodes, instance)
}

impl Instance {
    fn new(path: &Path) -> Self {
        let folder = Folder::new();
        let copy = KeyCopy::new(Writer::open(&folder.database()).unwrap());
        let database = || Reader::open(&folder.database()).unwrap();
        let cluster = || Cluster::open(path).unwrap();
        Self {
            reads: ClusterReads::new(cluster(), copy.clone(), database(), shared()),
            writes: ClusterWrites::new(cluster(), copy, database(), shared()),
            path: path.to_owned(),
            _folder: folder,
        }
    }

    /// Sends writes in one batch: the method, the id of a pet and the body of each. Returns the statuses.
    fn write(&mut self, asked: &[(&str, &str, &str)]) -> Vec<u16> {
        let targets: Vec<String> = asked
            .iter()
            .map(|(_, id, _)| format!("/v1/pets{id}"))
            .collect();
        let requests = asked.iter().zip(&targets);
        let requests: Vec<Request> = requests
            .map(|((method, _, body), target)| Request {
                id: "-",
                method,
                target,
                headers: vec![("Authorization", "Bearer secret")],
                body: body.as_bytes(),
            })
            .collect();
        let mut responses = Vec::new();
        self.writes.answer(&requests, &mut responses);
        responses.iter().map(|response| response.status).collect()
    }

    /// Sends all reads as a worker does: those without a response again. Returns the number of responses of each batch, and for
    /// each request its status, and the name of a pet.
    fn read(&mut self, targets: &[&str]) -> (Vec<usize>, Vec<String>) {
        let (mut counts, mut all) = (Vec::new(), Vec::new());
        while all.len() < targets.len() {
            let requests = targets[all.len()..].iter().map(|target| Request {
                id: "-",
                method: "GET",
                target,
                headers: vec![("Authorization", "Bearer secret")],
                body: b"",
            });
            let requests: Vec<Request> = requests.collect();
            let mut responses = Vec::new();
            self.reads.answer(&requests, &mut responses);
            counts.push(responses.len());
            all.extend(responses.iter().map(|response| {
                let pet = serde_json::from_slice::<Pet>(response.body());
                pet.map_or(response.status.to_string(), |pet| pet.name.into_owned())
            }));
        }
        (counts, all)
    }

    fn names(&self) -> String {
        let mut cluster = Cluster::open(&self.path).unwrap();
        cluster.begin().unwrap();
        let page = Page::ascending(100, None);
        let pets = cluster.list(&PetQuery::all(page)).unwrap();
        pets.into_iter().map(|pet| pet.name.into_owned()).collect()
    }

    /// Runs statements as another program would.
    fn run(&self, sql: &str) {
        crate::store::cluster::run(&self.path, sql);
    }

    fn asked(&self) -> u64 {
        meters(&self.path).iter().map(|meter| meter.requests).sum()
    }
}

const NEW: &str = r#"{"name":"n","categoryId":1}"#;

#[test]
fn gets_of_a_batch_are_one_request_and_each_response_is_at_its_place() {
    let (_nodes, mut instance) = instance();
    instance.reads.own.pipeline.router = &WITH_PAGES;
    instance.read(&["/v1/pets/1"]);
    instance.reads.own.pipeline.shared.count(&["getPet"]);
    let before = instance.asked();
    let targets = [
        "/v1/pets/3",
        "/v1/pets/9",
        "/v1/pets/1",
        "/v1/pets/3",
        "/busy",
        "/v1/pets/2",
    ];
    let mut got = Vec::new();
    let lines = logged(|| got = instance.read(&targets).1);
    assert_eq!(got, ["c", "404", "a", "c", "500", "b"]);
    assert_eq!(
        instance.asked() - before,
        2,
        "one for the beginning, and one for the pets"
    );
    let count = |status: u16| {
        let labels = format!("requests_total{{operation=\"getPet\",status=\"{status}\"}}");
        instance.reads.own.pipeline.shared.counted(&labels)
    };
    assert_eq!(
        [200, 404, 503].map(count),
        ["4", "1", "0"].map(|number| Some(number.to_owned()))
    );
    assert_eq!(lines, ["ERROR request -: busy: as if"]);
    let targets = ["/v1/pets/1", "/half", "/v1/pets/2", "/half", "/v1/pets/3"];
    let (counts, got) = instance.read(&targets);
    assert_eq!(counts, [4, 1], "large responses end a batch");
    assert_eq!(got, ["a", "200", "b", "200", "c"]);
}

#[test]
fn list_that_is_asked_for_again_is_kept_until_something_changes() {
    let (_nodes, mut instance) = instance();
    let requests = |instance: &mut Instance| {
        let before = instance.asked();
        assert_eq!(instance.read(&["/v1/pets", "/v1/pets"]).1, ["200"; 2]);
        instance.asked() - before
    };
    requests(&mut instance);
    assert_eq!(requests(&mut instance), 1, "the revision");
    instance.run("UPDATE pets SET name = 'x' WHERE id = 1");
    assert_eq!(requests(&mut instance), 3, "and the keys, and the list");
}

#[test]
fn gets_that_fail_together_wait_for_the_cluster_once() {
    let (mut nodes, mut instance) = instance();
    instance.read(&["/v1/pets/1"]);
    nodes.kill(0);
    let begun = Instant::now();
    let (_, got) = instance.read(&["/v1/pets/1"; 9]);
    assert_eq!(got, ["503"; 9]);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_eq!(instance.read(&["/healthz", "/readyz"]).1[1], "503");
}

#[test]
fn batch_knows_the_keys_that_another_instance_has_changed() {
    let (_nodes, mut instance) = instance();
    let mut other = Cluster::open(&instance.path).unwrap();
    assert_eq!(instance.write(&[("POST", "", NEW)]), [201]);
    let (digest, newest) = (digest(SECRET), digest(SECRET));
    let delete = Work::DeleteKey { digest, newest };
    other.commit_all(&[delete]).unwrap();
    assert_eq!(instance.write(&[("POST", "", NEW)]), [401]);
    assert_eq!(instance.read(&["/v1/pets/1", "/nowhere"]).1, ["401", "404"]);
    let key = secret();
    other
        .commit_all(&[Work::AddKey { key, newest: None }])
        .unwrap();
    assert_eq!(instance.read(&["/v1/pets/1"]).1, ["a"]);
    assert_eq!(instance.write(&[("DELETE", "/1", "")]), [204]);
    assert_eq!(instance.names(), "bcn");
}

/// The next changes of the pet 1 meet a change of another instance.
fn overtake(instance: &Instance, times: usize) {
    instance.run("CREATE TABLE IF NOT EXISTS theirs (times)");
    instance.run(&format!("INSERT INTO theirs VALUES ({times})"));
    instance.run(
        "CREATE TRIGGER IF NOT EXISTS overtakes BEFORE UPDATE ON pets WHEN old.id = 1 \
         AND (SELECT sum(times) FROM theirs) > 0 \
         BEGIN UPDATE theirs SET times = times - 1; SELECT RAISE(IGNORE); END",
    );
}

#[test]
fn changes_of_a_batch_share_its_commit_and_one_that_is_overtaken_is_made_again() {
    let (_nodes, mut instance) = instance();
    instance.write(&[("POST", "", NEW)]);
    let before = instance.asked();
    let rename = |name: &str| format!(r#"{{"name":"{name}"}}"#);
    let [b, bb, x] = ["B", "BB", "X"].map(rename);
    let got = instance.write(&[
        ("PATCH", "/2", &b),
        ("POST", "", NEW),
        ("DELETE", "/3", ""),
        ("PATCH", "/3", &b),
        ("PATCH", "/2", &bb),
        ("PATCH", "/99", &b),
        ("PATCH", "/x", &b),
        ("PATCH", "/%32", "{}"),
        ("PATCH", "/2", r#"{"x":1}"#),
    ]);
    assert_eq!(got, [200, 201, 204, 404, 200, 404, 404, 200, 400]);
    assert_eq!(
        instance.asked() - before,
        3,
        "the revision, the pets, and the batch"
    );
    assert_eq!(instance.names(), "aBBnn");
    overtake(&instance, 3);
    let lines = logged(|| {
        let got = instance.write(&[
            ("PATCH", "/1", &x),
            ("POST", "", NEW),
            ("PATCH", "/1", r#"{"categoryId":7}"#),
            ("PATCH", "/2", &b),
        ]);
        assert_eq!(got, [200, 201, 200, 200]);
    });
    assert!(lines.is_empty(), "{lines:?}");
    assert_eq!(instance.names(), "XBnnn");
    // What has seen a deletion that a rule of others rejects is handled again.
    instance.run(
        "CREATE TRIGGER keeps BEFORE DELETE ON pets WHEN old.id = 2 BEGIN SELECT raise(ABORT, 'no'); END",
    );
    let got = instance.write(&[
        ("DELETE", "/2", ""),
        ("PATCH", "/2", "{}"),
        ("POST", "", NEW),
    ]);
    assert_eq!(got, [409, 200, 201]);
    // Another instance is always faster.
    overtake(&instance, usize::MAX >> 1);
    let begun = Instant::now();
    let got = instance.write(&[("POST", "", NEW), ("PATCH", "/1", &b)]);
    assert!(
        got == [201, 503] && begun.elapsed() >= CONTENDS_FOR,
        "{got:?}"
    );
}

#[test]
fn batch_that_may_have_been_carried_out_is_not_sent_as_another() {
    let (nodes, mut instance) = instance();
    assert_eq!(instance.write(&[("POST", "", NEW)]), [201]);
    instance
        .writes
        .keys
        .cluster
        .set_patience(Some(Duration::ZERO));
    let work = Work::Create {
        new: NewPet::new("n", 1),
        key: None,
    };
    instance.writes.keys.cluster.begin().unwrap();
    nodes.freeze(0);
    let sent = instance.writes.keys.cluster.commit(&[work]);
    let error = sent.unwrap_err();
    assert!(error.is_unknown());
    let lines = logged(|| instance.writes.report_undone(&["-"], &error));
    assert!(
        lines[0].contains("the outcome of 1 write is unknown"),
        "{lines:?}"
    );
    let response = Failure::from(error).into_response();
    let body = String::from_utf8_lossy(response.body());
    assert!(
        response.status == 503 && body.contains("outcome_unknown"),
        "{body}"
    );
    // What cannot even begin is not sent.
    assert_eq!(instance.write(&[("POST", "", NEW)]), [503]);
    nodes.thaw(0);
    nodes.wait_until_ready();
    assert!(instance.names().len() <= 5);
}

#[test]
fn every_operation_below_v1_is_known() {
    let known = [
        "listPets",
        "getPet",
        "getInventory",
        "createPet",
        "updatePet",
        "deletePet",
    ];
    // It has no record of changes either, and says so.
    let needs_none = ["listOrders", "listChanges"];
    let all = router(true)
        .operations()
        .filter(|row| row.path.starts_with("/v1/"));
    for row in all {
        assert!(
            known.contains(&row.id) || needs_none.contains(&row.id),
            "{}",
            row.id
        );
    }
}

/// A random number below `bound`, from a sequence that is always the same.
fn random(state: &mut u64, bound: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % bound
}

/// A random request: its method, target, header fields and body.
fn random_request(
    state: &mut u64,
    tags: &[String],
) -> (&'static str, String, Vec<(&'static str, String)>, String) {
    let mut pick = |bound: u64| random(state, bound);
    let id = match pick(20) {
        0 => "x".to_owned(),
        1 => i64::MIN.to_string(),
        _ => pick(60).to_string(),
    };
    let status = ["available", "pending", "sold", "Sold"][pick(4) as usize];
    let mut fields = Vec::new();
    match pick(10) {
        0 => fields.push(("If-Match", "*".to_owned())),
        1..=3 if !tags.is_empty() => {
            let tag = tags[pick(tags.len() as u64) as usize].clone();
            fields.push((["If-Match", "If-None-Match"][pick(2) as usize], tag));
        }
        _ => {}
    }
    match pick(12) {
        0..=2 => {
            if pick(2) == 0 {
                fields.push(("Idempotency-Key", format!("key-{}", pick(15))));
            }
            let body = match pick(6) {
                0 => r#"{"name":"a"}"#.to_owned(),
                1 => format!(
                    r#"{{"name":"é\u0000{}","categoryId":{},"status":"{status}"}}"#,
                    pick(3),
                    i64::MAX
                ),
                2 => "[".to_owned(),
                _ => format!(r#"{{"name":"{}","categoryId":{}}}"#, pick(4), pick(3)),
            };
            ("POST", "/v1/pets".to_owned(), fields, body)
        }
        3..=5 => {
            let body = match pick(4) {
                0 => format!(r#"{{"status":"{status}"}}"#),
                1 => r#"{"status":null,"name":"x'41'"}"#.to_owned(),
                2 => format!(r#"{{"categoryId":{}}}"#, pick(3)),
                _ => "{}".to_owned(),
            };
            ("PATCH", format!("/v1/pets/{id}"), fields, body)
        }
        6 => ("DELETE", format!("/v1/pets/{id}"), fields, String::new()),
        7 | 8 => {
            let method = ["GET", "HEAD"][pick(2) as usize];
            (method, format!("/v1/pets/{id}"), fields, String::new())
        }
        9 => ("GET", "/v1/store/orders".to_owned(), fields, String::new()),
        _ => {
            let target = format!("/v1/pets?limit={}&after={id}", pick(12));
            let filter = format!("&status={status}");
            let filter = if pick(2) == 0 { &filter } else { "" };
            ("GET", format!("{target}{filter}"), fields, String::new())
        }
    }
}

/// The status, the header fields and the body of a response.
type Seen = (u16, String, Vec<u8>);

fn seen(reads: &mut dyn Service, writes: &mut dyn Service, request: &Request) -> Seen {
    let is_read = ["GET", "HEAD"].contains(&request.method);
    let service = if is_read { reads } else { writes };
    let mut responses = Vec::new();
    service.answer(slice::from_ref(request), &mut responses);
    let mut response = responses.remove(0);
    // The numbers of either may be a millisecond old.
    response.fields.remove("Age");
    let fields = String::from_utf8_lossy(&response.fields.lines).into_owned();
    (response.status, fields, response.body().to_vec())
}

#[test]
fn responses_are_those_of_a_file() {
    let nodes = Nodes::start(1);
    let path: PathBuf = nodes.address().into();
    let mut cluster = Cluster::open(&path).unwrap();
    let work = Work::AddKey {
        key: secret(),
        newest: None,
    };
    cluster.commit_all(&[work]).unwrap();
    let mut instance = Instance::new(&path);
    let folder = Folder::new();
    let mut writer = Writer::open(&folder.database()).unwrap();
    writer
        .transact(|writer| writer.insert_key(&secret()))
        .unwrap();
    let reader = Reader::open(&folder.database()).unwrap();
    let mut reads = ReadService::new(reader, shared());
    let mut writes = WriteService::new(writer, shared());
    let (mut state, mut tags) = (7, Vec::new());
    let mut statuses = std::collections::BTreeMap::new();
    for n in 0..2000 {
        let (method, target, fields, body) = random_request(&mut state, &tags);
        let bearer = if random(&mut state, 50) == 0 {
            "Bearer other"
        } else {
            "Bearer secret"
        };
        let mut headers: Vec<(&str, &str)> = vec![("Authorization", bearer)];
        headers.extend(fields.iter().map(|(name, value)| (*name, &**value)));
        let request = Request {
            id: "-",
            method,
            target: &target,
            headers,
            body: body.as_bytes(),
        };
        let of_file = seen(&mut reads, &mut writes, &request);
        let of_cluster = seen(&mut instance.reads, &mut instance.writes, &request);
        assert_eq!(
            of_cluster, of_file,
            "{n}: {method} {target} {fields:?} {body}"
        );
        *statuses.entry((method, of_file.0)).or_insert(0) += 1;
        if let Some((_, tag)) = of_file.1.split_once("ETag: ") {
            tags.push(tag.lines().next().unwrap_or_default().to_owned());
            let extra = tags.len().saturating_sub(9);
            tags.drain(..extra);
        }
    }
    // Later ones may be those of a count that took long.
    let request = Request {
        id: "-",
        method: "GET",
        target: "/v1/store/inventory",
        headers: vec![("Authorization", "Bearer secret")],
        body: b"",
    };
    let of_file = seen(&mut reads, &mut writes, &request);
    let of_cluster = seen(&mut instance.reads, &mut instance.writes, &request);
    assert_eq!(of_cluster, of_file);
    for expected in [
        ("POST", 201),
        ("POST", 400),
        ("POST", 422),
        ("POST", 401),
        ("PATCH", 200),
        ("PATCH", 412),
        ("PATCH", 404),
        ("PATCH", 400),
        ("DELETE", 204),
        ("DELETE", 412),
        ("GET", 200),
        ("GET", 304),
        ("GET", 404),
        ("GET", 400),
        ("HEAD", 200),
    ] {
        assert!(
            statuses.contains_key(&expected),
            "no {expected:?}: {statuses:?}"
        );
    }
}
