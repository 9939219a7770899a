//! No response reaches another client than its own, whatever breaks: with real gates, workers and lanes.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::tests::{Bench, expect_503};
use super::*;
use crate::http::{Request, Response};
use crate::testing::{Folder, PATIENCE, Random, all};
use crate::worker::{Service, Worker};

/// Answers each request with its own path, in batches that take a while.
struct SlowEcho(Duration);

impl Service for SlowEcho {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        std::thread::sleep(self.0);
        responses.extend(requests.iter().map(|r| Response::new(200, r.target.as_bytes().to_vec())));
        Duration::ZERO
    }
    fn stop(&mut self) {}
}

/// Stands between a gate and a real worker, and passes the bytes on.
struct Proxy {
    /// The ends towards the gate of the connections that stand.
    near: Arc<Mutex<Vec<UnixStream>>>,
    /// All bytes that went to the worker.
    passed: Arc<Mutex<Vec<u8>>>,
    stopping: Arc<AtomicBool>,
    path: PathBuf,
    listening: std::thread::JoinHandle<()>,
}

impl Proxy {
    fn start(path: PathBuf, far: PathBuf) -> Self {
        let listener = UnixListener::bind(&path).unwrap();
        let near = Arc::new(Mutex::new(Vec::new()));
        let stopping = Arc::new(AtomicBool::new(false));
        let passed = Arc::new(Mutex::new(Vec::new()));
        let (kept, told, seen) = (Arc::clone(&near), Arc::clone(&stopping), Arc::clone(&passed));
        let listening = std::thread::spawn(move || {
            for client in listener.incoming().map(Result::unwrap) {
                if told.load(Ordering::SeqCst) {
                    return;
                }
                let server = UnixStream::connect(&far).unwrap();
                kept.lock().unwrap().push(client.try_clone().unwrap());
                let seen = Arc::clone(&seen);
                pump(client.try_clone().unwrap(), server.try_clone().unwrap(), move |bytes| {
                    seen.lock().unwrap().extend_from_slice(bytes);
                });
                pump(server, client, |_| ());
            }
        });
        Self { near, passed, stopping, path, listening }
    }

    /// Waits until a request has gone to the worker.
    fn wait_for(&self, path: &str) {
        let end = Instant::now() + PATIENCE;
        let line = format!("GET {path} HTTP/1.1\r\n");
        while !String::from_utf8_lossy(&self.passed.lock().unwrap()).contains(&line) {
            assert!(Instant::now() < end, "{path} did not reach the worker");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Breaks the lane off in the middle of whatever is on it: bytes that are no response, as a broken
    /// worker would send them. The far end goes on with what it has.
    fn break_lane(&self) {
        if let Some(mut near) = self.near.lock().unwrap().pop() {
            let _ = near.write_all(b"nonsense\r\n\r\n");
        }
    }

    fn stop(self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(&self.path);
        self.listening.join().unwrap();
        self.near.lock().unwrap().clear();
    }
}

/// Passes bytes on in a thread of its own, and shows them.
fn pump(mut from: UnixStream, mut to: UnixStream, mut show: impl FnMut(&[u8]) + Send + 'static) {
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            if to.write_all(&piece[..length]).is_err() {
                break;
            }
            show(&piece[..length]);
        }
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
}

/// A gate and a real worker with a service, and what breaks the lane between them.
fn behind_a_proxy(service: impl Service) -> (Folder, Worker, Proxy, Bench) {
    let folder = Folder::new();
    let (far, near) = (folder.0.join("far"), folder.0.join("near"));
    let worker = Worker::start(&far, "test".to_owned(), service, || ()).unwrap();
    let proxy = Proxy::start(near.clone(), far);
    let bench = Bench::start(vec![LaneAddress { path: near, kind: LaneKind::Read, window: 64 }]);
    (folder, worker, proxy, bench)
}

/// Answers each request with its own path; a batch that begins with `/busy` waits until it is let go.
struct HeldEcho {
    begun: Sender<()>,
    held: Receiver<()>,
}

impl Service for HeldEcho {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        if requests[0].target == "/busy" {
            self.begun.send(()).unwrap();
            self.held.recv_timeout(PATIENCE).unwrap();
        }
        SlowEcho(Duration::ZERO).answer(requests, responses)
    }
    fn stop(&mut self) {}
}

#[test]
fn response_to_a_request_of_a_broken_lane_reaches_nobody() {
    let ((let_go, held), (begun, has_begun)) = (channel(), channel());
    let (_folder, worker, proxy, bench) = behind_a_proxy(HeldEcho { begun, held });
    for turn in 0..20 {
        let (old_path, new_path) = (format!("/old{turn}"), format!("/new{turn}"));
        proxy.passed.lock().unwrap().clear();
        let busy = bench.ask("/busy");
        has_begun.recv_timeout(PATIENCE).unwrap();
        let old = bench.ask(&old_path);
        proxy.wait_for(&old_path);
        proxy.break_lane();
        expect_503(busy, "overloaded");
        expect_503(old, "overloaded");
        // The worker still has the old request when the new one comes, by the lane's new connection.
        let new = bench.ask(&new_path);
        let_go.send(()).unwrap();
        let response = all(new);
        assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with(&new_path), "{response}");
    }
    bench.stop();
    proxy.stop();
    drop(worker);
}

#[test]
fn no_response_goes_astray_while_lanes_break_at_random() {
    let (_folder, worker, proxy, bench) = behind_a_proxy(SlowEcho(Duration::from_millis(1)));
    let (served, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let client = |client: usize| {
            let (bench, served, lost) = (&bench, &served, &lost);
            scope.spawn(move || {
                for i in 0..150 {
                    let path = format!("/{client}/{i}");
                    let response = all(bench.ask(&path));
                    let is_own = response.starts_with("HTTP/1.1 200 ")
                        && response.ends_with(&format!("\r\n\r\n{path}"));
                    let is_lost = response.starts_with("HTTP/1.1 503 ");
                    assert!(is_own || is_lost, "{path} got {response}");
                    (if is_own { served } else { lost }).fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        let clients: Vec<_> = (0..8).map(client).collect();
        let (mut random, mut before) = (Random::new(), 0);
        while clients.iter().any(|client| !client.is_finished()) {
            std::thread::sleep(Duration::from_micros(500 + random.below(4000) as u64));
            // If no lane ever got as far as a response, the gate would end.
            let now = served.load(Ordering::SeqCst);
            if now > before {
                before = now;
                proxy.break_lane();
            }
        }
    });
    assert!(served.into_inner() > 0 && lost.into_inner() > 0, "both happen");
    bench.stop();
    proxy.stop();
    drop(worker);
}
