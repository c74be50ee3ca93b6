//! Readers of a store, one thread each, and an optional concurrent writer.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use anyhow::{Result, anyhow};

use crate::{Answer, Arguments, Job, Mark, Measured};

/// The reads of a job.
pub struct Reads<'a> {
    arguments: &'a Arguments,
}

impl<'a> Reads<'a> {
    pub fn new(arguments: &'a Arguments) -> Self {
        Self { arguments }
    }

    /// Whether objects are looked up by an index value, and not by their keys.
    pub fn by_index(&self) -> bool {
        matches!(self.arguments.job, Job::ReadIndex | Job::ReadIndexWrites)
    }

    fn with_writer(&self) -> bool {
        matches!(self.arguments.job, Job::ReadKeyWrites | Job::ReadIndexWrites)
    }

    /// Runs all readers, each with its share. In jobs with writes, another thread writes until the readers are done.
    pub fn run(
        &self,
        read: impl Fn(usize) -> u64 + Sync,
        mut write: impl FnMut(usize) + Send,
    ) -> Result<(Measured, Answer)> {
        let Arguments { count, concurrency, .. } = *self.arguments;
        let (read, stop) = (&read, &AtomicBool::new(false));
        let mark = Mark::now()?;
        thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut written = 0;
                while self.with_writer() && !stop.load(Ordering::Relaxed) {
                    write(written);
                    written += 1;
                }
                written as u64
            });
            let reader = |first: usize| {
                move || {
                    let mut answer = Answer::default();
                    (first..count).step_by(concurrency).for_each(|number| answer.add_number(read(number)));
                    answer
                }
            };
            let readers: Vec<_> = (0..concurrency).map(|first| scope.spawn(reader(first))).collect();
            let parts: Vec<_> = readers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            let measured = mark.measured();
            stop.store(true, Ordering::Relaxed);
            let written = writer.join().map_err(|_| anyhow!("the writer panicked"))?;
            let mut measured = measured?;
            measured.writes = self.with_writer().then_some(written);
            let mut answer = Answer::default();
            for part in parts {
                answer.merge(&part.map_err(|_| anyhow!("a reader panicked"))?);
            }
            Ok((measured, answer))
        })
    }
}

/// Returns the last character of a name, which costs next to nothing to read.
pub fn last_of(name: &str) -> u64 {
    name.bytes().next_back().unwrap_or_default().into()
}

/// Returns the group of a pod by its name. Each group has twenty pods, which differ in their last digits.
pub fn group_of(name: &str) -> String {
    let number: usize = name.trim_start_matches("web-").parse().unwrap_or_default();
    (number / 20).to_string()
}
