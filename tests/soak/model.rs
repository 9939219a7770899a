//! The model in memory that the service is held against: pets that must be there, that may be, and that must not.
//!
//! Time is a count of what happened, so that it is known what came before what: a create whose response came before
//! a list was sent must be in the list. What overlaps may fall either way.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::history::{Change, History, Outcome, State};
use crate::keys::ApiKeys;

/// A moment: how much had happened by then.
pub type Tick = u64;
/// The bytes of a long name.
pub const LARGE: usize = 55_000;
/// The place of an intent in the model.
pub type Place = usize;

/// A pet as its create asks for it. The name is unique, and so identifies the create.
#[derive(Debug, PartialEq)]
pub struct Asked {
    pub name: String,
    pub category: i64,
    pub status: Option<&'static str>,
}

impl Asked {
    pub fn state(&self) -> State {
        Some((self.category, self.status))
    }
}

/// A pet as the service shows it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub id: i64,
    pub name: String,
    pub category: i64,
    pub status: Option<&'static str>,
}

impl Seen {
    pub fn state(&self) -> State {
        Some((self.category, self.status))
    }
}

/// A part of all pets, as the service showed it between a moment and now.
#[derive(Clone, Debug)]
pub struct Look {
    pub begun: Tick,
    /// The ids after this one, up to and including the other.
    pub after: i64,
    pub up_to: i64,
    /// Only pets with this status.
    pub status: Option<&'static str>,
}

/// The pet that somebody wants, once.
#[derive(Clone, Debug)]
pub struct Intent {
    pub asked: Arc<Asked>,
    /// The name of the API key, and the retry key.
    pub once: Option<(String, String)>,
    /// The id, as soon as it is known.
    pub id: Option<i64>,
    /// Attempts that have not been answered yet.
    inside: u32,
    /// An attempt was never answered.
    lost: bool,
    /// Since when it is known that the pet was made.
    pub made: Option<Tick>,
    /// Its states since it was made.
    pub history: History,
    /// Its retry key was left behind in another database.
    pub retired: bool,
    /// How many acknowledged changes have surely changed it.
    pub surely_changed: u32,
    story: Vec<(Tick, &'static str)>,
}

/// An attempt that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub intent: Place,
    pub sent: Tick,
    /// The highest id that was known when it was sent.
    top: i64,
    was_made: bool,
}

/// The model at a moment, for a backup.
pub struct Past {
    begun: Tick,
    intents: Vec<Intent>,
    /// The states that each pet may have been in while the copy was taken.
    states: Vec<Vec<State>>,
    /// Pets that may have been made while the copy was taken.
    maybe: Vec<Place>,
}

#[derive(Default)]
pub struct Model {
    now: Tick,
    pub intents: Vec<Intent>,
    by_name: HashMap<Arc<str>, Place>,
    by_id: BTreeMap<i64, Place>,
    pub keys: ApiKeys,
}

impl Model {
    /// The next moment.
    pub fn tick(&mut self) -> Tick {
        self.now += 1;
        self.now
    }

    /// Notes a pet that somebody will ask for.
    pub fn intend(&mut self, asked: Asked, once: Option<(String, String)>) -> Place {
        let place = self.intents.len();
        assert!(
            self.by_name
                .insert(asked.name.as_str().into(), place)
                .is_none(),
            "the plan gives a name twice"
        );
        let history = History::of(&[asked.state()]);
        self.intents.push(Intent {
            asked: Arc::new(asked),
            once,
            id: None,
            inside: 0,
            lost: false,
            made: None,
            history,
            retired: false,
            surely_changed: 0,
            story: Vec::new(),
        });
        place
    }

    fn note(&mut self, place: Place, what: &'static str) -> Tick {
        let now = self.tick();
        self.intents[place].story.push((now, what));
        now
    }

    /// An attempt begins.
    pub fn send(&mut self, place: Place) -> Attempt {
        let sent = self.note(place, "sent");
        let top = self.by_id.last_key_value().map_or(0, |(id, _)| *id);
        let intent = &mut self.intents[place];
        intent.inside += 1;
        Attempt {
            intent: place,
            sent,
            top,
            was_made: intent.made.is_some(),
        }
    }

    /// The attempt was refused, or never sent to its end: it has made nothing.
    pub fn refuse(&mut self, attempt: Attempt, why: &'static str) {
        self.note(attempt.intent, why);
        self.intents[attempt.intent].inside -= 1;
    }

    /// The attempt was not answered: it may have made the pet, or may still do so.
    pub fn lose(&mut self, attempt: Attempt, why: &'static str) {
        self.note(attempt.intent, why);
        let intent = &mut self.intents[attempt.intent];
        intent.inside -= 1;
        intent.lost = true;
    }

