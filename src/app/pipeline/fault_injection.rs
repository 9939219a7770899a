//! Fault injection: failures and delays, so that clients can test their retries and timeouts. Only for services with an
//! ephemeral database.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::authentication::ask_for_key;
use super::is_protected;
use crate::app::api::router;
use crate::app::endpoint::{ApiError, Code, Operation};
use petstore_base::http::response::Disposition;
use petstore_base::http::{Request, Response, Target};
use petstore_gate::Service;

/// Two sequences of pseudo-random numbers, one for failures and one for delays, which are the same in every run.
#[derive(Clone, Default)]
pub struct Draws {
    failures: Arc<AtomicU64>,
    delays: Arc<AtomicU64>,
}

impl Draws {
    /// Begins both sequences again.
    pub fn restart(&self) {
        self.failures.store(0, Relaxed);
        self.delays.store(0, Relaxed);
    }
}

/// Draws the next number of a sequence.
fn draw(drawn: &AtomicU64) -> u64 {
    xxh3_64(&drawn.fetch_add(1, Relaxed).to_le_bytes())
}

/// Maps a number to the range from 0 to 1, by its upper 32 bits.
fn fraction(bits: u64) -> f64 {
    (bits >> 32) as f64 / 2f64.powi(32)
}

/// Returns a function that draws the delay of a response. Its argument is the method and the target of the request,
/// with a space between them.
pub fn delays(between: RangeInclusive<Duration>, draws: Draws) -> impl FnMut(&[u8]) -> Duration {
    let least = *between.start();
    let span = between.end().saturating_sub(least);
    move |line| {
        let (method, target) = str::from_utf8(line)
            .unwrap_or_default()
            .split_once(' ')
            .unwrap_or_default();
        let is_delayed = method != "OPTIONS" && is_protected(&Target::parse(target));
        if is_delayed {
            least + span.mul_f64(fraction(draw(&draws.delays)))
        } else {
            Duration::ZERO
        }
    }
}

/// Chooses the requests that fail. All workers of a service share it.
#[derive(Clone)]
pub struct Faults {
    /// The fraction of requests that fail, from 0 to 1.
    pub rate: f64,
    /// True if the service has the experimental operations.
    pub is_experimental: bool,
    pub draws: Draws,
}

/// An injected failure.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fault {
    /// The code of its 503; `None`: the connection ends without a response.
    code: Option<Code>,
    /// True if the request is carried out before it fails.
    is_done: bool,
}

impl Faults {
    fn draw(&self) -> Option<Fault> {
        let bits = draw(&self.draws.failures);
        let code =
            [Some(Code::Overloaded), Some(Code::OutcomeUnknown), None][(bits >> 1) as usize % 3];
        let is_done = bits & 1 == 1 && code != Some(Code::Overloaded);
        (fraction(bits) < self.rate).then_some(Fault { code, is_done })
    }

    /// Returns whether a request may change data.
    fn writes(&self, request: &Request) -> bool {
        let router = router(self.is_experimental);
        router
            .route(request.method, &Target::parse(request.target))
            .is_ok_and(Operation::writes)
    }

    /// Wraps a service in fault injection.
    pub fn around<S: Service>(&self, service: S) -> Faulty<S> {
        Faulty {
            service,
            faults: self.clone(),
        }
    }
}

/// A service that fails some requests on purpose.
pub struct Faulty<S> {
    service: S,
    faults: Faults,
}

impl<S: Service> Service for Faulty<S> {
    /// Answers only the first request; the worker calls again with the others.
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        let Some(request) = requests.first() else {
            return Duration::ZERO;
        };
        let one = std::slice::from_ref(request);
        // A failed preflight would test nothing: the browser does not retry it.
        let can_fail = request.method != "OPTIONS" && is_protected(&Target::parse(request.target));
        if let Some(demanded) = wanted(request).filter(|_| can_fail) {
            responses.push(demanded);
            return Duration::ZERO;
        }
        let Some(fault) = can_fail.then(|| self.faults.draw()).flatten() else {
            return self.service.answer(one, responses);
        };
        log::info!("request {} fails intentionally: {fault:?}", request.id);
        let mut flush = Duration::ZERO;
        if fault.is_done {
            flush = self.service.answer(one, responses);
            responses.clear();
        }
        responses.push(match fault.code {
            None => Response::only(Disposition::Abort),
            // The gate does the same if a lane breaks off: only a write can have an unknown outcome.
            Some(Code::OutcomeUnknown) if self.faults.writes(request) => {
                failed(Code::OutcomeUnknown)
            }
            Some(_) => failed(Code::Overloaded),
        });
        flush
    }

    fn rest(&mut self) -> Option<Duration> {
        self.service.rest()
    }

    fn stop(&mut self) {
        self.service.stop();
    }
}

