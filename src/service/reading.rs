//! The service of a worker that reads: a batch shares a snapshot.

use std::sync::Arc;
use std::time::Duration;

use crate::api::{Handler, Reading};
use crate::http::{Asset, Request, Response};
use crate::service::{Authenticator, Pipeline, wrong_lane};
use crate::store::Reader;
use crate::worker::Service;

/// A batch of responses is sent once it has as many bytes, so that huge pages do not pile up.
const ENOUGH_BYTES: usize = 1024 * 1024;

/// Answers the requests of a lane for reading.
pub struct ReadService {
    reading: Reading,
    pipeline: Pipeline,
}

impl ReadService {
    pub fn new(store: Reader, authenticator: Authenticator, description: Arc<Asset>) -> Self {
        Self { reading: Reading::new(store, description), pipeline: Pipeline::new(authenticator) }
    }

    fn respond(&mut self, request: &Request) -> Response {
        let Self { reading, pipeline } = self;
        let call = match pipeline.enter(request, &reading.store) {
            Ok(call) => call,
            Err(response) => return response,
        };
        let operation = call.operation;
        let done = pipeline.run(operation, request, || match operation.handler {
            Handler::Get(handler) => handler(reading, &call),
            Handler::Check { read, .. } => read(reading).map(|()| Response::pass_on()),
            Handler::Post(_) => Err(wrong_lane()),
        });
        done.map_or_else(|response| response, |response| operation.announce(response))
    }
}

impl Service for ReadService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        if let Err(error) = self.reading.store.begin() {
            // The queries that follow meet the same trouble and answer for it one by one.
            self.pipeline.failures.say(&format!("cannot begin to read: {error}"));
        }
        let mut bytes = 0;
        for request in requests {
            let response = self.respond(request);
            bytes += response.body().len();
            responses.push(response);
            if bytes >= ENOUGH_BYTES {
                break;
            }
        }
        if let Err(error) = self.reading.store.end() {
            self.pipeline.failures.say(&format!("cannot end a snapshot: {error}"));
        }
        Duration::ZERO
    }

    fn stop(&mut self) {}
}
