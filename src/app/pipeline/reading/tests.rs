//! The reading service over a real database, without sockets: the responses, counters and log lines of a batch.

use super::*;
use crate::app::endpoint::{Failure, Operation, Router};
use crate::app::pipeline::Authenticator;
use crate::app::settings::ApiSettings;
use crate::store::{Cause, StoreError, Writer};
use petstore_base::testing::{Folder, logged};

const ROWS: &[Operation] = &[
    Operation::new(
        "/small",
        "small",
        Handler::Get(|_, _| Ok(Response::new(200, b"x"))),
    ),
    Operation::new(
        "/page",
        "page",
        Handler::Get(|_, _| Ok(Response::new(200, vec![b'x'; 64 * 1024]))),
    ),
    Operation::new(
        "/half",
        "half",
        Handler::Get(|_, _| Ok(Response::new(200, vec![b'x'; ENOUGH_BYTES / 2]))),
    ),
    Operation::new(
        "/busy",
        "busy",
        Handler::Get(|_, _| Err(failed(Cause::Locked))),
    ),
    Operation::new(
        "/moved",
        "moved",
        Handler::Get(|_, _| Err(failed(Cause::Moved))),
    ),
    Operation::new(
        "/ready",
        "ready",
        Handler::Health {
            read: |_| Ok(()),
            write: |_| Err(failed(Cause::Full)),
            read_only_body: "{}",
        },
    ),
    Operation::new(
        "/write",
        "write",
        Handler::Write("POST", |_, _| Ok(Ok(Response::new(204, b"")))),
    ),
];

fn failed(cause: Cause) -> Failure {
    StoreError::Unavailable(cause, "as if".to_owned()).into()
}

/// The service of a new database, and one that refuses writes.
fn services() -> (Folder, [ReadService; 2]) {
    let folder = Folder::new();
    drop(Writer::open(&folder.database()).unwrap());
    let shared = || SharedState::for_tests(Authenticator::default());
    let store = || Reader::open(&folder.database()).unwrap();
    let base_url = Some("https://elsewhere".to_owned());
    let settings = Arc::new(ApiSettings {
        base_url,
        ..ApiSettings::default()
    });
    let services = [
        ReadService::new(store(), shared()),
        ReadService::refusing(
            store(),
            SharedState {
                settings,
                ..shared()
            },
        ),
    ];
    let services = services.map(|mut service| {
        service.pipeline.router = &Router(&[ROWS]);
        service
    });
    (folder, services)
}

fn ask(asked: &[(&str, &str)]) -> Vec<u16> {
    let (_folder, [mut service, _]) = services();
    ask_of(&mut service, asked)
}

/// Sends all requests in one batch, and returns the statuses of those that get a response.
fn ask_of(service: &mut ReadService, asked: &[(&str, &str)]) -> Vec<u16> {
    answer(service, asked)
        .iter()
        .map(|response| response.status)
        .collect()
}

/// Sends all requests in one batch, and returns the responses, which may be fewer.
fn answer(service: &mut ReadService, asked: &[(&str, &str)]) -> Vec<Response> {
    let requests: Vec<Request> = asked
        .iter()
        .map(|(method, target)| Request {
            id: "-",
            method,
            target,
            headers: Vec::new(),
            body: b"",
        })
        .collect();
    let mut responses = Vec::new();
    assert_eq!(
        service.answer(&requests, &mut responses),
        Duration::ZERO,
        "nothing is flushed"
    );
    responses
}

#[test]
fn batch_ends_early_once_its_responses_are_large() {
    let (small, page, half) = (("GET", "/small"), ("GET", "/page"), ("GET", "/half"));
    assert_eq!(ask(&[half, half, small]), [200, 200]);
    assert_eq!(ask(&[half, page, small, small]), [200; 4]);
}

#[test]
fn request_down_the_wrong_lane_is_500() {
    assert_eq!(ask(&[("POST", "/write"), ("GET", "/small")]), [500, 200]);
}

#[test]
fn each_request_counts_once_for_what_it_reached() {
    let (_folder, [mut service, _]) = services();
    service
        .pipeline
        .shared
        .count(&["small", "ready", "getFile", "none"]);
    let asked = [
        ("OPTIONS", "/small"),
        ("GET", "/small"),
        ("GET", "/ready"),
        ("GET", "/nowhere"),
        ("POST", "/nowhere"),
        ("DELETE", "/small"),
    ];
    assert_eq!(ask_of(&mut service, &asked), [204, 200, 204, 404, 404, 405]);
    let count = |operation: &str, status: u16| {
        let sample = format!("requests_total{{operation=\"{operation}\",status=\"{status}\"}}");
        service.pipeline.shared.counted(&sample)
    };
    let one = Some("1".to_owned());
    assert_eq!(
        (count("small", 200), count(crate::app::api::FILE.id, 404)),
        (one.clone(), one.clone())
    );
    assert_eq!((count("none", 404), count("none", 405)), (one.clone(), one));
    // OPTIONS is not counted, and a health check is counted by the writer.
    assert_eq!((count("none", 204), count("ready", 204)), (None, None));
}

#[test]
fn refusals_are_counted_by_their_cause() {
    let (_folder, services) = services();
    let counts = services.map(|mut service| {
        service.pipeline.shared.count(&[]);
        ask_of(&mut service, &[("GET", "/busy"), ("POST", "/write")]);
        ["storage_unavailable", "read_only"].map(|code| {
            service
                .pipeline
                .shared
                .counted(&format!("refusals_total{{code=\"{code}\"}}"))
        })
    });
    let one = || Some("1".to_owned());
    assert_eq!(counts, [[one(), None], [one(), one()]]);
}

#[test]
fn lost_database_is_reported_and_any_other_failure_logged() {
    let (_folder, [mut service, _]) = services();
    let losses = service.pipeline.shared.losses();
    let lines = logged(|| {
        assert_eq!(
            ask_of(&mut service, &[("GET", "/busy"), ("GET", "/moved")]),
            [503; 2]
        );
    });
    assert_eq!(lines, ["ERROR request -: busy: as if"]);
    let lost = |cause| StoreError::Unavailable(cause, "as if".to_owned());
    assert_eq!(losses.try_iter().collect::<Vec<_>>(), [lost(Cause::Moved)]);
    let lines = logged(|| {
        service
            .pipeline
            .trouble("r1", "cannot read", &lost(Cause::Locked));
        service
            .pipeline
            .trouble("r2", "cannot read", &lost(Cause::Unflushed));
    });
    assert_eq!(
        lines,
        ["ERROR r1: cannot read: the database is locked by another process: as if"]
    );
    assert_eq!(
        losses.try_iter().collect::<Vec<_>>(),
        [lost(Cause::Unflushed)]
    );
    let lines =
        logged(|| (0..3).for_each(|_| service.pipeline.trouble("r3", "", &lost(Cause::Damaged))));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("ERROR the database is damaged: as if; "),
        "{lines:?}"
    );
    assert_eq!(
        (
            losses.try_iter().count(),
            service.pipeline.shared.damage.found()
        ),
        (0, Err(lost(Cause::Damaged)))
    );
}

#[test]
fn only_a_service_that_cannot_write_looks_again_at_rest() {
    let (folder, [mut service, mut refusing]) = services();
    assert_eq!((service.rest(), refusing.rest()), (None, Some(CHECK_EVERY)));
    let losses = refusing.pipeline.shared.losses();
    std::fs::remove_file(folder.database()).unwrap();
    refusing.rest();
    assert!(losses.try_recv().unwrap().is_lost());
}
