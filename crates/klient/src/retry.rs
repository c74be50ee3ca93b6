//! Retries: on conflicts, or on any error that the caller says may pass.
//!
//! An attempt must be safe to repeat from its beginning: read, change, write. Dropping the future stops the retries, also
//! during a delay. In client-go: `util/retry`.

mod backoff;

use std::{future::Future, time::Duration};

pub(crate) use backoff::random;
pub use backoff::{Backoff, Delays};

use crate::Error;

/// The longest delay that a server can request: one minute.
///
/// A `Retry-After` header or a `retryAfterSeconds` field that asks for more, such as the header of a proxy's
/// maintenance page that asks for a day, counts as this. It limits everything that honours the delay: retried requests,
/// informers, `RetryWatch`, and what [`Error::retry_after`] returns.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Runs `attempt` again while it fails with a conflict. Any other error is returned at once.
///
/// Each attempt must read the object again: a conflict means that the version in hand is outdated.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::{Api, Client, retry::{Backoff, retry_on_conflict}};
///
/// # async fn scale() -> Result<(), klient::Error> {
/// let deployments: Api<Deployment> = Api::namespaced(Client::infer()?, "shop");
/// retry_on_conflict(Backoff::default(), async || {
///     let mut web = deployments.get("web").await?;
///     web.spec.replicas = Some(3);
///     deployments.update(&web).await
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns the first error that is not a conflict, or the conflict of the last attempt.
#[doc(alias = "RetryOnConflict")]
pub async fn retry_on_conflict<T, F>(backoff: Backoff, attempt: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    retry_on_error(backoff, Error::is_conflict, attempt).await
}

/// Runs `attempt` again while it fails with an error for which `retriable` returns true.
///
/// A closure that changes what it captured does so before its future begins:
///
/// ```
/// use klient::retry::{Backoff, retry_on_error};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let mut attempts = 0;
/// let outcome = retry_on_error(
///     Backoff::default(),
///     |error: &&str| *error == "busy",
///     || {
///         attempts += 1;
///         let attempt = attempts;
///         async move { if attempt < 3 { Err("busy") } else { Ok(attempt) } }
///     },
/// );
/// assert_eq!(outcome.await, Ok(3));
/// # }
/// ```
///
/// # Errors
///
/// Returns the first error that is not retriable, or the error of the last attempt.
#[doc(alias = "OnError")]
pub async fn retry_on_error<T, E, F>(
    backoff: Backoff,
    retriable: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut delays = backoff.delays();
    loop {
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        match delays.next() {
            Some(delay) if retriable(&error) => tokio::time::sleep(delay).await,
            _ => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use klient_core::{GroupResource, Status};
    use tokio::time::Instant;

    use super::*;
    use crate::ErrorKind;

    fn conflict() -> Error {
        Status::conflict(&GroupResource::from("pods"), "web", "changed").into()
    }

    /// Counts the attempts, and fails each one.
    fn failing(attempts: &mut u32) -> impl FnMut() -> std::future::Ready<Result<(), ()>> {
        move || {
            *attempts += 1;
            std::future::ready(Err(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retry_on_conflict_ends_with_the_first_success() {
        let mut attempts = 0;
        let started = Instant::now();
        let outcome = retry_on_conflict(Backoff::default(), || {
            attempts += 1;
            let attempt = attempts;
            async move { if attempt < 3 { Err(conflict()) } else { Ok(attempt) } }
        });
        assert_eq!(outcome.await.unwrap(), 3);
        let waited = started.elapsed();
        assert!(waited >= Duration::from_millis(20) && waited < Duration::from_millis(30), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn retry_on_conflict_returns_the_last_error_after_all_steps() {
        let mut attempts = 0;
        let error = retry_on_conflict(Backoff::default(), || {
            attempts += 1;
            let context = format!("attempt {attempts}");
            async move { Err::<(), _>(conflict().context(context)) }
        });
        assert_eq!(error.await.unwrap_err().to_string(), "attempt 5");
        assert_eq!(attempts, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn retry_on_conflict_stops_at_any_other_error() {
        let mut attempts = 0;
        let error = retry_on_conflict(Backoff::default(), || {
            attempts += 1;
            async { Err::<(), _>(Error::new(ErrorKind::Forbidden, "no")) }
        });
        assert!(error.await.unwrap_err().is_forbidden());
        assert_eq!(attempts, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn backoff_without_steps_makes_one_attempt() {
        let mut attempts = 0;
        retry_on_error(Backoff::default().steps(0), |(): &()| true, failing(&mut attempts)).await.unwrap_err();
        assert_eq!(attempts, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn retry_stops_when_dropped_during_a_delay() {
        let mut attempts = 0;
        let hours = Backoff::default().first(Duration::from_secs(3600));
        let work = retry_on_error(hours, |(): &()| true, failing(&mut attempts));
        assert!(tokio::time::timeout(Duration::from_secs(1), work).await.is_err());
        assert_eq!(attempts, 1);
    }
}
