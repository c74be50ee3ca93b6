//! Who may see the debug page: clients on the same machine, or users whom the API server authorizes.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, StatusCode, header};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use tokio::{sync::Semaphore, time::Instant};

use super::PATH;
use crate::{
    Error, ErrorKind,
    client::{Api, Client},
};

/// The rule that decides about requests.
pub(super) struct Access {
    reviews: Option<Reviews>,
}

/// Reviews of tokens, and their cached results.
struct Reviews {
    tokens: Api<TokenReview>,
    access: Api<SubjectAccessReview>,
    /// Decisions by token. Neither is ever shown.
    decisions: Mutex<HashMap<String, (Instant, Decision)>>,
    /// Limits the reviews at the same time, so that clients with invented tokens cannot burden the API server.
    running: Semaphore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Allowed,
    Unauthenticated,
    Forbidden,
}

/// The response to a request that is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: StatusCode,
    pub(super) message: String,
}

impl Refusal {
    fn new(code: StatusCode, message: &str) -> Self {
        Self { code, message: format!("{message}\n") }
    }
}

impl Access {
    pub(super) fn local() -> Self {
        Self { reviews: None }
    }

    pub(super) fn reviewed(client: Client) -> Self {
        let (tokens, access) = (Api::cluster(client.clone()), Api::cluster(client));
        Self {
            reviews: Some(Reviews {
                tokens,
                access,
                decisions: Mutex::default(),
                running: Semaphore::new(MAX_REVIEWS),
            }),
        }
    }

    /// Checks where a request comes from.
    pub(super) fn check_origin(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<(), Refusal> {
        if self.reviews.is_some() {
            return Ok(());
        }
        let forbidden = |message| Err(Refusal::new(StatusCode::FORBIDDEN, message));
        if !peer.ip().to_canonical().is_loopback() {
            return forbidden("this page is served to clients on the same machine only: use a port-forward");
        }
        if FORWARDING.iter().any(|name| headers.contains_key(*name)) {
            return forbidden("this page is not served through proxies: use a port-forward");
        }
        // A site whose name resolves to this machine could read the page otherwise.
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !is_loopback_host(host) {
            return forbidden("the host must be localhost, 127.0.0.1 or [::1]");
        }
        let is_foreign = |origin: &http::HeaderValue| origin.to_str().ok() != Some(&format!("http://{host}"));
        if headers.get(header::ORIGIN).is_some_and(is_foreign) {
            return forbidden("this page is not served to other sites");
        }
        Ok(())
    }

    /// Checks the user of a request.
    pub(super) async fn check_user(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(reviews) = &self.reviews else { return Ok(()) };
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let token = match value.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() => token.trim(),
            _ => return Err(Refusal::new(StatusCode::UNAUTHORIZED, "a bearer token is required")),
        };
        if token.len() > MAX_TOKEN {
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "the token is too long"));
        }
        match reviews.decide(token).await {
            Ok(Decision::Allowed) => Ok(()),
            Ok(Decision::Unauthenticated) => {
                Err(Refusal::new(StatusCode::UNAUTHORIZED, "the API server does not accept the token"))
            }
            Ok(Decision::Forbidden) => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "the user may not get the non-resource URL /debug/klient: bind a cluster role that allows it",
            )),
            Err(error) => {
                tracing::warn!(%error, "cannot review a token for the debug page");
                let message = "the API server cannot review the token: see this program's log";
                Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message))
            }
        }
    }
}

impl Reviews {
    async fn decide(&self, token: &str) -> Result<Decision, Error> {
        if let Some(decision) = self.cached(token) {
            return Ok(decision);
        }
        let _permit =
            self.running.try_acquire().map_err(|_| Error::new(ErrorKind::TooManyRequests, "too many reviews"))?;
        let decision = self.review(token).await?;
        let limit = if decision == Decision::Allowed { ALLOWED_FOR } else { REFUSED_FOR };
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        decisions.retain(|_, (until, _)| *until > now);
        if decisions.len() < MAX_DECISIONS {
            decisions.insert(token.to_owned(), (now + limit, decision));
        }
        Ok(decision)
    }

    fn cached(&self, token: &str) -> Option<Decision> {
        let decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        decisions.get(token).filter(|(until, _)| *until > Instant::now()).map(|(_, decision)| *decision)
    }

    async fn review(&self, token: &str) -> Result<Decision, Error> {
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = self.tokens.create(&TokenReview { spec, ..TokenReview::default() }).await?;
        let status = review.status.unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(Decision::Unauthenticated);
        };
        let UserInfo { username, groups, uid, extra } = user;
        let attributes = NonResourceAttributes { path: Some(PATH.to_owned()), verb: Some("get".to_owned()) };
        let spec = SubjectAccessReviewSpec {
            non_resource_attributes: Some(attributes),
            user: username,
            groups,
            uid,
            extra,
            ..SubjectAccessReviewSpec::default()
        };
        let review = self.access.create(&SubjectAccessReview { spec, ..SubjectAccessReview::default() }).await?;
        let is_allowed = review.status.is_some_and(|status| status.allowed);
        Ok(if is_allowed { Decision::Allowed } else { Decision::Forbidden })
    }
}

/// Returns whether a `Host` header names this machine, with or without a port.
fn is_loopback_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The headers that proxies add.
const FORWARDING: [&str; 4] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "via"];
/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 << 10;
/// The number of reviews at the same time.
const MAX_REVIEWS: usize = 8;
/// The number of decisions that are cached.
const MAX_DECISIONS: usize = 256;
const ALLOWED_FOR: Duration = Duration::from_secs(60);
const REFUSED_FOR: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(peer: &str, headers: &[(&'static str, &'static str)]) -> Result<(), StatusCode> {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)));
        let peer = peer.parse().unwrap();
        Access::local().check_origin(&headers.collect(), peer).map_err(|refusal| refusal.code)
    }

    #[test]
    fn local_page_is_refused_to_other_machines_and_sites() {
        let forbidden = Err(StatusCode::FORBIDDEN);
        assert_eq!(check("127.0.0.1:5000", &[("host", "localhost:8080")]), Ok(()));
        assert_eq!(check("[::1]:5000", &[("host", "[::1]:8080")]), Ok(()));
        assert_eq!(check("[::ffff:127.0.0.1]:5000", &[("host", "127.0.0.1")]), Ok(()));
        assert_eq!(check("10.0.0.7:5000", &[("host", "localhost:8080")]), forbidden);
        assert_eq!(check("127.0.0.1:5000", &[("host", "evil.example:8080")]), forbidden);
        assert_eq!(check("127.0.0.1:5000", &[("host", "localhost.evil.example")]), forbidden);
        assert_eq!(check("127.0.0.1:5000", &[]), forbidden);
        let proxied = [("host", "localhost"), ("x-forwarded-for", "10.0.0.7")];
        assert_eq!(check("127.0.0.1:5000", &proxied), forbidden);
        let foreign = [("host", "localhost:8080"), ("origin", "http://evil.example")];
        assert_eq!(check("127.0.0.1:5000", &foreign), forbidden);
        let own = [("host", "localhost:8080"), ("origin", "http://localhost:8080")];
        assert_eq!(check("127.0.0.1:5000", &own), Ok(()));
    }
}
