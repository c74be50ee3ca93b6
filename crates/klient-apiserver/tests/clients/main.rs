//! Other people's clients against the embedded server, over HTTPS and with its own kubeconfig: kubectl, client-go,
//! controller-runtime and kube-rs, none of which knows that it is not the real one. `cargo xtask clients` builds them all.

#![allow(clippy::unwrap_used)]

mod endpoint;
mod kubectl;
mod programs;
