//! Ephemeral containers: a container that joins a running pod, for tools that the pod does not have.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use klient_core::Patch;
use serde_json::json;

use super::Attach;
use crate::{
    Api, Error, ErrorKind,
    client::verbs::ResponseFuture,
    wait::{Until, wait_for},
};

/// A request for an ephemeral container, as `kubectl debug` makes it. See [`Api::debug`].
///
/// Awaited, it adds the container and waits until it runs or has ended.
#[derive(Clone, Debug)]
#[must_use = "requests are sent when they are awaited"]
pub struct Debug {
    pods: Api<Pod>,
    pod: String,
    image: String,
    name: Option<String>,
    target: Option<String>,
    command: Vec<String>,
    stdin: bool,
    tty: bool,
    timeout: Duration,
}

/// An ephemeral container that has started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Debugger {
    /// The name of the container.
    pub name: String,
    /// Whether it has ended already. Its log tells why.
    pub has_ended: bool,
    pods: Api<Pod>,
    pod: String,
    stdin: bool,
    tty: bool,
}

impl Api<Pod> {
    /// Adds an ephemeral container to a running pod. It cannot be changed or removed, and ends with the pod.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn debug(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// let debugger = pods.debug("web", "busybox").target("app").command(["sh"]).stdin(true).tty(true).await?;
    /// let mut process = debugger.attach().await?;
    /// process.wait().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The user needs the verb `patch` on `pods/ephemeralcontainers`.
    pub fn debug(&self, pod: &str, image: impl Into<String>) -> Debug {
        Debug {
            pods: self.clone(),
            pod: pod.to_owned(),
            image: image.into(),
            name: None,
            target: None,
            command: Vec::new(),
            stdin: false,
            tty: false,
            timeout: Duration::from_secs(60),
        }
    }
}

impl Debug {
    /// Sets the name of the container. By default it is `debugger-` and five random characters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Shares the processes of one of the pod's containers.
    pub fn target(mut self, container: impl Into<String>) -> Self {
        self.target = Some(container.into());
        self
    }

    /// Sets the command, instead of the image's own.
    pub fn command(mut self, command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.command = command.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether the container has an input.
    pub fn stdin(mut self, wanted: bool) -> Self {
        self.stdin = wanted;
        self
    }

    /// Sets whether the container has a terminal.
    pub fn tty(mut self, wanted: bool) -> Self {
        self.tty = wanted;
        self
    }

    /// Sets how long the container may take to start: a minute by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    async fn run(self) -> Result<Debugger, Error> {
        let name = self.name.unwrap_or_else(random_name);
        let mut container = json!({"name": name, "image": self.image, "stdin": self.stdin, "tty": self.tty,
            "terminationMessagePolicy": "File"});
        if let Some(target) = &self.target {
            container["targetContainerName"] = json!(target);
        }
        if !self.command.is_empty() {
            container["command"] = json!(self.command);
        }
        let patch = Patch::strategic(json!({"spec": {"ephemeralContainers": [container]}}));
        self.pods.ephemeral_containers().patch(&self.pod, patch).await?;
        let wanted = name.clone();
        let started = Until::new(move |pod: Option<&Pod>| pod.is_none_or(|pod| has_started(pod, &wanted)))
            .described_as(format!("a start of ephemeral container {name}"));
        let Some(pod) = wait_for(&self.pods, &self.pod, &started, self.timeout).await? else {
            let message = format!("pod {} was deleted before container {name} started", self.pod);
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        let state = status(&pod, &name).and_then(|status| status.state.as_ref());
        let has_ended = state.is_some_and(|state| state.terminated.is_some());
        let Self { pods, pod, stdin, tty, .. } = Self { name: None, ..self };
        Ok(Debugger { name, has_ended, pods, pod, stdin, tty })
    }
}

impl Debugger {
    /// Attaches to the container, with the input and the terminal that it was made with.
    pub fn attach(&self) -> Attach {
        self.pods.attach(&self.pod).container(&self.name).stdin(self.stdin).tty(self.tty)
    }
}

impl IntoFuture for Debug {
    type Output = Result<Debugger, Error>;
    type IntoFuture = ResponseFuture<'static, Debugger>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let statuses = pod.status.as_ref()?.ephemeral_container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == container)
}

fn has_started(pod: &Pod, container: &str) -> bool {
    let state = status(pod, container).and_then(|status| status.state.as_ref());
    state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

/// Returns a name as kubectl makes it, of characters that form no words.
fn random_name() -> String {
    let letters = b"bcdfghjklmnpqrstvwxz2456789";
    let mut number = crate::retry::random();
    let suffix: String = (0..5)
        .map(|_| {
            number *= f64::from(u8::try_from(letters.len()).unwrap_or(1));
            let at = number.floor();
            number -= at;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and the number of letters"
            )]
            char::from(letters[(at as usize).min(letters.len() - 1)])
        })
        .collect();
    format!("debugger-{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let names: std::collections::HashSet<String> = (0..20).map(|_| random_name()).collect();
        assert!(names.len() > 15, "{names:?}");
        assert!(names.iter().all(|name| name.len() == "debugger-".len() + 5), "{names:?}");
    }
}
