//! The operations as functions that run beside their caller.

use transcript_ops::operation::{Call, Operation};

use crate::out::Out;
use crate::records::Records;
use crate::tail;
use transcript_ops::Failure;

/// Starts a function. `options` is an object with the name of the function under `function` and its options.
///
/// # Errors
/// When the options cannot be used, or no thread can be started.
pub fn call(options: &str) -> Result<Records, Failure> {
    let Call { operation, place } = Call::parse(options)?;
    if let Operation::Follow(_) | Operation::Watch(_) = operation {
        return tail::start(operation, place);
    }
    Records::spawn(move |sender| {
        let mut out = Out::new(sender.clone());
        // Only what follows files has to find where they end before it has started.
        sender.ready();
        let context = place.context();
        let result = context.map_err(Into::into);
        let result = result.and_then(|context| operation.run(&context, &mut out));
        out.finish(result)
    })
}

/// Runs a function to its end, and returns all records as a JSON array. Texts that records name by their places
/// are not part of it.
///
/// # Errors
/// As [`call`], and those of the function.
pub fn answer(options: &str) -> Result<String, Failure> {
    let records = call(options)?;
    let mut all = String::from("[");
    while let Some(batch) = records.wait()? {
        let length = batch.get(..4).and_then(|length| length.try_into().ok());
        let length = length.map_or(0, u32::from_le_bytes) as usize;
        let head = batch.get(5..3 + length).unwrap_or_default();
        if all.len() > 1 {
            all.push(',');
        }
        all.push_str(&String::from_utf8_lossy(head));
    }
    all.push(']');
    Ok(all)
}
