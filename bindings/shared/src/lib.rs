//! The common part of the bindings for Python and Node.
//!
//! A binding passes the name of a function and its options as JSON ([`call`]), and gets records back: JSON
//! texts, many at once, never a call for each field. Whatever a function does, it does here, so that the same
//! call has the same answer in every language, to the byte. An open session is a [`SessionHandle`], which runs
//! the commands of `transcript append` and some more.
//!
//! Every function runs on a thread of its own and is at most 16 MiB ahead of its reader. Dropping [`Records`] ends
//! the thread. A panic ends the call as a [`Failure`]. What waits most of the time has no thread: what follows files,
//! and a session that is open ([`SessionQueue`]), are tasks of the [crew](transcript_storage::crew).

mod function;
mod out;
mod records;
mod session_handle;
mod session_queue;
mod stream_reply;
mod tail;

pub use function::{answer, call};
pub use records::{Next, Records};
pub use session_handle::{Reply, SessionHandle};
pub use session_queue::{SessionQueue, run_once};
pub use stream_reply::StreamReply;
pub use transcript_ops::Failure;
