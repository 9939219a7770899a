//! Pets that a batch announces to the store, with a real node. Needs `RQLITED`: run by `scripts/test.d/cluster`.

use std::path::PathBuf;

use super::*;
use crate::app::endpoint::Call;
use crate::app::endpoint::parameter::PathParameter;
use crate::base::json::Integer;
use crate::model::NewPet;
use crate::ops::keys::secret::new_key;
use crate::store::meters;
use crate::store::tests::Nodes;

static ID: PathParameter<Integer> = PathParameter {
    name: "id",
    about: "",
    schema: Integer::INT64,
};

const PET: &[Operation] = &[Operation {
    parameters: &[&ID],
    ..Operation::new("/v1/pets/{id}", "pet", Handler::Get(name_of))
}];

/// The name of a pet.
fn name_of(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    let name = context
        .store
        .pet(call.path(&ID).unwrap(), |pet| pet.name.into_owned())?;
    let name = name.ok_or_else(|| ApiError::new(Code::NotFound))?;
    Ok(Response::new(200, name.into_bytes()))
}

/// A service, and what callers send it in `Authorization`.
struct AuthorizedService {
    service: ReadService,
    credentials: String,
}

/// The service of a cluster with the pets `a`, `b` and `c`, and the address of the cluster.
fn service() -> (Nodes, PathBuf, AuthorizedService) {
    let nodes = Nodes::start(1);
    let path: PathBuf = nodes.address().into();
    let mut writer = Writer::open(&path).unwrap();
    for name in ["a", "b", "c"] {
        writer.insert_pet(&NewPet::new(name, 1), None).unwrap();
    }
    writer.commit().unwrap();
    let key = new_key().unwrap();
    let shared = SharedState::for_tests(Authenticator::new(Some(&key)));
    let mut service = ReadService::new(Reader::open(&path).unwrap(), shared);
    service.pipeline.router = &Router(&[ROWS, PET]);
    (
        nodes,
        path,
        AuthorizedService {
            service,
            credentials: format!("Bearer {key}"),
        },
    )
}

/// Sends all requests as a worker does: those without a response again. Returns the number of responses of each batch,
/// and for each request its status, and the body of a success.
fn ask_for(service: &mut AuthorizedService, targets: &[&str]) -> (Vec<usize>, Vec<String>) {
    let (mut counts, mut all) = (Vec::new(), Vec::new());
    while all.len() < targets.len() {
        let headers = vec![("Authorization", service.credentials.as_str())];
        let requests = targets[all.len()..].iter().map(|target| Request {
            id: "-",
            method: "GET",
            target,
            headers: headers.clone(),
            body: b"",
        });
        let requests: Vec<Request> = requests.collect();
        let mut responses = Vec::new();
        service.service.answer(&requests, &mut responses);
        counts.push(responses.len());
        all.extend(responses.iter().map(|response| match response.status {
            200 => format!("200 {}", String::from_utf8_lossy(&response.body()[..1])),
            status => status.to_string(),
        }));
    }
    (counts, all)
}

#[test]
fn gets_of_a_batch_are_one_request_and_each_response_is_at_its_place() {
    let (_nodes, path, mut service) = service();
    ask_for(&mut service, &["/v1/pets/1"]);
    service.service.pipeline.shared.count(&["pet"]);
    let asked = || -> u64 { meters(&path).iter().map(|meter| meter.requests).sum() };
    let before = asked();
    let targets = [
        "/v1/pets/3",
        "/small",
        "/v1/pets/9",
        "/v1/pets/1",
        "/v1/pets/3",
        "/busy",
        "/v1/pets/2",
    ];
    let mut got = Vec::new();
    let lines = logged(|| got = ask_for(&mut service, &targets).1);
    assert_eq!(
        got,
        ["200 c", "200 x", "404", "200 a", "200 c", "503", "200 b"]
    );
    assert_eq!(
        asked() - before,
        2,
        "one for the beginning, and one for the pets"
    );
    let count = |status: u16| {
        service.service.pipeline.shared.counted(&format!(
            "requests_total{{operation=\"pet\",status=\"{status}\"}}"
        ))
    };
    assert_eq!(
        [200, 404, 503].map(count),
        ["4", "1", "0"].map(|number| Some(number.to_owned()))
    );
    assert_eq!(lines, ["ERROR request -: busy: as if"]);
}

#[test]
fn pets_that_a_batch_announced_are_answered_by_the_next_if_large_responses_end_it() {
    let (_nodes, _, mut service) = service();
    let (counts, got) = ask_for(
        &mut service,
        &[
            "/v1/pets/1",
            "/half",
            "/v1/pets/2",
            "/half",
            "/v1/pets/3",
            "/small",
        ],
    );
    assert_eq!(counts, [4, 2]);
    assert_eq!(got, ["200 a", "200 x", "200 b", "200 x", "200 c", "200 x"]);
}
