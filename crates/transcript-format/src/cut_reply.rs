//! The marks of entries that hold a part of a reply, as its stream ended early.
//!
//! The client's own mark, `isAbortedMidStream`, is on each entry of the reply. A call may be in two
//! states then: its input arrived completely, or is a part that was closed so that it is JSON. Only
//! our field says which: `"transcriptEngine":{"v":1,"callInput":"cut"}` on the entry of the call.

use crate::json::ObjectBuf;
use crate::make::NewEntry;
use crate::object::Object;

const ABORTED_KEY: &str = "isAbortedMidStream";
const ENGINE_KEY: &str = "transcriptEngine";
const CALL_INPUT_KEY: &str = "callInput";
const CUT_VALUE: &str = "cut";

/// Marks an entry of a reply that ended early.
pub fn mark_reply(entry: NewEntry) -> NewEntry {
    entry.with(ABORTED_KEY, true)
}

/// Marks an entry with a call whose input did not arrive completely.
pub fn mark_call(entry: NewEntry) -> NewEntry {
    entry.engine(&ObjectBuf::new().with(CALL_INPUT_KEY, CUT_VALUE))
}

/// Returns whether an entry is [marked](mark_call) as having a call with a part of its input.
#[must_use]
pub fn has_cut_call(entry: &Object<'_>) -> bool {
    let engine = entry.object(ENGINE_KEY);
    engine.is_some_and(|engine| engine.str(CALL_INPUT_KEY).as_deref() == Some(CUT_VALUE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::make;

    #[test]
    fn only_the_mark_of_a_call_says_that_its_input_was_cut() {
        let reads = |entry: &NewEntry| has_cut_call(&Object::parse(&entry.text()).unwrap());
        let call = make::assistant_text("x", "msg_1", "m");
        assert!(!reads(&call));
        assert!(!reads(&mark_reply(call.clone())));
        assert!(reads(&mark_call(mark_reply(call.clone()))));
        let other = call.engine(&ObjectBuf::new().with(CALL_INPUT_KEY, "whole"));
        assert!(!reads(&other));
    }
}
