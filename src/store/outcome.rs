//! The outcome of a create.

/// The outcome of a create. It counts only once its batch is committed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The pet with this id was added.
    Made(i64),
    /// The same create was carried out before, or earlier in this batch, and added this pet.
    Replayed(i64),
    /// Another create was carried out with the same key.
    Reused,
}

#[cfg(test)]
impl Outcome {
    /// The id of the pet.
    pub fn id(&self) -> i64 {
        match self {
            Self::Made(id) | Self::Replayed(id) => *id,
            Self::Reused => panic!("another create has the key"),
        }
    }
}
