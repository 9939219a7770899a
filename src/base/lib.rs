//! What the packages of petstore share: HTTP's terms, strict JSON, errors, files, threads, the clock, counters, and
//! bounded logging. It has the kinds of all errors and the names of all counters, and otherwise knows nothing of pets,
//! settings and SQL.

pub mod clock;
pub mod environment;
pub mod error;
pub mod files;
pub mod http;
pub mod json;
pub mod metrics;
pub mod quiet_log;
pub mod secret;
mod string_enum;
#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod testing;
pub mod threads;
