//! A small disk that fills up. Making one takes root; without root, these tests show nothing.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use support::harness::{Folder, Server, expect_refusal, run};
use support::wait::wait_until;

/// A file system in memory, with a folder for a database.
struct Disk {
    folder: Option<Folder>,
}

impl Disk {
    /// `None`: this user may not mount.
    fn new(mib: u64) -> Option<Self> {
        let folder = Folder::new();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "petstore-test"]).arg(folder.path());
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then_some(Self { folder: Some(folder) })
    }
}

/// Unmounts the folder at the end.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[test]
fn readiness_reports_a_full_disk_before_anything_is_written() {
    let Some(Disk { folder: Some(folder) }) = Disk::new(6) else { return };
    let _mounted = Mounted(folder.path().to_owned());
    let ballast = folder.path().join("ballast");
    let mut server = Server::start_in(folder, |command| command);
    let body = format!(r#"{{"name":"{}","categoryId":1}}"#, "x".repeat(3000));
    server.create(&body).expect(201);
    // It leaves no log.
    server.signal("TERM");
    server.ended();
    let folder = std::mem::replace(&mut server.folder, Folder::new());
    let mut file = File::create(&ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    for words in [&["key", "list"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        expect_refusal(run(words, &folder.database()), 1, "the disk is full");
    }
    // Enough for the index of the log.
    file.set_len(file.metadata().unwrap().len() - 36 * 1024).unwrap();
    drop(file);
    let server = Server::start_in(folder, |command| command);
    server.get("/readyz").expect_error(503, "storage_unavailable", "the disk is full");
    server.create(&body).expect_error(503, "storage_unavailable", "the disk is full");
    fs::remove_file(ballast).unwrap();
    wait_until("the service to be ready", || server.get("/readyz").status == 200);
    server.create(&body).expect(201);
}

#[test]
fn ready_service_has_room_for_a_create() {
    let Some(Disk { folder: Some(folder) }) = Disk::new(4) else { return };
    let _mounted = Mounted(folder.path().to_owned());
    let (ballast, body) =
        (folder.path().join("ballast"), format!(r#"{{"name":"{}","categoryId":1}}"#, "x".repeat(60_000)));
    let mut server = Server::start_in(folder, |command| command);
    for (kib, has_room) in [(40, false), (48, false), (64, false), (96, false), (160, true)] {
        server.signal("TERM");
        server.ended();
        let folder = std::mem::replace(&mut server.folder, Folder::new());
        let mut file = File::create(&ballast).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        file.set_len(file.metadata().unwrap().len() - kib * 1024).unwrap();
        server = Server::start_in(folder, |command| command);
        assert_eq!(server.get("/readyz").status == 200, has_room, "{kib}");
        assert_eq!(server.create(&body).status == 201, has_room, "{kib}");
        fs::remove_file(&ballast).unwrap();
    }
}

#[test]
fn readiness_after_a_start_that_could_not_move_the_log_takes_a_write() {
    let Some(Disk { folder: Some(folder) }) = Disk::new(6) else { return };
    let _mounted = Mounted(folder.path().to_owned());
    let ballast = folder.path().join("ballast");
    let server = Server::start_in(folder, |command| command);
    // Fewer frames than a commit moves.
    server.create(&format!(r#"{{"name":"{}","categoryId":1}}"#, "x".repeat(60_000))).expect(201);
    let folder = server.kill();
    let mut file = File::create(&ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);
    let server = Server::start_in(folder, |command| command);
    server.get("/readyz").expect_error(503, "storage_unavailable", "the disk is full");
    fs::remove_file(ballast).unwrap();
    wait_until("the service to be ready", || server.get("/readyz").status == 200);
    server.create(r#"{"name":"Rex","categoryId":1}"#).expect(201);
    let logged = server.stop();
    assert!(logged.contains("the write-ahead log stays next to the database"), "{logged}");
}
