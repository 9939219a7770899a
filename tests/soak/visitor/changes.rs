//! Changes of pets by a client: PATCH and DELETE, with and without If-Match.

use serde_json::json;

use super::{Came, Visitor, seen};
use crate::history::{Change, Effect, Outcome, State};
use crate::model::{Place, Tick};
use crate::plan::Manner;
use crate::request::Request;

/// The most changes of one pet that are under way at a time, since the history tries all their orders.
pub const MOST: usize = 4;

impl Visitor<'_> {
    /// Changes a pet; `twice`: on two connections at once. `is_careful`: with the tag of the pet in If-Match.
    pub(super) fn change(
        &mut self,
        pick: u64,
        effect: Effect,
        (caller, manner): (u64, Manner),
        is_careful: bool,
        twice: bool,
    ) {
        let picked = self.run.model().pick(pick);
        let Some((id, place)) = picked else { return };
        let known = if is_careful {
            self.tag_of(id, place)
        } else {
            None
        };
        if is_careful && known.is_none()
            || self.run.model().intents[place].history.under_way() >= MOST
        {
            return;
        }
        let (change, key) = (
            Change {
                effect,
                known: known.as_ref().map(|known| known.0),
            },
            self.key(caller),
        );
        let target = format!("/v1/pets/{id}");
        let mut request = || {
            let request_id = self.next_id();
            let mut request =
                Request::get(&target, &self.run.model().keys.get(key).text, &request_id);
            (request.method, request.body) = method_and_body(&effect);
            request.fields += &known
                .iter()
                .map(|(_, tag)| format!("If-Match: {tag}\r\n"))
                .collect::<String>();
            request
        };
        if !twice {
            let request = request();
            let sent = self.run.model().change(place, change);
            let came = self.ask(&request, manner);
            return self.judge_change(place, sent, key, change.known, came);
        }
        let requests = [(request(), ()), (request(), ())];
        for (sent, came) in self.ask_at_once(requests, |model, ()| model.change(place, change)) {
            self.judge_change(place, sent, key, change.known, came);
        }
    }

    /// The pet as a client sees it before it changes it, and its tag.
    fn tag_of(&mut self, id: i64, place: Place) -> Option<(State, String)> {
        let (begun, reply) = self.read(&format!("/v1/pets/{id}"), "")?;
        self.observe_one(id, begun, &reply);
        let tag = reply.header("ETag")?.to_owned();
        let pet = seen(&reply.json());
        assert_eq!(pet.name, self.run.model().intents[place].asked.name);
        Some((pet.state(), tag))
    }

    /// `known`: the state that the change has required.
    pub(super) fn judge_change(
        &mut self,
        place: Place,
        sent: Tick,
        key: usize,
        known: Option<State>,
        came: Came,
    ) {
        let reply = match came {
            Came::Reply(reply) => reply,
            Came::CutBefore => {
                return self
                    .run
                    .model()
                    .changed(place, sent, "not sent to its end", |done| done.is_none());
            }
            Came::Nothing => return self.run.model().lose_change(place, sent, "not answered"),
        };
        self.expect_key(key, sent, true, reply.status);
        let mut model = self.run.model();
        match reply.status {
            200 => {
                let (pet, intent) = (seen(&reply.json()), &model.intents[place]);
                if Some(pet.id) != intent.id || pet.name != intent.asked.name {
                    model.fault(
                        &[place],
                        format!("the response has another pet: {reply:.300?}"),
                    );
                }
                if known.is_some_and(|known| known != pet.state()) {
                    model.intents[place].surely_changed += 1;
                }
                let after = Outcome::Done(pet.state());
                model.changed(place, sent, "changed", |done| done == Some(after));
            }
            204 => model.changed(place, sent, "deleted", |done| {
                done == Some(Outcome::Done(None))
            }),
            404 => model.changed(place, sent, "404", |done| done == Some(Outcome::NotFound)),
            412 => model.changed(place, sent, "412", |done| done == Some(Outcome::NotAsKnown)),
            401 | 403 => model.changed(place, sent, "refused for its key", |done| done.is_none()),
            408 => model.lose_change(place, sent, "timed out"),
            503 => {
                drop(model);
                self.excused(&reply);
                let mut model = self.run.model();
                if reply.json()["code"] == "outcome_unknown" {
                    model.lose_change(place, sent, "503 unknown");
                } else {
                    model.changed(place, sent, "503", |done| done.is_none());
                }
            }
            _ => model.fault(&[place], format!("a good change got {reply:.300?}")),
        }
    }
}

/// The method and the body of a change.
pub fn method_and_body(effect: &Effect) -> (&'static str, Vec<u8>) {
    let Effect::Set { category, status } = effect else {
        return ("DELETE", Vec::new());
    };
    let mut body = json!({});
    if let Some(category) = category {
        body["categoryId"] = (*category).into();
    }
    if let Some(status) = status {
        body["status"] = (*status).into();
    }
    ("PATCH", body.to_string().into_bytes())
}
