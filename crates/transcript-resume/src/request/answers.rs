//! Says which lines of a path are one answer, by the rules of [`crate::answers`].

use std::sync::Arc;

use hashbrown::HashMap;
use transcript_format::ids::is_message_id_of_api;

use super::merge::is_api_result;
use super::step::{Step, StepKind};

/// The last lines with one id.
struct Answer {
    request: Option<Arc<str>>,
    prompts: u32,
    turns: u32,
    /// The number of answers with this id before it.
    number: u32,
}

/// Gives answers whose id an earlier one has as well an id of their own.
pub(super) fn set_apart(steps: &mut [Step]) {
    let mut answers: HashMap<Arc<str>, Answer> = HashMap::new();
    // The number of prompts, and that of prompts and entries with results.
    let (mut prompts, mut turns) = (0, 0);
    let is_of_api = |step: &Step| {
        step.message_id()
            .is_some_and(|id| is_message_id_of_api(&id))
    };
    for step in steps {
        match step.kind {
            StepKind::User if !step.is_meta || step.has_results() => {
                prompts += u32::from(!step.has_results());
                turns += 1;
            }
            StepKind::Assistant if step.message_id().is_some() => {
                let request = step.request().cloned();
                let answer = answers.entry(step.merge_key()).or_insert_with(|| Answer {
                    request: request.clone(),
                    prompts,
                    turns,
                    number: 0,
                });
                let is_same = answer.turns == turns
                    // A result of the API's own tools has to be in the message of its call.
                    || step.blocks.iter().any(is_api_result)
                    || match (&answer.request, &request) {
                        _ if is_of_api(step) => answer.prompts == prompts,
                        (Some(own), Some(other)) => own == other,
                        _ => false,
                    };
                answer.number += u32::from(!is_same);
                (answer.request, answer.prompts, answer.turns) = (request, prompts, turns);
                if answer.number > 0 {
                    step.set_apart(answer.number);
                }
            }
            _ => {}
        }
    }
}
