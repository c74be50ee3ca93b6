//! `RestClient`: a request part by part, and what to make of the answer. The way to all that [`Api`](super::Api) does
//! not know.

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
    http::exchange::{Patience, SendOptions},
};
use crate::{Error, ErrorKind};

/// Makes requests part by part.
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

/// A request that is being made. What is wrong with a part is told when it is sent.
#[doc(alias = "Request")]
#[derive(Debug)]
#[must_use = "a request does nothing until one of its last methods is called"]
pub struct RestRequest {
    client: Client,
    verb: Verb,
    method: Method,
    place: Place,
    query: Query,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    timeout: Option<Duration>,
    options: SendOptions,
    /// What was wrong first.
    problem: Option<Error>,
}

/// What a request is about.
#[derive(Debug)]
enum Place {
    Nothing,
    Path(String),
    Resource(Box<InResource>),
}

#[derive(Debug)]
struct InResource {
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

    /// A request that reads.
    pub fn get(&self) -> RestRequest {
        self.request(Method::GET)
    }

    /// A request that makes something.
    pub fn post(&self) -> RestRequest {
        self.request(Method::POST)
    }

    /// A request that replaces.
    pub fn put(&self) -> RestRequest {
        self.request(Method::PUT)
    }

    /// A request that changes a part; its body says how by its content type.
    pub fn patch(&self) -> RestRequest {
        self.request(Method::PATCH)
    }

    /// A request that deletes.
    pub fn delete(&self) -> RestRequest {
        self.request(Method::DELETE)
    }

