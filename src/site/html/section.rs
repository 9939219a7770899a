//! A part of a page. The build script uses this file too, so it knows nothing else.

/// A heading or a row of a table, which can be linked to and searched for, with the text up to the next one. `S` is a
/// string.
#[derive(Debug, Default)]
pub struct Section<S> {
    pub id: S,
    /// The name of its element, such as `h2` or `tr`.
    pub element: S,
    pub title: S,
    pub text: S,
}
