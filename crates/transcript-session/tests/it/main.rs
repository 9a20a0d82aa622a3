//! Sessions as clients embed them.

mod agent;
mod resume;
mod store;
mod support;
mod turns;
