//! The vocabulary that all rooms share: requests, responses, failures, targets, queries and limits, as
//! plain data. Knows nothing of sockets, SQL or pets.

#[cfg_attr(
    not(feature = "gzip"),
    path = "no_gzip.rs",
    warn(dead_code, unused_imports)
)]
mod gzip;
pub mod host;
pub mod limits;
pub mod percent;
mod request;
pub mod response;
mod static_document;

pub use gzip::{gunzip, gzip};
pub use request::{Request, Size, Target, name_all};
pub use response::{ACCESS_LOG, Fields, Response, elements, find_field, find_fields};
pub use static_document::{
    Asset, AssetFields, Assets, Form, LazyAssets, matches_tag, names_tag, tag_of,
};
