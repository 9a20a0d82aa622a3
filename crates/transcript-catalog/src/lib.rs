//! Answers questions about many sessions at once: search for words in entries, and tokens and cost ([`usage`]).
//!
//! Start with [`Catalog::open`], then [`Catalog::search`] or [`Catalog::usage`]. `docs/search.md` of the repository defines
//! the answer: that of a full scan over decoded texts.
//!
//! ```
//! use transcript_catalog::{Catalog, SearchOptions};
//! # let root = tempfile::tempdir()?;
//! # std::fs::create_dir(root.path().join("-p"))?;
//! # std::fs::write(root.path().join("-p/0b932c9f.jsonl"),
//! #     "{\"type\":\"user\",\"uuid\":\"u1\",\"message\":{\"content\":\"Why is the sky \\u0062lue?\"}}\n")?;
//!
//! let catalog = Catalog::open(root.path())?;
//! let query = "sky blue role:user".parse()?;
//! let mut search = catalog.search(&query, &SearchOptions::new())?;
//! for hit in &mut search {
//!     let hit = hit?;
//!     println!("{}:{:?} {}", hit.session.id, hit.line, hit.snippet);
//!     # assert_eq!(hit.line, Some(1));
//! }
//! assert_eq!(search.end().hits, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limitations
//!
//! Only files of sessions are searched, in the form in which they are on disk now. While a query
//! runs, 56 bytes are kept for each entry that matches, but no text of it: texts are read again when
//! a hit is returned. A thread needs a few times the memory of the longest line.

mod cache;
mod calls;
mod content;
mod files;
mod filters;
mod fold;
mod fuse;
mod grams;
mod hit;
mod hits;
mod matches;
pub mod moment;
mod prefilter;
mod query;
mod rank;
mod reading;
pub mod rows;
mod scan;
pub mod search;
mod sidecar;
mod texts;
pub mod usage;

pub use files::{Catalog, CatalogSession};
pub use hit::{Copy, Hit, SearchError};
pub use query::{Field, Query, QueryError, ReadTime, Role};
pub use search::{Search, SearchOptions, SearchTotals, Sort};

/// The README, as a doctest, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
