//! What of a conversation is written, in which order and under which ids: the first of the two readings of its items.

use std::collections::HashMap;

use crate::Error;
use crate::node::NodeKind;

use super::call_names::{CallIds, plain};
use super::head::Head;
use super::new_session::UNKNOWN;
use super::order::{Step, place_summaries, report_joined, report_moved, steps_of};
use super::report::{Addition, Change, LossReport, Reason};
use super::rules::{ImagesOfResults, Rules, carried_images, is_written_as_error};
use super::seed::Texts;
use super::source_item::{Items, SourceItem};
use super::target::Target;

/// What is written of a conversation.
pub(super) struct Plan {
    pub(super) heads: Vec<Head>,
    pub(super) steps: Vec<Step>,
    pub(super) report: LossReport,
}

impl Plan {
    /// Reads all items. Also returns the content of them, of which ids are made, and the first time in them.
    pub(super) fn of(
        items: &dyn Items,
        target: Target,
        rules: &Rules,
    ) -> Result<(Self, (Texts, Option<i64>)), Error> {
        let mut draft = Draft {
            heads: Vec::with_capacity(items.count()),
            report: LossReport::new(target, items.count()),
            ids: CallIds::default(),
            rules,
        };
        let (mut content, mut first) = (Texts::default(), None);
        for at in 0..items.count() {
            let item = items.item(at)?;
            content.add_item(&item);
            first = first.or(item.time);
            draft.read(at, &item);
        }
        draft.pair();
        draft.choose();
        draft.name_results();
        let Draft {
            heads, mut report, ..
        } = draft;
        let mut steps = steps_of(&heads, rules.order);
        place_summaries(&mut steps, &heads, rules.summaries, &mut report);
        report_moved(&steps, &heads, &mut report);
        if rules.joins_prompts {
            report_joined(&steps, &mut report);
        }
        report_added(&heads, &steps, rules, &mut report);
        report.finish();
        let plan = Self {
            heads,
            steps,
            report,
        };
        Ok((plan, (content, first)))
    }
}

/// Returns whether this is a name of a model and not what a client writes in its place: for what it said itself, as Claude Code does, or
/// when it does not know.
fn is_model(name: &str) -> bool {
    let name = name.trim();
    let is_mark = name.starts_with('<') && name.ends_with('>');
    !name.is_empty() && !is_mark && !name.eq_ignore_ascii_case(UNKNOWN)
}

/// A plan while it is made.
struct Draft<'a> {
    heads: Vec<Head>,
    report: LossReport,
    ids: CallIds,
    rules: &'a Rules,
}

