//! The newest records, in memory: found without a query, and in the order of their keys when they are to be moved.
//! Follows the writer's transactions; knows no SQL.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Bound::{Excluded, Unbounded};

/// The digest of an `Idempotency-Key` and its caller.
pub type Key = [u8; 16];

/// How many records make a generation. The more, the fewer pages of the table each of them writes; in memory, one takes
/// about 85 bytes.
const GENERATION: usize = 65_536;
/// The bytes of a record in a row: key, fingerprint, and the id of the pet, the most significant byte first.
const BYTES: usize = 16 + 16 + 8;

/// What a create with a key has made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// That of the pet's content.
    pub fingerprint: [u8; 16],
    /// The pet's id.
    pub pet: i64,
    /// The uptime, in seconds.
    pub at: i64,
}

/// What is done with the generation before the one that grows. Only a commit changes it.
#[derive(Debug, PartialEq)]
pub enum Stage {
    /// There is none.
    Growing,
    /// It moves in the order of its keys.
    Moving {
        /// All of its records.
        records: BTreeMap<Key, Record>,
        /// The last one that has moved.
        to: Option<Key>,
        /// Its last row.
        last_row: i64,
    },
    /// All of it has moved, and its rows are removed: those up to this one.
    Moved(i64),
}

/// What the open transaction does to the stage.
#[derive(Debug, PartialEq)]
enum Progress {
    To(Key),
    Moved,
    Removed,
}

/// The records that are not in the table yet.
pub struct Memory {
    /// The generation that grows.
    newest: BTreeMap<Key, Record>,
    stage: Stage,
    /// How many records make a generation.
    pub generation: usize,
    /// The keys that the open transaction has added to the newest.
    added: Vec<Key>,
    /// How many of them are of earlier requests.
    kept: usize,
    progress: Option<Progress>,
    /// The row that was written last.
    pub last_row: i64,
}

impl Memory {
    /// Without records.
    pub fn new() -> Self {
        Self {
            newest: BTreeMap::new(),
            stage: Stage::Growing,
            generation: GENERATION,
            added: Vec::new(),
            kept: 0,
            progress: None,
            last_row: 0,
        }
    }

    /// The record of a key, if it is here.
    pub fn find(&self, key: &Key) -> Option<Record> {
        let moving = || match &self.stage {
            Stage::Moving { records, .. } => records.get(key),
            _ => None,
        };
        self.newest.get(key).or_else(moving).copied()
    }

    /// Adds a record in the open transaction.
    pub fn add(&mut self, key: Key, record: Record) {
        self.newest.insert(key, record);
        self.added.push(key);
    }

    /// How many records the open transaction has added.
    pub fn added(&self) -> u32 {
        u32::try_from(self.added.len()).unwrap_or(u32::MAX)
    }

    /// The records that the open transaction has added, for a row.
    pub fn row(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(self.added.len() * BYTES);
        for (key, record) in self.added.iter().filter_map(|key| self.newest.get_key_value(key)) {
            row.extend_from_slice(key);
            row.extend_from_slice(&record.fingerprint);
            row.extend_from_slice(&record.pet.to_be_bytes());
        }
        row
    }

    /// Takes the records that earlier services have written, the newest last, and the id of their last row.
    pub fn load(&mut self, records: Vec<(Key, Record)>, last_row: i64) {
        self.newest = records.into_iter().collect();
        self.last_row = last_row;
        self.turn();
    }

    /// Forgets the records of a row that the open transaction removes because they are old enough.
    pub fn forget(&mut self, row: &[u8]) {
        for (key, record) in records(row, 0) {
            // The key may have been used again since.
            if self.newest.get(&key).is_some_and(|newest| newest.pet == record.pet) {
                self.newest.remove(&key);
            }
        }
    }

    /// A request of the batch begins.
    pub fn begin_unit(&mut self) {
        self.kept = self.added.len();
    }

    /// What the request under way has written is undone.
    pub fn undo_unit(&mut self) {
        for key in self.added.drain(self.kept..) {
            self.newest.remove(&key);
        }
    }

    /// The transaction is undone.
    pub fn undo(&mut self) {
        self.kept = 0;
        self.undo_unit();
        self.progress = None;
    }

    /// The transaction is committed.
    pub fn commit(&mut self) {
        self.added.clear();
        self.kept = 0;
        match (self.progress.take(), &mut self.stage) {
            (Some(Progress::To(key)), Stage::Moving { to, .. }) => *to = Some(key),
            (Some(Progress::Moved), Stage::Moving { last_row, .. }) => self.stage = Stage::Moved(*last_row),
            (Some(Progress::Removed), Stage::Moved(_)) => self.stage = Stage::Growing,
            _ => {}
        }
        self.turn();
    }

    /// Begins a new generation if the one that grows is complete and the one before it is done with.
    fn turn(&mut self) {
        if self.newest.len() >= self.generation && self.stage == Stage::Growing {
            let records = mem::take(&mut self.newest);
            self.stage = Stage::Moving { records, to: None, last_row: self.last_row };
        }
    }

    /// What is done with the generation before.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The next records to move in the open transaction, at most so many.
    pub fn next(&mut self, most: u32) -> impl Iterator<Item = (&Key, &Record)> {
        let mut next = None;
        if let Stage::Moving { records, to, .. } = &self.stage {
            let mut rest = records.range::<Key, _>((to.as_ref().map_or(Unbounded, Excluded), Unbounded));
            let moving = rest.clone().take(most as usize);
            let last = rest.nth((most as usize).saturating_sub(1)).filter(|_| rest.next().is_some());
            self.progress = Some(last.map_or(Progress::Moved, |(key, _)| Progress::To(*key)));
            next = Some(moving);
        }
        next.into_iter().flatten()
    }

    /// The open transaction removes the last rows of the generation that has moved, if one has.
    pub fn removed(&mut self) {
        if let Stage::Moved(_) = self.stage {
            self.progress = Some(Progress::Removed);
        }
    }
}

/// The records of a row.
pub fn records(row: &[u8], at: i64) -> impl Iterator<Item = (Key, Record)> {
    let (records, _) = row.as_chunks::<BYTES>();
    records.iter().filter_map(move |record| {
        let (key, rest) = record.split_first_chunk()?;
        let (fingerprint, pet) = rest.split_first_chunk()?;
        let pet = i64::from_be_bytes(pet.try_into().ok()?);
        Some((*key, Record { fingerprint: *fingerprint, pet, at }))
    })
}
