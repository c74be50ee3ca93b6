//! Options of reading the log of a container.

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
    /// The container; required if the pod has several.
    pub container: Option<String>,
    /// Whether to follow the log while the container runs.
    pub follow: bool,
    /// Whether to read the log of the previous instance of the container.
    pub previous: bool,
    /// The maximum age of lines.
    pub since: Option<Duration>,
    /// The time of the oldest line.
    pub since_time: Option<Time>,
    /// Whether each line begins with its timestamp.
    pub timestamps: bool,
    /// The number of lines from the end of the log to start with.
    pub tail_lines: Option<u64>,
    /// The number of bytes to stop after, possibly within a line.
    pub limit_bytes: Option<u64>,
    /// The stream: `Stdout` or `Stderr`; both if not set.
    pub stream: Option<String>,
    /// Whether the API server may connect to a kubelet without verifying its certificate.
    pub insecure_skip_tls_verify_backend: bool,
}

impl LogOptions {
    /// Sets the container.
    #[must_use]
    pub fn container(mut self, name: impl Into<String>) -> Self {
        self.container = Some(name.into());
        self
    }

    /// Follows the log while the container runs.
    #[must_use]
    pub fn follow(mut self) -> Self {
        self.follow = true;
        self
    }

    /// Reads the log of the previous instance of the container.
    #[must_use]
    pub fn previous(mut self) -> Self {
        self.previous = true;
        self
    }

    /// Sets the maximum age of lines, in whole seconds.
    #[must_use]
    pub fn since(mut self, age: Duration) -> Self {
        self.since = Some(age);
        self
    }

    /// Sets the time of the oldest line.
    #[must_use]
    pub fn since_time(mut self, time: Time) -> Self {
        self.since_time = Some(time);
        self
    }

    /// Begins each line with its timestamp.
    #[must_use]
    pub fn timestamps(mut self) -> Self {
        self.timestamps = true;
        self
    }

    /// Sets the number of lines from the end of the log to start with.
    #[must_use]
    pub fn tail_lines(mut self, lines: u64) -> Self {
        self.tail_lines = Some(lines);
        self
    }

    /// Sets the number of bytes to stop after.
    #[must_use]
    pub fn limit_bytes(mut self, bytes: u64) -> Self {
        self.limit_bytes = Some(bytes);
        self
    }

    /// Reads `Stdout` or `Stderr` alone, if the server separates them.
    #[must_use]
    pub fn stream(mut self, name: impl Into<String>) -> Self {
        self.stream = Some(name.into());
        self
    }

    /// Lets the API server connect to a kubelet without verifying its certificate.
    #[must_use]
    pub fn insecure_skip_tls_verify_backend(mut self) -> Self {
        self.insecure_skip_tls_verify_backend = true;
        self
    }

    /// Adds these options to a query.
    ///
    /// # Errors
    ///
    /// Returns an error if options exclude each other, or if a limit is zero.
    pub fn append_query(&self, query: &mut Query) -> Result<(), InvalidOptionError> {
        if self.since.is_some() && self.since_time.is_some() {
            return Err(InvalidOptionError::new("sinceTime", "cannot be set together with sinceSeconds"));
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
    fn log_options_are_added_to_the_query() {
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
    fn log_options_reject_invalid_combinations() {
        let both = LogOptions::default()
            .since(Duration::from_secs(1))
            .since_time(crate::parse_time("2026-01-02T03:04:05Z").unwrap());
        assert!(text(&both).unwrap_err().contains("sinceTime"));
        assert!(text(&LogOptions::default().since(Duration::from_millis(10))).unwrap_err().contains("sinceSeconds"));
        assert!(text(&LogOptions::default().limit_bytes(0)).unwrap_err().contains("limitBytes"));
    }
}
