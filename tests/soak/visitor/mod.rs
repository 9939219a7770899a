//! A client: does its operations one after the other, and reports the outcome of each to the model.

mod changes;
mod creates;
mod crowd;
mod reads;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::model::{Asked, Look, Model, Place, Seen, Tick};
use crate::plan::{Draft, Manner, Operation, STATUSES};
use crate::request::Request;
use crate::run::{Run, has_failed, note};
use support::client::{Connection, Reply};
use support::openapi;

/// The shortest deadline of the service within a request: the wait for a lock.
const LATE: Duration = Duration::from_secs(5);

/// The last page that a client got, to ask for it again.
struct Page {
    target: String,
    tag: String,
    look: Look,
    pets: Vec<Seen>,
}

/// The outcome of a request.
enum Came {
    Reply(Reply),
    /// The client left on purpose before the last byte was sent.
    CutBefore,
    Nothing,
}

pub struct Visitor<'r> {
    run: &'r Run,
    /// The beginning of all that it names, such as `s3.1.2`: round and client.
    name: String,
    count: u64,
    connection: Option<Connection>,
    /// With a retry key, but never acknowledged.
    pending: Vec<Place>,
    /// With a retry key, and acknowledged.
    made: Vec<Place>,
    page: Option<Page>,
    /// When the last request was sent.
    asked_at: Instant,
    /// Reads only with the key that always counts.
    pub is_sure: bool,
}

impl<'r> Visitor<'r> {
    /// `pending` and `made` are what clients of earlier rounds have left.
    pub fn new(run: &'r Run, name: String, pending: Vec<Place>, made: Vec<Place>) -> Self {
        Self {
            run,
            name,
            count: 0,
            connection: None,
            pending,
            made,
            page: None,
            asked_at: Instant::now(),
            is_sure: false,
        }
    }

    /// Does all its operations; returns what it leaves to later clients.
    pub fn act(mut self, operations: &[Operation]) -> (Vec<Place>, Vec<Place>) {
        for operation in operations {
            if has_failed() {
                break;
            }
            self.operate(operation);
            self.run.progress.fetch_add(1, Ordering::SeqCst);
        }
        (self.pending, self.made)
    }

    fn operate(&mut self, operation: &Operation) {
        match operation {
            Operation::Create {
                draft,
                manner,
                caller,
            } => {
                let place = self.intend(draft, None);
                self.create(place, self.key(*caller), *manner);
            }
            Operation::CreateOnce {
                draft,
                manner,
                caller,
                tries,
            } => {
                let (key, place) = self.intend_once(draft, *caller);
                self.pending.push(place);
                let mut is_made = self.create(place, key, *manner);
                for _ in 0..*tries {
                    if is_made || has_failed() {
                        break;
                    }
                    is_made = self.retry(place, Manner::Whole);
                }
            }
            Operation::AtOnce { draft, caller } => {
                let (key, place) = self.intend_once(draft, *caller);
                self.pending.push(place);
                self.at_once(place, key);
            }
            Operation::Burst { drafts, once } => self.burst(drafts, *once),
            Operation::Retry { pick, manner } => {
                let open: Vec<Place> = {
                    let model = self.run.model();
                    self.pending.retain(|place| !model.intents[*place].retired);
                    self.pending.clone()
                };
                if !open.is_empty() {
                    self.retry(open[*pick as usize % open.len()], *manner);
                }
            }
            Operation::Replay { pick } => {
                if let Some(place) = self.some_made(*pick) {
                    self.retry(place, Manner::Whole);
                }
            }
            Operation::Reuse { pick, draft } => self.reuse(*pick, draft),
            Operation::Refused { draft, wrong } => self.refused(draft, *wrong),
            Operation::Change {
                pick,
                effect,
                caller,
                manner,
                is_careful,
                twice,
            } => {
                self.change(*pick, *effect, (*caller, *manner), *is_careful, *twice);
            }
            Operation::Crowd(crowd) => self.crowd(*crowd),
            Operation::Get { pick } => self.get(*pick),
            Operation::List {
                pick,
                limit,
                status,
            } => {
                let after = self.run.model().pick(*pick).map_or(0, |(id, _)| id);
                self.page(
                    if pick.is_multiple_of(2) { 0 } else { after },
                    *limit,
                    *status,
                );
            }
            Operation::Revalidate => self.revalidate(),
            Operation::Walk { limit, status } => self.walk(*limit, *status),
            Operation::Ready => {
                let path = if self.count.is_multiple_of(2) {
                    "/healthz"
                } else {
                    "/readyz"
                };
                let request = Request::get(path, "", &self.next_id());
                let reply = self.ask(&request, Manner::Whole);
                if let Came::Reply(reply) = reply
                    && reply.status != 200
                {
                    self.excused(&reply);
                }
            }
        }
    }

