//! A section of a page. The build script includes this file too, so it must not use other modules.

/// The element of a section that is a phrase: it has no place of its own, but that of the heading above it.
pub const PHRASE: &str = "phrase";

/// A heading or a row of a table, with the text up to the next one. It has a link, and the search finds it. `S` is a
/// string type.
#[derive(Debug, Default)]
pub struct Section<S> {
    pub id: S,
    /// The name of its element, such as `h2` or `tr`.
    pub element: S,
    pub title: S,
    pub text: S,
}
