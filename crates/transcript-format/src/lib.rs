//! The format of agent transcripts kept as JSON Lines. Nothing here accesses a disk or a clock.
//!
//! Read the modules in this order:
//!
//! 1. [`lines`] splits bytes into lines with absolute offsets.
//! 2. [`scan`] reads the envelope of one line (ids, flags, times) and checks its structure.
//! 3. [`kind`] lists every entry type, system subtype, attachment type and progress type.
//! 4. [`entry`] provides typed views of a raw line; [`content`] those of the blocks of a message.
//!    [`schema`] has the tables that they are made of, [`known_keys`] says which keys are in none.
//! 5. [`finding`] lists the defects that a line can have.
//! 6. [`salvage`] finds complete entries in damaged lines.
//! 7. [`make`] creates entries from the owned values of [`json`].
//! 8. [`names`] defines the names of project folders and of the files in them.
//! 9. [`context_refs`] reads and writes the references that some clients put before the text of a prompt.
//! 10. [`texts`] lists the texts that clients write in place of a person or a model, [`tags`] those in tags;
//!     [`attachment_texts`] those under which they send attachments; [`author`] reads the author of a line; [`unicode`] knows the characters
//!     that change the text around them; [`title`] says which line gives the title; [`units`] words numbers for people.
//! 11. [`answers`] says which lines are one answer; [`imported`] what a line of another agent's session was made from.

pub mod answers;
pub mod attachment;
pub mod attachment_texts;
pub mod author;
pub mod block_text;
pub mod client_tools;
pub mod client_version;
pub mod compact;
pub mod content;
pub mod context_refs;
pub mod cut_reply;
pub mod entry;
pub mod finding;
pub mod ids;
pub mod imported;
pub mod json;
pub mod kind;
pub mod known_keys;
pub mod lines;
pub mod make;
pub mod metadata;
mod named;
pub mod names;
pub mod object;
pub mod progress;
pub mod salvage;
pub mod scan;
pub mod schema;
pub mod stream_messages;
pub mod system;
pub mod tags;
pub mod texts;
pub mod time;
pub mod title;
pub mod tool_result;
pub mod unicode;
pub mod units;
pub mod usage;
#[doc(hidden)]
pub mod work;
