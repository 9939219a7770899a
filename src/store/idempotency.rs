//! The outcome of a create, and the statements on idempotency keys, in the table `retries`: the record of a create with an `Idempotency-Key` is written
//! in the transaction of its pet, so that a crash falls before both or after both.

use std::time::Instant;

use petstore_base::clock::unix_time;

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

/// How long a record is kept at least, in seconds. In a file this holds for any clock: see [`begin`].
pub const KEPT: i64 = 24 * 3600;
/// How much later than the newest record a start is at most, in seconds.
const MOST_PAUSE: i64 = 3600;

/// The times of the oldest and of the newest record.
pub const ENDS: &str = "SELECT oldest.at, newest.at FROM retries AS oldest, retries AS newest \
    WHERE oldest.pet = (SELECT min(pet) FROM retries) AND newest.pet = (SELECT max(pet) FROM retries)";

/// The pet and the fingerprint of an earlier create with this key.
pub const FIND: &str = "SELECT pet, fingerprint FROM retries WHERE key = ?1";

/// Records the create whose pet the statement before has added. If it has added none, this adds nothing.
pub const RECORD: &str = "INSERT INTO retries (pet, key, fingerprint, at) SELECT last_insert_rowid(), ?1, ?2, ?3 \
    WHERE changes() = 1";

/// Removes those of the oldest `?1` records that were made before `?2`. Its cost does not depend on how many there are.
pub const FORGET: &str = "DELETE FROM retries WHERE pet IN (SELECT pet FROM retries ORDER BY pet LIMIT ?1) \
    AND at < ?2";

/// If the oldest record lies in the future, after `?1`, the clock was once wrong, and neither it nor any later record would
/// ever be removed. So all records after `?1` are set to `?1`. Otherwise this reads only the oldest.
pub const CORRECT: &str = "UPDATE retries SET at = ?1 WHERE at > ?1 \
    AND pet >= (SELECT pet FROM retries WHERE at > ?1 AND pet = (SELECT min(pet) FROM retries))";

/// The time at which a service begins to record, from the oldest and the newest record and the clock. From then on, time
/// is what the service measures, whatever happens to the clock. A clock that is ahead cannot be distinguished from a long pause,
/// so a pause counts as an hour at most, and after a real one records stay longer. If all records lie in the
/// future, the clock is behind, and time goes on from the newest. If only some do, the clock was ahead when they were made, and
/// they are ignored.
fn begin(ends: Option<(i64, i64)>, clock: i64) -> i64 {
    match ends {
        Some((oldest, newest)) if oldest > clock || newest <= clock.saturating_add(MOST_PAUSE) => {
            newest.saturating_add(clock.saturating_sub(newest).clamp(0, MOST_PAUSE))
        }
        _ => clock,
    }
}

/// The time by which records age: see [`begin`].
#[derive(Default)]
pub struct IdempotencyClock(Option<(Instant, i64)>);

impl IdempotencyClock {
    /// The time now. The first call asks for the times of the oldest and of the newest record.
    ///
    /// # Errors
    /// Those of `ends`.
    pub fn now<E>(
        &mut self,
        ends: impl FnOnce() -> Result<Option<(i64, i64)>, E>,
    ) -> Result<i64, E> {
        let (began, time) = match self.0 {
            Some(began) => began,
            None => *self.0.insert((Instant::now(), begin(ends()?, unix_time()))),
        };
        Ok(time.saturating_add_unsigned(began.elapsed().as_secs()))
    }
}

/// The number of the oldest records to look at in a batch that adds this many: more than it adds, so that the table shrinks
/// under any load.
pub fn share(added: usize) -> i64 {
    i64::try_from(added).unwrap_or(i64::MAX).saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_that_is_wrong_at_a_start_makes_no_record_older() {
        let day = 24 * 3600;
        for (ends, clock, time) in [
            (None, 50 * day, 50 * day),
            (Some((49 * day, 50 * day)), 50 * day + 60, 50 * day + 60),
            (Some((49 * day, 50 * day)), 20_000 * day, 50 * day + 3600),
            (Some((49 * day, 50 * day)), 50 * day - 60, 50 * day),
            (Some((49 * day, 50 * day)), 0, 50 * day),
            (Some((49 * day, 20_000 * day)), 50 * day, 50 * day),
            (Some((20_000 * day, 49 * day)), 50 * day, 49 * day + 3600),
            (Some((0, i64::MAX)), 1, 1),
            (Some((i64::MIN, i64::MIN)), i64::MAX, i64::MIN + 3600),
            (Some((i64::MAX, i64::MAX)), 0, i64::MAX),
        ] {
            assert_eq!(begin(ends, clock), time, "{ends:?} {clock}");
        }
    }
}
