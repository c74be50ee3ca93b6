//! Typed configurations for server-side apply.
//!
//! A configuration has only the fields that its sender wants to own. The types of `k8s-openapi` cannot say that: they always
//! write required fields, such as a deployment's selector, so that applying them takes these fields from other managers.
//!
//! Every kind has a type here, such as `apps::v1::DeploymentApply`, with one method for each field. A field that is not
//! set is not applied. Items of lists that are merged by key take the key as arguments, so that none can be without it.
//!
//! ```
//! # #[cfg(feature = "apps")]
//! # {
//! use klient_apply::apps::v1::DeploymentApply;
//!
//! let web = DeploymentApply::new("web", "shop").spec(|spec| {
//!     spec.replicas(3).selector(|selector| selector.match_labels([("app", "web")])).template(|template| {
//!         template
//!             .metadata(|metadata| metadata.labels([("app", "web")]))
//!             .spec(|pod| pod.container("server", |server| server.image("nginx:1.29").port(80, "TCP", |port| port.name("http"))))
//!     })
//! });
//! assert_eq!(web.to_value()["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:1.29");
//! # }
//! ```
//!
//! With klient, `deployments.apply(&web).manager("web-operator").await?` sends it. Each group is a feature, so that a program builds
//! only the kinds that it applies.

mod configuration;
mod generated;
mod int_or_string;

pub use generated::*;
pub use int_or_string::IntOrString;
pub use klient_core::apply::{Configuration, ExtractError, Fields};
