//! Starts on any database, write-ahead log and shared-memory index. Either the service works, or it fails with a
//! one-line message and leaves the files unchanged.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::model::{NewPet, Page, PetQuery, PetStatus, sample_pets};
use crate::store::{OpenStore, StoreError, WriteAccess, open_for_service};
use petstore_base::testing::Folder;
use petstore_base::testing::fuzzing::Parts;
use petstore_hosting::ProjectReads;

/// The database, its write-ahead log, and the log's index; `None` if there is no such file.
type Files = [Option<Vec<u8>>; 3];

const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Makes files from the input, opens them as a service does, and works with them. The first byte of the input chooses
/// the original files; the rest changes them, piece by piece.
pub fn start(bytes: &[u8]) {
    let mut parts = Parts(bytes);
    let base = parts.byte();
    let mut files = bases()[usize::from(base) % bases().len()].clone();
    while !parts.0.is_empty() {
        change(&mut files, &mut parts);
    }
    if base & 0x80 > 0
        && let Some(log) = &mut files[1]
    {
        mend_checksums(log);
    }
    let folder = Folder::in_memory();
    let path = folder.database();
    for (suffix, content) in SUFFIXES.iter().zip(&files) {
        content
            .iter()
            .for_each(|content| fs::write(with(&path, suffix), content).unwrap());
    }
    match open_for_service(&path, 1) {
        Ok(store) => serve(store),
        Err(error) => {
            let line = error.to_string();
            assert!(!line.is_empty() && !line.contains('\n'), "{line:?}");
            // SQLite may change the index.
            for (number, after) in read(&path)[..2].iter().enumerate() {
                assert!(
                    *after == files[number],
                    "{line}: yet the file {number} is another"
                );
            }
        }
    }
}

/// Works as a service's workers do: lists pets, reads keys, creates a pet, and lists again. A failure must be one that
/// clients get as a 503, or be caused by a value that petstore never writes, which clients get as a 500.
fn serve(store: OpenStore) {
    let OpenStore {
        writer,
        mut readers,
        ..
    } = store;
    let WriteAccess::Writes(mut writer) = writer else {
        return;
    };
    let mut list = |status| {
        let query = PetQuery {
            status,
            ..PetQuery::all(Page::ascending(100, None))
        };
        let (reader, mut count) = (&mut readers[0], 0);
        let begun = reader.begin();
        let visited = begun.and_then(|()| {
            reader.visit_pets(&query, |_| {
                count += 1;
                ControlFlow::Continue(())
            })
        });
        let read = visited.and_then(|_| {
            reader.keys()?;
            reader.domains().map_err(StoreError::of_hosting)?;
            reader.pet(7, |_| ())
        });
        let ended = reader.end();
        read.and(ended).map(|()| count)
    };
    let before = expect_no_fault(list(None));
    expect_no_fault(list(Some(PetStatus::Sold)));
    let created = writer.begin().and_then(|()| {
        writer.insert_pet(&NewPet::new("Rex", 1), None)?;
        writer.commit().map(drop)
    });
    if expect_no_fault(created).is_none() {
        writer.undo();
    } else if let (Some(before), Some(after)) = (before, expect_no_fault(list(None))) {
        assert!(after > before || before >= 100, "a created pet is listed");
    }
}

fn expect_no_fault<T>(done: Result<T, StoreError>) -> Option<T> {
    match done {
        Err(StoreError::Internal(why)) if !is_value(&why) => panic!("{why}"),
        done => done.ok(),
    }
}

/// Returns whether a value of a row caused the failure, by its detail.
fn is_value(why: &str) -> bool {
    ["Invalid column type ", "Conversion error from type "]
        .iter()
        .any(|words| why.starts_with(words))
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    format!("{}{suffix}", path.display()).into()
}

fn read(path: &Path) -> Files {
    SUFFIXES.map(|suffix| fs::read(with(path, suffix)).ok())
}

/// The original files that inputs change: none, a closed database, and one whose service was killed.
fn bases() -> &'static [Files; 3] {
    static BASES: OnceLock<[Files; 3]> = OnceLock::new();
    BASES.get_or_init(|| {
        let folder = Folder::in_memory();
        let path = folder.database();
        let make = |count| {
            let mut store = open_for_service(&path, 1).unwrap();
            if let WriteAccess::Writes(writer) = &mut store.writer {
                writer.begin().unwrap();
                for pet in sample_pets(count) {
                    writer.insert_pet(&pet, None).unwrap();
                }
                writer.commit().unwrap();
            }
            store
        };
        drop(make(200));
        let at_rest = read(&path);
        let store = make(20);
        let killed = read(&path);
        drop(store);
        [Files::default(), at_rest, killed]
    })
}

/// Overwrites a piece of a file, or cuts it off.
fn change(files: &mut Files, parts: &mut Parts) {
    let kind = parts.byte();
    let place = usize::from(u16::from_be_bytes([parts.byte(), parts.byte()]));
    let file = &mut files[usize::from(kind % 3)];
    match kind / 3 % 8 {
        0 => *file = None,
        1 => file.get_or_insert_default().truncate(place * 16),
        // Within the first page, where the headers are, or anywhere.
        kind => {
            let at = if kind < 5 { place % 4096 } else { place * 4 };
            let piece = parts.piece();
            let file = file.get_or_insert_default();
            file.resize(file.len().max(at + piece.len()), 0);
            file[at..at + piece.len()].copy_from_slice(piece);
        }
    }
}

/// Writes the checksums of a log as SQLite does (`sqlite.org/fileformat2.html#walformat`), so that it is applied.
fn mend_checksums(log: &mut [u8]) {
    let Some(header) = log.first_chunk::<32>() else {
        return;
    };
    let word = |bytes: &[u8]| [bytes[0], bytes[1], bytes[2], bytes[3]];
    let is_big = header[3] & 1 == 1;
    let (page, salts) = (
        u32::from_be_bytes(word(&header[8..])) as usize,
        header[16..24].to_vec(),
    );
    let add = |sums: &mut [u32; 2], bytes: &[u8]| {
        for pair in bytes.chunks_exact(8) {
            let number = |bytes| {
                if is_big {
                    u32::from_be_bytes(bytes)
                } else {
                    u32::from_le_bytes(bytes)
                }
            };
            sums[0] = sums[0]
                .wrapping_add(number(word(pair)))
                .wrapping_add(sums[1]);
            sums[1] = sums[1]
                .wrapping_add(number(word(&pair[4..])))
                .wrapping_add(sums[0]);
        }
    };
    let put = |place: &mut [u8], sums: [u32; 2]| {
        place[..4].copy_from_slice(&sums[0].to_be_bytes());
        place[4..8].copy_from_slice(&sums[1].to_be_bytes());
    };
    let mut sums = [0; 2];
    add(&mut sums, &log[..24]);
    put(&mut log[24..], sums);
    for frame in log[32..].chunks_exact_mut(24 + page) {
        frame[8..16].copy_from_slice(&salts);
        add(&mut sums, &frame[..8]);
        add(&mut sums, &frame[24..]);
        put(&mut frame[16..], sums);
    }
}
