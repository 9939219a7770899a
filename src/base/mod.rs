//! Shared by all other rooms, and knows none of them: HTTP's terms, strict JSON, errors, files, threads, the
//! clock, counters, and bounded logging.

pub mod clock;
pub mod environment;
pub mod error;
pub mod files;
pub mod http;
pub mod json;
pub mod metrics;
pub mod quiet_log;
pub mod secret;
pub mod threads;