/// Returns the failure that a request wants, such as `Prefer: code=503` (RFC 7240, section 2) or
/// `Prefer: code=outcome_unknown`: a status, which means the first code that has it, or a code.
fn wanted(request: &Request) -> Option<Response> {
    let mut preferences = request
        .header_values(PREFER)
        .flat_map(|list| list.split([',', ';']));
    let wanted = preferences.find_map(|one| {
        let (name, value) = one.split_once('=')?;
        let is_code = name.trim().eq_ignore_ascii_case("code");
        is_code.then(|| value.trim_matches(['"', ' ']))
    })?;
    let status = wanted.parse();
    let fits = |code: &&Code| code.as_str() == wanted || Ok(code.status()) == status;
    Some(match Code::ALL.iter().find(fits) {
        Some(code) => failed(*code),
        None => ApiError::with_message(
            Code::BadRequest,
            "The value of 'code' in the header Prefer must be the status or the code of an error of this service, such as 503 or outcome_unknown.",
        )
        .into_response(),
    })
}

/// The header field by which a request wants a failure.
pub const PREFER: &str = "Prefer";

/// Returns the response to a real failure with this code; its message also says that the failure is intentional.
fn failed(code: Code) -> Response {
    let message = format!("This failure is intentional. {}", code.usual_message());
    let failure = ApiError::with_message(code, message);
    match code {
        Code::Unauthorized => ask_for_key(failure),
        _ => failure,
    }
    .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_the_requests_fails_in_thirds_and_the_same_way_in_every_run() {
        let drawn = || -> Vec<_> {
            let faults = Faults {
                rate: 0.3,
                is_experimental: true,
                draws: Draws::default(),
            };
            (0..30_000).map(|_| faults.draw()).collect()
        };
        let (one, other) = (drawn(), drawn());
        assert_eq!(one, other);
        for (code, is_done, expected) in [
            (Some(Code::Overloaded), false, 3000),
            (Some(Code::OutcomeUnknown), false, 1500),
            (Some(Code::OutcomeUnknown), true, 1500),
            (None, false, 1500),
            (None, true, 1500),
        ] {
            let fault = Fault { code, is_done };
            let count = one.iter().filter(|drawn| **drawn == Some(fault)).count();
            assert!(
                count.abs_diff(expected) < expected / 8,
                "{fault:?}: {count}"
            );
        }
    }

    #[test]
    fn none_and_all_are_exact() {
        let count = |rate| {
            let faults = Faults {
                rate,
                is_experimental: true,
                draws: Draws::default(),
            };
            (0..1000).filter_map(|_| faults.draw()).count()
        };
        assert_eq!((count(0.0), count(1.0)), (0, 1000));
    }

    #[test]
    fn every_write_of_the_router_has_an_outcome_that_matters() {
        let faults = Faults {
            rate: 0.5,
            is_experimental: true,
            draws: Draws::default(),
        };
        for row in router(true).operations() {
            let request = Request {
                id: "-",
                method: row.method(),
                target: row.path,
                headers: Vec::new(),
                body: b"",
            };
            assert_eq!(faults.writes(&request), row.method() != "GET", "{}", row.id);
        }
    }

    #[test]
    fn request_gets_the_failure_that_it_wants() {
        let wants = |value: &str| {
            let request = Request {
                id: "-",
                method: "GET",
                target: "/v1/pets",
                headers: vec![(PREFER, value)],
                body: b"",
            };
            wanted(&request).map(|response| {
                let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
                (response.status, body["code"].as_str().unwrap().to_owned())
            })
        };
        for (value, status, code) in [
            ("code=503", 503, "overloaded"),
            ("dynamic=true, code=412", 412, "precondition_failed"),
            ("Code = \"404\"; x=y", 404, "not_found"),
            ("code=outcome_unknown", 503, "outcome_unknown"),
            ("code=200", 400, "bad_request"),
            ("code=", 400, "bad_request"),
        ] {
            assert_eq!(wants(value), Some((status, code.to_owned())), "{value}");
        }
        for other in ["return=minimal", "respond-async", "", "code"] {
            assert_eq!(wants(other), None, "{other}");
        }
    }

    #[test]
    fn service_rests_and_stops() {
        struct Stopped(Arc<std::sync::atomic::AtomicBool>);
        impl Service for Stopped {
            fn answer(&mut self, _: &[Request], _: &mut Vec<Response>) -> Duration {
                Duration::ZERO
            }
            fn rest(&mut self) -> Option<Duration> {
                Some(Duration::from_secs(7))
            }
            fn stop(&mut self) {
                self.0.store(true, Relaxed);
            }
        }
        let has_ended = Arc::default();
        let faults = Faults {
            rate: 0.5,
            is_experimental: true,
            draws: Draws::default(),
        };
        let mut service = faults.around(Stopped(Arc::clone(&has_ended)));
        assert_eq!(service.rest(), Some(Duration::from_secs(7)));
        service.stop();
        assert!(has_ended.load(Relaxed));
    }
}
