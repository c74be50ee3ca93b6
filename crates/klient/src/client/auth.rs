//! Authentication: the `Authorization` header of each request.

mod credential;
pub(super) mod exec_plugin;
pub(super) mod oidc;
mod renewed;

use std::{
    fmt, fs,
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use tokio::time::Instant;

pub(in crate::client) use self::{
    credential::Credential,
    renewed::{IssueFuture, Issuer, RenewedAuth},
};
use crate::{Error, ErrorKind};

/// A future that an [`AuthSource`] returns.
pub type AuthFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<HeaderValue>, Error>> + Send + 'a>>;

/// A source of `Authorization` headers.
#[doc(alias = "TokenSource")]
pub trait AuthSource: Send + Sync + 'static {
    /// Returns the value of the header, or `None` to send none.
    fn authorization(&self) -> AuthFuture<'_>;

    /// Reports that the server rejected this value. Returns whether a retry may succeed.
    fn rejected(&self, _used: Option<&HeaderValue>) -> bool {
        false
    }
}

/// A source that sends the same `Authorization` with every request.
#[derive(Clone)]
pub struct StaticAuth {
    header: Option<HeaderValue>,
}

impl StaticAuth {
    /// Creates a source that sends no header, as with client certificates.
    pub fn none() -> Self {
        Self { header: None }
    }

    /// Creates a source that sends a bearer token.
    ///
    /// # Errors
    ///
    /// Returns an error if the token contains characters that are not allowed in a header.
    pub fn bearer(token: &str) -> Result<Self, Error> {
        Ok(Self { header: Some(bearer(token)?) })
    }

    /// Creates a source that sends a user name and a password.
    ///
    /// # Errors
    ///
    /// Never fails in practice, because base64 is always a valid header.
    pub fn basic(user: &str, password: &str) -> Result<Self, Error> {
        let value = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        Ok(Self { header: Some(secret_header(&value, "password")?) })
    }
}

impl AuthSource for StaticAuth {
    fn authorization(&self) -> AuthFuture<'_> {
        Box::pin(std::future::ready(Ok(self.header.clone())))
    }
}

// `Debug` never prints the secret.
impl fmt::Debug for StaticAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.header.is_some() { "StaticAuth(set)" } else { "StaticAuth(none)" })
    }
}

/// A bearer token from a file that is replaced while the program runs, such as a service account's.
///
/// The file is read every minute, and when the server rejects the token. While it cannot be read, the last token is
/// used.
#[doc(alias = "NewCachedFileTokenSource")]
pub struct TokenFileAuth {
    path: PathBuf,
    last: Mutex<Option<CachedToken>>,
}

struct CachedToken {
    header: HeaderValue,
    at: Instant,
}

impl TokenFileAuth {
    /// Creates a source that reads this file. `initial` is used while the file cannot be read.
    ///
    /// # Errors
    ///
    /// Returns an error if `initial` contains characters that are not allowed in a header.
    pub fn new(path: impl Into<PathBuf>, initial: Option<&str>) -> Result<Self, Error> {
        let last = match initial.filter(|token| !token.is_empty()) {
            // Old enough that the first request reads the file.
            Some(token) => Some(CachedToken { header: bearer(token)?, at: Instant::now() - REREAD_AFTER }),
            None => None,
        };
        Ok(Self { path: path.into(), last: Mutex::new(last) })
    }

    fn current(&self) -> Result<HeaderValue, Error> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = &*last
            && read.at.elapsed() < REREAD_AFTER
        {
            return Ok(read.header.clone());
        }
        match (self.read(), &mut *last) {
            (Ok(header), slot) => {
                *slot = Some(CachedToken { header: header.clone(), at: Instant::now() });
                Ok(header)
            }
            (Err(error), Some(read)) => {
                tracing::warn!(path = %self.path.display(), %error, "cannot read token file, using the last token");
                read.at = Instant::now();
                Ok(read.header.clone())
            }
            (Err(error), None) => Err(error),
        }
    }

    fn read(&self) -> Result<HeaderValue, Error> {
        let wrong = |what: String| Error::new(ErrorKind::Auth, what);
        let path = self.path.display();
        let text = fs::read_to_string(&self.path)
            .map_err(|error| wrong(format!("cannot read token file {path}")).with_source(error))?;
        match text.trim() {
            "" => Err(wrong(format!("token file {path} is empty"))),
            token => bearer(token),
        }
    }
}

impl AuthSource for TokenFileAuth {
    fn authorization(&self) -> AuthFuture<'_> {
        // The file has a few hundred bytes and is read once a minute, so a blocking read is cheap.
        Box::pin(std::future::ready(self.current().map(Some)))
    }

    fn rejected(&self, used: Option<&HeaderValue>) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(fresh) = self.read() else { return false };
        let changed = Some(&fresh) != used;
        *last = Some(CachedToken { header: fresh, at: Instant::now() });
        changed
    }
}

// `Debug` never prints the secret.
impl fmt::Debug for TokenFileAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenFileAuth({})", self.path.display())
    }
}

pub(in crate::client) fn bearer(token: &str) -> Result<HeaderValue, Error> {
    secret_header(&format!("Bearer {token}"), "bearer token")
}

pub(in crate::client) fn secret_header(value: &str, what: &str) -> Result<HeaderValue, Error> {
    let mut header = HeaderValue::from_str(value).map_err(|_| {
        Error::new(ErrorKind::Auth, format!("{what} contains characters that are not allowed in a header"))
    })?;
    header.set_sensitive(true);
    Ok(header)
}

const REREAD_AFTER: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn token_file_is_reread_each_minute_and_may_be_missing_briefly() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "one\n").unwrap();
        let auth = TokenFileAuth::new(&path, None).unwrap();
        let now = async || auth.authorization().await.unwrap().unwrap();
        assert_eq!(now().await, "Bearer one");
        fs::write(&path, "two").unwrap();
        assert_eq!(now().await, "Bearer one");
        tokio::time::advance(REREAD_AFTER).await;
        assert_eq!(now().await, "Bearer two");
        fs::remove_file(&path).unwrap();
        tokio::time::advance(REREAD_AFTER).await;
        assert_eq!(now().await, "Bearer two");
    }

    #[tokio::test]
    async fn rejected_token_is_retried_only_if_the_file_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "one").unwrap();
        let auth = TokenFileAuth::new(&path, None).unwrap();
        let used = auth.authorization().await.unwrap();
        assert!(!auth.rejected(used.as_ref()));
        fs::write(&path, "two").unwrap();
        assert!(auth.rejected(used.as_ref()));
        assert_eq!(auth.authorization().await.unwrap().unwrap(), "Bearer two");
    }

    #[tokio::test]
    async fn missing_or_empty_token_file_is_an_error_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let auth = TokenFileAuth::new(&path, None).unwrap();
        for _ in 0..2 {
            let error = auth.authorization().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Auth);
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
            fs::write(&path, " \n").unwrap();
        }
    }

    #[test]
    fn debug_and_errors_hide_secrets() {
        let auth = StaticAuth::bearer("s3cret").unwrap();
        assert!(!format!("{auth:?} {:?}", auth.header).contains("s3cret"));
        let error = StaticAuth::bearer("s3cret\n").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"));
    }
}
