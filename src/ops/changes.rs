//! The record of changes without HTTP: whether it is kept, and what it has.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use super::transfer::{Format, csv};
use crate::model::{ChangeKind, ChangeQuery, FULL_PAGE_BYTES, MEMBERS, Order, PetChange};
use crate::store::cluster::is_cluster;
use crate::store::{Snapshot, Writer};
use petstore_base::clock::rfc3339_millis;
use petstore_base::error::{Error, ErrorKind, fail};

/// The most changes that are read at a time.
const MOST_AT_ONCE: u32 = 1000;

/// The choice of changes. The default is all that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeOptions {
    /// Only changes after this id, such as that of the last one that was read.
    pub after: Option<i64>,
    /// Only changes from this time on, in milliseconds of Unix time.
    pub since: Option<i64>,
    /// Only changes of this pet.
    pub pet: Option<i64>,
    /// Only changes of this kind.
    pub kind: Option<ChangeKind>,
}

/// Has all changes of pets recorded in a database from now on, and each kept for this time at least; with `None`, no more
/// are recorded, and nothing is removed. Returns how many older ones were removed.
///
/// A change is recorded in the transaction that makes it, whether a server, an inventory or a command makes it. Changes
/// that other programs write are not recorded.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for a cluster, which records no changes, and the kinds of a database that cannot be
/// written.
pub fn keep_changes(database: &Path, keep: Option<Duration>) -> Result<usize, Error> {
    refuse_cluster(database)?;
    Writer::open(database)?.transact(|writer| Ok(writer.keep_changes(keep)?))
}

