//! tiny_http, safe on the open network: a gate with one thread for all clients, and behind it workers, each with a tiny_http
//! server that the gate alone talks to.
//!
//! ```no_run
//! use petstore_gate::{
//!     Error, Gate, GateConfig, LaneKind, Listen, Listening, Request, Response, Stopper, Workers,
//! };
//!
//! fn hello(request: &Request) -> Response {
//!     Response::new(200, format!("Hello, {}!\n", request.target).into_bytes())
//!         .header("Content-Type", "text/plain")
//! }
//!
//! # fn main() -> Result<(), Error> {
//! let listening = Listening::bind(&Listen::default())?;
//! let stopper = Stopper::default();
//! let mut workers = Workers::new(&stopper);
//! workers.start(LaneKind::Read, "reader", hello)?;
//! workers.start(LaneKind::Write, "writer", hello)?;
//! let lanes = workers.take_lanes();
//! Gate::new(listening, GateConfig::with(lanes), stopper)?.run()
//! # }
//! ```
//!
//! The gate knows nothing of keys, routes and databases. A [`Service`] answers the requests of a lane, GET, HEAD and OPTIONS
//! in the read lanes and all others in the write lane. [`Limits`] and [`Deadlines`] bound what clients may take, and a
//! [`Refusal`] becomes the response that [`GateConfig::refuse`] makes of it.

#![allow(
    missing_debug_implementations,
    reason = "sockets and threads say nothing of use"
)]

mod addresses;
mod client;
mod connections;
mod eviction;
#[doc(hidden)]
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gate;
mod lane;
mod lanes;
mod limits;
mod listen;
mod listening;
mod refusal;
mod socket_file;
mod stopper;
#[cfg(any(test, fuzzing))]
#[cfg_attr(not(test), allow(dead_code, reason = "only tests use all of it"))]
mod testing;
mod wire;
mod worker;

pub use addresses::{Network, TrustedProxies, loopback};
pub use gate::{Delay, Gate, GateConfig};
pub use lane::LaneKind;
pub use lanes::OpenLane;
pub use limits::{Deadlines, Limits, unopened_files};
pub use listen::{Address, Listen};
pub use listening::Listening;
pub use refusal::{Refusal, RefusalReason, Refuse};
pub use stopper::{HealthCheck, Stopper};
pub use wire::cors::Cors;
pub use worker::{LaneListener, Service, THREADS, Workers};

/// What a service works with.
pub use petstore_base::{
    error::{Error, ErrorKind, Expected},
    http::response::Disposition,
    http::{Fields, Request, Response, Size},
    metrics::Metrics,
};
