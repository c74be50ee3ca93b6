//! client-go for Rust: a Kubernetes client, informers, work queues and controllers.
//!
//! For people who write operators, platform agents and cluster tools. Objects are `k8s-openapi`'s types. klient keeps them as the
//! bytes they arrived in, and decodes one when it is read.
//!
//! # Quick start
//!
//! ```toml
//! [dependencies]
//! klient = "0.1"
//! k8s-openapi = { version = "0.29", features = ["v1_37"] } # exactly one version
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! ```
//!
#![cfg_attr(feature = "client", doc = "```no_run")]
#![cfg_attr(not(feature = "client"), doc = "```ignore")]
//! use k8s_openapi::api::core::v1::Pod;
//! use klient::controller::{Outcome, Request};
//! use klient::{Api, Client, Controller, Manager, Result, ResourceExt};
//!
//! async fn reconcile(request: Request<Pod>) -> Result<Outcome> {
//!     let Some(pod) = request.object()? else { return Ok(Outcome::Done) }; // it was deleted
//!     println!("{} because of: {}", pod.name(), request.reasons());
//!     Ok(Outcome::Done)
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     let pods: Api<Pod> = Api::namespaced(Client::infer()?, "shop");
//!     for pod in &pods.list().labels("app=web").await? {
//!         println!("{}", pod.name());
//!     }
//!     let controller = Controller::builder("pods", pods).workers(4).reconcile(reconcile);
//!     Manager::builder().controller(controller).build().await?.run().await
//! }
//! ```
//!
//! # Map
//!
//! | to | use |
//! |---|---|
//! | read and write objects | [`Client`], [`Api`], [`Clientset`], [`client::DynamicClient`] |
//! | keep a local copy of a kind | [`SharedInformer`], [`InformerFactory`], [`Lister`], module [`informer`] |
//! | define kinds | [`CustomResource`](derive@CustomResource), module [`custom`] |
//! | apply only the fields that you own | [`Api::apply`], [`Apply`](derive@Apply), module [`apply`] |
//! | reconcile objects | [`Controller`], module [`controller`], [`finalizer`], [`wait`], [`condition`], [`owner`] |
//! | queue keys by hand | [`WorkQueue`], module [`workqueue`] |
//! | run in production | [`Manager`], [`election`], [`events`], [`metrics`], [`shutdown`] |
//! | see why a key is not reconciled | [`Controller::explain`], module [`introspection`] |
//! | share keys among replicas, reconcile several clusters | [`shard`], [`cluster`] |
//! | find a cluster and authenticate | [`client::config`], [`client::auth`] |
//! | learn which kinds a server has | [`client::discovery`] |
//! | record a run and replay it as a test | [`recording`] |
//! | drain a node | [`node`] |
//! | retry | [`retry`] |
//! | name kinds, objects and requests | [`resource`], [`object`], [`selector`], [`options`], [`patch`], [`status`], [`request`] |
//! | work with values | [`quantity`], [`time`], [`int_or_string`], [`field_path`] |
//! | handle objects in wire form | [`wire`] |
//!
//! The names at the root are the paved path. Everything else is in the module that names it, under one path.
//!
//! The guide in `docs/guide` of the repository explains informers, controllers, testing without a cluster and production, and has name by
//! name tables for those who come from kube-rs, client-go or controller-runtime.
//!
//! # Features
//!
//! `client` (default): the HTTP half. Without it, informers, queues and controllers compile without hyper and rustls.
//!
//! `derive` (default): custom resources, with the derive macros and the module `custom`.
//!
//! `streams` (default): exec, attach and port-forward.
//!
//! `cel`: evaluates the CEL rules of custom resources before they are written (`#[kube(cel)]`).

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "client")]
pub mod cluster;
pub mod condition;
pub mod controller;
#[cfg(feature = "derive")]
pub mod custom;
mod deadline;
#[cfg(feature = "client")]
pub mod election;
mod error;
#[cfg(feature = "client")]
pub mod events;
#[cfg(feature = "client")]
pub mod finalizer;
pub mod informer;
pub mod introspection;
#[cfg(feature = "client")]
pub mod manager;
pub mod metrics;
#[cfg(feature = "client")]
pub mod node;
pub mod recording;
pub mod retry;
#[cfg(feature = "client")]
pub mod shard;
pub mod shutdown;
mod sync;
mod vocabulary;
#[cfg(feature = "client")]
pub mod wait;
#[cfg(feature = "webhook")]
pub mod webhook;
pub mod workqueue;
mod writes;

#[cfg(feature = "client")]
pub use client::{api::Api, clientset::Clientset, handle::Client};
pub use controller::run::Controller;
#[cfg(feature = "derive")]
pub use custom::CustomResourceExt;
pub use error::{BoxError, Error, ErrorKind, Result};
#[cfg(feature = "client")]
pub use informer::factory::InformerFactory;
pub use informer::{lister::Lister, shared_informer::SharedInformer};
#[doc(inline)]
pub use klient_core::{ObjectKey, Patch, Resource, ResourceExt, WatchEvent};
#[cfg(feature = "derive")]
pub use klient_derive::{Apply, CustomResource, KubeSchema, Resource};
pub use klient_proto as wire;
#[cfg(feature = "client")]
pub use manager::run::Manager;
pub use vocabulary::*;
pub use workqueue::queue::WorkQueue;

// The examples in the crate's README compile.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
