//! Which API keys a request may have been accepted with.

use crate::model::Tick;

/// One key.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub text: String,
    pub name: String,
    pub read_only: bool,
    /// When the operator began and ended to take it away; `None`: it counts.
    gone: Option<(Tick, Tick)>,
}

/// All keys that ever were; clients name them by their places.
#[derive(Clone, Debug, Default)]
pub struct ApiKeys(Vec<ApiKey>);

impl ApiKeys {
    pub fn get(&self, place: usize) -> &ApiKey {
        &self.0[place]
    }

    pub fn add(&mut self, name: &str, text: &str, read_only: bool) {
        let (name, text) = (name.to_owned(), text.to_owned());
        self.0.push(ApiKey {
            text,
            name,
            read_only,
            gone: None,
        });
    }

    /// Any key that may write, now and then one that no longer counts or may only read.
    pub fn pick(&self, pick: u64) -> usize {
        let bound = self.0.len() as u64;
        if (pick >> 32).is_multiple_of(16) {
            return (pick % bound) as usize;
        }
        let writing = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, key)| key.gone.is_none() && !key.read_only);
        let places: Vec<usize> = writing.map(|(place, _)| place).collect();
        places[pick as usize % places.len()]
    }

    /// A key of this name that counts and may write.
    pub fn of(&self, name: &str) -> Option<usize> {
        self.0
            .iter()
            .position(|key| key.name == name && key.gone.is_none() && !key.read_only)
    }

    /// The places of the keys of this name that count.
    pub fn all_of(&self, name: &str) -> Vec<usize> {
        let counts = |place: &usize| self.0[*place].name == name && self.0[*place].gone.is_none();
        (0..self.0.len()).filter(counts).collect()
    }

    /// Between these two ticks the operator takes them away; the second is `Tick::MAX` until it has happened.
    pub fn take_away(&mut self, places: &[usize], begin: Tick, end: Tick) {
        places
            .iter()
            .for_each(|place| self.0[*place].gone = Some((begin, end)));
    }

    /// Forgets all keys but the first, which the environment gives.
    pub fn move_out(&mut self, now: Tick) {
        self.0
            .iter_mut()
            .skip(1)
            .for_each(|key| key.gone = Some((now, now)));
    }

    /// The flaw in how the service took a key, if any.
    pub fn fault(&self, place: usize, sent: Tick, writes: bool, status: u16) -> Option<String> {
        let key = &self.0[place];
        let name = format!("the key {} of {}", place, key.name);
        match (key.gone, status) {
            (None, 401) => Some(format!("{name} counts, and got 401")),
            (Some((_, end)), status)
                if end < sent && status != 401 && status < 500 && status != 408 =>
            {
                Some(format!("{name} was taken away before, and got {status}"))
            }
            (None, status) if writes && key.read_only && status < 300 => Some(format!(
                "{name} may only read, and got {status} for a create"
            )),
            (None, 403) if !key.read_only => Some(format!("{name} may write, and got 403")),
            _ => None,
        }
    }
}
