//! Other clients against the embedded server, over HTTPS and with its kubeconfig: kubectl, client-go,
//! controller-runtime and kube-rs, all unmodified. `cargo xtask clients` builds them.

#![allow(clippy::unwrap_used)]

mod endpoint;
mod kubectl;
mod kubectl_auth;
mod kubectl_openapi;
mod kubectl_streams;
mod programs;
