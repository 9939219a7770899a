//! A client: does its operations one after the other, and tells the model what came of each.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::client::Reply;
use crate::described;
use crate::model::{Asked, Attempt, Look, Place, Seen, Tick};
use crate::plan::{Draft, Manner, Operation, Wrong};
use crate::run::{Run, has_failed, note};
use crate::wire::{Request, Wire};

/// The last page that a client got, to ask for it again.
struct Page {
    target: String,
    tag: String,
    look: Look,
    pets: Vec<Seen>,
}

/// What came of a request.
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
    wire: Option<Wire>,
    /// With a retry key, but never acknowledged.
    pending: Vec<Place>,
    /// With a retry key, and acknowledged.
    made: Vec<Place>,
    page: Option<Page>,
    /// Reads only with the key that always counts.
    pub is_sure: bool,
}

impl<'r> Visitor<'r> {
    /// `pending` and `made` are what clients of earlier rounds have left.
    pub fn new(run: &'r Run, name: String, pending: Vec<Place>, made: Vec<Place>) -> Self {
        Self { run, name, count: 0, wire: None, pending, made, page: None, is_sure: false }
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
            Operation::Create { draft, manner, caller } => {
                let place = self.intend(draft, None);
                self.create(place, self.key(*caller), *manner);
            }
            Operation::CreateOnce { draft, manner, caller, tries } => {
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
            Operation::Get { pick } => self.get(*pick),
            Operation::List { pick, limit, status } => {
                let after = self.run.model().pick(*pick).map_or(0, |(id, _)| id);
                self.page(if pick.is_multiple_of(3) { 0 } else { after }, *limit, *status);
            }
            Operation::Revalidate => self.revalidate(),
            Operation::Walk { limit, status } => self.walk(*limit, *status),
            Operation::Ready => {
                let path = if self.count.is_multiple_of(2) { "/healthz" } else { "/readyz" };
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

    // What the client asks for.

    fn next_id(&mut self) -> String {
        self.count += 1;
        format!("{}.{}", self.name, self.count)
    }

    fn key(&self, pick: u64) -> usize {
        self.run.model().keys.pick(pick)
    }

    fn intend(&mut self, draft: &Draft, once: Option<(String, String)>) -> Place {
        let name = format!("{}|{}", self.next_id(), draft.filler);
        let asked = Asked { name, category: draft.category, status: draft.status };
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
    fn connect(run: &Run) -> Option<Wire> {
        let mut wire = None;
        crate::run::wait_for("the service to listen", || {
            wire = run.address().and_then(Wire::open);
            wire.is_some()
        });
        wire
    }

    /// Sends a request, and reads its response.
    fn ask(&mut self, request: &Request, manner: Manner) -> Came {
        note(format!("{} {} {:?} {manner:?}", request.method, request.target, request.fields));
        let Some(mut wire) = self.wire.take().or_else(|| Self::connect(self.run)) else {
            return Came::Nothing;
        };
        let bytes = if let Manner::Chunked = manner { request.chunked() } else { request.bytes() };
        match manner {
            Manner::Pieces(most) => {
                bytes.chunks(most.max(bytes.len() / 50)).for_each(|piece| wire.send(piece))
            }
            Manner::CutBefore(unsent) => {
                wire.send(&bytes[..bytes.len() - unsent.min(bytes.len())]);
                if unsent.is_multiple_of(2) {
                    wire.reset();
                }
                return Came::CutBefore;
            }
            _ => wire.send(&bytes),
        }
        match manner {
            Manner::CutAfter(true) => {
                wire.reset();
                return Came::Nothing;
            }
            Manner::CutAfter(false) => return Came::Nothing,
            Manner::CutWithin(count) => {
                wire.take(count);
                return Came::Nothing;
            }
            _ => {}
        }
        let Some(reply) = wire.reply() else {
            note("no response".to_owned());
            return Came::Nothing;
        };
        self.expect_own(request, &reply);
        if reply.header("Connection") != Some("close") {
            self.wire = Some(wire);
        }
        Came::Reply(reply)
    }

    /// A response is to the request that it follows, and as the interface describes it.
    fn expect_own(&self, request: &Request, reply: &Reply) {
        note(format!("got {} {:.200}", reply.status, String::from_utf8_lossy(&reply.body)));
        let id = request.fields.split("X-Request-Id: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        // The gate may refuse a client before it has read the request.
        let is_early = reply.header("Connection") == Some("close") && [408, 503].contains(&reply.status);
        if reply.header("X-Request-Id") != id && !is_early {
            self.fault(&[], format!("a response of another: {reply:.300?} to {id:?}"));
        }
        self.run.count(format!("{} {}", request.method, reply.status));
        described::check(request.method, &request.target, reply);
    }

    fn fault(&self, places: &[Place], text: String) -> ! {
        self.run.model().fault(places, text)
    }

    /// A 5xx must have a cause that this run knows.
    fn excused(&self, reply: &Reply) {
        let code = reply.json()["code"].as_str().unwrap_or_default().to_owned();
        let excuses = &self.run.excuses;
        let excuse = match code.as_str() {
            "storage_unavailable" => &excuses.lock,
            "outcome_unknown" | "overloaded" => &excuses.lane,
            _ => self.fault(&[], format!("nothing explains {reply:?}")),
        };
        if !self.run.is_drill && !excuse.load(Ordering::SeqCst) {
            self.fault(&[], format!("nothing happened that explains {reply:?}"));
        }
        self.run.count(code);
    }

    // Creates.

    /// One attempt; returns whether it was acknowledged.
    fn create(&mut self, place: Place, key: usize, manner: Manner) -> bool {
        let request = self.request(place, key);
        let attempt = self.run.model().send(place);
        let came = self.ask(&request, manner);
        self.judge(attempt, key, came)
    }

    /// Tries again with a key of the same name, if there is one.
    fn retry(&mut self, place: Place, manner: Manner) -> bool {
        let key = {
            let model = self.run.model();
            let caller = model.intents[place].once.as_ref().map(|(caller, _)| caller.clone());
            caller.and_then(|caller| model.keys.of(&caller))
        };
        key.is_some_and(|key| self.create(place, key, manner))
    }

    fn judge(&mut self, attempt: Attempt, key: usize, came: Came) -> bool {
        let reply = match came {
            Came::Reply(reply) => reply,
            Came::CutBefore => {
                self.run.model().refuse(attempt, "not sent to its end");
                return false;
            }
            Came::Nothing => {
                self.run.model().lose(attempt, "not answered");
                return false;
            }
        };
        let place = attempt.intent;
        self.expect_key(key, attempt.sent, true, reply.status);
        match reply.status {
            201 => self.acknowledged(attempt, &reply),
            401 | 403 => self.run.model().refuse(attempt, "refused for its key"),
            408 => self.run.model().lose(attempt, "timed out"),
            503 => {
                self.excused(&reply);
                let is_open = reply.json()["code"] == "outcome_unknown";
                let mut model = self.run.model();
                if is_open { model.lose(attempt, "503 unknown") } else { model.refuse(attempt, "503") }
            }
            _ => self.fault(&[place], format!("a good create got {reply:.300?}")),
        }
        reply.status == 201
    }

    fn acknowledged(&mut self, attempt: Attempt, reply: &Reply) {
        let is_replay = reply.header("Idempotency-Replayed") == Some("true");
        let place = attempt.intent;
        let mut model = self.run.model();
        let pet = seen(&reply.json());
        let asked = &model.intents[place].asked;
        let is_own =
            pet.name == asked.name && pet.category == asked.category && pet.status.as_deref() == asked.status;
        if !is_own || reply.header("Location") != Some(&format!("/v1/pets/{}", pet.id)) {
            model.fault(&[place], format!("the response is to another create: {reply:.300?}"));
        }
        model.acknowledge(attempt, pet.id, is_replay);
        if model.intents[place].once.is_some() {
            self.pending.retain(|other| *other != place);
            if !self.made.contains(&place) {
                self.made.push(place);
            }
        }
        self.run.count(if is_replay { "replayed" } else { "created" });
    }

    fn expect_key(&self, key: usize, sent: Tick, writes: bool, status: u16) {
        let model = self.run.model();
        if let Some(fault) = model.keys.fault(key, sent, writes, status) {
            model.fault(&[], fault);
        }
    }

    /// The same create on two connections.
    fn at_once(&mut self, place: Place, key: usize) {
        let requests = [self.request(place, key), self.request(place, key)];
        let mut sent = Vec::new();
        for request in requests {
            let Some(mut wire) = Self::connect(self.run) else { break };
            let attempt = self.run.model().send(place);
            wire.send(&request.bytes());
            sent.push((request, wire, attempt));
        }
        for (request, mut wire, attempt) in sent {
            let reply = wire.reply();
            reply.iter().for_each(|reply| self.expect_own(&request, reply));
            self.judge(attempt, key, reply.map_or(Came::Nothing, Came::Reply));
        }
    }

    /// Several creates in one piece; the responses come in the same order, and so do the ids.
    fn burst(&mut self, drafts: &[Draft], once: bool) {
        let key = 0;
        let caller = self.run.model().keys.get(key).name.clone();
        let Some(mut wire) = self.wire.take().or_else(|| Self::connect(self.run)) else { return };
        let (mut bytes, mut sent) = (Vec::new(), Vec::new());
        for draft in drafts {
            let retry_key = once.then(|| (caller.clone(), format!("{}-once", self.next_id())));
            let place = self.intend(draft, retry_key);
            if once {
                self.pending.push(place);
            }
            let request = self.request(place, key);
            bytes.extend(request.bytes());
            sent.push((request, self.run.model().send(place)));
        }
        note(format!("a burst of {}", sent.len()));
        wire.send(&bytes);
        let (mut is_open, mut last) = (true, 0);
        for (request, attempt) in sent {
            let reply = if is_open { wire.reply() } else { None };
            reply.iter().for_each(|reply| self.expect_own(&request, reply));
            is_open &= reply.as_ref().is_some_and(|reply| reply.header("Connection") != Some("close"));
            let place = attempt.intent;
            if self.judge(attempt, key, reply.map_or(Came::Nothing, Came::Reply)) {
                let id = self.run.model().intents[place].id.unwrap_or_default();
                if id <= last {
                    self.fault(&[place], format!("the id {id} follows {last} in one connection"));
                }
                last = id;
            }
        }
        self.wire = is_open.then_some(wire);
    }

    /// Another pet with a key that was used is refused.
    fn reuse(&mut self, pick: u64, draft: &Draft) {
        let Some(place) = self.some_made(pick) else { return };
        let Some((caller, once)) = self.run.model().intents[place].once.clone() else { return };
        let Some(key) = self.run.model().keys.of(&caller) else { return };
        let other = self.intend(draft, None);
        let mut request = self.request(other, key);
        request.fields += &format!("Idempotency-Key: {once}\r\n");
        self.expect_refusal(other, key, &request, &[422]);
    }

    fn refused(&mut self, draft: &Draft, wrong: Wrong) {
        let place = self.intend(draft, None);
        let mut request = self.request(place, 0);
        let text = String::from_utf8(request.body.clone()).expect("JSON");
        let statuses: &[u16] = match wrong {
            Wrong::Json => {
                request.body.pop();
                &[400]
            }
            Wrong::Member => {
                request.body = text.replacen('{', "{\"categoryId\":1.5,", 1).into();
                &[400]
            }
            Wrong::Missing => {
                request.body = text.replacen("\"categoryId\"", "\"category\"", 1).into();
                &[400]
            }
            Wrong::Status => {
                let other = json!({"name": self.run.model().intents[place].asked.name, "categoryId": 1, "status": "lost"});
                request.body = other.to_string().into();
                &[400]
            }
            Wrong::Key => {
                request.fields = request.fields.replacen("Bearer ", "Bearer x", 1);
                &[401]
            }
            Wrong::MediaType => {
                request.fields += "Content-Type: text/plain\r\n";
                &[415]
            }
            Wrong::TooLarge => {
                request.body = (" ".repeat(70_000) + &text).into();
                &[413]
            }
            Wrong::IdempotencyKey => {
                request.fields += "Idempotency-Key: a b\r\n";
                &[400]
            }
        };
        self.expect_refusal(place, 0, &request, statuses);
    }

    fn expect_refusal(&mut self, place: Place, key: usize, request: &Request, statuses: &[u16]) {
        let attempt = self.run.model().send(place);
        let came = self.ask(request, Manner::Whole);
        // Whether it was answered or not: it must not have made a pet.
        self.run.model().refuse(attempt, "wrong");
        let Came::Reply(reply) = came else { return };
        match reply.status {
            408 => {}
            503 => self.excused(&reply),
            401 | 403 if !statuses.contains(&401) => self.expect_key(key, attempt.sent, true, reply.status),
            status if statuses.contains(&status) => {}
            _ => self.fault(&[place], format!("a wrong create got {reply:.300?}, not {statuses:?}")),
        }
    }

    // Reads.

    /// Sends a GET; the response if it has the answer.
    fn read(&mut self, target: &str, fields: &str) -> Option<(Tick, Reply)> {
        let id = self.next_id();
        let pick = self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = if self.is_sure { 0 } else { self.key(pick) };
        let mut request = Request::get(target, &self.run.model().keys.get(key).text, &id);
        request.fields += fields;
        let begun = self.run.model().tick();
        let Came::Reply(reply) = self.ask(&request, Manner::Whole) else { return None };
        self.expect_key(key, begun, false, reply.status);
        match reply.status {
            200 | 304 | 404 => return Some((begun, reply)),
            401 | 408 => {}
            503 => self.excused(&reply),
            _ => self.fault(&[], format!("a good GET got {reply:.300?}")),
        }
        None
    }

    fn get(&mut self, pick: u64) {
        let picked = self.run.model().pick(pick);
        let Some((id, _)) = picked else { return };
        let Some((begun, reply)) = self.read(&format!("/v1/pets/{id}"), "") else { return };
        let pets = if reply.status == 404 { Vec::new() } else { vec![seen(&reply.json())] };
        let look = Look { begun, after: id - 1, up_to: id, status: None };
        self.run.model().observe(&look, &pets);
    }

    /// Gets a page; returns where the next one begins, which is `None` after the last. `None` if it was not answered.
    fn page(&mut self, after: i64, limit: u64, status: Option<&'static str>) -> Option<Option<i64>> {
        let filter = status.map(|status| format!("&status={status}")).unwrap_or_default();
        let from = if after == 0 { String::new() } else { format!("&after={after}") };
        let target = format!("/v1/pets?limit={limit}{filter}{from}");
        let (begun, reply) = self.read(&target, "")?;
        let pets: Vec<Seen> =
            reply.expect(200).json().as_array().expect("an array").iter().map(seen).collect();
        let last = pets.last().map_or(after, |pet| pet.id);
        let next = format!("</v1/pets?limit={limit}{filter}&after={last}>; rel=\"next\"");
        let link = reply.header("Link");
        if pets.len() > limit as usize || link.is_some_and(|link| link != next) {
            self.fault(&[], format!("{target} has {} pets and the link {link:?}, not {next}", pets.len()));
        }
        let up_to = if link.is_some() { last } else { i64::MAX };
        let look = Look { begun, after, up_to, status };
        self.run.model().observe(&look, &pets);
        let tag = reply.header("ETag").expect("a list has a tag").to_owned();
        self.page = Some(Page { target, tag, look, pets });
        Some(link.map(|_| last))
    }

    /// If a page has not changed, it must be right as it was.
    fn revalidate(&mut self) {
        let Some(page) = self.page.take() else { return };
        let field = format!("If-None-Match: {}\r\n", page.tag);
        let Some((begun, reply)) = self.read(&page.target, &field) else { return };
        if reply.status == 304 {
            let look = Look { begun, ..page.look };
            self.run.model().observe(&look, &page.pets);
        }
        self.run.count(format!("revalidated with {}", reply.status));
    }

    /// From the first page to the last. The parts meet without a gap, so every pet is met exactly once.
    fn walk(&mut self, limit: u64, status: Option<&'static str>) {
        let mut after = Some(0);
        while let Some(from) = after
            && !has_failed()
        {
            after = self.page(from, limit, status).flatten();
        }
        self.run.count("walks");
    }

    /// Walks over all pets, and asks again for a page that is not answered; returns what it met.
    pub fn walk_surely(&mut self, limit: u64) -> Vec<Seen> {
        let (mut met, mut after) = (Vec::new(), Some(0));
        while let Some(from) = after
            && !has_failed()
        {
            match self.page(from, limit, None) {
                Some(next) => {
                    met.extend(self.page.iter().flat_map(|page| page.pets.clone()));
                    after = next;
                }
                None if self.run.is_drill => {}
                None => self.fault(&[], "a service without other clients does not answer".to_owned()),
            }
        }
        met
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
    let member = |name: &str| pet.get(name).unwrap_or_else(|| panic!("no {name} in {pet}"));
    Seen {
        id: member("id").as_i64().expect("an id"),
        name: member("name").as_str().expect("a name").to_owned(),
        category: member("categoryId").as_i64().expect("a category"),
        status: pet.get("status").map(|status| status.as_str().expect("a status").to_owned()),
    }
}
