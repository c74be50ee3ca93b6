//! Options of reading what a container has written.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::InvalidOptionError;
use crate::{Query, format_time};

/// Options of reading the log of a pod's container.
///
/// ```
/// use klient_core::{LogOptions, Query};
///
/// let mut query = Query::default();
/// LogOptions::default().container("app").follow().tail_lines(10).append_query(&mut query)?;
/// assert_eq!(query.as_str(), "container=app&follow=true&tailLines=10");
/// # Ok::<(), klient_core::InvalidOptionError>(())
/// ```
#[doc(alias = "PodLogOptions")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogOptions {
    /// Which container; needed where a pod has more than one.
    pub container: Option<String>,
    /// Whether to go on as long as the container writes.
    pub follow: bool,
    /// Whether to read the log of the container that ran before this one.
    pub previous: bool,
    /// How far back to start.
    pub since: Option<Duration>,
    /// When to start.
    pub since_time: Option<Time>,
    /// Whether each line begins with the time at which it was written.
    pub timestamps: bool,
    /// How many of the last lines to start with.
    pub tail_lines: Option<u64>,
    /// After how many bytes to stop, which may be in the middle of a line.
    pub limit_bytes: Option<u64>,
    /// `Stdout` or `Stderr` alone; both without it.
    pub stream: Option<String>,
    /// Whether the API server may talk to a kubelet whose certificate it cannot check.
    pub insecure_skip_tls_verify_backend: bool,
}

impl LogOptions {
    /// Sets which container.
    #[must_use]
    pub fn container(mut self, name: impl Into<String>) -> Self {
        self.container = Some(name.into());
        self
    }

    /// Goes on as long as the container writes.
    #[must_use]
    pub fn follow(mut self) -> Self {
        self.follow = true;
        self
    }

    /// Reads the log of the container that ran before this one.
    #[must_use]
    pub fn previous(mut self) -> Self {
        self.previous = true;
        self
    }

    /// Sets how far back to start, in whole seconds.
    #[must_use]
    pub fn since(mut self, age: Duration) -> Self {
        self.since = Some(age);
        self
    }

    /// Sets when to start.
    #[must_use]
    pub fn since_time(mut self, time: Time) -> Self {
        self.since_time = Some(time);
        self
    }

    /// Has each line begin with the time at which it was written.
    #[must_use]
    pub fn timestamps(mut self) -> Self {
        self.timestamps = true;
        self
    }

    /// Sets how many of the last lines to start with.
    #[must_use]
    pub fn tail_lines(mut self, lines: u64) -> Self {
        self.tail_lines = Some(lines);
        self
    }

    /// Sets after how many bytes to stop.
    #[must_use]
    pub fn limit_bytes(mut self, bytes: u64) -> Self {
        self.limit_bytes = Some(bytes);
        self
    }

    /// Reads `Stdout` or `Stderr` alone, from servers that keep them apart.
    #[must_use]
    pub fn stream(mut self, name: impl Into<String>) -> Self {
        self.stream = Some(name.into());
        self
    }

    /// Lets the API server talk to a kubelet whose certificate it cannot check.
    #[must_use]
    pub fn insecure_skip_tls_verify_backend(mut self) -> Self {
        self.insecure_skip_tls_verify_backend = true;
        self
    }

    /// Adds these options to a query.
    ///
    /// # Errors
    ///
    /// If they contradict each other, or a limit is zero.
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        if self.since.is_some() && self.since_time.is_some() {
            return Err(InvalidOptionError::new("sinceTime", "sinceSeconds is set as well"));
        }
        if self.since.is_some_and(|age| age.as_secs() == 0) {
            return Err(InvalidOptionError::new("sinceSeconds", "must be at least one second"));
        }
        if self.limit_bytes == Some(0) {
            return Err(InvalidOptionError::new("limitBytes", "must be at least 1"));
        }
        query
            .append_option("container", self.container.as_deref())
            .append_flag("follow", self.follow)
            .append_flag("previous", self.previous)
            .append_option("sinceSeconds", self.since.map(|age| age.as_secs()))
            .append_option("sinceTime", self.since_time.as_ref().map(format_time))
            .append_flag("timestamps", self.timestamps)
            .append_option("tailLines", self.tail_lines)
            .append_option("limitBytes", self.limit_bytes)
            .append_option("stream", self.stream.as_deref())
            .append_flag("insecureSkipTLSVerifyBackend", self.insecure_skip_tls_verify_backend);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(options: &LogOptions) -> Result<String, String> {
        let mut query = Query::default();
        options.append_query(&mut query).map_err(|error| error.to_string())?;
        Ok(query.as_str().to_owned())
    }

    #[test]
    fn asks_for_all_that_is_set() {
        let options = LogOptions::default().previous().timestamps().since(Duration::from_secs(90)).limit_bytes(5);
        let options = options.stream("Stderr").insecure_skip_tls_verify_backend();
        assert_eq!(
            text(&options).unwrap(),
            "previous=true&sinceSeconds=90&timestamps=true&limitBytes=5&stream=Stderr&insecureSkipTLSVerifyBackend=true"
        );
        let since = LogOptions::default().since_time(crate::parse_time("2026-01-02T03:04:05Z").unwrap());
        assert_eq!(text(&since).unwrap(), "sinceTime=2026-01-02T03%3A04%3A05Z");
    }

    #[test]
    fn refuses_what_a_server_would_refuse() {
        let both = LogOptions::default()
            .since(Duration::from_secs(1))
            .since_time(crate::parse_time("2026-01-02T03:04:05Z").unwrap());
        assert!(text(&both).unwrap_err().contains("sinceTime"));
        assert!(text(&LogOptions::default().since(Duration::from_millis(10))).unwrap_err().contains("sinceSeconds"));
        assert!(text(&LogOptions::default().limit_bytes(0)).unwrap_err().contains("limitBytes"));
    }
}
