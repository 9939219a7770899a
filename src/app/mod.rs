//! One request, answered: the pipeline from the request to its handler, how endpoints are written, and the endpoints of
//! the interface. Knows no sockets, and no SQL.

pub mod api;
pub mod endpoint;
pub mod pipeline;
