//! The foundation of all other rooms, which knows none of them: the words of HTTP, strict JSON, the settings, errors,
//! files, threads, the clock, counters, and the log.

pub mod clock;
pub mod config;
pub mod environment;
pub mod error;
pub mod files;
pub mod http;
pub mod json;
pub mod metrics;
pub mod quiet_log;
pub mod threads;