    // The requests of the client.

    fn next_id(&mut self) -> String {
        self.count += 1;
        format!("{}.{}", self.name, self.count)
    }

    fn key(&self, pick: u64) -> usize {
        self.run.model().keys.pick(pick)
    }

    fn intend(&mut self, draft: &Draft, once: Option<(String, String)>) -> Place {
        let name = format!("{}|{}", self.next_id(), draft.filler);
        let asked = Asked {
            name,
            category: draft.category,
            status: draft.status,
        };
        self.run.model().intend(asked, once)
    }

    /// With a retry key, which counts for the name of the API key.
    fn intend_once(&mut self, draft: &Draft, caller: u64) -> (usize, Place) {
        let key = self.key(caller);
        let caller = self.run.model().keys.get(key).name.clone();
        let once = format!("{}-once", self.next_id());
        (key, self.intend(draft, Some((caller, once))))
    }

    fn some_made(&mut self, pick: u64) -> Option<Place> {
        let model = self.run.model();
        self.made.retain(|place| !model.intents[*place].retired);
        (!self.made.is_empty()).then(|| self.made[pick as usize % self.made.len()])
    }

    fn request(&mut self, place: Place, key: usize) -> Request {
        let id = self.next_id();
        let model = self.run.model();
        let intent = &model.intents[place];
        let once = intent.once.as_ref().map(|(_, once)| once.as_str());
        Request::post(&model.keys.get(key).text, &id, once, body(&intent.asked))
    }

    // How it asks.

    /// The connection, made if there is none; waits until the service is there.
    fn connect(run: &Run) -> Option<Connection> {
        let mut connection = None;
        crate::run::wait_for("the service to listen", || {
            connection = run
                .address()
                .and_then(|address| Connection::try_open(address).ok());
            connection.is_some()
        });
        connection
    }

    /// Sends a request, and reads its response.
    fn ask(&mut self, request: &Request, manner: Manner) -> Came {
        note(format!(
            "{} {} {:?} {manner:?}",
            request.method, request.target, request.fields
        ));
        let Some(mut connection) = self.connection.take().or_else(|| Self::connect(self.run))
        else {
            return Came::Nothing;
        };
        self.asked_at = Instant::now();
        let bytes = if let Manner::Chunked = manner {
            request.chunked()
        } else {
            request.bytes()
        };
        match manner {
            Manner::Pieces(most) => {
                bytes
                    .chunks(most.max(bytes.len() / 50))
                    .for_each(|piece| connection.try_send(piece));
            }
            Manner::CutBefore(unsent) => {
                connection.try_send(&bytes[..bytes.len() - unsent.min(bytes.len())]);
                if unsent.is_multiple_of(2) {
                    connection.reset();
                }
                return Came::CutBefore;
            }
            _ => connection.try_send(bytes),
        }
        match manner {
            Manner::CutAfter(true) => {
                connection.reset();
                return Came::Nothing;
            }
            Manner::CutAfter(false) => return Came::Nothing,
            Manner::CutWithin(count) => {
                connection.taste(count);
                return Came::Nothing;
            }
            _ => {}
        }
        let Some(reply) = connection.whole_reply() else {
            note("no response".to_owned());
            return Came::Nothing;
        };
        self.expect_own(request, &reply);
        if reply.header("Connection") != Some("close") {
            self.connection = Some(connection);
        }
        Came::Reply(reply)
    }

