//! What can be asked about sessions, and what can be done with them, once for all front ends.

pub mod sdk;
pub mod serve;
pub mod wire;
