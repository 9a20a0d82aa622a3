//! What the readings of several sessions of a home folder share.

#[cfg(feature = "sqlite")]
use crate::sqlite::Copies;

/// Copies of databases. Without the feature `sqlite` there are none.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    #[cfg(feature = "sqlite")]
    pub(crate) copies: Copies,
}
