//! Issuing once for many requests, renewal before expiry, and rejections.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::SystemTime,
};

use tokio::sync::Semaphore;

use super::*;

/// An issuer of numbered tokens, one per permit, that can be set to fail.
struct Numbered {
    issued: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
    lifetime: Option<Duration>,
    /// The number of runs that return a new token. Later runs return the last one again.
    different: usize,
    fails_from: usize,
}

impl Numbered {
    fn new() -> Self {
        Self {
            issued: Arc::default(),
            permits: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            lifetime: None,
            different: usize::MAX,
            fails_from: usize::MAX,
        }
    }

    fn auth(self) -> (Arc<RenewedAuth>, Arc<AtomicUsize>) {
        let issued = Arc::clone(&self.issued);
        (Arc::new(RenewedAuth::new(self, IdentitySlot::default())), issued)
    }
}

impl Issuer for Numbered {
    fn issue(&self, _: Option<Arc<Credential>>) -> IssueFuture<'_> {
        Box::pin(async {
            self.permits.acquire().await.unwrap().forget();
            let number = self.issued.fetch_add(1, Ordering::SeqCst);
            if number >= self.fails_from {
                return Err(Error::new(ErrorKind::Auth, format!("run {number} failed")));
            }
            let header = Some(format!("Bearer {}", number.min(self.different)).parse().unwrap());
            let expires = self.lifetime.map(|lifetime| SystemTime::now() + lifetime);
            Ok(Credential { header, certificate: None, expires })
        })
    }
}

async fn token(auth: &RenewedAuth) -> HeaderValue {
    auth.authorization().await.unwrap().unwrap()
}

#[tokio::test]
async fn concurrent_requests_call_the_issuer_once() {
    let issuer = Numbered { permits: Arc::new(Semaphore::new(0)), ..Numbered::new() };
    let permits = Arc::clone(&issuer.permits);
    let (auth, issued) = issuer.auth();
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let auth = Arc::clone(&auth);
            tokio::spawn(async move { token(&auth).await })
        })
        .collect();
    permits.add_permits(1);
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap(), "Bearer 0");
    }
    assert_eq!(token(&auth).await, "Bearer 0");
    assert_eq!(issued.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn concurrent_requests_share_one_failure() {
    let issuer = Numbered { permits: Arc::new(Semaphore::new(0)), fails_from: 0, ..Numbered::new() };
    let permits = Arc::clone(&issuer.permits);
    let (auth, issued) = issuer.auth();
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let auth = Arc::clone(&auth);
            tokio::spawn(async move { auth.authorization().await.unwrap_err().to_string() })
        })
        .collect();
    // All requests wait before the run may end.
    tokio::task::yield_now().await;
    permits.add_permits(1);
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap(), "run 0 failed");
    }
    assert_eq!(issued.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn canceled_caller_does_not_affect_the_others() {
    let issuer = Numbered { permits: Arc::new(Semaphore::new(0)), ..Numbered::new() };
    let permits = Arc::clone(&issuer.permits);
    let (auth, issued) = issuer.auth();
    let mut first = auth.authorization();
    let mut second = auth.authorization();
    for waiting in [&mut first, &mut second] {
        assert!(
            std::future::poll_fn(|context| std::task::Poll::Ready(waiting.as_mut().poll(context).is_pending())).await
        );
    }
    drop(first);
    permits.add_permits(1);
    assert_eq!(second.await.unwrap().unwrap(), "Bearer 0");
    assert_eq!(issued.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn dropping_the_source_cancels_its_run() {
    let issuer = Numbered { permits: Arc::new(Semaphore::new(0)), ..Numbered::new() };
    let permits = Arc::downgrade(&issuer.permits);
    let (auth, _) = issuer.auth();
    let waiting = std::future::poll_fn(|context| {
        std::task::Poll::Ready(auth.authorization().as_mut().poll(context).is_pending())
    });
    assert!(waiting.await);
    drop(auth);
    // The task owns the issuer.
    while permits.upgrade().is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn credential_is_renewed_only_after_it_expired() {
    for (lifetime, runs) in [(None, 1), (Some(Duration::ZERO), 3), (Some(Duration::from_secs(3600)), 1)] {
        let (auth, issued) = Numbered { lifetime, ..Numbered::new() }.auth();
        for _ in 0..3 {
            token(&auth).await;
        }
        assert_eq!(issued.load(Ordering::SeqCst), runs, "{lifetime:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn expiring_credential_is_renewed_once_not_per_request() {
    let (auth, issued) = Numbered { lifetime: Some(LEEWAY - Duration::from_secs(1)), ..Numbered::new() }.auth();
    for _ in 0..5 {
        assert_eq!(token(&auth).await, "Bearer 0");
    }
    tokio::time::advance(PAUSE).await;
    for _ in 0..5 {
        assert_eq!(token(&auth).await, "Bearer 1");
    }
    assert_eq!(issued.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn failed_renewal_keeps_a_credential_that_is_still_valid() {
    let (auth, issued) =
        Numbered { lifetime: Some(LEEWAY - Duration::from_secs(1)), fails_from: 1, ..Numbered::new() }.auth();
    token(&auth).await;
    tokio::time::advance(PAUSE).await;
    assert_eq!(token(&auth).await, "Bearer 0");
    assert_eq!(issued.load(Ordering::SeqCst), 2);
    let used = token(&auth).await;
    assert!(auth.rejected(Some(&used)));
    assert_eq!(
        auth.authorization().await.unwrap_err().to_string(),
        "run 2 failed",
        "a rejected credential is not used"
    );
}

#[tokio::test(start_paused = true)]
async fn rejected_credential_is_renewed_once() {
    let (auth, issued) = Numbered::new().auth();
    let used = token(&auth).await;
    for _ in 0..10 {
        assert!(auth.rejected(Some(&used)));
    }
    for _ in 0..10 {
        assert_eq!(token(&auth).await, "Bearer 1");
        assert!(auth.rejected(Some(&used)), "a newer credential exists");
    }
    assert_eq!(issued.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn issuer_is_not_called_again_soon_after_the_same_credential() {
    let (auth, issued) = Numbered { different: 0, ..Numbered::new() }.auth();
    let used = token(&auth).await;
    assert!(auth.rejected(Some(&used)));
    assert_eq!(token(&auth).await, used);
    for _ in 0..10 {
        assert!(!auth.rejected(Some(&used)));
        token(&auth).await;
    }
    assert_eq!(issued.load(Ordering::SeqCst), 2);
    tokio::time::advance(PAUSE).await;
    assert!(auth.rejected(Some(&used)));
    token(&auth).await;
    assert_eq!(issued.load(Ordering::SeqCst), 3);
}

#[test]
fn run_is_restarted_after_its_runtime_was_dropped() {
    let issuer = Numbered { permits: Arc::new(Semaphore::new(0)), ..Numbered::new() };
    let permits = Arc::clone(&issuer.permits);
    let (auth, _) = issuer.auth();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime().block_on(async {
        let waiting = std::future::poll_fn(|context| {
            std::task::Poll::Ready(auth.authorization().as_mut().poll(context).is_pending())
        });
        assert!(waiting.await);
    });
    permits.add_permits(1);
    assert_eq!(runtime().block_on(token(&auth)), "Bearer 0");
}
