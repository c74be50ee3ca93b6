//! Routes of the program on the manager's HTTP server.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};

use super::part::BoxFuture;
use crate::{Error, ErrorKind};

/// A path, and the handler of its requests.
pub(super) struct Route {
    path: String,
    handler: Handler,
}

pub(super) type Handler = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync>;

impl Route {
    pub(super) fn new<R, B>(path: String, handler: impl Fn(Request<Bytes>) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Response<B>> + Send + 'static,
        B: Into<Bytes>,
    {
        let handler: Handler = Arc::new(move |request| {
            let response = handler(request);
            Box::pin(async move { response.await.map(Into::into) })
        });
        Self { path, handler }
    }

    /// Returns the handler of the longest route that matches a path.
    pub(super) fn find(routes: &[Self], path: &str) -> Option<Handler> {
        let matching = routes.iter().filter(|route| route.matches(path));
        matching.max_by_key(|route| route.path.len()).map(|route| Arc::clone(&route.handler))
    }

    fn matches(&self, path: &str) -> bool {
        path == self.path || (self.path.ends_with('/') && path.starts_with(&self.path))
    }

    /// Checks that all routes can be served.
    pub(super) fn check(routes: &[Self], is_served: bool) -> Result<(), Error> {
        for (index, Self { path, .. }) in routes.iter().enumerate() {
            let problem = if !path.starts_with('/') {
                "the path must start with a slash"
            } else if BUILT_IN.iter().any(|built_in| path == built_in || path.starts_with(&format!("{built_in}/"))) {
                "the manager serves this path itself"
            } else if routes[..index].iter().any(|other| other.path == *path) {
                "the path has two routes"
            } else if !is_served {
                "call `serve` with an address"
            } else {
                continue;
            };
            return Err(Error::new(ErrorKind::Config, format!("invalid route {path:?}: {problem}")));
        }
        Ok(())
    }
}

/// The paths of the manager itself.
const BUILT_IN: [&str; 5] = ["/healthz", "/livez", "/readyz", "/metrics", super::debug::PATH];
