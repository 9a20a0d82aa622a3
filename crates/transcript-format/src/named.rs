//! Enums whose variants have stable names.

/// Declares an enum of which each variant has a name, as `Variant = "name"`, that its method `name`
/// returns. With `Variant = "name": "words"` it also has the method `words`.
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    (@words $Enum:ident $($Variant:ident,)+) => {};
    (@words $Enum:ident $($Variant:ident $words:literal,)+) => {
        impl $Enum {
            /// Returns a description.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self { $(Self::$Variant => $words,)+ }
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $Enum:ident {
        $($(#[$about:meta])* $Variant:ident = $name:literal $(: $words:literal)?,)+
    }) => {
        $(#[$meta])*
        $vis enum $Enum {
            $($(#[$about])* $Variant,)+
        }

        impl $Enum {
            /// Returns the stable name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Variant => $name,)+ }
            }
        }

        $crate::named! { @words $Enum $($Variant $($words)?,)+ }
    };
}
