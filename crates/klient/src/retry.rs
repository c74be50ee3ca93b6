//! Doing something again until it works: on conflicts, or on any error that may pass.
//!
//! What is tried must be safe to try again from its beginning: read, change, write. Dropping the future stops it, also
//! while it waits. In client-go: `util/retry`.

mod backoff;

pub(crate) use backoff::random;
pub use backoff::{Backoff, Delays};

use crate::Error;

/// Tries again while the outcome is a conflict; other errors end it at once. The last error is returned as it is.
///
/// The object must be read in every attempt: the version in hand is what the conflict was about.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use klient::{Api, Client};
/// use klient::retry::{Backoff, retry_on_conflict};
/// use klient::options::{GetOptions, UpdateOptions};
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
/// The first error that is no conflict, or the conflict of the last attempt.
#[doc(alias = "RetryOnConflict")]
pub async fn retry_on_conflict<T>(
    backoff: Backoff,
    attempt: impl AsyncFnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    retry_on_error(backoff, Error::is_conflict, attempt).await
}

/// Tries again while the outcome is an error that `retriable` says may pass.
///
/// # Errors
///
/// The first error that may not pass, or that of the last attempt.
#[doc(alias = "OnError")]
pub async fn retry_on_error<T, E>(
    backoff: Backoff,
    retriable: impl Fn(&E) -> bool,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, E> {
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

    #[tokio::test(start_paused = true)]
    async fn tries_again_until_there_is_no_conflict() {
        let mut attempts = 0;
        let started = Instant::now();
        let outcome = retry_on_conflict(Backoff::default(), async || {
            attempts += 1;
            if attempts < 3 { Err(conflict()) } else { Ok(attempts) }
        });
        assert_eq!(outcome.await.unwrap(), 3);
        let waited = started.elapsed();
        assert!(waited >= Duration::from_millis(20) && waited < Duration::from_millis(30), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn gives_up_after_the_last_step_with_the_last_error() {
        let mut attempts = 0;
        let error = retry_on_conflict(Backoff::default(), async || {
            attempts += 1;
            Err::<(), _>(conflict().context(format!("attempt {attempts}")))
        });
        assert_eq!(error.await.unwrap_err().to_string(), "attempt 5");
        assert_eq!(attempts, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn any_other_error_ends_it_at_once() {
        let mut attempts = 0;
        let error = retry_on_conflict(Backoff::default(), async || {
            attempts += 1;
            Err::<(), _>(Error::new(ErrorKind::Forbidden, "no"))
        });
        assert!(error.await.unwrap_err().is_forbidden());
        assert_eq!(attempts, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_backoff_of_no_steps_still_tries_once() {
        let mut attempts = 0;
        let error = retry_on_error(
            Backoff::default().steps(0),
            |_: &()| true,
            async || {
                attempts += 1;
                Err::<(), _>(())
            },
        );
        error.await.unwrap_err();
        assert_eq!(attempts, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_it_stops_it_while_it_waits() {
        let mut attempts = 0;
        let hours = Backoff::default().first(Duration::from_secs(3600));
        let work = retry_on_error(
            hours,
            |_: &()| true,
            async || {
                attempts += 1;
                Err::<(), _>(())
            },
        );
        assert!(tokio::time::timeout(Duration::from_secs(1), work).await.is_err());
        assert_eq!(attempts, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn runs_on_a_task_of_its_own() {
        let task = tokio::spawn(async { retry_on_conflict(Backoff::default(), async || Ok::<_, Error>(7)).await });
        assert_eq!(task.await.unwrap().unwrap(), 7);
    }
}
