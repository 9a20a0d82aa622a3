//! The order in which the items of a conversation are written.

use crate::node::NodeKind;

use super::head::Head;
use super::report::{Change, LossReport};
use super::rules::{Order, Summaries};

/// A part of what is written, by the numbers of its items.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A prompt.
    Prompt(usize),
    /// A summary in a record of its own.
    Summary(usize),
    /// What the model said at once.
    Response(Vec<usize>),
    /// Results that follow each other.
    Results(Vec<usize>),
}

impl Step {
    /// Returns its items.
    pub(super) fn items(&self) -> &[usize] {
        match self {
            Self::Prompt(at) | Self::Summary(at) => std::slice::from_ref(at),
            Self::Response(items) | Self::Results(items) => items,
        }
    }
}

/// Returns each step with the results that follow it, which are those of its calls if it is a response.
pub(super) fn with_results(steps: &[Step]) -> impl Iterator<Item = (&Step, &[usize])> {
    steps.iter().enumerate().map(|(at, step)| {
        let results = match steps.get(at + 1) {
            Some(Step::Results(results)) => results.as_slice(),
            _ => &[],
        };
        (step, results)
    })
}

/// Returns the steps of the items that are written.
pub(super) fn steps_of(heads: &[Head], order: Order) -> Vec<Step> {
    let mut steps = Steps {
        heads,
        order,
        response: Vec::new(),
        steps: Vec::new(),
    };
    let kept = heads.iter().enumerate().filter(|(_, head)| head.is_kept);
    for (at, head) in kept {
        match head.kind {
            NodeKind::Assistant | NodeKind::Reasoning | NodeKind::ToolCall => steps.said(at),
            NodeKind::ToolResult if order == Order::Stored => {
                steps.end_response();
                steps.steps.push(Step::Results(vec![at]));
            }
            // It stands behind the response with its call, wherever it was.
            NodeKind::ToolResult => {
                if head.call.is_some_and(|call| steps.response.contains(&call)) {
                    steps.end_response();
                }
            }
            NodeKind::User | NodeKind::Summary | NodeKind::Context => {
                steps.end_response();
                steps.steps.push(Step::Prompt(at));
            }
        }
    }
    steps.end_response();
    steps.steps
}

/// Steps while they are made.
struct Steps<'a> {
    heads: &'a [Head],
    order: Order,
    /// The response that is not complete.
    response: Vec<usize>,
    steps: Vec<Step>,
}

impl Steps<'_> {
    fn said(&mut self, at: usize) {
        if self.begins_response(self.heads[at].kind) {
            self.end_response();
        }
        self.response.push(at);
    }

    /// Returns whether an item begins another response than the last one.
    fn begins_response(&self, kind: NodeKind) -> bool {
        let Some(last) = self.response.last() else {
            return false;
        };
        let rank = |kind| match kind {
            NodeKind::Reasoning => 0,
            NodeKind::Assistant => 1,
            _ => 2,
        };
        let last = rank(self.heads[*last].kind);
        let next = rank(kind);
        match self.order {
            Order::Stored | Order::ResultsBehindResponse => false,
            Order::TextsBeforeCalls => next < 2 && last == 2,
            Order::ResultsBehindCalls => next < last || next == last && next < 2,
        }
    }

    fn end_response(&mut self) {
        if self.response.is_empty() {
            return;
        }
        let response = std::mem::take(&mut self.response);
        let calls = response.iter().filter(|_| self.order != Order::Stored);
        let results = calls.flat_map(|at| &self.heads[*at].results);
        let mut results: Vec<usize> = results.copied().collect();
        if self.order != Order::ResultsBehindCalls {
            results.sort_unstable();
        }
        self.steps.push(Step::Response(response));
        if !results.is_empty() {
            self.steps.push(Step::Results(results));
        }
    }
}

/// Gives summaries their own records where the client has some; the others become prompts.
pub(super) fn place_summaries(
    steps: &mut [Step],
    heads: &[Head],
    summaries: Summaries,
    report: &mut LossReport,
) {
    let is_summary =
        |step: &Step| matches!(step, Step::Prompt(at) if heads[*at].kind == NodeKind::Summary);
    let leading = steps
        .iter()
        .take_while(|step| matches!(step, Step::Prompt(_)));
    let last_leading = leading
        .enumerate()
        .filter(|(_, step)| is_summary(step))
        .last();
    let last_leading = last_leading.map(|(number, _)| number);
    for (number, step) in steps.iter_mut().enumerate() {
        let at = match step {
            Step::Prompt(at) if heads[*at].kind == NodeKind::Summary => *at,
            _ => continue,
        };
        let has_record = match summaries {
            Summaries::AfterPrompts => Some(number) == last_leading,
            Summaries::AtStart => number == 0,
            Summaries::Anywhere => true,
            Summaries::Nowhere => false,
        };
        if has_record {
            *step = Step::Summary(at);
        } else {
            report.change(at, Change::SummaryAsPrompt);
        }
    }
}

/// Reports the results that stand at another place than before.
pub(super) fn report_moved(steps: &[Step], heads: &[Head], report: &mut LossReport) {
    let order: Vec<usize> = steps.iter().flat_map(Step::items).copied().collect();
    // The smallest number of what follows each place.
    let mut following = vec![usize::MAX; order.len() + 1];
    for (place, at) in order.iter().enumerate().rev() {
        following[place] = following[place + 1].min(*at);
    }
    let mut greatest_before = None;
    for (place, at) in order.iter().enumerate() {
        let is_moved = following[place + 1] < *at || greatest_before > Some(*at);
        if is_moved && heads[*at].kind == NodeKind::ToolResult {
            report.change(*at, Change::ResultMoved);
        }
        greatest_before = greatest_before.max(Some(*at));
    }
}

/// Reports the prompts that are sent as one.
pub(super) fn report_joined(steps: &[Step], report: &mut LossReport) {
    for pair in steps.windows(2) {
        let [Step::Prompt(at) | Step::Summary(at), Step::Prompt(_)] = pair else {
            continue;
        };
        report.change(*at, Change::JoinedWithNext);
    }
}
