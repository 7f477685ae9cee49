//! Enums whose variants have names, such as in the configuration, in requests and in tables.

/// Writes the names of all variants of an enum once: gives it `ALL`, `as_str`, `parse` and `Display`.
#[macro_export]
macro_rules! named_variants {
    ($kind:ident { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $kind {
            pub const ALL: [$kind; [$($name),+].len()] = [$($kind::$variant),+];

            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($kind::$variant => $name),+
                }
            }

            /// The variant of a name.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.as_str() == name)
            }
        }

        impl ::std::fmt::Display for $kind {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}
