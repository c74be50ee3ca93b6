//! Copies of files and directories to and from containers, as tar archives over exec. The container needs `tar`.

mod from;
mod pipe;
mod to;
mod unpack;

use std::{fmt, path::PathBuf, sync::Arc};

use k8s_openapi::api::core::v1::Pod;

use super::{Process, StreamProtocol};
use crate::{Api, Error, ErrorKind, client::verbs::ResponseFuture};

/// The progress or the result of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// The number of files, links and directories.
    pub entries: u64,
    /// The number of bytes in files.
    pub bytes: u64,
}

/// A copy of a file or directory to a container. See [`Api::copy_to`].
#[must_use = "copies start when they are awaited"]
pub struct CopyTo {
    copy: Copy,
    source: PathBuf,
    target: String,
}

/// A copy of a file or directory from a container. See [`Api::copy_from`].
#[must_use = "copies start when they are awaited"]
pub struct CopyFrom {
    copy: Copy,
    source: String,
    target: PathBuf,
    retries: u32,
}

/// The settings of both copies.
#[derive(Clone)]
struct Copy {
    pods: Api<Pod>,
    pod: String,
    container: Option<String>,
    protocol: StreamProtocol,
    on_progress: Arc<dyn Fn(&Copied) + Send + Sync>,
}

impl Api<Pod> {
    /// Copies a local file or directory into a container, with permissions and links.
    ///
    /// A target that is a directory receives the source under its own name; any other target is the name of the copy.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn copy(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// let copied = pods.copy_to("web", "./site", "/var/www").container("app").await?;
    /// println!("{} bytes", copied.bytes);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_to(&self, pod: &str, source: impl Into<PathBuf>, target: impl Into<String>) -> CopyTo {
        CopyTo { copy: Copy::new(self, pod), source: source.into(), target: target.into() }
    }

    /// Copies a file or directory of a container to this machine, with permissions and links.
    ///
    /// A target that is a directory receives the source under its own name; any other target is the name of the copy. The archive is not
    /// trusted: one that has a path or a link that leads out of the target, or a device, is refused, and so is a target in which a link is in
    /// the way.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn copy(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// pods.copy_from("web", "/var/log/app", "./logs").retries(3).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_from(&self, pod: &str, source: impl Into<String>, target: impl Into<PathBuf>) -> CopyFrom {
        CopyFrom { copy: Copy::new(self, pod), source: source.into(), target: target.into(), retries: 0 }
    }
}

/// Writes the chain methods of both copies.
macro_rules! copy_methods {
    () => {
        /// Chooses the container; needed if the pod has several.
        pub fn container(mut self, container: impl Into<String>) -> Self {
            self.copy.container = Some(container.into());
            self
        }

        /// Sets the protocol.
        pub fn protocol(mut self, protocol: StreamProtocol) -> Self {
            self.copy.protocol = protocol;
            self
        }

        /// Calls a function after each file and about every megabyte. It must not block for long.
        pub fn on_progress(mut self, on_progress: impl Fn(&Copied) + Send + Sync + 'static) -> Self {
            self.copy.on_progress = Arc::new(on_progress);
            self
        }
    };
}

impl CopyTo {
    copy_methods!();
}

impl CopyFrom {
    copy_methods!();

    /// Sets how often a broken connection is resumed. The container needs `sh` and `tail` for it, and its files must not change meanwhile.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }
}

impl IntoFuture for CopyTo {
    type Output = Result<Copied, Error>;
    type IntoFuture = ResponseFuture<'static, Copied>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(to::copy(self))
    }
}

impl IntoFuture for CopyFrom {
    type Output = Result<Copied, Error>;
    type IntoFuture = ResponseFuture<'static, Copied>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(from::copy(self))
    }
}

impl Copy {
    fn new(pods: &Api<Pod>, pod: &str) -> Self {
        Self {
            pods: pods.clone(),
            pod: pod.to_owned(),
            container: None,
            protocol: StreamProtocol::default(),
            on_progress: Arc::new(|_| {}),
        }
    }

    /// Runs a command in the container.
    async fn run(&self, command: &[&str], stdin: bool) -> Result<Process, Error> {
        let mut exec =
            self.pods.exec(&self.pod, command.iter().copied()).stdin(stdin).stdout(!stdin).protocol(self.protocol);
        if let Some(container) = &self.container {
            exec = exec.container(container);
        }
        exec.await
    }

    fn problem(&self, kind: ErrorKind, what: impl fmt::Display) -> Error {
        Error::new(kind, format!("cannot copy files of pod {}: {what}", self.pod))
    }
}

impl fmt::Debug for CopyTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { copy, source, target } = self;
        f.debug_struct("CopyTo").field("pod", &copy.pod).field("source", source).field("target", target).finish()
    }
}

impl fmt::Debug for CopyFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { copy, source, target, .. } = self;
        f.debug_struct("CopyFrom").field("pod", &copy.pod).field("source", source).field("target", target).finish()
    }
}
