//! Many requests of a client at once, which change more pages than the page cache of the service holds.

use super::Visitor;
use super::changes::{MOST, method_and_body};
use crate::history::Change;
use crate::model::{Attempt, LARGE, Place, Tick};
use crate::plan::{Crowd, Draft};
use crate::request::Request;

/// A request of a crowd: what it is for, and the place of its API key.
enum Wanted {
    Create(Place, usize),
    Change(Place, Change),
}

/// A request of a crowd, as the model has noted it.
enum Sent {
    Create(Attempt, usize),
    Change(Place, Tick),
}

impl Visitor<'_> {
    /// Changes large pets, one for each effect. Adds those that are missing, with retry keys.
    pub fn crowd(&mut self, crowd: Crowd) {
        let (caller, effects) = (crowd.caller, crowd.effects());
        let large = self.run.model().large(effects.len());
        let key = self.key(caller);
        let mut requests = Vec::new();
        for (&(id, place), &effect) in large.iter().zip(effects.iter()) {
            let request_id = self.next_id();
            let model = self.run.model();
            if model.intents[place].history.under_way() < MOST {
                let target = format!("/v1/pets/{id}");
                let mut request = Request::get(&target, &model.keys.get(key).text, &request_id);
                (request.method, request.body) = method_and_body(&effect);
                requests.push((
                    request,
                    Wanted::Change(
                        place,
                        Change {
                            effect,
                            known: None,
                        },
                    ),
                ));
            }
        }
        for _ in large.len()..effects.len() {
            let draft = Draft {
                filler: "x".repeat(LARGE),
                category: 0,
                status: None,
            };
            let (key, place) = self.intend_once(&draft, caller);
            self.pending.push(place);
            requests.push((self.request(place, key), Wanted::Create(place, key)));
        }
        let came = self.ask_at_once(requests, |model, wanted| match wanted {
            Wanted::Create(place, key) => Sent::Create(model.send(place), key),
            Wanted::Change(place, change) => Sent::Change(place, model.change(place, change)),
        });
        for (sent, came) in came {
            match sent {
                Sent::Create(attempt, key) => drop(self.judge(attempt, key, came)),
                Sent::Change(place, sent) => self.judge_change(place, sent, key, None, came),
            }
        }
    }
}
