//! Tests of the catalog, by area.

mod answers;
mod prefilter;
mod store;
