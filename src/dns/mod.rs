//! Asks DNS which records a name has. Knows nothing of the domains of this service. Why there is no answer is told in
//! words that end a sentence, such as `the name server 192.0.2.1:53 did not answer in time`.
//!
//! Whatever a response says may be hostile. `resolvers.rs` asks the next server if one fails, `exchange.rs` gets a
//! response over TCP, `message.rs` decodes it, and `answer.rs` is what is kept of it.

mod answer;
mod exchange;
mod message;
mod resolv_conf;
mod resolvers;

#[cfg(any(test, fuzzing))]
pub mod fuzz_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod test_server;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use answer::{Answer, Record};
pub(crate) use resolvers::Dns;
/// The type of a record, such as `A` or `CNAME`.
pub(crate) use simple_dns::TYPE as RecordType;
