//! The operations on sessions, once for all front ends.
//!
//! An [`Operation`] has a name and typed options; [`Operation::run`] gives the records of [`wire`] to a [`Sink`]. The command,
//! the page and the bindings make operations of their arguments, and show the records. Where people are shown something
//! else than records, the flow itself is a function: [`request::with_request`], [`search::with_search`],
//! [`list::with_list`], [`usage::with_usage`], [`verify::each_report`], [`repair::repair_session`], [`entries::Conversation`],
//! [`tree::BranchTree`].
//!
//! [`serve`] runs the commands of an open session.

pub mod agent_archives;
pub mod agents;
mod below;
pub mod buckets;
pub mod context;
pub mod conversation_end;
#[cfg(feature = "import")]
mod cut_versions;
pub mod documents;
pub mod entries;
pub mod failure;
pub mod fit;
pub mod follow;
pub mod fork;
pub mod hand_over;
pub mod items;
pub mod list;
pub mod machine;
pub mod moving;
pub mod names;
pub mod operation;
pub mod provider;
mod redact;
pub mod repair;
pub mod request;
pub mod roots;
#[cfg(feature = "schema")]
pub mod schema;
pub mod sdk;
pub mod sdk_functions;
pub mod search;
pub mod selection;
pub mod serve;
pub mod sink;
pub mod tree;
pub mod usage;
pub mod verify;
pub mod wire;

pub use context::{Context, FindError, FoundBy, FoundSession, PolicyName, Selection, StoreOptions};
pub use conversation_end::{ConversationEnd, find_entry};
pub use failure::Failure;
pub use operation::{Call, Operation};
pub use redact::RedactSettings;
pub use sink::{Sink, Stop};
