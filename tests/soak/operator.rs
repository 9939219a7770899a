//! The operator, who works while clients are there, and the faults of the service.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;

use crate::history::{Change, Effect, Outcome};
use crate::model::{Asked, Attempt, Look, Past, Place, Seen, Tick};
use crate::plan::{Crowd, Deed, Round, STATUSES, Turn};
use crate::record::Record;
use crate::run::{Run, note, wait_for};
use crate::service::{Service, expect_success};
use crate::visitor::{Visitor, seen};

/// The most backups that are kept.
const KEPT: usize = 3;
/// A lock of another process that is held for longer may make creates fail: they wait for 5 s.
const LONG_MS: u64 = 3000;

/// A backup, and what must be in it.
struct Backup {
    path: PathBuf,
    past: Past,
}

pub struct Operator {
    pub service: Service,
    backups: Vec<Backup>,
    /// The imports of this round: the pets in the order of the lines.
    imports: Vec<Vec<Place>>,
    record: Record,
    workers: String,
    count: u64,
}

impl Operator {
    pub fn new() -> Self {
        let (service, workers) = (Service::new(), "1".to_owned());
        Self {
            service,
            backups: Vec::new(),
            imports: Vec::new(),
            record: Record::default(),
            workers,
            count: 0,
        }
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Starts the service, and announces its address to the clients.
    pub fn start(&mut self, run: &Run) {
        let address = self.service.start(&["--workers", &self.workers]);
        run.set_address(Some(address));
    }

    /// Has changes recorded, before there is a pet.
    pub fn keep_changes(&self) {
        self.service.succeed(&["changes", "keep", "90d"]);
    }

    pub fn set_workers(&mut self, workers: u64) {
        self.workers = workers.to_string();
    }

    /// Adds records of retries, so many that a create needs pages which are not in the cache.
    pub fn add_records(&self) {
        let records = "INSERT INTO retries (pet, key, fingerprint, at) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL \
            SELECT i + 1 FROM n WHERE i < 20000) SELECT -i, randomblob(16), zeroblob(16), unixepoch() FROM n \
            WHERE NOT EXISTS (SELECT 1 FROM retries WHERE pet < 0)";
        let database = Connection::open(&self.service.database).expect("a database");
        database
            .busy_timeout(Duration::from_secs(60))
            .expect("a patient connection");
        database.execute_batch(records).expect("records");
    }

    /// Does the deeds of a round, each when the clients have come so far.
    pub fn act(&mut self, run: &Run, round: &Round) {
        for (at, deed) in &round.deeds {
            wait_for("the clients", || {
                self.service.expect_alive();
                run.progress.load(Ordering::SeqCst) >= *at
            });
            if crate::run::has_failed() {
                return;
            }
            note(format!("at {at}: {deed:?}"));
            run.count(
                format!("{deed:?}")
                    .split([' ', '{'])
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
            self.do_deed(run, *deed);
        }
    }

    fn do_deed(&mut self, run: &Run, deed: Deed) {
        let wait = |ms| sleep(Duration::from_millis(ms));
        match deed {
            Deed::Kill { pause_ms } => {
                run.set_address(None);
                self.service.kill();
                run.model().end();
                wait(pause_ms);
                self.start(run);
            }
            Deed::Terminate => {
                run.excuses.ended.store(true, Ordering::SeqCst);
                run.set_address(None);
                self.service.terminate();
                run.model().end();
                self.start(run);
            }
            Deed::Freeze { ms } => {
                self.service.signal("STOP");
                wait(ms);
                self.service.signal("CONT");
            }
            Deed::Lock { ms, kill } => {
                run.excuses.lock.fetch_or(ms > LONG_MS, Ordering::SeqCst);
                let other = Connection::open(&self.service.database).expect("a database");
                other
                    .busy_timeout(Duration::from_secs(60))
                    .expect("a patient connection");
                other.execute_batch("BEGIN IMMEDIATE").expect("a lock");
                wait(ms);
                if kill {
                    run.set_address(None);
                    self.service.kill();
                    run.model().end();
                }
                other.execute_batch("ROLLBACK").expect("an end");
                drop(other);
                if kill {
                    self.start(run);
                }
            }
            Deed::FullDisk { ms } => {
                run.excuses.full.store(true, Ordering::SeqCst);
                let mut strace = self.service.fail_writes();
                wait(ms);
                // It lets go of the service.
                strace.signal("INT");
                wait_for("the end of strace", || strace.has_ended());
            }
            Deed::FullBatch { ms, room, crowd } => {
                self.fill_up_within_a_batch(run, ms, room, crowd);
            }
            Deed::Snapshot { ms } => {
                let other = Connection::open(&self.service.database).expect("a database");
                other
                    .execute_batch("BEGIN; SELECT count(*) FROM pets")
                    .expect("a snapshot");
                wait(ms);
            }
            Deed::Backup => self.back_up(run),
            Deed::KilledBackup { ms } => self.kill_backup(ms),
            Deed::Export => self.look(run),
            Deed::Import { pets, spoilt } => self.import(run, pets, spoilt),
            Deed::KilledImport { pets, ms } => self.kill_import(run, pets, ms),
            Deed::SetStatus { pick, status } => {
                let picked = run.model().pick(pick);
                let effect = Effect::Set {
                    category: None,
                    status: Some(Some(status)),
                };
                self.change(
                    run,
                    &["pet", "status"],
                    picked.as_slice(),
                    &[status],
                    effect,
                );
            }
            Deed::Delete { pick, count } => self.delete(run, pick, count),
            Deed::AddKey { name, read_only } => self.add_key(run, name, read_only),
            Deed::RotateKey { name } => self.rotate_key(run, name),
            Deed::RevokeKey { name } => {
                let places = run.model().keys.all_of(name);
                if !places.is_empty() {
                    let begun = take_away(run, &places);
                    self.service.succeed(&["key", "revoke", name]);
                    taken_away(run, &places, begun);
                }
            }
            Deed::Check => drop(self.service.succeed(&["check"])),
        }
    }

    /// Lets a crowd gather, and fills the disk before its batch begins.
    fn fill_up_within_a_batch(&mut self, run: &Run, ms: u64, room: u64, crowd: Crowd) {
        run.excuses.full.store(true, Ordering::SeqCst);
        let name = format!("crowd-{}", self.next());
        let other = Connection::open(&self.service.database).expect("a database");
        other
            .busy_timeout(Duration::from_secs(60))
            .expect("a patient connection");
        other.execute_batch("BEGIN IMMEDIATE").expect("a lock");
        let log = std::fs::metadata(self.service.database.with_extension("db-wal"))
            .map_or(0, |log| log.len());
        std::thread::scope(|scope| {
            scope.spawn(|| Visitor::new(run, name, Vec::new(), Vec::new()).crowd(crowd));
            sleep(Duration::from_millis(ms));
            self.service.limit_files(&(log + room).to_string());
            other.execute_batch("ROLLBACK").expect("an end");
            sleep(Duration::from_millis(ms));
            self.service.limit_files("unlimited");
        });
    }

    fn back_up(&mut self, run: &Run) {
        let mut past = run.model().remember();
        let name = format!("backup-{}.db", self.next());
        let path = self.service.path().join(name);
        self.service
            .succeed(&["backup", path.to_str().expect("a name")]);
        run.model().remembered(&mut past);
        self.backups.push(Backup { path, past });
        if self.backups.len() > KEPT {
            let _ = std::fs::remove_file(self.backups.remove(0).path);
        }
    }

    fn kill_backup(&mut self, ms: u64) {
        let name = format!("killed-{}.db", self.next());
        let path = self.service.path().join(name);
        let words = ["backup", path.to_str().expect("a name")];
        let mut command = self.service.command(&words);
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut backup = quiet.spawn().expect("a command that runs");
        sleep(Duration::from_millis(ms));
        let _ = backup.kill();
        let _ = backup.wait();
        let _ = std::fs::remove_file(path);
    }

    /// All pets, as the database has them at one moment.
    fn export(&self) -> Vec<Seen> {
        let text = self.service.succeed(&["export"]);
        text.lines()
            .map(|line| seen(&serde_json::from_str(line).expect("JSON")))
            .collect()
    }

    fn look(&self, run: &Run) {
        let begun = run.model().tick();
        let pets = self.export();
        let look = Look {
            begun,
            after: 0,
            up_to: i64::MAX,
            status: None,
        };
        run.model().observe(&look, &pets);
    }

    /// The lines of an import, and the attempts to add their pets.
    fn lines(&mut self, run: &Run, pets: u64) -> (String, Vec<Attempt>) {
        let number = self.next();
        let mut model = run.model();
        let mut attempts = Vec::new();
        let lines = (0..pets).map(|line| {
            let status = STATUSES[line as usize % STATUSES.len()];
            let asked = Asked {
                name: format!("import {number}.{line}"),
                category: number as i64,
                status,
            };
            let mut pet = json!({"name": asked.name, "categoryId": asked.category});
            if let Some(status) = status {
                pet["status"] = status.into();
            }
            let place = model.intend(asked, None);
            attempts.push(model.send(place));
            format!("{pet}\n")
        });
        (lines.collect(), attempts)
    }

    fn import(&mut self, run: &Run, pets: u64, spoilt: bool) {
        let (mut lines, attempts) = self.lines(run, pets);
        if spoilt {
            lines += "{\"name\":\"spoilt\"}\n";
        }
        let path = self.service.path().join("import");
        std::fs::write(&path, lines).expect("a file");
        let words = ["import", path.to_str().expect("a name")];
        let output = self
            .service
            .command(&words)
            .output()
            .expect("a command that runs");
        let mut model = run.model();
        if spoilt {
            assert_eq!(output.status.code(), Some(1), "a spoilt import: {output:?}");
            attempts
                .iter()
                .for_each(|attempt| model.refuse(*attempt, "in a spoilt import"));
        } else {
            expect_success(&words, &output);
            attempts.iter().for_each(|attempt| model.imported(*attempt));
            self.imports
                .push(attempts.iter().map(|attempt| attempt.intent).collect());
        }
    }

    fn kill_import(&mut self, run: &Run, pets: u64, ms: u64) {
        let (lines, attempts) = self.lines(run, pets);
        let path = self.service.path().join("import");
        std::fs::write(&path, lines).expect("a file");
        let words = ["import", path.to_str().expect("a name")];
        let mut command = self.service.command(&words);
        let mut import = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a command that runs");
        sleep(Duration::from_millis(ms));
        let _ = import.kill();
        let is_done = import.wait().expect("a status").success();
        let mut model = run.model();
        for attempt in &attempts {
            if is_done {
                model.imported(*attempt);
            } else {
                model.lose(*attempt, "in a killed import");
            }
        }
        self.imports
            .push(attempts.iter().map(|attempt| attempt.intent).collect());
    }

    fn delete(&self, run: &Run, pick: u64, count: u64) {
        let mut picked: Vec<(i64, Place)> = (0..count)
            .filter_map(|i| run.model().pick(pick.wrapping_add(i * 7)))
            .collect();
        picked.sort_unstable();
        picked.dedup();
        self.change(run, &["pet", "delete"], &picked, &[], Effect::Delete);
    }

    /// Changes all of these pets, or none, if one is not there.
    fn change(
        &self,
        run: &Run,
        command: &[&str],
        pets: &[(i64, Place)],
        words: &[&str],
        effect: Effect,
    ) {
        if pets.is_empty() {
            return;
        }
        let ids: Vec<String> = pets.iter().map(|(id, _)| id.to_string()).collect();
        let words = [
            command,
            &ids.iter().map(String::as_str).collect::<Vec<_>>(),
            words,
        ]
        .concat();
        let change = Change {
            effect,
            known: None,
        };
        let sent: Vec<Tick> = pets
            .iter()
            .map(|(_, place)| run.model().change(*place, change))
            .collect();
        let output = self
            .service
            .command(&words)
            .output()
            .expect("a command that runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let missing = said.split("there is no pet with the id ").nth(1);
        let missing = missing.map(|rest| rest.trim_end().split(';').next().unwrap_or_default());
        if missing.is_none() {
            expect_success(&words, &output);
        }
        for ((id, place), sent) in pets.iter().zip(sent) {
            let mut model = run.model();
            match missing {
                None => model.changed(*place, sent, "changed by the operator", |outcome| {
                    matches!(outcome, Some(Outcome::Done(_)))
                }),
                Some(missing) if missing == id.to_string() => {
                    model.changed(*place, sent, "missing", |outcome| {
                        outcome == Some(Outcome::NotFound)
                    });
                }
                Some(_) => {
                    model.changed(*place, sent, "left as it was", |outcome| outcome.is_none());
                }
            }
        }
    }

    pub fn add_key(&self, run: &Run, name: &'static str, read_only: bool) {
        if !run.model().keys.all_of(name).is_empty() {
            return self.rotate_key(run, name);
        }
        let words = ["key", "add", name, "--read-only"];
        let key = self
            .service
            .succeed(&words[..if read_only { 4 } else { 3 }]);
        run.model().keys.add(name, key.trim(), read_only);
    }

    fn rotate_key(&self, run: &Run, name: &'static str) {
        let places = run.model().keys.all_of(name);
        let Some(first) = places.first() else { return };
        let read_only = run.model().keys.get(*first).read_only;
        let begun = take_away(run, &places);
        let key = self.service.succeed(&["key", "rotate", name]);
        taken_away(run, &places, begun);
        run.model().keys.add(name, key.trim(), read_only);
    }

    /// Ends the service, and holds what it leaves against the model.
    pub fn end_round(&mut self, run: &Run, by_kill: bool) {
        run.set_address(None);
        if by_kill {
            self.service.kill();
        } else {
            self.service.terminate();
        }
        self.settle(run);
        for import in std::mem::take(&mut self.imports) {
            let model = run.model();
            let ids: Vec<i64> = import
                .iter()
                .filter_map(|place| model.intents[*place].id)
                .collect();
            let is_whole = ids.is_empty() || ids.len() == import.len();
            if !is_whole || ids.windows(2).any(|pair| pair[1] != pair[0] + 1) {
                model.fault(
                    &import[..1],
                    format!("an import is there in parts: {ids:?} of {}", import.len()),
                );
            }
        }
    }

    /// Decides from the files of a service that has ended what is there.
    fn settle(&mut self, run: &Run) {
        self.service.succeed(&["check"]);
        let pets = self.export();
        run.model().settle(&pets);
        self.record.hold(run, &self.service, &pets);
    }

    /// Happens between two rounds.
    pub fn turn(&mut self, run: &Run, turn: Turn) {
        note(format!("{turn:?}"));
        let name = |path: &PathBuf| path.to_str().expect("a name").to_owned();
        match turn {
            Turn::Restore { pick } if !self.backups.is_empty() => {
                let backup = &self.backups[pick as usize % self.backups.len()];
                self.service.succeed(&["restore", &name(&backup.path)]);
                run.model().go_back(&backup.past);
                self.record.restored();
                self.settle(run);
                let kept = std::fs::read_dir(self.service.path())
                    .expect("a folder")
                    .flatten();
                let is_kept = |name: &str| name.contains(".db.2");
                kept.filter(|file| file.file_name().to_str().is_some_and(is_kept))
                    .for_each(|file| drop(std::fs::remove_file(file.path())));
                run.count("restored");
            }
            Turn::Move => {
                let path = self.service.path().join("export");
                std::fs::write(&path, self.service.succeed(&["export"])).expect("a file");
                let number = self.next();
                self.service.database = self.service.path().join(format!("moved-{number}.db"));
                self.service.succeed(&["key", "add", "--create", "mover"]);
                self.keep_changes();
                self.record = Record::default();
                self.service
                    .succeed(&["import", "--keep-ids", &name(&path)]);
                self.backups.clear();
                run.model().move_out();
                self.settle(run);
                run.count("moved");
            }
            Turn::TryBackup { pick } if !self.backups.is_empty() => {
                let backup = &self.backups[pick as usize % self.backups.len()];
                self.service
                    .succeed(&["check", "--restored", &name(&backup.path)]);
                run.count("backups tried");
            }
            Turn::Nothing | Turn::Restore { .. } | Turn::TryBackup { .. } => {}
        }
    }
}

/// The operator begins to take these keys away.
fn take_away(run: &Run, places: &[usize]) -> Tick {
    let mut model = run.model();
    let begun = model.tick();
    model.keys.take_away(places, begun, Tick::MAX);
    begun
}

fn taken_away(run: &Run, places: &[usize], begun: Tick) {
    let mut model = run.model();
    let end = model.tick();
    model.keys.take_away(places, begun, end);
}
