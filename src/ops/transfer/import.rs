//! Import: adds many pets to a database, or changes them: all or none. The whole input is read and checked first, while
//! nobody waits. Then one transaction writes all of it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::import_target::{ImportTarget, Known, KnownPets};
use super::input::{Input, Source};
use super::rows::InputRows;
use super::{Format, ImportIds, start};
use crate::model::NewPet;
use crate::store::cluster::{self, CONTENDS_FOR, Cluster, Done, MOST_PETS, Work};
use crate::store::{Outcome, Reader, Staging, StoreError, Writer};
use petstore_base::clock::past;
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_base::files::folder_of;

/// The busy timeout of an import.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most ids that a message names.
const MOST_NAMED: usize = 20;
/// The most bytes of an import into a cluster, whose transaction is one request: 4 MiB of pets.
const CLUSTER_BYTES: u64 = 3 * 4 * 1024 * 1024;

/// The options of an import.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The format of the input; by default NDJSON.
    pub format: Format,
    /// What becomes of the ids of the input.
    pub ids: ImportIds,
    /// Imports the valid rows even if others are invalid; by default false.
    pub skip_invalid: bool,
    /// Columns of CSV that are left out, such as those that petstore does not have.
    pub ignore_columns: Vec<String>,
    /// Adds the pets even if an earlier import of the same input has added them; by default false.
    pub again: bool,
    /// Only checks. There need be no database. By default false.
    pub dry_run: bool,
}

/// What an import has written, or would write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The number of pets that were added.
    pub added: usize,
    /// The least and the greatest id of the added pets; `None` if none was added.
    pub ids: Option<(i64, i64)>,
    /// The ids of the pets that were changed.
    pub changed: Vec<i64>,
    /// The number of pets that were already as the input has them.
    pub same: usize,
}

/// An import whose input has been read and checked, and can be written.
///
/// ```no_run
/// use petstore::{Import, ImportOptions, Source};
///
/// let source = Source::File("pets.ndjson".into());
/// let refuse = |line, why: &str| eprintln!("line {line}: {why}");
/// let import = Import::check("pets.db".as_ref(), source, ImportOptions::default(), refuse)?;
/// println!("importing {}", import.preview().added);
/// println!("the ids are {:?}", import.write()?.ids);
/// # Ok::<(), petstore::Error>(())
/// ```
#[derive(Debug)]
pub struct Import {
    options: ImportOptions,
    database: PathBuf,
    /// The connection that writes, opened before the input was read, so that a database that was moved meanwhile is
    /// noticed; `None` if there was no database.
    store: Option<ImportTarget>,
    /// The SHA-256 of the input, by which an import of the same input is recognized.
    digest: [u8; 32],
    staging: Staging,
    /// What it would have written when it was checked.
    preview: Imported,
}

impl Import {
    /// Reads and checks a whole source, and calls `refuse` for each invalid row with its line and a sentence about its
    /// fault. Writes nothing to the database, and holds no lock on it. Do not change the current folder before
    /// [`write`](Self::write) if `database` is a relative path.
    ///
    /// # Errors
    /// [`ErrorKind::ImportedBefore`] if the input was imported before, [`ErrorKind::PetExists`] if it has the id of a pet
    /// and [`ImportOptions::ids`] does not say what that means, [`ErrorKind::PetUnknown`] if a pet to change does not
    /// exist, [`ErrorKind::DatabaseNotNew`] if the pets cannot keep their ids, [`ErrorKind::InvalidRows`] if a row is
    /// invalid and [`ImportOptions::skip_invalid`] is not set, [`ErrorKind::InvalidInput`] if the input is of another
    /// format, has nothing at all, the header line of CSV is wrong, an invalid row takes several lines, or a row is longer than 1 MiB,
    /// [`ErrorKind::FileMissing`] if there is no such file, and the kinds of a database that cannot be opened.
    pub fn check(
        database: &Path,
        source: Source,
        options: ImportOptions,
        refuse: impl FnMut(u64, &str),
    ) -> Result<Self, Error> {
        // An unusable database is reported before the input is read.
        let exists = cluster::exists(database);
        let writes = exists && !options.dry_run;
        let store = writes.then(|| ImportTarget::open(database)).transpose()?;
        let mut input = Input::open(source)?;
        start::check(&input, options.format)?;
        let staging = staged(&mut input, &options, refuse)?;
        let mut import = Self {
            options,
            database: database.to_owned(),
            store,
            digest: input.digest(),
            staging,
            preview: Imported::default(),
        };
        if let Some(mut cluster) = Cluster::at_existing(database)? {
            import.check_size()?;
            import.look_at(&KnownPets::read(
                &mut cluster,
                &import.digest,
                &import.staging,
            )?)?;
        } else if exists {
            import.look_at(&Reader::open_existing(database)?)?;
        }
        if import.options.ids != ImportIds::Update {
            import.preview.added = import.staging.rows;
        }
        Ok(import)
    }

