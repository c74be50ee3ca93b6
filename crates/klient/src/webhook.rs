//! Admission and conversion webhooks: typed handlers, their registrations, and a server with certificates of its own.
//!
//! [`Webhooks`] has the handlers. The registrations are built from them, so that they cannot differ from the code.
//! [`WebhookServer`] serves them over TLS; it creates its certificates, stores them in a Secret, and renews them so that no request is
//! refused at any moment. In a test, the same handlers run without a socket.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Pod};
//! use klient::webhook::{Operation, Request, Verdict, Webhooks, default, validate};
//!
//! async fn has_limits(request: Request<Pod>) -> Verdict {
//!     let Some(pod) = &request.object else { return Verdict::allow() };
//!     let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
//!     match containers.into_iter().find(|container| container.resources.is_none()) {
//!         Some(container) => Verdict::deny(format!("container {} has no limits", container.name)),
//!         None => Verdict::allow(),
//!     }
//! }
//!
//! let webhooks = Webhooks::new("shop")
//!     .service("shop", "webhooks")
//!     .hook(validate::<Pod>(has_limits).on([Operation::Create]))
//!     .hook(default::<ConfigMap>(|map: &mut ConfigMap| {
//!         map.data.get_or_insert_default().entry("color".to_owned()).or_insert_with(|| "blue".to_owned());
//!     }));
//! assert!(webhooks.to_yaml(None).contains("/validate--v1-pod"));
//! ```
//!
//! In controller-runtime: `pkg/webhook`. Its weak spots are closed here: unknown fields survive a mutation, a request that cannot be
//! decoded gets a response that the server understands, and certificates need no other program.

mod access;
mod admission;
mod certificates;
mod handler;
mod hook;
mod metrics;
mod patch;
mod registration;
mod request;
mod serve;
mod server;
mod service;
mod verdict;

pub use self::{
    access::{AccessHook, authenticate, authorize},
    certificates::Certificates,
    handler::{Defaulter, Mutator, Validator},
    hook::{FailurePolicy, Hook, Reinvocation, SideEffects, default, mutate, validate},
    request::{Operation, Request},
    server::WebhookServer,
    service::Webhooks,
    verdict::{IntoVerdict, Mutated, Verdict},
};
