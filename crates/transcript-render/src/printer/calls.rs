//! Prints calls and their results.

use transcript_format::object::Raw;
use transcript_format::units::duration;
use transcript_resume::items::ItemMarks;

use super::turn::between;
use super::{RenderItem, TextPrinter};
use crate::Result;
use crate::blocks::result_text;
use crate::options::Tools;
use crate::styles::TextStyle;
use crate::text::{Span, width};
use crate::tool_summary::{self, CallOutcome, Todo, TodoState, size};
use crate::tools::{ToolUse, last_line, use_of};
use crate::words::more_lines;

/// The maximum number of lines of the subject of a call in the short form.
const MAX_CALL_LINES: usize = 6;
/// The maximum number of lines of a failure in the short form.
const MAX_FAILURE_LINES: usize = 6;
/// The maximum number of lines of a diff in the short form.
const MAX_DIFF_LINES: usize = 16;
/// The minimum duration that is printed, in milliseconds.
const MIN_SHOWN_MILLIS: u64 = 100;

impl TextPrinter<'_> {
    /// Prints a call, and counts it for the totals of the turn.
    pub(super) fn call(&mut self, tool: &str, input: Option<Raw<'_>>) -> Result<()> {
        if let Some(turn) = &mut self.printed.turn {
            turn.calls += 1;
        }
        if self.options.tools == Tools::None {
            return Ok(());
        }
        self.name("assistant")?;
        let style = self.styles.tool;
        let line = vec![
            Span::new(style, "▸ "),
            Span::new(self.styles.bold(style), &self.one_line(tool)),
        ];
        if self.options.tools == Tools::Short {
            return self.call_lines(line, &self.call_summary(tool, input));
        }
        self.page.short(&line)?;
        self.page.indent(2);
        match input.and_then(Raw::object) {
            Some(object) => {
                for (name, value) in object.members() {
                    let text = value.str();
                    let text = text.as_deref().unwrap_or(value.text());
                    let mut name = vec![Span::new(self.styles.dim, &format!("{name}: "))];
                    self.page.push(Vec::new(), vec![Span::plain("  ")]);
                    for line in text.split('\n') {
                        name.push(Span::new(self.styles.plain, line.trim_end()));
                        self.page.line(&name)?;
                        name.clear();
                    }
                    self.page.pop();
                }
            }
            None => self.dim(input.map_or("", Raw::text))?,
        }
        self.page.pop();
        Ok(())
    }

    /// Returns the subject of a call, line by line.
    pub(super) fn call_summary(&self, tool: &str, input: Option<Raw<'_>>) -> Vec<String> {
        tool_summary::about_lines(tool, input, self.cwd.as_deref(), self.styles.escaping)
    }

    /// Writes the name of a tool and the lines of the subject below each other.
    fn call_lines(&mut self, mut name: Vec<Span>, about: &[String]) -> Result<()> {
        if !about.is_empty() {
            name.push(Span::plain(" "));
        }
        let margin = vec![Span::plain(&" ".repeat(width(&name)))];
        self.page.push(name, margin);
        let first = about.first().map_or("", String::as_str);
        self.page.short(&[Span::new(self.styles.plain, first)])?;
        // Omitting a single line would save nothing: the note needs a line, too.
        let most = match about.len() {
            count if count <= MAX_CALL_LINES + 1 => count,
            _ => MAX_CALL_LINES,
        };
        for line in about.iter().take(most).skip(1) {
            self.page.short(&[Span::new(self.styles.plain, line)])?;
        }
        if about.len() > most {
            self.dim(&more_lines(about.len() - most))?;
        }
        self.page.pop();
        Ok(())
    }

    /// Repeats the call above its result, if something else was printed in between.
    pub(super) fn call_again(&mut self, tool: &str, about: &str) -> Result<()> {
        self.name("assistant")?;
        let line = format!("▹ {} {about}", self.one_line(tool));
        Ok(self.page.short(&[Span::new(self.styles.dim, &line)])?)
    }

    /// Prints the result of a call that was made at `called`.
    pub(super) fn answer(
        &mut self,
        tool: &str,
        rendered: RenderItem<'_>,
        input: Option<Raw<'_>>,
        called: Option<i64>,
    ) -> Result<()> {
        let answered = rendered.entry_ref.millis();
        self.printed.answered = answered.or(self.printed.answered);
        let took = between(called, answered).filter(|took| *took >= MIN_SHOWN_MILLIS);
        self.result(tool, rendered, input, took)
    }

    /// Names the subagent that a call started, if it is not printed below the call.
    pub(super) fn hidden_agent(&mut self, agent: &str) -> Result<()> {
        if self.options.tools == Tools::None {
            return Ok(());
        }
        let hint = self.options.agent_hint;
        self.dim(&format!("├ subagent {agent}; {hint}"))
    }

    pub(super) fn result(
        &mut self,
        tool: &str,
        rendered: RenderItem<'_>,
        input: Option<Raw<'_>>,
        took: Option<u64>,
    ) -> Result<()> {
        if self.options.tools == Tools::None {
            return Ok(());
        }
        let loaded = &rendered.loaded;
        let failed = loaded.item().marks().contains(ItemMarks::FAILED);
        let took = took.map(|took| format!(" · {}", duration(took)));
        let took = took.unwrap_or_default();
        match CallOutcome::of_result(tool, input, loaded) {
            CallOutcome::Diff(diff) => {
                self.outcome("", &format!("+{} −{}{took}", diff.added, diff.removed))?;
                self.page.indent(2);
                let most = (self.options.tools == Tools::Short).then_some(MAX_DIFF_LINES);
                diff.write(&mut self.page, self.styles, most)?;
                self.page.pop();
                Ok(())
            }
            CallOutcome::Todos(todos) => self.todos(&todos, &took),
            CallOutcome::Text => {
                let is_whole = self.options.tools == Tools::Full;
                let stored_in = rendered.source.filter(|_| is_whole);
                let text = result_text(loaded, self.styles.escaping, stored_in);
                if is_whole {
                    self.whole(&text, failed, &took)
                } else {
                    self.short(tool, &text, failed, &took)
                }
            }
        }
    }

    fn todos(&mut self, todos: &[Todo], took: &str) -> Result<()> {
        let done = todos.iter().filter(|todo| todo.state == TodoState::Done);
        let done = format!("{} of {} done{took}", done.count(), todos.len());
        self.outcome("", &done)?;
        self.page.indent(2);
        for todo in todos {
            let style = match todo.state {
                TodoState::Done => self.styles.dim,
                TodoState::UnderWay => self.styles.bold(self.styles.plain),
                TodoState::Open => self.styles.plain,
            };
            let mark = vec![Span::new(style, &format!("{} ", todo.state.mark()))];
            self.page.push(mark, vec![Span::plain("  ")]);
            self.page.line(&[Span::new(style, &todo.text)])?;
            self.page.pop();
        }
        self.page.pop();
        Ok(())
    }

    /// Prints a whole result.
    fn whole(&mut self, text: &str, failed: bool, took: &str) -> Result<()> {
        let size = format!("{}{took}", size(text));
        if failed {
            self.styled_outcome(self.styles.error, "failed", &size)?;
        } else {
            self.outcome("", &size)?;
        }
        let style = self.result_style(failed);
        self.page.indent(2);
        self.page.text(style, text.trim_end())?;
        self.page.pop();
        Ok(())
    }

    /// Prints the most informative line of a result and its size; of a failure the first lines.
    fn short(&mut self, tool: &str, text: &str, failed: bool, took: &str) -> Result<()> {
        let mut lines = text.trim_end().lines();
        let mut filled = lines.clone().map(str::trim).filter(|line| !line.is_empty());
        let telling = match use_of(tool, None) {
            // The content of a file that was read is not shown: its name identifies it.
            ToolUse::Read if !failed => None,
            // The last line of a command's output usually summarizes it.
            ToolUse::Shell if !failed => last_line(text),
            _ => filled.next(),
        };
        if lines.next().is_none() {
            return self.outcome("", &format!("(empty){took}"));
        }
        let size = format!("{}{took}", size(text));
        if !failed {
            return self.outcome(telling.unwrap_or_default(), &size);
        }
        let style = self.result_style(true);
        let size = format!("failed · {size}");
        self.styled_outcome(style, telling.unwrap_or_default(), &size)?;
        self.page.indent(2);
        for line in lines.by_ref().take(MAX_FAILURE_LINES) {
            self.page.short(&[Span::new(style, line.trim_end())])?;
        }
        match lines.count() {
            0 => {}
            more => self.dim(&more_lines(more))?,
        }
        self.page.pop();
        Ok(())
    }

    /// Prints one line for a result: a summary, and the size.
    fn outcome(&mut self, short: &str, size: &str) -> Result<()> {
        self.styled_outcome(self.styles.dim, short, size)
    }

    fn styled_outcome(&mut self, style: TextStyle, short: &str, size: &str) -> Result<()> {
        self.entry_name()?;
        let lead = Span::new(self.styles.dim, "└ ");
        let size = Span::new(self.styles.dim, size);
        if short.is_empty() {
            self.page.short(&[lead, size])?;
        } else {
            self.page.both(&[lead, Span::new(style, short)], &[size])?;
        }
        Ok(())
    }

    fn result_style(&self, failed: bool) -> TextStyle {
        if failed {
            self.styles.error
        } else {
            self.styles.dim
        }
    }
}
