//! A Kubernetes API server, in process: for running and testing what talks to one, without a cluster.
//!
//! One generic implementation serves every kind from a table that was made from a real server; custom kinds are added to
//! it at run time. `store` keeps objects, `registry` knows kinds, `verbs` does what requests ask for.

mod answer;
mod auth;
mod body;
mod builtin;
mod call;
mod clock;
mod custom;
mod decode;
mod discovery;
mod faults;
mod metadata;
mod negotiate;
mod patch;
mod registry;
mod route;
mod selection;
mod serve;
mod server;
mod store;
mod verbs;

pub use self::{
    body::ResponseBody,
    clock::{Clock, ManualClock, SystemClock},
    faults::Fault,
    serve::{Listening, ServeError},
    server::{ApiServer, ApiServerBuilder, StartError},
};

/// What a request comes to: an answer, or a failure in the API's own words.
type Result<T> = std::result::Result<T, Box<klient_core::Status>>;
