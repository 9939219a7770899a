//! The published project site: the interface description, made of the values that the code itself parses with.
//! Knows the tables of operations, and nothing of SQL or sockets.

pub mod document;
