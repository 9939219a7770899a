//! The pets by status, counted when somebody asks.

use std::time::{Duration, Instant};

use crate::model::PetCounts;

/// After a change, a result is used for this many times as long as its count took. So counting takes at most a tenth of
/// the time of its thread, however often clients ask.
const HOLDS: u32 = 10;

/// A count that takes less, that of some 100,000 pets, is made again after each change: it costs about as much as a
/// list.
const CHEAP: Duration = Duration::from_millis(10);

/// The number of pets with each status, and when it was exact.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub counts: PetCounts,
    as_of: Instant,
}

impl Counted {
    /// The time since the counts were exact.
    pub fn age(&self) -> Duration {
        self.as_of.elapsed()
    }
}

/// The last count on a connection.
#[derive(Default)]
pub struct Counts(Option<Last>);

struct Last {
    counted: Counted,
    /// The version of the database that was counted.
    version: i64,
    /// Until then they are used after a change.
    until: Instant,
}

impl Counts {
    /// Returns the counts of this version of the database, or earlier ones if a count takes long.
    ///
    /// # Errors
    /// Those of `count`.
    pub fn current<E>(
        &mut self,
        version: i64,
        count: impl FnOnce() -> Result<PetCounts, E>,
    ) -> Result<Counted, E> {
        let now = Instant::now();
        if let Some(last) = &mut self.0 {
            if last.version == version {
                last.counted.as_of = now;
            }
            if last.version == version || now < last.until {
                return Ok(last.counted);
            }
        }
        let counts = count()?;
        let took = now.elapsed();
        let counted = Counted { counts, as_of: now };
        let holds = if took < CHEAP {
            Duration::ZERO
        } else {
            took * HOLDS
        };
        self.0 = Some(Last {
            counted,
            version,
            until: now + took + holds,
        });
        Ok(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Reader;
    use crate::store::tests::{pair, run};

    const ADD: &str = "INSERT INTO pets (name, category_id, status) VALUES ('a', 1, 'sold')";

    /// The sold pets, in a snapshot of their own.
    fn sold(counts: &mut Counts, reader: &mut Reader) -> (i64, Duration) {
        reader.begin().unwrap();
        let counted = counts
            .current(reader.data_version(), || reader.count_pets())
            .unwrap();
        reader.end().unwrap();
        (counted.counts.sold, counted.age())
    }

    #[test]
    fn count_is_made_again_after_a_change_only() {
        let (_folder, writer, mut reader) = pair();
        let mut counts = Counts::default();
        // On a busy machine, a count may take long and hold.
        let no_longer_holds =
            |counts: &mut Counts| counts.0.as_mut().unwrap().until = Instant::now();
        assert_eq!(sold(&mut counts, &mut reader).0, 0);
        run(&writer, ADD);
        no_longer_holds(&mut counts);
        assert_eq!(sold(&mut counts, &mut reader).0, 1);
        // A wrong result shows that nobody counts.
        counts.0.as_mut().unwrap().counted.counts.sold = 7;
        no_longer_holds(&mut counts);
        assert_eq!(sold(&mut counts, &mut reader).0, 7);
        run(&writer, ADD);
        no_longer_holds(&mut counts);
        assert_eq!(sold(&mut counts, &mut reader).0, 2);
    }

    #[test]
    fn long_count_holds_for_a_while_and_tells_its_age() {
        let (_folder, writer, mut reader) = pair();
        let mut counts = Counts::default();
        sold(&mut counts, &mut reader);
        let hour = Duration::from_secs(3600);
        let last = counts.0.as_mut().unwrap();
        last.until += hour;
        last.counted.as_of = last.counted.as_of.checked_sub(hour).unwrap();
        let (_, age) = sold(&mut counts, &mut reader);
        assert!(age < hour, "nothing has changed since");
        let last = counts.0.as_mut().unwrap();
        last.counted.as_of = last.counted.as_of.checked_sub(hour).unwrap();
        run(&writer, ADD);
        let (number, age) = sold(&mut counts, &mut reader);
        assert!(number == 0 && age >= hour, "{number} of {age:?} ago");
        counts.0.as_mut().unwrap().until = Instant::now();
        assert_eq!(sold(&mut counts, &mut reader).0, 1);
    }
}
