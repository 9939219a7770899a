//! The application: the pipeline that handles a request, the building blocks of endpoints, and the endpoints of the
//! HTTP interface. Knows no sockets and no SQL.

pub mod api;
pub mod endpoint;
pub mod pipeline;
pub mod settings;
