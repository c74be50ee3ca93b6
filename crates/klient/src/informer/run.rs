//! The informer's task: runs the reflector, the tasks of the handlers and the resyncs, and ends all of them.

use std::{pin::pin, sync::Arc};

use klient_core::Resource;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, JoinSet},
};

use super::processor::{Processor, Task};

/// The phases of an informer's task.
pub(crate) enum Lifecycle {
    /// Not started: creates the task, given the signal to stop. `None` if the informer was stopped before it was started.
    NotStarted(Option<Box<dyn FnOnce(oneshot::Receiver<()>) -> Task + Send>>),
    Started {
        stop: Option<oneshot::Sender<()>>,
        task: AbortHandle,
        ended: TaskEnd,
    },
}

impl Lifecycle {
    pub(super) fn start(&mut self) {
        let Self::NotStarted(run) = self else { return };
        let Some(run) = run.take() else { return };
        let (stop, stopped) = oneshot::channel();
        let (running, ended) = watch::channel(());
        let task = run(stopped);
        let task = tokio::spawn(async move {
            task.await;
            drop(running);
        });
        *self = Self::Started { stop: Some(stop), task: task.abort_handle(), ended: TaskEnd(ended) };
    }

    /// Returns whether the task can still be started.
    #[cfg(feature = "client")]
    pub(super) fn is_new(&self) -> bool {
        matches!(self, Self::NotStarted(Some(_)))
    }

    /// Signals the task to end, and returns its end to wait for.
    pub(super) fn stop(&mut self) -> Option<TaskEnd> {
        match self {
            Self::NotStarted(run) => {
                *run = None;
                None
            }
            Self::Started { stop, ended, .. } => {
                if let Some(stop) = stop.take() {
                    // Sending fails only if the task has already ended.
                    let _ = stop.send(());
                }
                Some(ended.clone())
            }
        }
    }
}

impl Drop for Lifecycle {
    fn drop(&mut self) {
        if let Self::Started { task, .. } = self {
            task.abort();
        }
    }
}

/// The end of a task, for any number of callers to wait for.
#[derive(Clone)]
pub(crate) struct TaskEnd(watch::Receiver<()>);

impl TaskEnd {
    /// Waits until the task has ended or was aborted: both drop its half of the channel.
    pub(super) async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

/// Closes the processor when the task ends, also when it is aborted.
struct CloseOnDrop<K: Resource>(Arc<Processor<K>>);

impl<K: Resource> Drop for CloseOnDrop<K> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs an informer until it is stopped.
pub(super) async fn run<K: Resource>(
    processor: Arc<Processor<K>>,
    reflector: impl Future<Output = std::convert::Infallible>,
    mut new_tasks: mpsc::UnboundedReceiver<Task>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut tasks = JoinSet::new();
    let close = CloseOnDrop(Arc::clone(&processor));
    {
        let mut reflector = pin!(reflector);
        let mut resyncs = pin!(processor.run_resyncs());
        loop {
            tokio::select! {
                never = &mut reflector => match never {},
                () = &mut resyncs => {}
                Some(task) = new_tasks.recv() => drop(tasks.spawn(task)),
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
                _ = &mut stopped => break,
            }
        }
    }
    // Handlers still receive the events that wait for them, including handlers that were added a moment ago.
    drop(close);
    while let Ok(task) = new_tasks.try_recv() {
        tasks.spawn(task);
    }
    while tasks.join_next().await.is_some() {}
}