    /// What the import would write now; without ids, which only a transaction knows.
    pub const fn preview(&self) -> &Imported {
        &self.preview
    }

    /// Returns whether the input has ids. Unless they are kept, or name the pets to change, they are not used.
    pub fn has_ids(&self) -> bool {
        self.staging.ids().is_ok_and(|ids| ids.is_some())
    }

    /// Writes all rows in one transaction, and flushes it to the disk. Meanwhile, other processes cannot write.
    ///
    /// # Errors
    /// [`ErrorKind::DatabaseLocked`] if another process holds the lock for 30 seconds, [`ErrorKind::DiskFull`] if the disk
    /// has too little room, [`ErrorKind::SchemaChanged`] if a trigger of another program changes the number or the ids of
    /// the pets, those of [`check`](Self::check), and the kinds of a database that cannot be written. Nothing is then
    /// written, except that [`ErrorKind::OutcomeUnknown`] leaves that open.
    pub fn write(mut self) -> Result<Imported, Error> {
        if self.options.dry_run {
            return Ok(Imported::default());
        }
        let written = self.check_room().and_then(|()| {
            let store = match self.store.take() {
                Some(store) => store,
                None => ImportTarget::open(&self.database)?,
            };
            if self.staging.rows == 0 {
                return Ok(Imported::default());
            }
            match store {
                ImportTarget::File(store) => self.write_to_file(store),
                ImportTarget::Cluster(cluster) => self.write_to_cluster(cluster),
            }
        });
        written.map_err(|why| match why.kind() {
            ErrorKind::OutcomeUnknown => why.followed_by(
                "all of it is imported, or nothing; run it again, without --again, which adds no pet twice",
            ),
            _ => why.followed_by("nothing was imported"),
        })
    }

    /// Checks the input against the pets of the database, and notes what an update would change.
    fn look_at(&mut self, store: &impl Known) -> Result<(), Error> {
        self.judge(store)?;
        if self.options.ids == ImportIds::Update {
            self.preview = self.differences(store)?;
        }
        Ok(())
    }

    fn write_to_file(&self, mut store: Writer) -> Result<Imported, Error> {
        store.set_busy_timeout(PATIENCE);
        store.change_as(Some("petstore import".into()));
        store.transact(|store| {
            self.judge(&**store)?;
            if self.options.ids == ImportIds::Update {
                self.change(store)
            } else {
                self.add(store)
            }
        })
    }

    /// Checks that a cluster takes it.
    fn check_size(&self) -> Result<(), Error> {
        if self.staging.rows > MOST_PETS || self.staging.room()? > CLUSTER_BYTES {
            let message = format!(
                "a cluster takes at most {MOST_PETS} pets, or 4 MiB of them, in one import: split the input"
            );
            return fail(ErrorKind::InvalidInput, message);
        }
        Ok(())
    }

    fn write_to_cluster(&self, mut cluster: Cluster) -> Result<Imported, Error> {
        self.check_size()?;
        let begun = Instant::now();
        loop {
            let known = KnownPets::read(&mut cluster, &self.digest, &self.staging)?;
            self.judge(&known)?;
            let (work, mut imported) = self.planned(&known)?;
            match cluster.commit_all(&work) {
                Err(error) if error.is_overtaken() && begun.elapsed() < CONTENDS_FOR => {}
                Err(error) => return Err(error.into()),
                Ok(done) => {
                    let ids = done.into_iter().filter_map(|done| match done {
                        Done::Created(Outcome::Made(id)) => Some(id),
                        _ => None,
                    });
                    let ids: Vec<i64> = ids.collect();
                    let made = ids.iter().min().copied().zip(ids.iter().max().copied());
                    imported.ids = imported.ids.or(made);
                    return Ok(imported);
                }
            }
        }
    }