/// Passes changes of pets to `visit`, in the order of their commits, until `visit` stops. Returns the id of the last change
/// of the record, after which the next call goes on.
///
/// ```
/// use std::ops::ControlFlow;
/// use petstore::{ChangeOptions, Inventory, NewPet, changes, keep_changes};
///
/// # let folder = std::env::temp_dir().join(format!("petstore-doc-changes-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let database = folder.join("pets.db");
/// let mut inventory = Inventory::open(&database)?;
/// keep_changes(&database, Some(std::time::Duration::from_secs(90 * 24 * 3600)))?;
/// inventory.add(&NewPet::new("Rex", 3))?;
/// let mut options = ChangeOptions::default();
/// let newest = changes(&database, &options, |change| {
///     println!("{} was {}", change.pet_id, change.kind.as_str());
///     ControlFlow::Continue(())
/// })?;
/// options.after = Some(newest);
/// # drop(inventory);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::ChangesNotKept`] if none are recorded; with `after`, [`ErrorKind::ChangesGone`] if some since are missing;
/// [`ErrorKind::InvalidInput`] for a cluster, and the kinds of a database that cannot be read.
pub fn changes(
    database: &Path,
    options: &ChangeOptions,
    mut visit: impl FnMut(PetChange) -> ControlFlow<()>,
) -> Result<i64, Error> {
    refuse_cluster(database)?;
    let (mut after, mut end) = (options.after, None);
    loop {
        let store = Snapshot::of_database(database)?.reader;
        let kept = store.changes_kept()?;
        match (kept.seconds, after) {
            (None, _) if options.after.is_some() || kept.newest == 0 => return not_kept(database),
            (Some(_), Some(after)) if options.after.is_some() && !kept.is_whole_after(after) => {
                return gone(after, kept.newest);
            }
            // Removed since the page before was read.
            (Some(_), Some(after)) if kept.oldest.saturating_sub(1) > after => {
                return gone(after, kept.newest);
            }
            _ => {}
        }
        let end = *end.get_or_insert(kept.newest);
        let first = after.map_or(i64::MIN, |after| after.saturating_add(1));
        let query = ChangeQuery {
            ids: (first, end),
            order: Order::Ascending,
            limit: MOST_AT_ONCE,
            pet: options.pet,
            kind: options.kind,
            since: options.since,
        };
        let (mut page, mut bytes) = (Vec::new(), 0);
        store.visit_changes(&query, |change| {
            bytes += change.bytes();
            page.push(change.into_owned());
            if bytes < FULL_PAGE_BYTES {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        // Whoever gets them may take long, and the log of the database would grow as long as it is read.
        drop(store);
        let is_last = page.len() < MOST_AT_ONCE as usize && bytes < FULL_PAGE_BYTES;
        after = page.last().map(|change| change.id).or(after);
        if page.into_iter().any(|change| visit(change).is_break()) || is_last {
            return Ok(end);
        }
    }
}

fn gone<T>(after: i64, newest: i64) -> Result<T, Error> {
    let message = format!(
        "some changes after {after} are not kept, or are those of another database; note {newest}, export all pets, and then go on with --after {newest}"
    );
    fail(ErrorKind::ChangesGone, message)
}

/// For how long changes are kept in a database; `None` if they are not recorded.
///
/// # Errors
/// Those of [`changes`].
pub fn changes_kept(database: &Path) -> Result<Option<Duration>, Error> {
    refuse_cluster(database)?;
    let kept = Snapshot::of_database(database)?.reader.changes_kept()?;
    let seconds = kept.seconds.map(i64::unsigned_abs);
    Ok(seconds.map(Duration::from_secs))
}

/// The id of the last change that was recorded in a database; 0 if none was.
///
/// # Errors
/// Those of [`changes`].
pub fn newest_change(database: &Path) -> Result<i64, Error> {
    refuse_cluster(database)?;
    Ok(Snapshot::of_database(database)?
        .reader
        .changes_kept()?
        .newest)
}

/// Writes the head of a list of changes.
pub fn change_head(format: Format, out: &mut impl Write) -> io::Result<()> {
    if !format.is_csv() {
        return Ok(());
    }
    let before = MEMBERS.map(|member| format!("before.{}", member.name()));
    // No 'id', which an import would take for that of the pet.
    let own = ["change", "at", "kind", "petId", "key"].into_iter();
    let columns = own.chain(before.iter().map(String::as_str));
    let columns: Vec<&str> = columns.chain(MEMBERS.map(|member| member.name())).collect();
    csv::write_head(out, format, &columns)
}

/// Writes a change, as a line.
pub fn print_change(change: PetChange, format: Format, out: &mut impl Write) -> io::Result<()> {
    if !format.is_csv() {
        serde_json::to_writer(&mut *out, &change)?;
        return out.write_all(b"\n");
    }
    let PetChange {
        id,
        at,
        kind,
        pet_id,
        before,
        pet,
        key,
    } = change;
    let (at, kind) = (rfc3339_millis(at), kind.as_str());
    let key = csv::field(key.as_deref().unwrap_or_default(), format);
    let (separator, pet_id) = (format.separator().to_string(), pet_id.to_string());
    let id = csv::number(id, format);
    let own = [&*id, &at, kind, &pet_id, &key].join(&separator);
    out.write_all(own.as_bytes())?;
    for pet in [before, pet] {
        match pet {
            Some(pet) => csv::write_members(out, format, pet)?,
            None => out.write_all(separator.repeat(MEMBERS.len()).as_bytes())?,
        }
    }
    out.write_all(b"\r\n")
}

fn not_kept<T>(database: &Path) -> Result<T, Error> {
    let message = format!("{} records no changes", database.display());
    fail(ErrorKind::ChangesNotKept, message)
}

fn refuse_cluster(database: &Path) -> Result<(), Error> {
    if is_cluster(database) {
        let message = "changes are not recorded on a cluster, only in a file";
        return fail(ErrorKind::InvalidInput, message);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewPet;
    use petstore_base::testing::Folder;

    #[test]
    fn what_is_removed_between_two_pages_is_told() {
        let folder = Folder::new();
        let database = folder.database();
        let mut writer = Writer::open(&database).unwrap();
        writer.keep_changes(Some(Duration::from_secs(60))).unwrap();
        for _ in 0..=3 * MOST_AT_ONCE {
            writer.insert_pet(&NewPet::new("Rex", 1), None).unwrap();
        }
        writer.commit().unwrap();
        let mut read = 0;
        let visit = |_: PetChange| {
            read += 1;
            if read == 1 {
                crate::store::tests::run(&writer, "UPDATE changes SET at = 0");
                writer.keep_changes(Some(Duration::from_secs(60))).unwrap();
                writer.commit().unwrap();
            }
            ControlFlow::Continue(())
        };
        let error = changes(&database, &ChangeOptions::default(), visit).unwrap_err();
        assert_eq!((error.kind(), read), (ErrorKind::ChangesGone, 1000));
    }

    #[test]
    fn nothing_is_held_while_somebody_takes_their_time_with_a_change() {
        let folder = Folder::new();
        let database = folder.database();
        let mut writer = Writer::open(&database).unwrap();
        writer.keep_changes(Some(Duration::from_secs(60))).unwrap();
        writer.commit().unwrap();
        let large = "x".repeat(FULL_PAGE_BYTES);
        for name in ["", &large, &large, ""] {
            writer.insert_pet(&NewPet::new(name, 1), None).unwrap();
        }
        for _ in 0..MOST_AT_ONCE {
            writer.insert_pet(&NewPet::new("Rex", 1), None).unwrap();
        }
        writer.commit().unwrap();
        let mut last = 0;
        let read = |change: PetChange| {
            // Only if nobody reads.
            assert_eq!(writer.checkpoint(), Ok(()), "{}", change.id);
            assert_eq!(change.id, last + 1);
            last = change.id;
            ControlFlow::Continue(())
        };
        let newest = changes(&database, &ChangeOptions::default(), read).unwrap();
        assert_eq!((newest, last), (1004, 1004));
    }
}
