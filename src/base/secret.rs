//! A text that no log may have.

use std::fmt;
use std::ops::Deref;

/// A secret, such as an API key. It is a `str`, but `Debug` does not show it.
///
/// ```
/// let secret = petstore_base::secret::Secret::from("hush-hush");
/// assert!(!format!("{secret:?}").contains("hush"));
/// assert_eq!(&*secret, "hush-hush");
/// ```
#[derive(Clone)]
pub struct Secret(String);

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Secret")
    }
}