    /// The work that imports all rows into a cluster.
    fn planned(&self, known: &KnownPets) -> Result<(Vec<Work>, Imported), Error> {
        let mut work = Vec::new();
        if self.options.ids == ImportIds::Update {
            let done = self.differences(known)?;
            let mut changed = done.changed.iter().copied().peekable();
            self.staging.visit(|row| {
                if let Some(id) = changed.next_if(|id| row.id == Some(*id)) {
                    let patch = row.patch();
                    let change = known.pet(id, |old| Work::Change {
                        old: old.clone().into_owned(),
                        new: Some(patch.apply(old).into_owned()),
                    })?;
                    work.extend(change);
                }
                Ok::<_, Error>(())
            })?;
            return Ok((work, done));
        }
        let keeps = self.options.ids == ImportIds::Keep;
        self.staging.visit(|row| {
            let new = NewPet::from(row.pet).into_owned();
            work.push(match row.id.filter(|_| keeps) {
                Some(id) => Work::CreateAs(new.with_id(id)),
                None => Work::Create { new, key: None },
            });
            Ok::<_, Error>(())
        })?;
        let ids = if keeps { self.staging.ids()? } else { None };
        work.push(Work::NoteImport {
            input: self.digest,
            ids,
            again: self.options.again,
        });
        let imported = Imported {
            added: self.staging.rows,
            ids,
            ..Imported::default()
        };
        Ok((work, imported))
    }

    /// Checks that the disk has room for all rows. A change may need hardly any.
    fn check_room(&self) -> Result<(), Error> {
        if self.options.ids == ImportIds::Update {
            return Ok(());
        }
        // The address of a cluster is no path.
        let Ok(disk) = rustix::fs::statvfs(folder_of(&self.database)) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let needed = self.staging.room()?;
        if free < needed {
            let message = format!(
                "the disk of {} has {} kB free, and the import needs up to {} kB",
                self.database.display(),
                free / 1000,
                needed.div_ceil(1000)
            );
            return fail(ErrorKind::DiskFull, message);
        }
        Ok(())
    }

    /// Checks the input against the pets of the database.
    fn judge(&self, store: &impl Known) -> Result<(), Error> {
        let (database, ids) = (self.database.display(), self.options.ids);
        if ids != ImportIds::Update
            && !self.options.again
            && let Some(earlier) = store.imported(&self.digest)?
        {
            let on = past(earlier.at)
                .map(|at| format!(" on {at}"))
                .unwrap_or_default();
            let (least, greatest) = earlier.ids;
            let message = format!(
                "this input was imported{on}, and its pets got ids from {least} to {greatest}"
            );
            return fail(ErrorKind::ImportedBefore, message);
        }
        let (exist, kind, whose) = match ids {
            ImportIds::Keep if store.last_id()? > 0 => {
                let message = format!("ids cannot be kept: {database} already has or had pets");
                return fail(ErrorKind::DatabaseNotNew, message);
            }
            ImportIds::New | ImportIds::Keep => return Ok(()),
            ImportIds::NewUnlessTaken => (true, ErrorKind::PetExists, "of pets"),
            ImportIds::Update => (false, ErrorKind::PetUnknown, "of no pet"),
        };
        let found = self.ids_that(store, exist)?;
        if found.is_empty() {
            return Ok(());
        }
        let shown: Vec<String> = found
            .iter()
            .take(MOST_NAMED)
            .map(ToString::to_string)
            .collect();
        let more = if found.len() > MOST_NAMED {
            ", …"
        } else {
            ""
        };
        let are = if found.len() == 1 {
            "1 id of the input is that"
        } else {
            &format!("{} ids of the input are those", found.len())
        };
        let shown = shown.join(", ");
        fail(kind, format!("{are} {whose} in {database}: {shown}{more}"))
    }

