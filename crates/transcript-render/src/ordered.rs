//! Makes values on several threads and takes them in order.

pub(crate) use transcript_reader::in_order;
