//! Sessions in a browser.
//!
//! [`write_page`] writes a session as one HTML file: no request leaves it, it forbids scripts other than its own, and
//! [`read_lines`] gives back the lines of the session from it. What an item looks like is decided by `transcript-render`;
//! this crate has the page around it: its style, its script, and the pieces of long sessions, which are compressed and
//! opened by the script near what is visible.

pub mod assets;
mod error;
mod file;
pub mod frame;
mod lines;
mod piece;

pub use error::{Error, Result};
pub use file::{PageFile, write_page};
pub use lines::{ReadLines, read_lines};