    /// The ids of the input that a pet has, or those that none has.
    fn ids_that(&self, store: &impl Known, exist: bool) -> Result<Vec<i64>, Error> {
        let mut found = Vec::new();
        let Some(range) = self.staging.ids()? else {
            return Ok(found);
        };
        if exist {
            // Few inputs have one: then this is all.
            if !store.has_pet_between(range)? {
                return Ok(found);
            }
        }
        self.staging.visit(|row| {
            if let Some(id) = row.id
                && store.pet(id, |_| ())?.is_some() == exist
            {
                found.push(id);
            }
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }

    /// Adds the pets within a transaction, and notes the import.
    fn add(&self, store: &mut Writer) -> Result<Imported, Error> {
        let pets = self.staging.rows;
        let keeps = self.options.ids == ImportIds::Keep;
        let (last, (before, ..)) = (store.last_id()?, store.pets_above(i64::MIN)?);
        let kept = if keeps { self.staging.ids()? } else { None };
        if let Some((_, greatest)) = kept {
            // From here on, a running service assigns higher ids.
            store.reserve_ids(greatest)?;
        }
        self.staging.visit(|row| {
            let pet = NewPet::from(row.pet);
            match row.id.filter(|_| keeps) {
                Some(id) => store.insert_pet_as(id, &pet),
                None => store.insert_pet(&pet, None).map(drop),
            }
        })?;
        let count = pets.cast_signed() as i64;
        let (least, greatest) = kept.unwrap_or((last + 1, last.saturating_add(count)));
        if store.pets_above(last)? != (count, least, greatest)
            || store.pets_above(i64::MIN)?.0 != before + count
        {
            let message = "a trigger of another program changes how many pets are added, or their ids: drop it for the import";
            return fail(ErrorKind::SchemaChanged, message);
        }
        store.note_import(&self.digest, (least, greatest))?;
        Ok(Imported {
            added: pets,
            ids: Some((least, greatest)),
            ..Imported::default()
        })
    }

    /// Changes the pets within a transaction.
    fn change(&self, store: &mut Writer) -> Result<Imported, Error> {
        let done = self.differences(&**store)?;
        let mut transaction = store.transaction()?;
        // They are in the order of the rows.
        let mut changed = done.changed.iter().copied().peekable();
        self.staging
            .visit(|row| match changed.next_if(|id| row.id == Some(*id)) {
                Some(id) => transaction.update_pet(id, &row.patch()),
                None => Ok(()),
            })?;
        Ok(done)
    }

    /// The pets that differ from their rows.
    fn differences(&self, store: &impl Known) -> Result<Imported, Error> {
        let mut found = Imported::default();
        self.staging.visit(|row| {
            let (id, patch) = (row.id.unwrap_or_default(), row.patch());
            match store.pet(id, |pet| patch.apply(pet) != *pet)? {
                Some(true) => found.changed.push(id),
                Some(false) => found.same += 1,
                None => {}
            }
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }
}

/// Reads and checks every row.
fn staged(
    input: &mut Input,
    options: &ImportOptions,
    mut refuse: impl FnMut(u64, &str),
) -> Result<Staging, Error> {
    let name = input.name.clone();
    let mut rows = InputRows::new(
        input.read(),
        &name,
        options.format,
        options.ids,
        &options.ignore_columns,
    )?;
    let cannot_keep = |error: StoreError| {
        let folder = std::env::temp_dir();
        Error::from(error).context(format!(
            "cannot keep the rows in {} (TMPDIR)",
            folder.display()
        ))
    };
    let mut staging = Staging::new().map_err(cannot_keep)?;
    let mut refused = 0_u64;
    while let Some(line) = rows.advance()? {
        let why = match rows.row() {
            Err(why) => why,
            Ok(row) => {
                let mut add = |id| staging.add(id, &row.patch).map_err(cannot_keep);
                if add(row.id)? || !options.ids.are_needed() && add(None)? {
                    continue;
                }
                format!(
                    "The id {} is given more than once.",
                    row.id.unwrap_or_default()
                )
            }
        };
        if options.format.is_csv() && !rows.is_utf8() && !options.skip_invalid {
            // The same holds for all other letters with accents.
            return fail(ErrorKind::InvalidInput, format!("line {line}: {why}"));
        }
        let last = rows.next_line - 1;
        if last > line {
            let why = why.trim_end_matches('.');
            let message = format!(
                "lines {line} to {last}: {why}; a quote there may be missing, so nothing was imported"
            );
            return fail(ErrorKind::InvalidInput, message);
        }
        refused += 1;
        refuse(line, &why);
    }
    if refused > 0 && !options.skip_invalid {
        let lines = if refused == 1 {
            "1 line is".to_owned()
        } else {
            format!("{refused} lines are")
        };
        let message = format!("{lines} refused, so nothing was imported");
        return fail(ErrorKind::InvalidRows, message);
    }
    // A command before a pipe may have failed. CSV without pets has its header.
    if staging.rows == 0 && refused == 0 && options.format == Format::Ndjson {
        return fail(ErrorKind::InvalidInput, format!("{name} has no pets"));
    }
    Ok(staging)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::store::tests::run;
    use petstore_base::testing::Folder;

    /// Checks an import of this text.
    fn checked(folder: &Folder, text: &str, ids: ImportIds) -> Result<Import, Error> {
        let source = Source::Stream(Box::new(std::io::Cursor::new(text.to_owned())));
        let options = ImportOptions {
            ids,
            ..ImportOptions::default()
        };
        Import::check(&folder.database(), source, options, |_, _| ())
    }

    const ONE: &str = r#"{"id":7,"name":"a","categoryId":1}"#;

    #[test]
    fn pets_that_came_since_the_check_are_seen_under_the_lock() {
        for (ids, kind) in [
            (ImportIds::Keep, ErrorKind::DatabaseNotNew),
            (ImportIds::NewUnlessTaken, ErrorKind::PetExists),
        ] {
            let folder = Folder::new();
            let import = checked(&folder, ONE, ids).unwrap();
            let other = ONE.replace("\"a\"", "\"b\"");
            let kept = checked(&folder, &other, ImportIds::Keep).unwrap();
            kept.write().unwrap();
            assert_eq!(import.write().unwrap_err().kind(), kind);
        }
        let folder = Folder::new();
        let twice = [ONE, ONE].map(|text| checked(&folder, text, ImportIds::New).unwrap());
        let [first, second] = twice;
        assert_eq!(first.write().unwrap().ids, Some((1, 1)));
        assert_eq!(
            second.write().unwrap_err().kind(),
            ErrorKind::ImportedBefore
        );
    }

    #[test]
    fn what_a_trigger_does_to_count_or_ids_undoes_the_import() {
        let two = format!("{ONE}\n{}\n", ONE.replace('7', "8"));
        for (trigger, is_refused) in [
            (
                "AFTER INSERT ON pets BEGIN DELETE FROM pets WHERE id = new.id - 1; END",
                true,
            ),
            (
                "AFTER INSERT ON pets BEGIN DELETE FROM pets WHERE id = 1; END",
                true,
            ),
            (
                "AFTER INSERT ON pets BEGIN UPDATE pets SET id = id + 5 WHERE id = new.id; END",
                true,
            ),
            (
                "AFTER INSERT ON pets WHEN new.name = 'a' BEGIN INSERT INTO pets (name, category_id) VALUES ('b', 1); END",
                true,
            ),
            (
                "BEFORE INSERT ON pets WHEN new.name = 'a' BEGIN SELECT raise(IGNORE); END",
                true,
            ),
            (
                "AFTER INSERT ON pets BEGIN UPDATE pets SET status = 'sold' WHERE id = new.id; END",
                false,
            ),
        ] {
            let folder = Folder::new();
            let mut store = Writer::open(&folder.database()).unwrap();
            store
                .transact(|store| store.insert_pet(&NewPet::new("old", 1), None).map(drop))
                .unwrap();
            run(&store, &format!("CREATE TRIGGER other {trigger}"));
            drop(store);
            let written = checked(&folder, &two, ImportIds::New).unwrap().write();
            let left = Reader::open(&folder.database())
                .unwrap()
                .pets_above(i64::MIN)
                .unwrap()
                .0;
            match written {
                Ok(_) => assert!(!is_refused && left == 3, "{trigger}"),
                Err(why) => {
                    let is_named =
                        why.kind() == ErrorKind::SchemaChanged || trigger.contains("IGNORE");
                    assert!(is_refused && left == 1 && is_named, "{trigger}: {why}");
                }
            }
        }
    }

    #[test]
    fn update_changes_what_the_input_has_and_nothing_else() {
        let folder = Folder::new();
        let three =
            ["1", "2", "3"].map(|id| ONE.replace("7", id).replace('}', r#","status":"sold"}"#));
        checked(&folder, &three.join("\n"), ImportIds::Keep)
            .unwrap()
            .write()
            .unwrap();
        let input = "{\"id\":3,\"status\":null}\n{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"\",\"categoryId\":5}";
        let update = || {
            checked(&folder, input, ImportIds::Update)
                .unwrap()
                .write()
                .unwrap()
        };
        assert_eq!(
            update(),
            Imported {
                changed: vec![3, 2],
                same: 1,
                ..Imported::default()
            }
        );
        assert_eq!(
            update(),
            Imported {
                same: 3,
                ..Imported::default()
            }
        );
        let reader = Reader::open(&folder.database()).unwrap();
        let mut all = Vec::new();
        reader
            .visit_every_pet(|pet| {
                all.push(serde_json::to_string(&pet).unwrap());
                ControlFlow::Continue(())
            })
            .unwrap();
        let [first, ..] = three;
        let others = [
            r#"{"id":2,"name":"","categoryId":5,"status":"sold"}"#,
            r#"{"id":3,"name":"a","categoryId":1}"#,
        ];
        assert_eq!(all, [&*first, others[0], others[1]]);
        let why = checked(
            &folder,
            "{\"id\":9}\n{\"id\":1}\n{\"id\":-4}",
            ImportIds::Update,
        )
        .unwrap_err();
        assert_eq!(why.kind(), ErrorKind::PetUnknown);
        assert!(
            why.to_string()
                .starts_with("2 ids of the input are those of no pet in ")
                && why.to_string().ends_with(": 9, -4"),
            "{why}"
        );
    }
}
