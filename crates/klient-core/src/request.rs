//! Requests as values: builds an `http::Request` from a verb, a resource and options. Nothing is sent.
//!
//! A request names exactly the requested object: no name, namespace or option can change the path or add a parameter.
//! Requests that every server would reject, because of their scope or options, are not built.
//! In client-go: `rest.Request`.

mod error;
mod path;
pub mod subresource;
mod target;
mod verb;

use std::borrow::Cow;

use http::{
    HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

pub use self::{error::BuildRequestError, target::Target, verb::Verb};
use self::{error::Problem, path::PathParts};
use crate::{
    ApiResource, ApplyOptions, CreateOptions, DeleteCollectionOptions, DeleteOptions, GetOptions, InvalidOptionError,
    ListOptions, Patch, PatchOptions, Query, UpdateOptions, WatchOptions, media_type,
};

/// A builder of requests for one resource in one namespace.
///
/// Path and query are set; scheme and host belong to the connection. Each request contains its [`Verb`] as an
/// extension.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient_core::{ApiResource, GetOptions, ListOptions, RequestBuilder, Target, subresource};
///
/// let pods = ApiResource::of::<Pod>();
/// let builder = RequestBuilder::new(&pods, Target::Namespace("default".to_owned()));
///
/// let request = builder.list(&ListOptions::default().labels("app=web").limit(500))?;
/// assert_eq!(request.uri(), "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb&limit=500");
///
/// let logs = builder.subresource(subresource::LOG).param("tailLines", 10).get("web-0", &GetOptions::default())?;
/// assert_eq!(logs.uri(), "/api/v1/namespaces/default/pods/web-0/log?tailLines=10");
/// # Ok::<(), klient_core::BuildRequestError>(())
/// ```
#[doc(alias = "RESTClient")]
#[derive(Clone, Debug)]
pub struct RequestBuilder<'a> {
    resource: &'a ApiResource,
    target: Target,
    subresource: Option<Cow<'a, str>>,
    proxy_path: Option<Cow<'a, str>>,
    accept: Cow<'a, str>,
    content_type: Cow<'a, str>,
    params: Query,
}

impl<'a> RequestBuilder<'a> {
    /// Creates a builder for a resource in a namespace, in all namespaces, or of a cluster-scoped resource.
    pub fn new(resource: &'a ApiResource, target: Target) -> Self {
        Self {
            resource,
            target,
            subresource: None,
            proxy_path: None,
            accept: Cow::Borrowed(media_type::JSON),
            content_type: Cow::Borrowed(media_type::JSON),
            params: Query::default(),
        }
    }

    /// Sets the subresource, such as [`subresource::STATUS`].
    #[must_use]
    pub fn subresource(mut self, name: impl Into<Cow<'a, str>>) -> Self {
        self.subresource = Some(name.into());
        self
    }

    /// Sets the path behind the [`subresource::PROXY`] of an object. It is escaped.
    #[must_use]
    pub fn proxy_path(mut self, path: impl Into<Cow<'a, str>>) -> Self {
        self.proxy_path = Some(path.into());
        self
    }

    /// Sets the accepted format of the response, as the value of `Accept`; JSON by default.
    #[must_use]
    pub fn accept(mut self, media_type: impl Into<Cow<'a, str>>) -> Self {
        self.accept = media_type.into();
        self
    }

    /// Sets the format of the body of a create or update; JSON by default.
    #[must_use]
    pub fn content_type(mut self, media_type: impl Into<Cow<'a, str>>) -> Self {
        self.content_type = media_type.into();
        self
    }

    /// Adds a query parameter, for subresources with their own parameters. It follows those of the options.
    #[must_use]
    pub fn param(mut self, name: &str, value: impl ToString) -> Self {
        self.params.append(name, value);
        self
    }

