//! Export: all pets of a database, in the order of their ids.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use super::{Format, csv};
use crate::model::Pet;
use crate::store::{Reader, cluster};
use petstore_base::error::Error;

/// The size of the output buffer, in bytes.
const PIECE: usize = 64 * 1024;

/// Writes all pets to `out` in ascending order of their ids, from one snapshot of the database.
///
/// A service may use the database meanwhile.
///
/// ```
/// # fn main() -> Result<(), petstore::Error> {
/// # let folder = std::env::temp_dir().join(format!("petstore-doc-export-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let database = folder.join("pets.db");
/// # petstore::KeyRing::open(&database)?;
/// use petstore::{ErrorKind, Format, export};
///
/// let mut pets = Vec::new();
/// export(&database, Format::Csv, &mut pets)?;
/// assert!(pets.starts_with(b"id,name,"));
///
/// match export(&database, Format::Ndjson, &mut std::io::stdout()) {
///     // Such as `head`, which has read enough.
///     Err(error) if error.kind() == ErrorKind::OutputClosed => {}
///     done => done?,
/// }
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ErrorKind::OutputClosed`](crate::ErrorKind::OutputClosed) if `out` is a pipe whose reader has closed it,
/// [`ErrorKind::DatabaseMissing`](crate::ErrorKind::DatabaseMissing) if there is no database, the kinds of a
/// database that cannot be opened or read, and the kind of the failure of `out`.
pub fn export(database: &Path, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let database = cluster::whole(database)?;
    let store = Reader::open_existing(&database)?;
    let mut out = BufWriter::with_capacity(PIECE, out);
    let mut written = if format.is_csv() {
        csv::write_head(&mut out, format, &csv::columns())
    } else {
        Ok(())
    };
    store.visit_every_pet(|pet| {
        written = if format.is_csv() {
            write_csv(&mut out, format, pet)
        } else {
            serde_json::to_writer(&mut out, &pet)
                .map_err(io::Error::from)
                .and_then(|()| out.write_all(b"\n"))
        };
        if written.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    written.and_then(|()| out.flush()).map_err(|error| {
        Error::io("cannot write the pets", error).followed_by("the export is incomplete")
    })
}

pub(super) fn write_csv(out: &mut impl Write, format: Format, pet: Pet) -> io::Result<()> {
    write!(out, "{}", pet.id)?;
    csv::write_members(out, format, pet)?;
    out.write_all(b"\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewPet;
    use crate::store::Writer;
    use petstore_base::testing::Folder;
    use std::io::ErrorKind;

    /// A writer that accepts this many bytes, and then fails with this kind.
    struct Full(usize, ErrorKind);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(self.1.into());
            }
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn pets_are_written_many_at_once() {
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        for _ in 0..1000 {
            writer
                .insert_pet(&NewPet::new("x".repeat(100), 1), None)
                .unwrap();
        }
        writer.commit().unwrap();
        struct Count(usize);
        impl Write for Count {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writes = Count(0);
        export(&folder.database(), Format::Csv, &mut writes).unwrap();
        assert_eq!(writes.0, 2, "64 KiB, and the rest");
    }

    #[test]
    fn closed_pipe_and_full_disk_are_told_apart() {
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        writer.begin().unwrap();
        for _ in 0..3 {
            writer
                .insert_pet(&NewPet::new("x".repeat(PIECE), 1), None)
                .unwrap();
        }
        writer.commit().unwrap();
        for room in [0, 10, PIECE + 10] {
            for format in [Format::Ndjson, Format::Csv] {
                let export = |kind| export(&folder.database(), format, &mut Full(room, kind));
                let error = export(ErrorKind::BrokenPipe).unwrap_err();
                assert_eq!(error.kind(), petstore_base::error::ErrorKind::OutputClosed);
                let error = export(ErrorKind::StorageFull).unwrap_err();
                assert_eq!(error.kind(), petstore_base::error::ErrorKind::DiskFull);
                assert_eq!(
                    error.to_string(),
                    "cannot write the pets: no storage space; the export is incomplete"
                );
            }
        }
    }
}
