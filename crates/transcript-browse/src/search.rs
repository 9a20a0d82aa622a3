//! Searches a session.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use transcript_reader::Bodies;
use transcript_render::Detail;
use transcript_resume::items::Displays;

use crate::messages::{Answer, BlockId, Layout, Reply, Search};
use crate::needle::{Needle, lines_with};
use crate::session::Session;

impl Session<'_> {
    /// Returns the next place with a text, and reports progress on the way.
    pub(crate) fn search(
        &self,
        displays: &mut Displays<'_, '_>,
        search: &Search,
        reply: &Reply,
    ) -> Result<Answer, String> {
        let parts = self.parts.len();
        let layout = Layout {
            width: search.width,
            ..Layout::default()
        };
        let mut bodies = Bodies::new(self.source);
        let mut reported = Instant::now();
        // The first part again at the end, for what is on the other side of the start.
        for step in 0..=parts {
            if self.wanted.load(Ordering::Relaxed) != search.id {
                return Ok(Answer::NotFound { id: search.id });
            }
            if reported.elapsed() > Duration::from_millis(200) {
                reported = Instant::now();
                let percent = step * 100 / parts.max(1);
                reply(Answer::Searching {
                    id: search.id,
                    percent,
                });
            }
            let part = if search.is_backward {
                (search.part + parts - step % parts.max(1)) % parts.max(1)
            } else {
                (search.part + step) % parts.max(1)
            };
            if !self.may_have(&mut bodies, part, &search.needle) {
                continue;
            }
            let main = self.conversation(displays, part)?;
            let page = self.lay(displays, main, part, &layout, &|_| Detail::Whole)?;
            let start = page.blocks.iter().position(|block| block.key == search.key);
            let mut hits: Vec<(usize, BlockId, usize)> = Vec::new();
            for (at, block) in page.blocks.iter().enumerate() {
                let lines = &page.lines[block.lines.clone()];
                let found = lines_with(lines, &search.needle).len();
                hits.extend((0..found).map(|hit| (at, block.key, hit)));
            }
            let is_first = step == 0;
            let wanted = |&(at, _, hit): &(usize, BlockId, usize)| {
                let from = (start.unwrap_or(0), search.hit);
                match (is_first, search.is_backward, from.1) {
                    (false, _, _) => true,
                    (_, false, Some(last)) => (at, hit) > (from.0, last),
                    (_, false, None) => at >= from.0,
                    (_, true, Some(last)) => (at, hit) < (from.0, last),
                    (_, true, None) => at < from.0,
                }
            };
            let found = if search.is_backward {
                hits.iter().rev().find(|hit| wanted(hit))
            } else {
                hits.iter().find(|hit| wanted(hit))
            };
            if let Some(&(_, key, hit)) = found {
                let is_wrapped = if search.is_backward {
                    part > search.part || step == parts
                } else {
                    part < search.part || step == parts
                };
                return Ok(Answer::Found {
                    id: search.id,
                    part,
                    key,
                    hit,
                    is_wrapped,
                });
            }
        }
        Ok(Answer::NotFound { id: search.id })
    }

    /// Returns whether a part may have a text: its longest word is in one of its lines.
    fn may_have(&self, bodies: &mut Bodies<'_>, part: usize, needle: &Needle) -> bool {
        let Some(entries) = self.parts.get(part) else {
            return false;
        };
        self.path.entries[entries.clone()].iter().any(|entry| {
            let body = bodies.get(&self.entry(entry.entry_no()));
            body.map_or(true, |body| needle.may_be_in(body.text))
        })
    }
}
