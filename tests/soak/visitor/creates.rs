//! Creates of a client, and what each response to them means.

use std::time::Instant;

use serde_json::json;

use super::{Came, Visitor, seen};
use crate::model::{Attempt, Place};
use crate::plan::{Draft, Manner, Wrong};
use crate::request::Request;
use crate::run::note;
use support::client::Reply;

impl Visitor<'_> {
    /// One attempt; returns whether it was acknowledged.
    pub(super) fn create(&mut self, place: Place, key: usize, manner: Manner) -> bool {
        let request = self.request(place, key);
        let attempt = self.run.model().send(place);
        let came = self.ask(&request, manner);
        self.judge(attempt, key, came)
    }

    /// Tries again with a key of the same name, if there is one.
    pub(super) fn retry(&mut self, place: Place, manner: Manner) -> bool {
        let key = {
            let model = self.run.model();
            let caller = model.intents[place]
                .once
                .as_ref()
                .map(|(caller, _)| caller.clone());
            caller.and_then(|caller| model.keys.of(&caller))
        };
        key.is_some_and(|key| self.create(place, key, manner))
    }

    pub(super) fn judge(&mut self, attempt: Attempt, key: usize, came: Came) -> bool {
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
                if is_open {
                    model.lose(attempt, "503 unknown");
                } else {
                    model.refuse(attempt, "503");
                }
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
        let is_own = pet.name == asked.name && pet.state() == asked.state();
        if !is_own || reply.header("Location") != Some(&format!("/v1/pets/{}", pet.id)) {
            model.fault(
                &[place],
                format!("the response is to another create: {reply:.300?}"),
            );
        }
        model.acknowledge(attempt, pet.id, is_replay);
        if model.intents[place].once.is_some() {
            self.pending.retain(|other| *other != place);
            if !self.made.contains(&place) {
                self.made.push(place);
            }
        }
        self.run
            .count(if is_replay { "replayed" } else { "created" });
    }

    /// The same create on two connections.
    pub(super) fn at_once(&mut self, place: Place, key: usize) {
        let requests = [
            (self.request(place, key), ()),
            (self.request(place, key), ()),
        ];
        for (attempt, came) in self.ask_at_once(requests, |model, ()| model.send(place)) {
            self.judge(attempt, key, came);
        }
    }

    /// Several creates in one piece; the responses come in the same order, and so do the ids.
    pub(super) fn burst(&mut self, drafts: &[Draft], once: bool) {
        let key = 0;
        let caller = self.run.model().keys.get(key).name.clone();
        let Some(mut connection) = self.connection.take().or_else(|| Self::connect(self.run))
        else {
            return;
        };
        self.asked_at = Instant::now();
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
        connection.try_send(bytes);
        let (mut is_open, mut last) = (true, 0);
        for (request, attempt) in sent {
            let reply = if is_open {
                connection.whole_reply()
            } else {
                None
            };
            reply
                .iter()
                .for_each(|reply| self.expect_own(&request, reply));
            is_open &= reply
                .as_ref()
                .is_some_and(|reply| reply.header("Connection") != Some("close"));
            let place = attempt.intent;
            if self.judge(attempt, key, reply.map_or(Came::Nothing, Came::Reply)) {
                let id = self.run.model().intents[place].id.unwrap_or_default();
                if id <= last {
                    self.fault(
                        &[place],
                        format!("the id {id} follows {last} in one connection"),
                    );
                }
                last = id;
            }
        }
        self.connection = is_open.then_some(connection);
    }

    /// Another pet with a key that was used is refused.
    pub(super) fn reuse(&mut self, pick: u64, draft: &Draft) {
        let Some(place) = self.some_made(pick) else {
            return;
        };
        let Some((caller, once)) = self.run.model().intents[place].once.clone() else {
            return;
        };
        let Some(key) = self.run.model().keys.of(&caller) else {
            return;
        };
        let other = self.intend(draft, None);
        let mut request = self.request(other, key);
        request.fields += &format!("Idempotency-Key: {once}\r\n");
        self.expect_refusal(other, key, &request, &[422]);
    }

    pub(super) fn refused(&mut self, draft: &Draft, wrong: Wrong) {
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
        // Answered or not, it must not have made a pet.
        self.run.model().refuse(attempt, "wrong");
        let Came::Reply(reply) = came else { return };
        match reply.status {
            408 => {}
            503 => self.excused(&reply),
            401 | 403 if !statuses.contains(&401) => {
                self.expect_key(key, attempt.sent, true, reply.status);
            }
            status if statuses.contains(&status) => {}
            _ => self.fault(
                &[place],
                format!("a wrong create got {reply:.300?}, not {statuses:?}"),
            ),
        }
    }
}
