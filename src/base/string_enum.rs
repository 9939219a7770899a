//! Enumerations whose values are words.

/// Declares an enumeration whose values are words in the database, in JSON and on the command line.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
        #[non_exhaustive]
        pub enum $name { $($(#[$of])* #[serde(rename = $text)] $word,)* }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$word),*];

            /// One of the words, in bodies and in queries.
            #[doc(hidden)]
            pub const SCHEMA: $crate::json::Enumeration<Self> = $crate::json::Enumeration {
                name: stringify!($name),
                words: &[$((Self::$word, $text)),*],
            };

            /// The word for the value in the database, in JSON and on the command line.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$word => $text,)* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::error::Expected;

            /// Reads exactly one of the words.
            ///
            /// # Errors
            /// The words that are allowed.
            fn from_str(word: &str) -> Result<Self, Self::Err> {
                use $crate::json::Schema;
                Self::SCHEMA.of_text(word).ok_or_else(|| $crate::error::Expected(Self::SCHEMA.expected()))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<str>>::deserialize(deserializer)?;
                let wrong = |expected| serde::de::Error::custom(format_args!("must be {expected}, not another string"));
                word.parse().map_err(|expected: $crate::error::Expected| wrong(expected))
            }
        }
    };
}
