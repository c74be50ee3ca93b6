//! Webhooks of the API server's own configuration: who a token belongs to, and who may do what.

use std::sync::Arc;

use k8s_openapi::api::{
    authentication::v1::{TokenReviewSpec, TokenReviewStatus},
    authorization::v1::{SubjectAccessReviewSpec, SubjectAccessReviewStatus},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{admission::Problem, service::Answering};
use crate::BoxError;

/// A webhook that responds to reviews of tokens or of access. See [`authenticate`] and [`authorize`].
pub struct AccessHook {
    pub(super) kind: &'static str,
    pub(super) respond: Arc<dyn Fn(Vec<u8>) -> Answering + Send + Sync>,
}

/// Returns a webhook that decides whose token it is, for the API server's `--authentication-token-webhook-config-file`.
///
/// ```
/// use k8s_openapi::api::authentication::v1::{TokenReviewSpec, TokenReviewStatus};
/// use klient::webhook::{Webhooks, authenticate};
///
/// let webhooks = Webhooks::new("login").access("/authenticate", authenticate(async |review: TokenReviewSpec| {
///     let authenticated = Some(review.token == "secret");
///     Ok::<_, klient::Error>(TokenReviewStatus { authenticated, ..Default::default() })
/// }));
/// ```
#[doc(alias = "TokenReview")]
pub fn authenticate<R, E>(handler: impl Fn(TokenReviewSpec) -> R + Send + Sync + 'static) -> AccessHook
where
    R: Future<Output = Result<TokenReviewStatus, E>> + Send + 'static,
    E: Into<BoxError>,
{
    AccessHook { kind: "TokenReview", respond: responder("TokenReview", "authentication.k8s.io", handler) }
}

/// Returns a webhook that decides about access, for the API server's `--authorization-webhook-config-file`.
#[doc(alias = "SubjectAccessReview")]
pub fn authorize<R, E>(handler: impl Fn(SubjectAccessReviewSpec) -> R + Send + Sync + 'static) -> AccessHook
where
    R: Future<Output = Result<SubjectAccessReviewStatus, E>> + Send + 'static,
    E: Into<BoxError>,
{
    AccessHook {
        kind: "SubjectAccessReview",
        respond: responder("SubjectAccessReview", "authorization.k8s.io", handler),
    }
}

fn responder<Spec, Status, R, E>(
    kind: &'static str,
    group: &'static str,
    handler: impl Fn(Spec) -> R + Send + Sync + 'static,
) -> Arc<dyn Fn(Vec<u8>) -> Answering + Send + Sync>
where
    Spec: DeserializeOwned + Send + 'static,
    Status: Serialize,
    R: Future<Output = Result<Status, E>> + Send + 'static,
    E: Into<BoxError>,
{
    let handler = Arc::new(handler);
    Arc::new(move |body| {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let (spec, version) = decode(kind, group, &body)?;
            let status = handler(spec).await.map_err(|error| Problem::Failed(error.into()))?;
            let status = serde_json::to_value(status).map_err(|error| Problem::undecodable(&error))?;
            Ok(json!({"kind": kind, "apiVersion": version, "status": status}))
        })
    })
}

/// Decodes the spec of a review, and returns it with the review's version.
fn decode<Spec: DeserializeOwned>(kind: &str, group: &str, body: &[u8]) -> Result<(Spec, String), Problem> {
    let mut review: Value = serde_json::from_slice(body).map_err(|error| Problem::undecodable(&error))?;
    let version = review["apiVersion"].as_str().unwrap_or_default().to_owned();
    if review["kind"] != kind || !matches!(version.strip_prefix(group), Some("/v1" | "/v1beta1")) {
        let found = review["kind"].as_str().unwrap_or_default();
        return Err(Problem::Undecodable(format!("expected a {kind} of {group}/v1, found {found:?} of {version:?}")));
    }
    let spec = serde_json::from_value(review["spec"].take()).map_err(|error| Problem::undecodable(&error))?;
    Ok((spec, version))
}

impl std::fmt::Debug for AccessHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessHook").field("kind", &self.kind).finish_non_exhaustive()
    }
}
