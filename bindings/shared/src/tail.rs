//! Functions that follow files: they wait most of the time, so they run in steps without a thread of their own.

use std::ops::ControlFlow;

use transcript_engine::follow::{FollowEvent, Polling};
use transcript_ops::follow::{FollowedFiles, Following};
use transcript_ops::operation::Operation;
use transcript_ops::sink::Result;
use transcript_ops::{Failure, StoreOptions};
use transcript_storage::crew::{Next, Task};

use crate::out::Out;
use crate::records::Records;

/// The number of bytes of entries that are sent together while more are there.
const BATCH_BYTES: usize = 64 << 10;

/// The maximum number of events in one step before it is known where the files end.
const MAX_EVENTS: usize = 1_000;

/// Starts an operation that follows files.
pub(crate) fn start(
    operation: Operation,
    place: StoreOptions,
) -> std::result::Result<Records, Failure> {
    let make = |sender| Tail {
        out: Some(Out::new(sender)),
        operation,
        place,
        following: None,
        is_started: false,
    };
    Records::in_steps(make, |tail, task| match tail.step(task) {
        Ok(next) if next != Next::End => ControlFlow::Continue(next),
        result => ControlFlow::Break(match tail.out.take() {
            Some(out) => out.finish(result.map(drop)),
            None => Ok(()),
        }),
    })
}

/// A function that follows files, whose steps the crew runs.
struct Tail {
    operation: Operation,
    place: StoreOptions,
    /// `None` before the first step.
    following: Option<Following>,
    /// Whether it is known where the files end, if that matters.
    is_started: bool,
    out: Option<Out>,
}

fn try_next(
    files: &mut FollowedFiles,
) -> std::result::Result<Option<FollowEvent>, transcript_reader::Error> {
    match files {
        FollowedFiles::Follower(follower) => follower.try_next(),
        FollowedFiles::Watcher(watcher) => watcher.try_next(),
    }
}

fn poll_in(
    files: &mut FollowedFiles,
    task: &Task,
) -> std::result::Result<Polling, transcript_reader::Error> {
    match files {
        FollowedFiles::Follower(follower) => follower.poll_in(task),
        FollowedFiles::Watcher(watcher) => watcher.poll_in(task),
    }
}

impl Tail {
    fn open(&self) -> std::result::Result<Following, Failure> {
        let context = self.place.context()?;
        match &self.operation {
            Operation::Follow(settings) => settings.open(&context),
            Operation::Watch(settings) => settings.open(&context),
            _ => Err(Failure::options("it follows no files")),
        }
    }

    fn step(&mut self, task: &Task) -> Result<Next> {
        if self.following.is_none() {
            self.following = Some(self.open()?);
            return Ok(Next::Again);
        }
        let (Some(out), Some(following)) = (&mut self.out, &mut self.following) else {
            return Ok(Next::End);
        };
        if !self.is_started {
            // Later lines are emitted only once the ends of the files are known. The reader need not read meanwhile.
            out.hold(true)?;
            let mut events = 0;
            while following.is_from_end
                && let Some(event) = try_next(&mut following.files)?
            {
                following.write(&event, out)?;
                events += 1;
                if events == MAX_EVENTS {
                    return Ok(Next::Again);
                }
            }
            self.is_started = true;
            out.sender().ready();
            out.hold(false)?;
        }
        if !out.sender().has_room() {
            return Ok(Next::Wait);
        }
        let mut bytes = 0;
        while bytes < BATCH_BYTES {
            let polled = if following.is_once {
                try_next(&mut following.files)?.map_or(Polling::Stopped, Polling::Event)
            } else {
                poll_in(&mut following.files, task)?
            };
            match polled {
                Polling::Event(event) => bytes += following.write(&event, out)?,
                Polling::Wait(next) => {
                    out.flush()?;
                    return Ok(next);
                }
                Polling::Stopped => return Ok(Next::End),
            }
        }
        out.flush()?;
        Ok(Next::Again)
    }
}
