//! The format of agent transcripts kept as JSON Lines, and nothing that touches a disk or a clock.
//!
//! Read the modules in this order:
//!
//! 1. [`lines`] frames bytes into lines with absolute offsets.
//! 2. [`scan`] reads the envelope of one line (ids, flags, times) and checks its structure.
//! 3. [`kind`] names every entry type, system subtype, attachment type and progress type.
//! 4. [`entry`] gives typed views over the kept raw line; [`content`] the blocks of a message.
//! 5. [`finding`] names what can be wrong with a line.
//! 6. [`salvage`] finds the whole entries that stand in damaged lines.
//! 7. [`make`] makes entries, with the owned values of [`json`].
//! 8. [`names`] says how the folders of projects and the files in them are called.
//! 9. [`stream`] puts a message together from the events of a streamed reply.
//! 10. [`context_refs`] reads the references that some clients put before the text of a prompt.
//! 11. [`fingerprint`] knows a file again.
//! 12. [`texts`] knows the texts that clients write in place of a person or a model.

pub mod attachment;
pub mod compact;
pub mod content;
pub mod context_refs;
pub mod entry;
pub mod finding;
pub mod fingerprint;
pub mod ids;
pub mod json;
pub mod kind;
pub mod lines;
pub mod make;
pub mod metadata;
pub mod names;
pub mod object;
pub mod progress;
pub mod salvage;
pub mod scan;
pub mod stream;
pub mod system;
pub mod texts;
pub mod time;
pub mod tool_result;
pub mod usage;
mod view;
pub mod wire;
#[doc(hidden)]
pub mod work;