impl Draft<'_> {
    /// Keeps what matters of an item, and reports what changes in it.
    fn read(&mut self, at: usize, item: &SourceItem) {
        let model = item.model.iter().filter(|model| is_model(model));
        self.report.models.extend(model.cloned());
        self.report.usage += usize::from(item.has_usage);
        self.report.signatures += usize::from(item.has_signature);
        let images = carried_images(item, self.rules);
        let mut head = Head {
            kind: item.kind,
            call_id: String::new(),
            name: String::new(),
            is_string: false,
            results: Vec::new(),
            call: None,
            is_kept: true,
            given_id: item.call_id.clone().unwrap_or_default(),
            is_empty: (self.rules.is_nothing)(&item.text) && images == 0,
        };
        match item.kind {
            NodeKind::ToolCall => self.read_call(at, item, &mut head),
            NodeKind::ToolResult if item.is_error && !is_written_as_error(item, self.rules) => {
                self.report.change(at, Change::ErrorFlag);
            }
            NodeKind::User if (self.rules.is_command)(&item.text) => {
                self.report.change(at, Change::CommandAsPrompt);
            }
            _ => {}
        }
        if item.is_of_agent && item.kind == NodeKind::User {
            self.report.change(at, Change::PromptOfAgent);
        }
        if item.parts_as_text > 0 {
            self.report.change(at, Change::PartsAsText);
        }
        let lost = (item.images.len() + item.unknown_images).saturating_sub(images);
        if lost > 0 {
            self.report.change_images(at, Change::ImagesOmitted, lost);
        }
        let is_beside = self.rules.images_of_results == ImagesOfResults::Beside;
        if images > 0 && item.kind == NodeKind::ToolResult && is_beside {
            self.report
                .change_images(at, Change::ImagesBesideResult, images);
        }
        self.heads.push(head);
    }

    fn read_call(&mut self, at: usize, item: &SourceItem, head: &mut Head) {
        let report = &mut self.report;
        let given = item.name.as_deref();
        head.name = plain(given.filter(|name| !name.is_empty()).unwrap_or("tool"));
        if given != Some(&head.name) {
            report.rename(at, Change::ToolName, given, &head.name);
        }
        head.call_id = self.ids.take(&head.given_id, self.rules.id_separator);
        if head.call_id != head.given_id {
            report.rename(at, Change::CallId, item.call_id.as_deref(), &head.call_id);
        }
        match item.input.as_ref().map(|input| input.text().as_bytes()) {
            None | Some(b"null") => report.change(at, Change::InputMissing),
            Some([b'{', ..]) => {}
            Some([b'"', ..]) if self.rules.holds_string_inputs => head.is_string = true,
            Some(_) => report.change(at, Change::InputWrapped),
        }
    }

    /// Finds the call of each result: the first of its id that has no result yet and stands before it, or else after it. A result
    /// that finds all answered is a further one of the last call before it.
    fn pair(&mut self) {
        let mut calls: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, head) in self.heads.iter().enumerate() {
            if head.kind == NodeKind::ToolCall {
                calls.entry(head.given_id.clone()).or_default().push(at);
            }
        }
        // Of each id, how many of its calls have a result: they get them in their order.
        let mut answered: HashMap<String, usize> = HashMap::new();
        for at in 0..self.heads.len() {
            let head = &self.heads[at];
            let Some(of_id) = calls.get(&head.given_id) else {
                continue;
            };
            if head.kind != NodeKind::ToolResult {
                continue;
            }
            let answered = answered.entry(head.given_id.clone()).or_default();
            let before = of_id.partition_point(|call| *call < at);
            let is_next_known = *answered < before || before == 0;
            let next = of_id.get(*answered).filter(|_| is_next_known);
            let call = next.or_else(|| of_id.get(before.checked_sub(1)?)).copied();
            *answered += usize::from(next.is_some());
            if let Some(call) = call {
                self.heads[at].call = Some(call);
                self.heads[call].results.push(at);
            }
        }
    }

    /// Decides which items are written.
    fn choose(&mut self) {
        for at in 0..self.heads.len() {
            if let Some(reason) = self.reason_against(at) {
                let head = &mut self.heads[at];
                head.is_kept = false;
                self.report.omit(at, head.kind.name(), reason);
            }
        }
        let heads = &mut self.heads;
        for at in 0..heads.len() {
            let mut results = std::mem::take(&mut heads[at].results);
            results.retain(|at| heads[*at].is_kept);
            heads[at].results = results;
        }
    }

    fn reason_against(&self, at: usize) -> Option<Reason> {
        let (head, rules) = (&self.heads[at], self.rules);
        match head.kind {
            NodeKind::Context => Some(Reason::Context),
            NodeKind::Reasoning if !rules.holds_reasoning => Some(Reason::Reasoning),
            NodeKind::ToolResult => match head.call {
                None => Some(Reason::ResultWithoutCall),
                Some(call) => {
                    let is_first = self.heads[call].results.first() == Some(&at);
                    let is_sent = is_first || rules.sends_repeated_results;
                    (!is_sent).then_some(Reason::RepeatedResult)
                }
            },
            NodeKind::ToolCall => None,
            _ => (head.is_empty && !rules.sends_empty).then_some(Reason::Empty),
        }
    }

    /// Gives results the id and the name of their calls.
    fn name_results(&mut self) {
        for at in 0..self.heads.len() {
            let Some(call) = self.heads[at].call else {
                continue;
            };
            let (id, name) = (
                self.heads[call].call_id.clone(),
                self.heads[call].name.clone(),
            );
            let head = &mut self.heads[at];
            if id != head.given_id {
                self.report
                    .rename(at, Change::CallId, Some(&head.given_id), &id);
            }
            (head.call_id, head.name) = (id, name);
        }
    }
}

/// Reports what is added.
fn report_added(heads: &[Head], steps: &[Step], rules: &Rules, report: &mut LossReport) {
    for (at, head) in heads.iter().enumerate() {
        let is_open = head.kind == NodeKind::ToolCall && head.results.is_empty();
        if is_open && rules.completes_calls {
            report.add(at, Addition::Result);
        }
    }
    if let Some(Step::Response(said)) = steps.first()
        && rules.begins_with_prompt
    {
        report.add(said.first().copied().unwrap_or_default(), Addition::Prompt);
    }
    let Some(last) = steps.last().filter(|_| rules.adds_answer) else {
        return;
    };
    let is_open = |at: &usize| heads[*at].kind == NodeKind::ToolCall;
    let is_answered = matches!(last, Step::Response(said) if !said.iter().any(is_open));
    if let Some(at) = last.items().last().filter(|_| !is_answered) {
        report.add(*at, Addition::Answer);
    }
}
