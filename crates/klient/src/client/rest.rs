//! `RestClient`: builds a request part by part and decodes the response, for requests that [`Api`](super::Api) does not
//! cover.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use klient_core::{
    ApiResource, InvalidOptionError, List, Query, RequestBuilder, Resource, Status, Target, Verb, media_type,
};
use klient_proto::{Codec, SplitOptions};
use serde::{Serialize, de::DeserializeOwned};

use crate::client::{
    Client, ListStream, Watch,
    call::Call,
    http::body::Body,
    http::exchange::{HeadTimeout, SendOptions},
};
use crate::{Error, ErrorKind};

/// A builder of requests, part by part.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::{Client, request::subresource, resource::ApiResource};
///
/// # async fn ask(client: Client) -> Result<(), klient::Error> {
/// let rest = client.rest();
/// let pods = ApiResource::of::<Pod>();
///
/// let healthy = rest.get().path("/healthz").bytes().await?;
/// assert_eq!(healthy, "ok");
/// let pod: Pod = rest.get().resource(&pods).namespace("default").name("web-0").object().await?;
/// let log = rest.get().resource(&pods).namespace("default").name("web-0").subresource(subresource::LOG);
/// println!("{:?}", log.param("tailLines", 10).bytes().await?);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "RESTClient")]
#[derive(Clone, Debug)]
pub struct RestClient {
    client: Client,
}

/// A request that is being built. An invalid part is reported when the request is sent.
#[doc(alias = "Request")]
#[derive(Debug)]
#[must_use = "a request does nothing until one of its last methods is called"]
pub struct RestRequest {
    client: Client,
    verb: Verb,
    method: Method,
    subject: Subject,
    query: Query,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    timeout: Option<Duration>,
    options: SendOptions,
    /// The first invalid part.
    problem: Option<Error>,
}

/// The path or the resource of a request.
#[derive(Debug)]
enum Subject {
    Nothing,
    Path(String),
    Resource(Box<ResourceSubject>),
}

#[derive(Debug)]
struct ResourceSubject {
    resource: ApiResource,
    target: Option<Target>,
    name: Option<String>,
    subresource: Option<String>,
    proxy_path: Option<String>,
}

impl RestClient {
    pub(in crate::client) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Starts a GET request, which reads.
    pub fn get(&self) -> RestRequest {
        self.request(Method::GET)
    }

    /// Starts a POST request, which creates.
    pub fn post(&self) -> RestRequest {
        self.request(Method::POST)
    }

    /// Starts a PUT request, which replaces.
    pub fn put(&self) -> RestRequest {
        self.request(Method::PUT)
    }

    /// Starts a PATCH request, which changes a part. The content type of its body selects the patch format.
    pub fn patch(&self) -> RestRequest {
        self.request(Method::PATCH)
    }

    /// Starts a DELETE request.
    pub fn delete(&self) -> RestRequest {
        self.request(Method::DELETE)
    }

    /// Starts a request with any method.
    pub fn request(&self, method: Method) -> RestRequest {
        let verb = match method {
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => Verb::Get,
        };
        RestRequest {
            client: self.client.clone(),
            verb,
            method,
            subject: Subject::Nothing,
            query: Query::default(),
            headers: HeaderMap::new(),
            body: None,
            timeout: None,
            options: SendOptions::default(),
            problem: None,
        }
    }
}

