//! Finds the lines of a path that are one answer, by the rules of `tree::answers`.

use std::sync::Arc;

use hashbrown::HashMap;
use transcript_format::ids::is_message_id_of_api;

use super::merge::is_api_result;
use super::step::{Step, StepKind};

/// The last lines with one id, or of those without one that are joined (MSG-2).
struct LastAnswer {
    request: Option<Arc<str>>,
    turn: TurnCounts,
    /// The number of answers with this id before it.
    number: u32,
}

/// The numbers of prompts and results so far: where they are equal, two lines are in one turn.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct TurnCounts {
    prompts: u32,
    /// Prompts that were typed while the answer was written.
    queued: u32,
    results: u32,
}

impl TurnCounts {
    fn read(&mut self, step: &Step) {
        self.queued += u32::from(step.kind == StepKind::Reminder && step.is_queued);
        if step.kind == StepKind::User {
            let has_results = step.has_results();
            self.results += u32::from(has_results);
            self.prompts += u32::from(!has_results && !step.is_meta);
        }
    }
}

/// Gives answers whose id an earlier one has as well an id of their own.
pub(super) fn set_apart(steps: &mut [Step]) {
    let mut answers: HashMap<Arc<str>, LastAnswer> = HashMap::new();
    let mut turn = TurnCounts::default();
    for step in steps {
        turn.read(step);
        if step.kind != StepKind::Assistant || step.entry.is_none() {
            continue;
        }
        let request = step.request().cloned();
        let answer = answers
            .entry(step.merge_key())
            .or_insert_with(|| LastAnswer {
                request: request.clone(),
                turn,
                number: 0,
            });
        let id = step.message_id();
        let is_of_api = id.as_ref().is_some_and(|id| is_message_id_of_api(id));
        let is_one_prompt = answer.turn.prompts == turn.prompts;
        let is_same = match (&answer.request, &request) {
            // A result of the API's own tools has to be in the message of its call.
            _ if step.blocks.iter().any(is_api_result) => true,
            (Some(own), Some(other)) if own != other => false,
            _ if answer.turn == turn => true,
            _ if is_of_api => is_one_prompt,
            (Some(_), Some(_)) => id.is_some() || is_one_prompt,
            _ => false,
        };
        answer.number += u32::from(!is_same);
        (answer.request, answer.turn) = (request, turn);
        if answer.number > 0 {
            step.set_apart(answer.number);
        }
    }
}
