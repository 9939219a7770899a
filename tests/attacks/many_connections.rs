//! Attacks by many connections: clients that come and go, and clients that stay.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::crowd::Crowd;
use crate::plan::{Reading, Source, again, once, silence};
use crate::requests::{Leaving, WRONG_KEY, bundle, come_and_go, large_page, largest, unknown_path};
use crate::source_address::many;
use crate::trial::{SPAN, Stage, Trial};
use support::client::{get, post};
use support::harness::KEY;

/// The most connections of a server that is to be full soon.
const FEW: &str = "100";

/// Visitors who leave at once.
#[track_caller]
fn visitors(words: &str, leaving: Leaving) {
    let trial = Trial::begin();
    come_and_go(trial.address(), words, leaving, Instant::now() + SPAN);
    trial.end();
}

#[test]
fn visitors_without_a_word_hold_up_nobody() {
    visitors("", Leaving::Close);
}

#[test]
fn visitors_who_reset_hold_up_nobody() {
    visitors("", Leaving::Reset);
}

#[test]
fn visitors_who_ask_and_leave_hold_up_nobody() {
    visitors(&get("/v1/pets", WRONG_KEY), Leaving::Reset);
}

#[test]
fn visitors_who_ask_for_much_and_leave_hold_up_nobody() {
    visitors(&largest(), Leaving::Close);
}

/// Nobody waits for the replies, so who gets one means nothing.
#[test]
fn visitors_who_ask_for_large_pages_and_leave_hold_up_nobody() {
    let stage = Stage::new();
    stage.fill();
    let page = large_page(&stage.read_only_key());
    let trial = stage.begin();
    come_and_go(
        trial.address(),
        &page,
        Leaving::Reset,
        Instant::now() + SPAN,
    );
    trial.end();
}

/// Soon there are more connections than the server accepts. Those that come early have the time `ahead`
/// before room is needed for the others.
#[track_caller]
fn full_house(source: fn() -> Source, reading: Reading, ahead: Duration) {
    let trial = Stage::with(&["--max-connections", FEW]).begin_in_full_house();
    let mut early = Crowd::new(trial.address(), 90, source(), reading);
    early.run(ahead);
    // The second may take a place that an innocent client had when the first came.
    let mut late = [(); 2].map(|()| Crowd::new(trial.address(), 15, source(), reading));
    late.iter_mut().for_each(|crowd| crowd.run(SPAN / 2));
    late.into_iter()
        .chain([early])
        .for_each(|crowd| drop(crowd.leave()));
    trial.end();
}

/// Creates pets until it is stopped, with a body of 29 pieces, ten milliseconds apart. Returns how many were tried and how many
/// were created.
fn upload(address: SocketAddr, stopping: &AtomicBool) -> [usize; 2] {
    let request = post("/v1/pets", KEY, r#"{"name":"Rex","categoryId":1}"#);
    let (head, body) = request.split_at(request.len() - 29);
    let mut counts = [0; 2];
    while !stopping.load(Ordering::SeqCst) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut is_taken = stream.write_all(head.as_bytes()).is_ok();
        for byte in body.bytes() {
            is_taken = is_taken && stream.write_all(&[byte]).is_ok();
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut status = [0; 12];
        let is_created = stream.read_exact(&mut status).is_ok() && status == *b"HTTP/1.1 201";
        counts = [
            counts[0] + 1,
            counts[1] + usize::from(is_taken && is_created),
        ];
    }
    counts
}

/// A crowd opens connections as fast as it can, many more than there are places.
#[track_caller]
fn uploads_beside(places: &str, source: fn() -> Source) {
    let trial = Stage::with(&["--max-connections", places]).begin_in_full_house();
    let (address, stopping) = (trial.address(), AtomicBool::new(false));
    let counts = std::thread::scope(|scope| {
        let uploads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| upload(address, &stopping)))
            .collect();
        let mut crowd = Crowd::new(address, 1000, source(), Reading::AllAndComeAgain);
        crowd.run(SPAN);
        stopping.store(true, Ordering::SeqCst);
        let counts: Vec<_> = uploads
            .into_iter()
            .map(|upload| upload.join().unwrap())
            .collect();
        drop(crowd.leave());
        counts
    });
    trial.forgiving_one_in(2).end();
    let [tried, created] = [0, 1].map(|i| counts.iter().map(|counts| counts[i]).sum::<usize>());
    eprintln!("{created} of {tried} slow uploads were created");
    assert!(
        tried >= 4 && created * 10 >= tried * 9,
        "{created} of {tried}"
    );
}

#[test]
fn crowd_of_silent_newcomers_breaks_off_no_upload() {
    uploads_beside("200", silence);
}

#[test]
fn crowd_of_half_sent_bodies_breaks_off_no_upload() {
    uploads_beside("800", || {
        once(
            "POST /v1/pets HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer x\r\nContent-Length: 9\r\n\r\nx",
        )
    });
}

#[test]
fn idle_ones_make_room() {
    full_house(silence, Reading::All, SPAN / 8);
}

#[test]
fn half_sent_requests_make_room() {
    full_house(|| once("GET /healthz HTTP/1.1\r\n"), Reading::All, SPAN / 8);
}

#[test]
fn half_sent_bodies_make_room() {
    let source = || once("POST /v1/pets HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx");
    full_house(source, Reading::All, SPAN / 8);
}

/// Clients that were refused and do not close.
#[test]
fn refused_ones_who_stay_make_room() {
    full_house(|| once("nonsense\r\n\r\n"), Reading::Nothing, SPAN / 8);
}

/// Clients that send requests but read no response, until the operating system's buffers are full.
#[test]
fn those_who_take_nothing_make_room() {
    full_house(|| again(bundle(&unknown_path())), Reading::Nothing, SPAN);
}

/// All places are taken by clients that always have a request waiting. A newcomer can lose its place to the
/// next one during its request, so some are refused.
#[test]
fn those_who_are_always_busy_make_room() {
    let trial = Stage::with(&["--max-connections", "1000"]).begin_in_full_house();
    let source = again(bundle(&unknown_path()));
    let mut crowd = Crowd::new(trial.address(), 1_000, source, Reading::AllAndComeAgain);
    crowd.run_to(SPAN, 404);
    let tally = crowd.leave();
    trial.forgiving_one_in(10).end();
    tally.expect(404);
}

#[test]
fn idle_ones_make_room_for_400_newcomers() {
    let trial = Trial::begin();
    let idle_count = many(9_900);
    let mut idle = Crowd::new(trial.address(), idle_count, silence(), Reading::All);
    idle.run_until("the idle connections", |tally| tally.opened == idle_count);
    let request = get("/nope", WRONG_KEY);
    let mut newcomers = Crowd::new(trial.address(), 400, once(request), Reading::All);
    newcomers.run_until("the newcomers' answers", |tally| {
        tally.of(404) + tally.ended == 400
    });
    newcomers.run(SPAN / 2);
    let (_, tally) = (idle.leave(), newcomers.leave());
    trial.end();
    assert_eq!((tally.of(404), tally.ended), (400, 0), "{tally:?}");
}
