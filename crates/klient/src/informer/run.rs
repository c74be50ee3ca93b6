//! The informer's task: it runs the reflector, the handlers' tasks and the resyncs, and ends all of them.

use std::{pin::pin, sync::Arc};

use klient_core::Resource;
use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinHandle, JoinSet},
};

use super::processor::{Shared, Task};

/// Where an informer is between its making and its end.
pub(crate) enum Running {
    /// Not started: what is to be run, given the signal to stop.
    No(Option<Box<dyn FnOnce(oneshot::Receiver<()>) -> Task + Send>>),
    Yes {
        stop: Option<oneshot::Sender<()>>,
        task: Option<JoinHandle<()>>,
    },
}

impl Running {
    pub(super) fn start(&mut self) {
        let Self::No(run) = self else { return };
        let Some(run) = run.take() else { return };
        let (stop, stopped) = oneshot::channel();
        *self = Self::Yes { stop: Some(stop), task: Some(tokio::spawn(run(stopped))) };
    }

    /// Asks the task to end; gives it back to be waited for, the first time.
    pub(super) fn stop(&mut self) -> Option<JoinHandle<()>> {
        match self {
            Self::No(run) => {
                *run = None;
                None
            }
            Self::Yes { stop, task } => {
                if let Some(stop) = stop.take() {
                    // A task that is gone has stopped.
                    let _ = stop.send(());
                }
                task.take()
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Self::Yes { task: Some(task), .. } = self {
            task.abort();
        }
    }
}

/// Closes what is shared when the task ends, in whatever way.
struct Closing<K: Resource>(Arc<Shared<K>>);

impl<K: Resource> Drop for Closing<K> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Runs an informer until it is told to stop.
pub(super) async fn run<K: Resource>(
    shared: Arc<Shared<K>>,
    reflecting: impl Future<Output = std::convert::Infallible>,
    mut new_tasks: mpsc::UnboundedReceiver<Task>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut tasks = JoinSet::new();
    let closing = Closing(Arc::clone(&shared));
    {
        let mut reflecting = pin!(reflecting);
        let mut resyncing = pin!(shared.resync());
        loop {
            tokio::select! {
                never = &mut reflecting => match never {},
                () = &mut resyncing => {}
                Some(task) = new_tasks.recv() => drop(tasks.spawn(task)),
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
                _ = &mut stopped => break,
            }
        }
    }
    // Handlers are told what is there to be told, those included that have just been added.
    drop(closing);
    while let Ok(task) = new_tasks.try_recv() {
        tasks.spawn(task);
    }
    while tasks.join_next().await.is_some() {}
}