    /// Sends requests at once, on connections of their own; `send` notes each in the model.
    fn ask_at_once<W, T>(
        &mut self,
        requests: impl IntoIterator<Item = (Request, W)>,
        send: impl Fn(&mut Model, W) -> T,
    ) -> Vec<(T, Came)> {
        self.asked_at = Instant::now();
        let mut sent = Vec::new();
        for (request, wanted) in requests {
            let Some(mut connection) = Self::connect(self.run) else {
                break;
            };
            let attempt = send(&mut self.run.model(), wanted);
            connection.try_send(request.bytes());
            sent.push((request, connection, attempt));
        }
        let came = sent.into_iter().map(|(request, mut connection, attempt)| {
            let reply = connection.whole_reply();
            reply
                .iter()
                .for_each(|reply| self.expect_own(&request, reply));
            (attempt, reply.map_or(Came::Nothing, Came::Reply))
        });
        came.collect()
    }

    /// A response is to the request that it follows, and as the interface describes it.
    fn expect_own(&self, request: &Request, reply: &Reply) {
        note(format!(
            "got {} {:.200}",
            reply.status,
            String::from_utf8_lossy(&reply.body)
        ));
        let id = request
            .fields
            .split("X-Request-Id: ")
            .nth(1)
            .and_then(|rest| rest.split("\r\n").next());
        // The gate may refuse a client before it has read the request.
        let is_early =
            reply.header("Connection") == Some("close") && [408, 503].contains(&reply.status);
        if reply.header("X-Request-Id") != id && !is_early {
            self.fault(
                &[],
                format!("a response of another: {reply:.300?} to {id:?}"),
            );
        }
        self.run
            .count(format!("{} {}", request.method, reply.status));
        openapi::check(request.method, &request.target, reply);
    }

    fn fault(&self, places: &[Place], text: String) -> ! {
        self.run.model().fault(places, text)
    }

    /// A 503 must have a cause that this run knows: what the operator did, or a machine that was stopped for so long that
    /// the deadlines of the service had passed.
    fn excused(&self, reply: &Reply) {
        let code = reply.json()["code"].as_str().unwrap_or_default().to_owned();
        let excuses = &self.run.excuses;
        let is_set = |excuse: &AtomicBool| excuse.load(Ordering::SeqCst);
        let is_explained = match code.as_str() {
            "storage_unavailable" => is_set(&excuses.lock) || is_set(&excuses.full),
            "outcome_unknown" | "overloaded" => is_set(&excuses.ended),
            _ => self.fault(&[], format!("nothing explains {reply:?}")),
        };
        let is_late = self.asked_at.elapsed() >= LATE;
        if !is_late && !self.run.is_drill && !is_explained {
            self.fault(&[], format!("nothing happened that explains {reply:?}"));
        }
        self.run.count(code);
    }

    fn expect_key(&self, key: usize, sent: Tick, writes: bool, status: u16) {
        let model = self.run.model();
        if let Some(fault) = model.keys.fault(key, sent, writes, status) {
            model.fault(&[], fault);
        }
    }
}

/// The body of a create.
fn body(asked: &Asked) -> String {
    let mut body = json!({"name": asked.name, "categoryId": asked.category});
    if let Some(status) = asked.status {
        body["status"] = status.into();
    }
    body.to_string()
}

/// A pet of a response or an export.
pub fn seen(pet: &Value) -> Seen {
    let member = |name: &str| {
        pet.get(name)
            .unwrap_or_else(|| panic!("no {name} in {pet}"))
    };
    let status = STATUSES
        .into_iter()
        .flatten()
        .find(|status| pet["status"] == **status);
    assert_eq!(
        status.is_some(),
        pet.get("status").is_some(),
        "a wrong status in {pet}"
    );
    Seen {
        id: member("id").as_i64().expect("an id"),
        name: member("name").as_str().expect("a name").to_owned(),
        category: member("categoryId").as_i64().expect("a category"),
        status,
    }
}