impl RestRequest {
    /// Sets the path, such as `/version`. Use [`param`](Self::param) for a query.
    #[doc(alias = "AbsPath")]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.subject = Subject::Path(path.into());
        self
    }

    /// Sets the resource.
    pub fn resource(mut self, resource: &ApiResource) -> Self {
        let resource = resource.clone();
        let subject = ResourceSubject { resource, target: None, name: None, subresource: None, proxy_path: None };
        self.subject = Subject::Resource(Box::new(subject));
        self
    }

    /// Sets the namespace. An empty namespace, the default, means all namespaces.
    pub fn namespace(self, namespace: &str) -> Self {
        let target = Target::in_namespace(namespace);
        self.with_resource("namespace", |subject| subject.target = Some(target))
    }

    /// Sets the name of the object.
    pub fn name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.with_resource("name", |subject| subject.name = Some(name))
    }

    /// Sets the subresource of the object.
    pub fn subresource(self, subresource: impl Into<String>) -> Self {
        let subresource = subresource.into();
        self.with_resource("subresource", |subject| subject.subresource = Some(subresource))
    }

    /// Sets the path behind the `proxy` subresource.
    pub fn proxy_path(self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.with_resource("proxy path", |subject| subject.proxy_path = Some(path))
    }

    /// Adds a query parameter.
    pub fn param(mut self, name: &str, value: impl ToString) -> Self {
        self.query.append(name, value);
        self
    }

    /// Adds the query parameters of options.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use klient::{options::ListOptions, resource::ApiResource};
    /// # async fn list(client: klient::Client) -> Result<(), klient::Error> {
    /// let options = ListOptions::default().limit(10);
    /// let request = client.rest().get().resource(&ApiResource::of::<Pod>());
    /// let ten_pods = request.options(|query| options.append_query(query)).list::<Pod>().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "VersionedParams")]
    pub fn options(mut self, append: impl FnOnce(&mut Query) -> Result<(), InvalidOptionError>) -> Self {
        match append(&mut self.query) {
            Ok(()) => self,
            Err(error) => self.with_problem(error.into()),
        }
    }

    /// Sets a header, which replaces the client's header of that name.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Sets the accepted format of the response; by default JSON, and protobuf for objects that support it.
    pub fn accept(mut self, media_type: &str) -> Self {
        match HeaderValue::from_str(media_type) {
            Ok(value) => {
                self.headers.insert(ACCEPT, value);
                self
            }
            Err(_) => self.with_problem(Error::new(ErrorKind::Invalid, "invalid Accept header")),
        }
    }

    /// Sets the body and its content type.
    pub fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        match HeaderValue::from_str(content_type) {
            Ok(value) => {
                self.headers.insert(CONTENT_TYPE, value);
                self.body = Some(body.into());
                self
            }
            Err(_) => self.with_problem(Error::new(ErrorKind::Invalid, "invalid Content-Type header")),
        }
    }

    /// Sets the body to a value encoded as JSON.
    pub fn json(self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => self.body(media_type::JSON, body),
            Err(error) => {
                let what = "cannot encode body as JSON";
                self.with_problem(Error::new(ErrorKind::Invalid, what).with_source(error))
            }
        }
    }

    /// Sets the body to an object encoded as protobuf.
    pub fn protobuf<K: Resource>(self, body: &K) -> Self {
        match klient_proto::encode_body(body) {
            Ok(body) => self.body(media_type::PROTOBUF, body),
            Err(error) => self.with_problem(error.into()),
        }
    }

    /// Sets the time limit, retries included. The server receives it and stops as well.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum number of retries. A write that the server may have executed is never retried.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.options.max_attempts = Some(retries.saturating_add(1));
        self
    }

    /// Removes the time limit for the head of the response, as for a log that is followed.
    pub(in crate::client) fn without_head_timeout(mut self) -> Self {
        self.options.head_timeout = HeadTimeout::Unbounded;
        self
    }

    /// Sends the request and decodes an object.
    ///
    /// # Errors
    ///
    /// Returns an error if the request is invalid, if there is no response, or if the server reports a failure.
    pub async fn object<K: Resource>(self) -> Result<K, Error> {
        let accept = self.accept_for::<K>(media_type::ACCEPT_PROTOBUF_OR_JSON);
        self.sent(accept, Call::object).await
    }

    /// Sends the request and decodes any JSON.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`object`](Self::object).
    pub async fn value<T: DeserializeOwned>(self) -> Result<T, Error> {
        self.sent(media_type::JSON, Call::json).await
    }

    /// Sends the request and decodes a list.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`object`](Self::object), and an error if any object of the list cannot be decoded.
    pub async fn list<K: Resource>(mut self) -> Result<List<K>, Error> {
        self.verb = Verb::List;
        let accept = self.accept_for::<K>(media_type::ACCEPT_PROTOBUF_OR_JSON);
        self.sent(accept, Call::list).await
    }

    /// Sends the request and returns the objects of a list as they arrive.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`object`](Self::object).
    pub async fn list_stream<K: Resource>(mut self, split: SplitOptions) -> Result<ListStream<K>, Error> {
        self.verb = Verb::List;
        let accept = self.accept_for::<K>(media_type::ACCEPT_PROTOBUF_OR_JSON);
        self.sent(accept, |call| call.list_stream(split)).await
    }

    /// Sends the request and returns a watch.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`object`](Self::object).
    pub async fn watch<K: Resource>(mut self) -> Result<Watch<K>, Error> {
        self.verb = Verb::Watch;
        if !self.query.as_str().split('&').any(|pair| pair.starts_with("watch=")) {
            self.query.append("watch", true);
        }
        let accept = self.accept_for::<K>(media_type::ACCEPT_PROTOBUF_OR_JSON_WATCH);
        self.sent(accept, Call::watch).await
    }

    /// Sends the request and decodes a status.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`object`](Self::object).
    pub async fn status(self) -> Result<Status, Error> {
        self.sent(media_type::JSON, Call::status).await
    }

    /// Sends the request and returns the body as bytes.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`object`](Self::object), and an error if the body has more than 64 MiB.
    #[doc(alias = "DoRaw")]
    pub async fn bytes(self) -> Result<Bytes, Error> {
        self.sent("*/*", Call::bytes).await
    }

    /// Sends the request and returns the body as a stream of any length.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`object`](Self::object).
    pub async fn stream(self) -> Result<Body, Error> {
        Ok(self.response().await?.into_body())
    }

    /// Sends the request and returns the response with a streamed body.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`object`](Self::object); a status other than success is an error.
    pub async fn response(self) -> Result<http::Response<Body>, Error> {
        self.sent("*/*", Call::head).await
    }

    fn with_resource(mut self, what: &str, set: impl FnOnce(&mut ResourceSubject)) -> Self {
        match &mut self.subject {
            Subject::Resource(subject) => {
                set(subject);
                self
            }
            _ => self.with_problem(Error::new(
                ErrorKind::Invalid,
                format!("{what} is set before the resource: call `.resource()` first"),
            )),
        }
    }

    fn with_problem(mut self, problem: Error) -> Self {
        self.problem.get_or_insert(problem);
        self
    }

    /// Returns the accepted format: protobuf and JSON if `K` supports both.
    fn accept_for<K: Resource>(&self, both: &'static str) -> &'static str {
        if self.client.prefers_protobuf() && Codec::of::<K>().is_some() { both } else { media_type::JSON }
    }

    async fn sent<T, F>(self, accept: &'static str, finish: impl FnOnce(Call) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (client, timeout) = (self.client.clone(), self.timeout);
        let dry_run = self.query.as_str().contains("dryRun=");
        let object = match &self.subject {
            Subject::Resource(subject) => {
                let namespace = match &subject.target {
                    Some(Target::Namespace(namespace)) => namespace.clone(),
                    _ => String::new(),
                };
                Some((subject.resource.clone(), namespace, subject.name.clone()))
            }
            Subject::Nothing | Subject::Path(_) => None,
        };
        let call = Call::new(client, self.build(accept)?).limit(timeout);
        finish(match &object {
            Some((resource, namespace, name)) => {
                call.items(resource).about(resource.group_resource(), namespace, name.as_deref()).dry_run(dry_run)
            }
            None => call,
        })
        .await
    }

    fn build(mut self, accept: &'static str) -> Result<http::Request<Vec<u8>>, Error> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        // A GET without a name is a list.
        if self.verb == Verb::Get && matches!(&self.subject, Subject::Resource(subject) if subject.name.is_none()) {
            self.verb = Verb::List;
        }
        if let Some(timeout) = self.timeout
            && self.verb != Verb::Watch
        {
            self.query.append("timeout", format!("{}ms", timeout.as_millis()));
        }
        if !self.headers.contains_key(ACCEPT) {
            self.headers.insert(ACCEPT, HeaderValue::from_static(accept));
        }
        let mut request = match self.subject {
            Subject::Nothing => {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "request has no resource or path: call `.resource()` or `.path()`",
                ));
            }
            Subject::Path(path) => path_request(&path, &self.query, self.body)?,
            Subject::Resource(subject) => {
                let mut builder =
                    RequestBuilder::new(&subject.resource, subject.target.unwrap_or(Target::AllNamespaces));
                if let Some(subresource) = subject.subresource {
                    builder = builder.subresource(subresource);
                }
                if let Some(path) = subject.proxy_path {
                    builder = builder.proxy_path(path);
                }
                builder.query(&self.query).request(self.verb, subject.name.as_deref(), self.body)?
            }
        };
        *request.method_mut() = self.method;
        for name in self.headers.keys() {
            request.headers_mut().remove(name);
        }
        request.headers_mut().extend(self.headers);
        request.extensions_mut().insert(self.verb);
        request.extensions_mut().insert(self.options);
        Ok(request)
    }
}

fn path_request(path: &str, query: &Query, body: Option<Vec<u8>>) -> Result<http::Request<Vec<u8>>, Error> {
    let wrong = |why: &str| Error::new(ErrorKind::Invalid, format!("invalid path {path:?}: {why}"));
    if !path.starts_with('/') {
        return Err(wrong("it must begin with `/`"));
    }
    if path.contains(['?', '#']) {
        return Err(wrong("it contains a query: use `.param()`"));
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(wrong("it contains `.` or `..` segments"));
    }
    let separator = if query.as_str().is_empty() { "" } else { "?" };
    let uri = format!("{path}{separator}{query}");
    http::Request::builder()
        .uri(uri)
        .body(body.unwrap_or_default())
        .map_err(|error| wrong("it contains characters that are not allowed in a URI").with_source(error))
}