    /// The attempt was answered with 201.
    pub fn acknowledge(&mut self, attempt: Attempt, id: i64, is_replay: bool) {
        let place = attempt.intent;
        self.note(place, if is_replay { "replayed" } else { "created" });
        let intent = &self.intents[place];
        if is_replay && intent.made.is_none() && !intent.lost && intent.inside == 1 {
            self.fault(
                &[place],
                "a create that no other can have carried out was answered as a replay".to_owned(),
            );
        }
        if !is_replay && attempt.was_made {
            self.fault(
                &[place],
                format!("a pet that was there was made again, with the id {id}"),
            );
        }
        if !is_replay && id <= attempt.top {
            let text = format!(
                "the id {id} is not above {}, which was known when the create was sent",
                attempt.top
            );
            self.fault(&[place], text);
        }
        self.place(place, id);
        self.intents[place].inside -= 1;
    }

    /// Notes that a pet exists.
    fn place(&mut self, place: Place, id: i64) {
        if let Some(known) = self.intents[place].id.filter(|known| *known != id) {
            self.fault(
                &[place],
                format!("one intent made two pets, {known} and {id}"),
            );
        }
        match self.by_id.insert(id, place) {
            Some(other) if other != place => {
                self.fault(&[place, other], format!("the id {id} was given twice"));
            }
            _ => {}
        }
        let now = self.now;
        let intent = &mut self.intents[place];
        intent.id = Some(id);
        intent.made.get_or_insert(now);
    }

    /// An import wrote the pet, whose id nobody has seen yet.
    pub fn imported(&mut self, attempt: Attempt) {
        let now = self.note(attempt.intent, "imported");
        let intent = &mut self.intents[attempt.intent];
        intent.inside -= 1;
        intent.made.get_or_insert(now);
    }

    /// Holds what the service showed against what is known.
    pub fn observe(&mut self, look: &Look, pets: &[Seen]) {
        let now = self.tick();
        let mut last = look.after;
        for pet in pets {
            let Some(&place) = self.by_name.get(pet.name.as_str()) else {
                self.fault(&[], format!("nobody has asked for the pet {pet:.200?}"));
            };
            if pet.id <= last || pet.id > look.up_to {
                self.fault(
                    &[place],
                    format!("the pet {} comes after {last} in {look:?}", pet.id),
                );
            }
            last = pet.id;
            let intent = &self.intents[place];
            if intent.made.is_none() && !intent.lost && intent.inside == 0 {
                self.fault(
                    &[place],
                    format!("the pet {} is there, and was refused", pet.id),
                );
            }
            let state = pet.state();
            if !self.intents[place]
                .history
                .look(look.begun, now, |other| other == state)
            {
                self.fault(
                    &[place],
                    format!("no order of the changes explains {pet:.200?}"),
                );
            }
            if look.status.is_some() && look.status != pet.status {
                self.fault(
                    &[place],
                    format!("the pet {} does not have the status of {look:?}", pet.id),
                );
            }
            if self.intents[place].id.is_none() {
                self.intents[place].story.push((now, "seen"));
            }
            self.place(place, pet.id);
        }
        let ids: std::collections::HashSet<i64> = pets.iter().map(|pet| pet.id).collect();
        let mut missing = Vec::new();
        if look.after < look.up_to {
            for (id, place) in self.by_id.range(look.after + 1..=look.up_to) {
                let intent = &mut self.intents[*place];
                let is_due = intent.made.is_some_and(|made| made < look.begun) && !ids.contains(id);
                let is_left_out = |state: State| match (state, look.status) {
                    (None, _) => true,
                    (Some(_), None) => false,
                    (Some((_, status)), wanted) => status != wanted,
                };
                if is_due && !intent.history.look(look.begun, now, is_left_out) {
                    missing.push(*place);
                }
            }
        }
        if !missing.is_empty() {
            let all: Vec<_> = missing
                .iter()
                .map(|place| self.intents[*place].id.unwrap_or_default())
                .collect();
            self.fault(
                &missing[..missing.len().min(5)],
                format!("missing from {look:?}: {all:?}"),
            );
        }
    }

    /// Decides what was never answered, from all pets of a service that has ended. Nothing is under way.
    pub fn settle(&mut self, pets: &[Seen]) {
        self.end();
        let look = Look {
            begun: self.tick(),
            after: 0,
            up_to: i64::MAX,
            status: None,
        };
        self.observe(&look, pets);
        for place in 0..self.intents.len() {
            let intent = &self.intents[place];
            assert_eq!(intent.inside, 0, "{:?} is still under way", intent.asked);
            if intent.made.is_some() && intent.id.is_none() {
                self.fault(&[place], "an imported pet is missing".to_owned());
            }
            if intent.lost && intent.made.is_none() {
                self.note(place, "found to be absent");
            }
            let intent = &mut self.intents[place];
            intent.history.settle();
            // Made and deleted while the backup was taken, so that its create may be a replay.
            intent.lost = intent.made.is_none()
                && intent
                    .history
                    .since(look.begun)
                    .any(|state| state.is_none());
        }
    }

    /// The service has ended.
    pub fn end(&mut self) {
        self.intents
            .iter_mut()
            .for_each(|intent| intent.history.end());
    }

