//! The statements on retries: the record of a create with an `Idempotency-Key` is written in the transaction of its
//! pet, so that a crash falls before both or after both.

/// How long a record is kept at least, in seconds. If the clock is set forward, records are removed earlier.
pub const KEPT: i64 = 24 * 3600;

/// The pet and the fingerprint of an earlier create with this key.
pub const FIND: &str = "SELECT pet, fingerprint FROM retries WHERE key = ?1";

/// Records the create whose pet the statement before has added. If it has added none, this adds nothing.
pub const RECORD: &str = "INSERT INTO retries (pet, key, fingerprint, at) SELECT last_insert_rowid(), ?1, ?2, ?3 \
    WHERE changes() = 1";

/// Removes those of the oldest `?1` records that were made before `?2`. Its cost does not depend on how many there are.
pub const FORGET: &str = "DELETE FROM retries WHERE pet IN (SELECT pet FROM retries ORDER BY pet LIMIT ?1) \
    AND at < ?2";

/// How many of the oldest records to look at in a batch that adds so many: more than it adds, so that the table shrinks
/// under any load.
pub fn share(added: usize) -> i64 {
    i64::try_from(added).unwrap_or(i64::MAX).saturating_mul(2)
}
