//! The fields of the format as tables: one line for each field, read by a view and listed in the
//! documentation.
//!
//! A table is a call of the macro `schema!`, one in each module of views. Its rows are
//! `name: Type = "key", "meaning";`: an accessor that reads the field `key` (or its snake_case form,
//! or one of the keys after `|`) each time it is called, and returns `None` when the field is
//! absent, `null` or of another type. A `Type` is anything that implements
//! [`FromRaw`](crate::object::FromRaw): a plain value, another view, a list of those, or
//! [`Raw`](crate::object::Raw) where the form is unknown or varies.
//!
//! [`entry::views`](crate::entry::views) returns the tables as data.

/// The fields of one object of the format.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct View {
    /// The name of its type in Rust.
    pub name: &'static str,
    /// The names it is chosen by, such as the `type` of a block; empty when it is chosen by the kind
    /// of the same name, or by the field that contains it.
    pub names: &'static [&'static str],
    /// A description of the object, as Markdown.
    pub meaning: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
}

/// One field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Field {
    /// The key on disk, then the keys of other versions. Every key is also read in snake_case.
    pub keys: &'static [&'static str],
    /// The type of the accessor in Rust.
    pub type_name: &'static str,
    /// The meaning of the field, as Markdown.
    pub meaning: &'static str,
}

/// Declares the views of a module: first the plain ones, then one enum with a view for each kind.
///
/// A view is a newtype over [`Object`](crate::object::Object). `by Kind` picks the variant of the
/// enum by the variant of `Kind` of the same name; `by name` picks it by the string after `=`.
/// `own` adds accessors to a newtype that the module declares itself.
macro_rules! schema {
    (
        $(own $(#[doc = $own_doc:literal])+ $Own:ident { $($own_rows:tt)* })?
        $($(#[doc = $doc:literal])+ $View:ident { $($rows:tt)* })*
        $(enum $Enum:ident $about:literal by $by:ident {
            $($(#[doc = $kind_doc:literal])+ $Kind:ident $(= $($name:literal)|+)? {
                $($kind_rows:tt)*
            })+
        })?
    ) => {
        /// The tables of this module.
        pub(crate) const VIEWS: &[crate::schema::View] = &[
            $(crate::schema::schema!(@entry [$($own_doc)+] $Own []),)?
            $(crate::schema::schema!(@entry [$($doc)+] $View []),)*
            $($(crate::schema::schema!(@entry [$($kind_doc)+] $Kind [$($($name,)+)?]),)+)?
        ];
        $(crate::schema::schema! { @fields $Own { $($own_rows)* } })?
        $(crate::schema::schema! { @view [$($doc)+] $View { $($rows)* } })*
        $(
            $(crate::schema::schema! { @view [$($kind_doc)+] $Kind { $($kind_rows)* } })+
            crate::schema::schema! { @enum $Enum $about { $($Kind)+ } }
            crate::schema::schema! { @by $by $Enum { $($Kind [$($($name)|+)?])+ } }
        )?
    };
    (@entry [$($doc:literal)+] $View:ident [$($name:literal,)*]) => {
        crate::schema::View {
            name: stringify!($View),
            names: &[$($name,)*],
            meaning: concat!($($doc, "\n"),+).trim_ascii(),
            fields: $View::FIELDS,
        }
    };
    (@view [$($doc:literal)+] $View:ident { $($rows:tt)* }) => {
        $(#[doc = $doc])+
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

        crate::schema::schema! { @fields $View { $($rows)* } }
    };
    (@fields $View:ident { $(
        $field:ident: $Type:ty = $key:literal $(| $other:literal)*, $meaning:literal;
    )* }) => {
        impl<'a> $View<'a> {
            /// The fields that have an accessor.
            pub const FIELDS: &'static [crate::schema::Field] = &[$(crate::schema::Field {
                keys: &[$key $(, $other)*],
                type_name: stringify!($Type),
                meaning: $meaning,
            },)*];

            /// Returns the keys of fields that are present, not `null`, and not of the type that
            /// their accessor expects. Does not look at fields inside of fields.
            #[must_use]
            pub fn misfits(&self) -> Vec<&'static str> {
                let misfits: &[Option<&'static str>] =
                    &[$(self.0.misfit::<$Type>($key), $(self.0.misfit::<$Type>($other),)*)*];
                misfits.iter().flatten().copied().collect()
            }

            $(
                #[doc = concat!("Returns `", $key, "`: ", $meaning, ".")]
                #[must_use]
                pub fn $field(&self) -> Option<$Type> {
                    self.0.read($key)$(.or_else(|| self.0.read($other)))*
                }
            )*
        }
    };
    (@enum $Enum:ident $about:literal { $($View:ident)+ }) => {
        #[doc = $about]
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum $Enum<'a> {
            $(#[doc = concat!("See [`", stringify!($View), "`].")] $View($View<'a>),)+
            /// A value without a view, kept unchanged.
            Other(crate::object::Raw<'a>),
        }

        impl<'a> $Enum<'a> {
            /// Returns the fields that have an accessor; see `FIELDS` of the view.
            #[must_use]
            pub fn fields(&self) -> &'static [crate::schema::Field] {
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
    (@by name $Enum:ident { $($View:ident [$($name:literal)|+])+ }) => {
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
    (@by $Kind:ident $Enum:ident { $($View:ident [])+ }) => {
        impl<'a> $Enum<'a> {
            /// Returns whether `kind` has a view here.
            #[must_use]
            pub fn knows(kind: $Kind) -> bool {
                matches!(kind, $($Kind::$View)|+)
            }

            /// Returns the fields of the view for `kind`; `None` if it has no view.
            #[must_use]
            pub fn fields_of(kind: $Kind) -> Option<&'static [crate::schema::Field]> {
                match kind {
                    $($Kind::$View => Some($View::FIELDS),)*
                    _ => None,
                }
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
}

pub(crate) use schema;