    /// Notes that a change of a pet is sent, and returns the time.
    pub fn change(&mut self, place: Place, change: Change) -> Tick {
        let now = self.note(place, "change sent");
        self.intents[place].history.send(now, change);
        now
    }

    /// The change that was sent then had an outcome that `fits`; `None` stands for one that was not carried out.
    pub fn changed(
        &mut self,
        place: Place,
        sent: Tick,
        what: &'static str,
        fits: impl Fn(Option<Outcome>) -> bool,
    ) {
        let now = self.note(place, what);
        if !self.intents[place].history.answer(now, sent, fits) {
            self.fault(
                &[place],
                format!("no order of the changes explains that the one of {sent} was {what}"),
            );
        }
    }

    /// The change was not answered: it may have been carried out, or may still be.
    pub fn lose_change(&mut self, place: Place, sent: Tick, why: &'static str) {
        let now = self.note(place, why);
        self.intents[place].history.lose(now, sent);
    }

    fn may_be_there(&self, place: Place) -> bool {
        self.intents[place]
            .history
            .since(self.now)
            .any(|state| state.is_some())
    }

    /// Some pet that may be there; `None` if there is none.
    pub fn pick(&self, pick: u64) -> Option<(i64, Place)> {
        let (top, _) = self.by_id.last_key_value()?;
        let from = (pick % (*top as u64)) as i64;
        let is_there = |(_, place): &(&i64, &Place)| self.may_be_there(**place);
        let mut after = self.by_id.range(from..).chain(self.by_id.range(..from));
        after.find(is_there).map(|(id, place)| (*id, *place))
    }

    /// Pets with long names that may be there, at most this many.
    pub fn large(&self, most: usize) -> Vec<(i64, Place)> {
        let is_large = |(_, place): &(&i64, &Place)| {
            self.intents[**place].asked.name.len() > LARGE && self.may_be_there(**place)
        };
        self.by_id
            .iter()
            .filter(is_large)
            .take(most)
            .map(|(id, place)| (*id, *place))
            .collect()
    }

    /// The state as a backup begins.
    pub fn remember(&mut self) -> Past {
        let begun = self.tick();
        Past {
            begun,
            intents: self.intents.clone(),
            states: Vec::new(),
            maybe: Vec::new(),
        }
    }

    /// Completes the memory when the backup has ended: what came up meanwhile may be in it.
    pub fn remembered(&self, past: &mut Past) {
        let may_be = |intent: &Intent| intent.made.is_some() || intent.lost || intent.inside > 0;
        let was_made = |place: &Place| {
            past.intents
                .get(*place)
                .is_some_and(|then| then.made.is_some())
        };
        let maybe = (0..self.intents.len())
            .filter(|place| may_be(&self.intents[*place]) && !was_made(place));
        past.maybe = maybe.collect();
        let states = self
            .intents
            .iter()
            .map(|intent| intent.history.since(past.begun).collect());
        past.states = states.collect();
    }

    /// Goes back to a backup that was restored.
    pub fn go_back(&mut self, past: &Past) {
        let now = self.tick();
        self.by_id.clear();
        for (place, intent) in self.intents.iter_mut().enumerate() {
            let mut story = std::mem::take(&mut intent.story);
            match past.intents.get(place) {
                Some(then) => {
                    let retired = intent.retired;
                    *intent = Intent {
                        inside: 0,
                        lost: false,
                        retired,
                        ..then.clone()
                    };
                }
                None => {
                    (intent.id, intent.made, intent.lost) = (None, None, false);
                    intent.surely_changed = 0;
                }
            }
            let states = past
                .states
                .get(place)
                .cloned()
                .unwrap_or_else(|| vec![intent.asked.state()]);
            intent.history = History::of(&states);
            story.push((now, "restored"));
            intent.story = story;
        }
        for place in &past.maybe {
            self.intents[*place].lost = true;
        }
        for (place, intent) in self.intents.iter().enumerate() {
            if let Some(id) = intent.id {
                self.by_id.insert(id, place);
            }
        }
    }

    /// Goes on in another database, with the same pets. Deleted ones and the retry keys are forgotten.
    pub fn move_out(&mut self) {
        let now = self.tick();
        let all = std::mem::take(&mut self.by_id).into_iter();
        self.by_id = all.filter(|(_, place)| self.may_be_there(*place)).collect();
        self.intents.iter_mut().for_each(|intent| {
            intent.retired |= intent.made.is_some();
            intent.surely_changed = 0;
        });
        self.keys.move_out(now);
    }

    /// Ends the run: the service has broken a promise.
    pub fn fault(&self, places: &[Place], text: String) -> ! {
        let stories = places.iter().map(|place| {
            let intent = &self.intents[*place];
            let Intent {
                asked,
                once,
                id,
                story,
                history,
                ..
            } = intent;
            let (name, state) = (
                asked.name.chars().take(60).collect::<String>(),
                asked.state(),
            );
            format!("\n  {name:?} {state:?}, retry key {once:?}, id {id:?}: {story:?}; {history:?}")
        });
        panic!("{text}; now is {}{}", self.now, stories.collect::<String>())
    }
}
