//! The history of one pet: every state that it may be in, given the answers so far.
//!
//! A change takes effect at one moment between its request and its response, and its answer depends on the state at
//! that moment. So the history keeps each state to which some order of the changes leads, with the outcomes of the
//! changes on the way that are not answered yet. An answer rules out the orders in which the change ends otherwise; if
//! none is left, the service has broken a promise, such as that only one of two clients with one tag gets the pet.

use std::collections::BTreeMap;

use crate::model::Tick;

/// The category and the status of a pet; `None` if it was deleted.
pub type State = Option<(i64, Option<&'static str>)>;

#[derive(Clone, Copy, Debug)]
pub enum Effect {
    Delete,
    Set {
        category: Option<i64>,
        status: Option<Option<&'static str>>,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub effect: Effect,
    /// The state whose tag is in If-Match.
    pub known: Option<State>,
}

/// The answer to a change, with the state after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    Done(State),
    NotFound,
    NotAsKnown,
}

impl Change {
    /// The outcome for a pet in this state, and the state after it.
    fn apply(&self, state: State) -> (Outcome, State) {
        let Some((category, status)) = state else {
            return (Outcome::NotFound, state);
        };
        if self.known.is_some_and(|known| known != state) {
            return (Outcome::NotAsKnown, state);
        }
        let after = match self.effect {
            Effect::Delete => None,
            Effect::Set {
                category: new,
                status: other,
            } => Some((new.unwrap_or(category), other.unwrap_or(status))),
        };
        (Outcome::Done(after), after)
    }
}

/// A state, and the outcomes of the changes that are under way and were carried out before it.
type Possible = (State, BTreeMap<Tick, Outcome>);

#[derive(Clone, Debug)]
pub struct History {
    /// Changes that are under way, by when they were sent.
    open: Vec<(Tick, Change)>,
    /// Changes that were never answered. Each may be carried out at any time, for simplicity even repeatedly.
    lost: Vec<Change>,
    possible: Vec<Possible>,
    /// The states that were possible from each moment on.
    moments: Vec<(Tick, Vec<State>)>,
}

impl History {
    /// The history of a pet that is in one of these states.
    pub fn of(states: &[State]) -> Self {
        let possible = states
            .iter()
            .map(|state| (*state, BTreeMap::new()))
            .collect();
        Self {
            open: Vec::new(),
            lost: Vec::new(),
            possible,
            moments: vec![(0, states.to_vec())],
        }
    }

    pub fn under_way(&self) -> usize {
        self.open.len()
    }

    /// A change is sent.
    pub fn send(&mut self, now: Tick, change: Change) {
        self.open.push((now, change));
        self.explore(now);
    }

    /// The change that was sent then had an outcome that `fits`; `None` stands for one that was not carried out.
    /// Returns whether some order of the changes explains it.
    #[must_use]
    pub fn answer(
        &mut self,
        now: Tick,
        sent: Tick,
        fits: impl Fn(Option<Outcome>) -> bool,
    ) -> bool {
        self.open.retain(|(other, _)| *other != sent);
        self.possible
            .retain_mut(|(_, done)| fits(done.remove(&sent)));
        self.explore(now);
        !self.possible.is_empty()
    }

    /// The change that was sent then is not answered: it may have been carried out, or may still be.
    pub fn lose(&mut self, now: Tick, sent: Tick) {
        self.lost.extend(
            self.open
                .extract_if(.., |(other, _)| *other == sent)
                .map(|(_, change)| change),
        );
        self.possible
            .iter_mut()
            .for_each(|(_, done)| _ = done.remove(&sent));
        self.explore(now);
    }

    /// The service has ended, so what was not answered by then is not carried out any more.
    pub fn end(&mut self) {
        self.lost.clear();
    }

    /// The states that it may have been in since a moment.
    pub fn since(&self, begun: Tick) -> impl Iterator<Item = State> {
        let first = self
            .moments
            .partition_point(|(tick, _)| *tick <= begun)
            .saturating_sub(1);
        self.moments[first..]
            .iter()
            .flat_map(|(_, states)| states)
            .copied()
    }

    /// The state that somebody saw between a moment and now `fits`. Returns whether it was possible, and learns from it
    /// if nothing happened meanwhile.
    #[must_use]
    pub fn look(&mut self, begun: Tick, now: Tick, fits: impl Fn(State) -> bool) -> bool {
        let is_possible = self.since(begun).any(&fits);
        if is_possible && self.moments.last().is_some_and(|(last, _)| *last < begun) {
            let before = self.possible.len();
            self.possible.retain(|(state, _)| fits(*state));
            if self.possible.len() < before {
                self.explore(now);
            }
        }
        is_possible
    }

    /// Adds each state to which changes that are under way or lost may lead.
    fn explore(&mut self, now: Tick) {
        let mut left = std::mem::take(&mut self.possible);
        let mut states = Vec::new();
        while let Some((state, done)) = left.pop() {
            if self.possible.contains(&(state, done.clone())) {
                continue;
            }
            for (sent, change) in self
                .open
                .iter()
                .filter(|(sent, _)| !done.contains_key(sent))
            {
                let (outcome, after) = change.apply(state);
                let mut done = done.clone();
                done.insert(*sent, outcome);
                left.push((after, done));
            }
            left.extend(
                self.lost
                    .iter()
                    .map(|change| (change.apply(state).1, done.clone())),
            );
            if !states.contains(&state) {
                states.push(state);
            }
            self.possible.push((state, done));
        }
        self.moments.push((now, states));
    }

    /// Forgets how the possible states were reached. No change may be under way.
    pub fn settle(&mut self) {
        assert!(self.open.is_empty(), "{:?} are still under way", self.open);
        let (_, states) = self.moments.pop().unwrap_or_default();
        *self = Self::of(&states);
    }
}