    /// A request with any method.
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
            place: Place::Nothing,
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
    /// Asks at a path of the server's, such as `/version`. A query belongs into [`param`](Self::param).
    #[doc(alias = "AbsPath")]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.place = Place::Path(path.into());
        self
    }

    /// Asks for a resource.
    pub fn resource(mut self, resource: &ApiResource) -> Self {
        let resource = resource.clone();
        let in_resource = InResource { resource, target: None, name: None, subresource: None, proxy_path: None };
        self.place = Place::Resource(Box::new(in_resource));
        self
    }

    /// Asks in a namespace; in all of them if it is empty, and if this is not called.
    pub fn namespace(self, namespace: &str) -> Self {
        let target = Target::in_namespace(namespace);
        self.in_resource("namespace", |place| place.target = Some(target))
    }

    /// Asks for one object.
    pub fn name(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.in_resource("name", |place| place.name = Some(name))
    }

    /// Asks for a subresource of the object.
    pub fn subresource(self, subresource: impl Into<String>) -> Self {
        let subresource = subresource.into();
        self.in_resource("subresource", |place| place.subresource = Some(subresource))
    }

    /// Asks what is behind the `proxy` subresource for this path.
    pub fn proxy_path(self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.in_resource("proxy path", |place| place.proxy_path = Some(path))
    }

    /// Adds a query parameter.
    pub fn param(mut self, name: &str, value: impl ToString) -> Self {
        self.query.append(name, value);
        self
    }

    /// Adds the parameters of options.
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

    /// Sets a header; the client's own of that name is not sent then.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Sets the form of the answer; JSON if not set, and protobuf for objects that have it.
    pub fn accept(mut self, media_type: &str) -> Self {
        match HeaderValue::from_str(media_type) {
            Ok(value) => {
                self.headers.insert(ACCEPT, value);
                self
            }
            Err(_) => self.with_problem(Error::new(ErrorKind::Invalid, "Accept is not the value of a header")),
        }
    }

    /// Sets the body, and what it is.
    pub fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        match HeaderValue::from_str(content_type) {
            Ok(value) => {
                self.headers.insert(CONTENT_TYPE, value);
                self.body = Some(body.into());
                self
            }
            Err(_) => self.with_problem(Error::new(ErrorKind::Invalid, "Content-Type is not the value of a header")),
        }
    }

    /// Sets the body, as JSON.
    pub fn json(self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => self.body(media_type::JSON, body),
            Err(error) => {
                let what = "the body cannot be written as JSON";
                self.with_problem(Error::new(ErrorKind::Invalid, what).with_source(error))
            }
        }
    }

    /// Sets the body, as protobuf.
    pub fn protobuf<K: Resource>(self, body: &K) -> Self {
        match klient_proto::encode_body(body) {
            Ok(body) => self.body(media_type::PROTOBUF, body),
            Err(error) => self.with_problem(error.into()),
        }
    }

    /// Sets how long it may take in all, tries again included. The server is told, and gives up as well.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how often it is sent again at the most; none of this repeats a write that the server may have done.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.options.max_attempts = Some(retries.saturating_add(1));
        self
    }

    /// Waits for the answer to begin as long as it takes, as that of a log that is followed.
    pub(in crate::client) fn patient(mut self) -> Self {
        self.options.patience = Patience::Unbounded;
        self
    }

    /// Sends it; the answer is an object.
    ///
    /// # Errors
    ///
    /// What was wrong with the request, why there was no answer, or what the server said.
    pub async fn object<K: Resource>(self) -> Result<K, Error> {
        let accept = self.accept_for::<K>(media_type::ACCEPT_PROTOBUF_OR_JSON);
        self.sent(accept, Call::object).await
    }

    /// Sends it; the answer is any JSON.
    ///
    /// # Errors
    ///
    /// As [`object`](Self::object).
    pub async fn value<T: DeserializeOwned>(self) -> Result<T, Error> {
        self.sent(media_type::JSON, Call::json).await
    }

    /// Sends it; the answer is a list.
    ///
    /// # Errors
    ///
    /// As [`object`](Self::object); also if one object cannot be decoded.
    pub async fn list<K: Resource>(mut self) -> Result<List<K>, Error> {
        self.verb = Verb::List;
        let accept = self.accept_for::<K>(media_type::ACCEPT_PROTOBUF_OR_JSON);
        self.sent(accept, Call::list).await
    }

    /// Sends it; the answer is a list, whose objects are given out as they arrive.
    ///
    /// # Errors
    ///
    /// As [`object`](Self::object).
    pub async fn list_stream<K: Resource>(mut self, split: SplitOptions) -> Result<ListStream<K>, Error> {
        self.verb = Verb::List;
        let accept = self.accept_for::<K>(media_type::ACCEPT_PROTOBUF_OR_JSON);
        self.sent(accept, |call| call.list_stream(split)).await
    }

    /// Sends it; the answer is a watch.
    ///
    /// # Errors
    ///
    /// As [`object`](Self::object).
    pub async fn watch<K: Resource>(mut self) -> Result<Watch<K>, Error> {
        self.verb = Verb::Watch;
        if !self.query.as_str().split('&').any(|pair| pair.starts_with("watch=")) {
            self.query.append("watch", true);
        }
        let accept = self.accept_for::<K>(media_type::ACCEPT_PROTOBUF_OR_JSON_WATCH);
        self.sent(accept, Call::watch).await
    }

    /// Sends it; the answer says that it was done.
    ///
    /// # Errors
    ///
    /// As [`object`](Self::object).
    pub async fn status(self) -> Result<Status, Error> {
        self.sent(media_type::JSON, Call::status).await
    }

    /// Sends it; the answer is bytes, whatever they mean.
    ///
    /// # Errors
    ///
    /// As [`object`](Self::object); also if they are more than 64 MiB.
    #[doc(alias = "DoRaw")]
    pub async fn bytes(self) -> Result<Bytes, Error> {
        self.sent("*/*", Call::bytes).await
    }

    /// Sends it; the answer is bytes that go on as long as they go on.
    ///
    /// # Errors
    ///
    /// As [`object`](Self::object).
    pub async fn stream(self) -> Result<Body, Error> {
        Ok(self.response().await?.into_body())
    }

    /// Sends it; the answer is code, headers and a body that streams in.
    ///
    /// # Errors
    ///
    /// As [`object`](Self::object): only successes are answers.
    pub async fn response(self) -> Result<http::Response<Body>, Error> {
        self.sent("*/*", Call::head).await
    }

    fn in_resource(mut self, what: &str, set: impl FnOnce(&mut InResource)) -> Self {
        match &mut self.place {
            Place::Resource(place) => {
                set(place);
                self
            }
            _ => self.with_problem(Error::new(ErrorKind::Invalid, format!("a {what} is given before its resource"))),
        }
    }

    fn with_problem(mut self, problem: Error) -> Self {
        self.problem.get_or_insert(problem);
        self
    }

    /// The form to ask for: protobuf and JSON where `K` has both.
    fn accept_for<K: Resource>(&self, both: &'static str) -> &'static str {
        if self.client.prefers_protobuf() && Codec::of::<K>().is_some() { both } else { media_type::JSON }
    }

    async fn sent<T, F>(self, accept: &'static str, finish: impl FnOnce(Call) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (client, timeout) = (self.client.clone(), self.timeout);
        let dry_run = self.query.as_str().contains("dryRun=");
        let object = match &self.place {
            Place::Resource(place) => {
                let namespace = match &place.target {
                    Some(Target::Namespace(namespace)) => namespace.clone(),
                    _ => String::new(),
                };
                Some((place.resource.clone(), namespace, place.name.clone()))
            }
            Place::Nothing | Place::Path(_) => None,
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
        // To get what has no name is to list it.
        if self.verb == Verb::Get && matches!(&self.place, Place::Resource(place) if place.name.is_none()) {
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
        let mut request = match self.place {
            Place::Nothing => {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "request has no resource or path: call `.resource()` or `.path()`",
                ));
            }
            Place::Path(path) => path_request(&path, &self.query, self.body)?,
            Place::Resource(place) => {
                let mut builder = RequestBuilder::new(&place.resource, place.target.unwrap_or(Target::AllNamespaces));
                if let Some(subresource) = place.subresource {
                    builder = builder.subresource(subresource);
                }
                if let Some(path) = place.proxy_path {
                    builder = builder.proxy_path(path);
                }
                builder.query(&self.query).request(self.verb, place.name.as_deref(), self.body)?
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
    let wrong = |why: &str| Error::new(ErrorKind::Invalid, format!("path {path:?} {why}"));
    if !path.starts_with('/') {
        return Err(wrong("does not begin with `/`"));
    }
    if path.contains(['?', '#']) {
        return Err(wrong("holds a query: give it as parameters"));
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(wrong("would name another path"));
    }
    let separator = if query.as_str().is_empty() { "" } else { "?" };
    let uri = format!("{path}{separator}{query}");
    http::Request::builder()
        .uri(uri)
        .body(body.unwrap_or_default())
        .map_err(|error| wrong("is not one that HTTP can carry").with_source(error))
}
