//! The messages of the Messages API, without any transcript: a [`Message`] is a role and blocks, and
//! a [`Block`] is the JSON text that it had, so that unknown blocks, big numbers and the order of
//! keys survive.
//!
//! - [`builder`] makes requests by hand, [`stream`] assembles a message from the events of a
//!   streamed reply.
//! - [`pair()`] and [`make_strict`] put calls and results in order, the former as the client does,
//!   the latter for a strict provider. What they add and omit is in a [`Log`].
//! - [`lint()`] reports the problems for which a strict provider would refuse a request. A [`Provider`] other than the Messages API has rules of its
//!   own, for [`lint_for()`] and [`make_strict_part()`]. Messages have the form of the Messages API for each of them.
//! - [`TokenEstimate`] estimates the tokens of a block; [`fit()`] omits the parts beyond a context window.
//!
//! A block may have an origin: a number that the caller gave it, such as that of an entry. Nothing
//! here interprets it; reports name it.

pub mod block;
mod block_kind;
pub mod builder;
mod estimate;
mod fit;
mod image;
mod lint;
mod log;
mod media;
mod message;
mod numbers;
mod pair;
mod pdf;
mod prompt;
mod provider;
mod rule;
mod stored;
pub mod stream;
mod strict;
pub mod text;

pub use block::{Block, BlockKind};
pub use estimate::TokenEstimate;
pub use fit::{FitLimit, Origins, fit};
pub use lint::{Lint, Problem, join_roles, lint, lint_for};
pub use log::{Log, Omission, OmissionReason, Synthetic, SyntheticKind};
pub use media::{abridged_media, may_be_media, within_limits, within_request_limits};
pub use message::{Message, Role};
pub use pair::pair;
pub use provider::{MAX_REQUEST, Provider, UnknownProvider};
pub use rule::Rule;
pub use stored::{BlockLocation, BlockStore, StoredReader};
pub use strict::{FRESH_ID_PREFIX, Part, make_strict, make_strict_part, without_refused_media};
