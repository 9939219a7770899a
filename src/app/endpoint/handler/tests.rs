//! The result of the last write, which a health check is told.

use super::*;
use crate::store::tests::{Folder, refuse_writes};
#[test]
fn last_write_counts_for_a_moment() {
    let no = || {
        Err(StoreError::Unavailable(
            Cause::Locked,
            "as if just seen".to_owned(),
        ))
    };
    let folder = Folder::new();
    let mut writing = WriteContext::new(Writer::open(&folder.database()).unwrap());
    writing.hold(no());
    assert_eq!(writing.takes_writes(), no());
    writing.last_write = Instant::now()
        .checked_sub(LAST_WRITE_COUNTS)
        .map(|at| (at, no()));
    assert_eq!(writing.takes_writes(), Ok(()), "asked again");
    refuse_writes(&writing.store, true);
    writing.hold(Ok(()));
    assert_eq!(writing.takes_writes(), Ok(()));
    writing.written(no());
    assert_eq!(writing.takes_writes(), no());
}
#[test]
fn lock_does_not_hide_a_disk_that_failed() {
    let failed = |cause| Err(StoreError::Unavailable(cause, "as if just seen".to_owned()));
    let folder = Folder::new();
    let mut writing = WriteContext::new(Writer::open(&folder.database()).unwrap());
    let mut other = Writer::open(&folder.database()).unwrap();
    other.open_transaction().unwrap();
    writing.last_write = Instant::now()
        .checked_sub(LAST_WRITE_COUNTS)
        .map(|at| (at, failed(Cause::Full)));
    assert_eq!(
        writing.takes_writes(),
        failed(Cause::Full),
        "nobody could ask"
    );
    other.undo();
    writing.last_write = None;
    assert_eq!(writing.takes_writes(), Ok(()));
    writing.written(failed(Cause::Locked));
    assert!(is_locked(&writing.takes_writes()), "a write worked before");
}
