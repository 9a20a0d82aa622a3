//! Sessions handed over to other agents, and converted to files for other programs. `docs/handover.md` describes what arrives.
//!
//! A session of any agent, or a file in ATIF or ACP, becomes a new session of another agent ([`hand_over`]) or a text ([`convert`]). The
//! record says what is written, how to continue it there, and what is lost. Without the feature `import` both refuse.

mod settings;

#[cfg(feature = "import")]
mod file_items;
#[cfg(feature = "import")]
mod given;
#[cfg(feature = "import")]
mod records;
#[cfg(feature = "import")]
mod redacted_items;
#[cfg(feature = "import")]
mod request_items;
#[cfg(feature = "import")]
mod run;
#[cfg(feature = "import")]
mod target_home;

#[cfg(not(feature = "import"))]
mod none;

#[cfg(not(feature = "import"))]
pub use none::{convert, hand_over};
#[cfg(feature = "import")]
pub use run::{convert, hand_over};
pub use settings::{AGENTS, FILE_FORMATS, HandOverSettings};

use crate::context::Context;
use crate::sink::{Result, Sink};

/// Hands a session over, and writes the record of it.
pub(crate) fn write_record(
    settings: &HandOverSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> Result<()> {
    sink.record(&hand_over(settings, context)?)
}
