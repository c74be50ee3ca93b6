//! Handlers: functions of the program, with their types erased.

use std::{pin::Pin, sync::Arc};

use klient_core::Resource;
use serde_json::Value;

use super::{
    Mutated, Request, Verdict,
    admission::{AdmissionRequest, Problem},
    patch,
    verdict::IntoVerdict,
};
use crate::BoxError;

/// The verdict of a handler, with the operations of its patch.
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    pub(super) operations: Vec<Value>,
}

pub(super) type Deciding = Pin<Box<dyn Future<Output = Result<Decision, Problem>> + Send>>;

/// A handler of any type.
pub(super) type Handler = Arc<dyn Fn(AdmissionRequest) -> Deciding + Send + Sync>;

/// A validating handler: a function from a request to a verdict.
pub trait Validator<K: Resource>: Send + Sync + 'static {
    /// Decides about a request. An error means that the handler failed, and the failure policy decides.
    fn validate(&self, request: Request<K>) -> impl Future<Output = Result<Verdict, BoxError>> + Send;
}

/// A mutating handler: a function from a request to the changed object.
pub trait Mutator<K: Resource>: Send + Sync + 'static {
    /// Changes an object. An error means that the handler failed, and the failure policy decides.
    fn mutate(&self, request: Request<K>) -> impl Future<Output = Result<Mutated<K>, BoxError>> + Send;
}

/// A defaulting handler: a function that completes an object.
pub trait Defaulter<K: Resource>: Send + Sync + 'static {
    /// Completes an object.
    fn default(&self, object: &mut K);
}

impl<K, F, R, V> Validator<K> for F
where
    K: Resource,
    F: Fn(Request<K>) -> R + Send + Sync + 'static,
    R: Future<Output = V> + Send,
    V: IntoVerdict,
{
    async fn validate(&self, request: Request<K>) -> Result<Verdict, BoxError> {
        self(request).await.into_verdict()
    }
}

impl<K, F, R, M, E> Mutator<K> for F
where
    K: Resource,
    F: Fn(Request<K>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<M, E>> + Send,
    M: Into<Mutated<K>>,
    E: Into<BoxError>,
{
    async fn mutate(&self, request: Request<K>) -> Result<Mutated<K>, BoxError> {
        self(request).await.map(Into::into).map_err(Into::into)
    }
}

impl<K, F> Defaulter<K> for F
where
    K: Resource,
    F: Fn(&mut K) + Send + Sync + 'static,
{
    fn default(&self, object: &mut K) {
        self(object);
    }
}

pub(super) fn validating<K: Resource>(handler: impl Validator<K>) -> Handler {
    let handler = Arc::new(handler);
    Arc::new(move |request| {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let verdict = handler.validate(request.typed()?).await.map_err(Problem::Failed)?;
            Ok(Decision { verdict, operations: Vec::new() })
        })
    })
}

pub(super) fn mutating<K: Resource>(handler: impl Mutator<K>) -> Handler {
    let handler = Arc::new(handler);
    Arc::new(move |request| {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let typed: Request<K> = request.typed()?;
            let before = typed
                .object
                .as_ref()
                .map(serde_json::to_value)
                .transpose()
                .map_err(|error| Problem::undecodable(&error))?;
            let mutated = handler.mutate(typed).await.map_err(Problem::Failed)?;
            let operations = match (&request.object, before, mutated.object) {
                (Some(sent), Some(before), Some(after)) if mutated.verdict.is_allowed() => {
                    let after = serde_json::to_value(after).map_err(|error| Problem::undecodable(&error))?;
                    patch::operations(sent, &before, after)
                }
                _ => Vec::new(),
            };
            Ok(Decision { verdict: mutated.verdict, operations })
        })
    })
}

pub(super) fn defaulting<K: Resource>(handler: impl Defaulter<K>) -> Handler {
    Arc::new(move |request| {
        let decided = decide_default(&handler, &request);
        Box::pin(std::future::ready(decided))
    })
}

fn decide_default<K: Resource>(handler: &impl Defaulter<K>, request: &AdmissionRequest) -> Result<Decision, Problem> {
    let typed: Request<K> = request.typed()?;
    let mut operations = Vec::new();
    if let (Some(sent), Some(mut object)) = (&request.object, typed.object) {
        let before = serde_json::to_value(&object).map_err(|error| Problem::undecodable(&error))?;
        handler.default(&mut object);
        let after = serde_json::to_value(object).map_err(|error| Problem::undecodable(&error))?;
        operations = patch::operations(sent, &before, after);
    }
    Ok(Decision { verdict: Verdict::allow(), operations })
}
