//! The cipher of an archive: age with keys of X25519, or none in a build without the feature `encryption`.

#[cfg(feature = "encryption")]
mod age;
#[cfg(not(feature = "encryption"))]
mod none;

#[cfg(feature = "encryption")]
pub use self::age::Recipient;
#[cfg(feature = "encryption")]
pub(crate) use self::age::{Identity, Stream, decrypt, encrypt};
#[cfg(not(feature = "encryption"))]
pub use self::none::Recipient;
#[cfg(not(feature = "encryption"))]
pub(crate) use self::none::{Identity, Stream, decrypt, encrypt};