    /// Builds a request that reads one object, or a subresource of it.
    ///
    /// # Errors
    ///
    /// As every verb, returns an error if a segment would change the path, if the scope does not fit, or if the options
    /// are invalid.
    pub fn get(&self, name: &str, options: &GetOptions) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        let query = query(|query| options.append_query(query))?;
        self.build(Verb::Get, Some(name), &query, None)
    }

    /// Builds a request that reads many objects.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`get`](Self::get), and an error if a subresource is set, because subresources have no
    /// lists.
    pub fn list(&self, options: &ListOptions) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        let query = query(|query| options.append_query(query))?;
        self.build(Verb::List, None, &query, None)
    }

    /// Builds a request that watches many objects, or one with the field selector `metadata.name=<name>`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`list`](Self::list).
    pub fn watch(&self, options: &WatchOptions) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        let query = query(|query| options.append_query(query))?;
        self.build(Verb::Watch, None, &query, None)
    }

    /// Builds a request that creates an object, whose name is in the body.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`list`](Self::list), and an error if no single namespace is set for a namespaced kind.
    pub fn create(&self, options: &CreateOptions, body: Vec<u8>) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        let query = query(|query| options.append_query(query))?;
        self.build(Verb::Create, None, &query, Some((self.content_type.as_ref(), body)))
    }

    /// Builds a request that posts to a subresource of an object, such as [`subresource::EVICTION`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`get`](Self::get), and an error if no subresource is set.
    pub fn create_subresource(
        &self,
        name: &str,
        options: &CreateOptions,
        body: Vec<u8>,
    ) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        if self.subresource.is_none() {
            return Err(Problem::NoSubresource.into());
        }
        let query = query(|query| options.append_query(query))?;
        self.build(Verb::Create, Some(name), &query, Some((self.content_type.as_ref(), body)))
    }

    /// Builds a request that replaces an object, or a subresource of it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`get`](Self::get).
    pub fn update(
        &self,
        name: &str,
        options: &UpdateOptions,
        body: Vec<u8>,
    ) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        let query = query(|query| options.append_query(query))?;
        self.build(Verb::Update, Some(name), &query, Some((self.content_type.as_ref(), body)))
    }

    /// Builds a request that patches an object, or a subresource of it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`get`](Self::get), and an error if the patch could not be serialized.
    pub fn patch(
        &self,
        name: &str,
        options: &PatchOptions,
        patch: &Patch,
    ) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        let query = query(|query| options.append_query(query))?;
        let body = patch.body().map_err(Problem::EncodePatch)?;
        self.build(Verb::Patch, Some(name), &query, Some((patch.content_type(), body.to_vec())))
    }

    /// Builds a request that applies fields to an object, or to a subresource of it, with a body of JSON or YAML.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`get`](Self::get).
    pub fn apply(
        &self,
        name: &str,
        options: &ApplyOptions,
        body: Vec<u8>,
    ) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        let query = query(|query| options.append_query(query))?;
        self.build(Verb::Patch, Some(name), &query, Some((media_type::APPLY_PATCH, body)))
    }

    /// Builds a request that deletes an object.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`get`](Self::get).
    pub fn delete(&self, name: &str, options: &DeleteOptions) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        let body = delete_body(options, options.to_openapi())?;
        self.build(Verb::Delete, Some(name), &Query::default(), body)
    }

    /// Builds a request that deletes all objects that a list with these options would return.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`list`](Self::list), and an error if no single namespace is set for a namespaced kind.
    pub fn delete_collection(
        &self,
        options: &DeleteCollectionOptions,
    ) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        let query = query(|query| options.append_query(query))?;
        let body = delete_body(&options.delete, options.to_openapi())?;
        self.build(Verb::DeleteCollection, None, &query, body)
    }

    /// Builds a request of any verb, on the resource or a named object, with a body in the format that is set.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use klient_core::{ApiResource, RequestBuilder, Target, Verb, subresource};
    ///
    /// let pods = ApiResource::of::<Pod>();
    /// let builder = RequestBuilder::new(&pods, Target::Namespace("default".to_owned())).subresource(subresource::PROXY);
    /// let request = builder.proxy_path("/reload").request(Verb::Create, Some("web-0"), None)?;
    /// assert_eq!(request.uri(), "/api/v1/namespaces/default/pods/web-0/proxy/reload");
    /// # Ok::<(), klient_core::BuildRequestError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a segment would change the path, or if the scope does not fit.
    pub fn request(
        &self,
        verb: Verb,
        name: Option<&str>,
        body: Option<Vec<u8>>,
    ) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        self.build(verb, name, &Query::default(), body.map(|body| (self.content_type.as_ref(), body)))
    }

    /// Adds the parameters of a query. They follow those of the verb's own options.
    #[must_use]
    pub fn query(mut self, query: &Query) -> Self {
        self.params.extend(query);
        self
    }

    fn build(
        &self,
        verb: Verb,
        name: Option<&str>,
        query: &Query,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<http::Request<Vec<u8>>, BuildRequestError> {
        let mut uri = path::resource_path(&PathParts {
            resource: self.resource,
            namespace: self.target.namespace_for(self.resource, verb, name.is_some())?,
            name,
            subresource: self.subresource.as_deref(),
            proxy_path: self.proxy_path.as_deref(),
        })?;
        let mut separator = '?';
        for text in [query.as_str(), self.params.as_str()].into_iter().filter(|text| !text.is_empty()) {
            uri.push(separator);
            uri.push_str(text);
            separator = '&';
        }

        let mut request = http::Request::builder()
            .method(verb.method())
            .uri(uri)
            .header(ACCEPT, header("Accept", &self.accept)?)
            .extension(verb);
        let body = match body {
            Some((content_type, body)) => {
                request = request.header(CONTENT_TYPE, header("Content-Type", content_type)?);
                body
            }
            None => Vec::new(),
        };
        request.body(body).map_err(|error| Problem::Http(error).into())
    }
}

impl Verb {
    /// Returns the HTTP method of this verb.
    pub fn method(self) -> Method {
        match self {
            Self::Get | Self::List | Self::Watch => Method::GET,
            Self::Create => Method::POST,
            Self::Update => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete | Self::DeleteCollection => Method::DELETE,
        }
    }
}

fn query(append: impl FnOnce(&mut Query) -> Result<(), InvalidOptionError>) -> Result<Query, BuildRequestError> {
    let mut query = Query::default();
    append(&mut query).map_err(Problem::Option)?;
    Ok(query)
}

/// Encodes delete options. Default options have no body, which every server understands.
fn delete_body(
    options: &DeleteOptions,
    body: Result<meta::DeleteOptions, InvalidOptionError>,
) -> Result<Option<(&'static str, Vec<u8>)>, BuildRequestError> {
    let body = body.map_err(Problem::Option)?;
    if options.is_default() {
        return Ok(None);
    }
    let body = serde_json::to_vec(&body).map_err(Problem::Encode)?;
    Ok(Some((media_type::JSON, body)))
}

fn header(name: &'static str, value: &str) -> Result<HeaderValue, BuildRequestError> {
    HeaderValue::from_str(value).map_err(|_| Problem::Header { name, value: value.to_owned() }.into())
}

#[cfg(test)]
mod tests;
