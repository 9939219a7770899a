//! A DNS client: looks up the records of a name. Knows nothing of the domains of this service.
//!
//! Every byte of a response may be hostile. `inquiry.rs` sets one deadline for several questions and finds the
//! authoritative servers of a name, and `servers.rs` tries the next server if one fails. `exchange.rs` gets a response
//! over UDP or TCP, `message.rs` decodes it, and `answer.rs` has its records.

mod answer;
mod error;
mod exchange;
mod inquiry;
mod message;
mod resolv_conf;
mod servers;

#[cfg(any(test, fuzzing))]
pub mod fuzz_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod inquiry_tests;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use answer::{AnswerRecord, DnsAnswer};
pub(crate) use error::DnsError;
pub(crate) use inquiry::Dns;
pub(crate) use servers::NameServers;
/// The type of a record, such as `A` or `CNAME`.
pub(crate) use simple_dns::TYPE as RecordType;

/// Lists a name and its parents, from the longest to the single label at the end.
pub(crate) fn with_parents(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |at| {
        at.split_once('.').map(|(_, parent)| parent)
    })
}
