//! What the readings of several sessions of a home folder share.

use crate::clock::Clock;
#[cfg(feature = "sqlite")]
use crate::sqlite::Copies;

/// Copies of databases. Without the feature `sqlite` there are none.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    #[cfg(feature = "sqlite")]
    pub(crate) copies: Copies,
}

impl Shared {
    /// Has no copy yet; they age by a clock.
    pub(crate) fn by(clock: Clock) -> Self {
        #[cfg(not(feature = "sqlite"))]
        let _ = clock;
        Self {
            #[cfg(feature = "sqlite")]
            copies: Copies::new(clock),
        }
    }
}
