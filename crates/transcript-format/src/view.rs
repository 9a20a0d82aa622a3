//! The three macros that define the views of this crate as flat tables.
//!
//! A row is `/// what it means` and `name: Type = "key";`. It becomes an accessor that reads the
//! field `key` (or its snake_case form, or one of the keys after `|`) each time it is called, and
//! returns `None` when the field is absent, `null` or of another type. A `Type` is anything that
//! implements [`FromRaw`](crate::object::FromRaw): a plain value, another view, a list of those, or
//! [`Raw`](crate::object::Raw) where the form is unknown or varies.

/// Adds accessors to a newtype over [`Object`](crate::object::Object).
macro_rules! fields {
    ($View:ident { $(
        $(#[doc = $doc:literal])+ $name:ident: $Type:ty = $key:literal $(| $other:literal)*;
    )* }) => {
        impl<'a> $View<'a> {
            /// The keys that have an accessor.
            pub const FIELDS: &'static [&'static str] = &[$($key, $($other,)*)*];

            /// Returns the keys of fields that are present, not `null`, and not of the type that
            /// their accessor expects. Does not look at fields inside of fields.
            #[must_use]
            pub fn misfits(&self) -> Vec<&'static str> {
                let misfits: &[Option<&'static str>] =
                    &[$(self.0.misfit::<$Type>($key), $(self.0.misfit::<$Type>($other),)*)*];
                misfits.iter().flatten().copied().collect()
            }

            $(
                #[doc = concat!("Returns `", $key, "`:")]
                $(#[doc = $doc])+
                #[must_use]
                pub fn $name(&self) -> Option<$Type> {
                    self.0.read($key)$(.or_else(|| self.0.read($other)))*
                }
            )*
        }
    };
}

/// Declares views: newtypes over [`Object`](crate::object::Object) with the accessors of a table.
macro_rules! view {
    ($($(#[$meta:meta])+ $View:ident { $($rows:tt)* })+) => {$(
        $(#[$meta])+
        #[derive(Clone, Debug)]
        pub struct $View<'a>(crate::object::Object<'a>);

        impl<'a> $View<'a> {
            /// Returns the underlying object, which also has the fields without an accessor.
            #[must_use]
            pub fn object(&self) -> &crate::object::Object<'a> {
                &self.0
            }
        }

        impl<'a> From<crate::object::Object<'a>> for $View<'a> {
            fn from(object: crate::object::Object<'a>) -> Self {
                Self(object)
            }
        }

        impl<'a> crate::object::FromRaw<'a> for $View<'a> {
            fn from_raw(raw: crate::object::Raw<'a>) -> Option<Self> {
                raw.object().map(Self)
            }
        }

        crate::view::fields! { $View { $($rows)* } }
    )+};
}

/// Declares an enum with one view per kind, and the views.
///
/// `by Kind` picks the variant by the variant of `Kind` of the same name; `by name` picks it by the
/// string after `=`.
macro_rules! views {
    ($(#[$meta:meta])+ $Enum:ident by name {
        $($(#[$doc:meta])+ $View:ident = $($name:literal)|+ { $($rows:tt)* })+
    }) => {
        crate::view::views! { @enum $(#[$meta])+ $Enum { $($View)+ } }
        crate::view::view! { $($(#[$doc])+ $View { $($rows)* })+ }

        impl<'a> $Enum<'a> {
            /// Every name that has a view.
            pub const NAMES: &'static [&'static str] = &[$($($name,)+)+];

            /// Returns the view called `name`.
            #[must_use]
            pub fn new(name: &str, object: crate::object::Object<'a>) -> Self {
                match name {
                    $($($name)|+ => Self::$View($View(object)),)+
                    _ => Self::Other(object.raw()),
                }
            }
        }
    };
    ($(#[$meta:meta])+ $Enum:ident by $Kind:ident {
        $($(#[$doc:meta])+ $View:ident { $($rows:tt)* })+
    }) => {
        crate::view::views! { @enum $(#[$meta])+ $Enum { $($View)+ } }
        crate::view::view! { $($(#[$doc])+ $View { $($rows)* })+ }

        impl<'a> $Enum<'a> {
            /// Returns whether `kind` has a view here.
            #[must_use]
            pub fn knows(kind: $Kind) -> bool {
                matches!(kind, $($Kind::$View)|+)
            }

            /// Returns the view for `kind`.
            #[must_use]
            pub fn new(kind: $Kind, object: crate::object::Object<'a>) -> Self {
                match kind {
                    $($Kind::$View => Self::$View($View(object)),)+
                    _ => Self::Other(object.raw()),
                }
            }
        }
    };
    (@enum $(#[$meta:meta])+ $Enum:ident { $($View:ident)+ }) => {
        $(#[$meta])+
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum $Enum<'a> {
            $(#[doc = concat!("See [`", stringify!($View), "`].")] $View($View<'a>),)+
            /// A value without a view, kept unchanged.
            Other(crate::object::Raw<'a>),
        }

        impl<'a> $Enum<'a> {
            /// Returns the keys that have an accessor; see `FIELDS` of the view.
            #[must_use]
            pub fn fields(&self) -> &'static [&'static str] {
                match self {
                    $(Self::$View(_) => $View::FIELDS,)+
                    Self::Other(_) => &[],
                }
            }

            /// Returns the known fields of an unexpected type; see `misfits` of the view.
            #[must_use]
            pub fn misfits(&self) -> Vec<&'static str> {
                match self {
                    $(Self::$View(view) => view.misfits(),)+
                    Self::Other(_) => Vec::new(),
                }
            }

            /// Returns the value under the view, byte for byte.
            #[must_use]
            pub fn raw(&self) -> crate::object::Raw<'a> {
                match self {
                    $(Self::$View(view) => view.object().raw(),)+
                    Self::Other(raw) => *raw,
                }
            }
        }
    };
}

pub(crate) use {fields, view, views};
