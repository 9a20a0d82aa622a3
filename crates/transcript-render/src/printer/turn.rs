//! Totals of a turn: from one prompt to the next.

use transcript_format::content::Message;
use transcript_format::kind::EntryKind;
use transcript_format::units::{duration, grouped};
use transcript_reader::EntryRef;
use transcript_resume::items::{is_queued, starts_turn};

use super::TextPrinter;
use super::turn_stats::{Tokens, TurnStats};
use crate::Result;
use crate::moment::clock;
use crate::text::Span;
use crate::words::count;

impl TextPrinter<'_> {
    /// Adds an answer to the current turn.
    pub(super) fn count<'b>(
        &mut self,
        entry_ref: &EntryRef<'_>,
        message: impl FnOnce() -> Option<Message<'b>>,
    ) {
        if entry_ref.kind() != EntryKind::Assistant {
            return;
        }
        self.printed.answered = entry_ref.millis().or(self.printed.answered);
        let usage = message().and_then(|message| message.usage());
        let (Some(turn), Some(message), Some(usage)) =
            (&mut self.printed.turn, entry_ref.message(), usage)
        else {
            return;
        };
        let tokens = turn.answers.entry(message).or_default();
        let created = usage.cache_creation_input_tokens().unwrap_or(0);
        let cached = usage.cache_read_input_tokens().unwrap_or(0);
        let input = usage.input_tokens().unwrap_or(0);
        let input = input.saturating_add(created).saturating_add(cached);
        tokens.input = tokens.input.max(input);
        tokens.cached = tokens.cached.max(cached);
        tokens.output = tokens.output.max(usage.output_tokens().unwrap_or(0));
    }

    /// Prints a rule with the time above a prompt, and ends the previous turn.
    pub(super) fn start_turn(&mut self, entry_ref: &EntryRef<'_>, line: Option<u64>) -> Result<()> {
        // Several texts of one prompt are one turn.
        let entry = Some((entry_ref.number(), line));
        let turn = self.printed.turn.as_ref();
        if turn.is_some_and(|turn| turn.is_quiet() && turn.first == entry)
            && self.printed.speaker == Some("user")
        {
            return Ok(());
        }
        self.end_turn()?;
        let mut text = self.time(entry_ref.millis());
        if let Some(later) = between(self.printed.answered, entry_ref.millis()) {
            text.push_str(&format!(" · {} later", duration(later)));
        }
        let line = line.map(|line| format!("line {line}"));
        self.rule('─', &text, &line.unwrap_or_default())?;
        self.printed.turn = Some(TurnStats {
            first: entry,
            millis: entry_ref.millis(),
            ..TurnStats::default()
        });
        Ok(())
    }

    /// Starts a turn with an entry before which something was omitted. A prompt does that itself.
    pub(super) fn start_after_hidden(
        &mut self,
        entry_ref: &EntryRef<'_>,
        line: Option<u64>,
    ) -> Result<()> {
        let turn = self.printed.turn.as_ref();
        if turn.is_some_and(|turn| turn.first == Some((entry_ref.number(), line))) {
            return Ok(());
        }
        self.end_turn()?;
        self.printed.speaker = None;
        if starts_turn(entry_ref) || is_queued(entry_ref) {
            Ok(())
        } else {
            self.start_turn(entry_ref, line)
        }
    }

    /// Returns the local time, after the day if that is not the one that was printed last; empty if
    /// it is not known.
    pub(super) fn time(&mut self, millis: Option<i64>) -> String {
        let Some(time) = millis.and_then(|at| clock(at, &self.options.zone)) else {
            return String::new();
        };
        let (day, minute) = (
            time.strftime("%Y-%m-%d").to_string(),
            time.strftime("%H:%M"),
        );
        if day == self.printed.day {
            return minute.to_string();
        }
        let text = format!("{day} {minute}");
        self.printed.day = day;
        text
    }

    /// Prints the duration and the tokens of a turn.
    pub(super) fn end_turn(&mut self) -> Result<()> {
        let Some(turn) = self.printed.turn.take() else {
            return Ok(());
        };
        if turn.is_quiet() {
            return Ok(());
        }
        let mut parts = Vec::new();
        parts.extend(between(turn.millis, self.printed.answered).map(duration));
        parts.extend((turn.calls > 0).then(|| count(turn.calls, "call")));
        let sum = |of: fn(&Tokens) -> u64| {
            let tokens = turn.answers.values();
            tokens.fold(0_u64, |sum, tokens| sum.saturating_add(of(tokens)))
        };
        if !turn.answers.is_empty() {
            let cached = match sum(|tokens| tokens.cached) {
                0 => String::new(),
                cached => format!(" ({} cached)", grouped(cached)),
            };
            let input = grouped(sum(|tokens| tokens.input));
            parts.push(format!("{input} tokens in{cached}"));
            parts.push(format!("{} out", grouped(sum(|tokens| tokens.output))));
        }
        self.page.gap();
        self.printed.speaker = None;
        // The name of the next entry is not for the totals.
        let totals = Span::new(self.styles.dim, &parts.join(" · "));
        Ok(self.page.line(&[totals])?)
    }
}

/// Returns the milliseconds between two times, if both are known and in order.
pub(super) fn between(start: Option<i64>, end: Option<i64>) -> Option<u64> {
    let (start, end) = start.zip(end)?;
    u64::try_from(end.checked_sub(start)?).ok()
}
