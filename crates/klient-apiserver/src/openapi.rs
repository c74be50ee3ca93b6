//! OpenAPI documents: version 3 with one document per group version, and version 2 with all kinds in one document.
//!
//! Documents of built-in kinds are those of the real server, recorded. Documents of custom kinds are built from their definitions. All
//! of them are built at the first request for them, so that they cost nothing before.

mod custom;
mod folded;
mod gnostic;
mod schema;
mod yaml;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY},
};
use jiff::ToSpan as _;
use serde_json::{Value, value::RawValue};

use self::folded::Folded;
use crate::{
    body::ResponseBody,
    call::Call,
    clock::Clock,
    registry::{Groups, Resource},
    response,
};

/// The documents that were requested so far.
#[derive(Default)]
pub(crate) struct OpenApi {
    cache: Mutex<Cache>,
}

/// The documents that depend on custom kinds, and the kinds that they were built from.
#[derive(Default)]
struct Cache {
    groups: Option<Arc<Groups>>,
    custom: Arc<BTreeMap<String, Arc<Document>>>,
    version_two: Option<Arc<Document>>,
}

/// A document in both forms.
struct Document {
    json: Bytes,
    etag: String,
    version: Version,
    /// The document in protobuf, encoded at the first request for it.
    protobuf: OnceLock<Bytes>,
}

/// The version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

/// The form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Protobuf,
}

impl OpenApi {
    /// Responds to a path below `/openapi`.
    pub(crate) fn respond(&self, call: &Call, groups: &Arc<Groups>, clock: &dyn Clock) -> Response<ResponseBody> {
        match call.path.trim_start_matches('/').splitn(3, '/').collect::<Vec<_>>().as_slice() {
            ["openapi", "v2"] => self.version_two(call, groups),
            ["openapi", "v3"] => self.index(groups),
            ["openapi", "v3", name] => self.version_three(call, groups, name, clock),
            _ => crate::discovery::page_not_found(),
        }
    }

    /// Returns the index of the documents of version 3. The real server sends it as text.
    fn index(&self, groups: &Arc<Groups>) -> Response<ResponseBody> {
        let folded = Folded::recorded();
        let custom = self.custom(groups);
        let mut paths: BTreeMap<&str, String> = BTreeMap::new();
        for (name, document) in custom.iter() {
            paths.insert(name, address(name, &document.etag));
        }
        for name in built_in_names() {
            paths.insert(name, address(name, folded.etag(name).unwrap_or_default()));
        }
        let entry = |url: String| serde_json::json!({"serverRelativeURL": url});
        let paths: BTreeMap<&str, Value> = paths.into_iter().map(|(name, url)| (name, entry(url))).collect();
        let mut response = response::text(StatusCode::OK, serde_json::json!({"paths": paths}).to_string());
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(NOT_CACHED));
        response
    }

    fn version_three(
        &self,
        call: &Call,
        groups: &Arc<Groups>,
        name: &str,
        clock: &dyn Clock,
    ) -> Response<ResponseBody> {
        let Some(document) = built_in(name).or_else(|| self.custom(groups).get(name).cloned()) else {
            return empty(StatusCode::NOT_FOUND);
        };
        let Some(form) = Form::of_request(call, Version::Three) else { return not_acceptable(Version::Three) };
        let mut response = document.respond(call, form);
        let Some(hash) = call.param("hash") else { return response };
        if hash != document.etag {
            *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
            *response.body_mut() = ResponseBody::whole(Bytes::new());
            insert(&mut response, LOCATION, address(name, &document.etag));
            return response;
        }
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let in_a_year = clock.now().to_zoned(jiff::tz::TimeZone::UTC).checked_add(1.year());
        if let Ok(time) = in_a_year {
            insert(&mut response, EXPIRES, time.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string());
        }
        response
    }

    fn version_two(&self, call: &Call, groups: &Arc<Groups>) -> Response<ResponseBody> {
        let Some(form) = Form::of_request(call, Version::Two) else { return not_acceptable(Version::Two) };
        let custom = self.custom(groups);
        let known = self.lock().version_two.clone();
        let document = known.unwrap_or_else(|| {
            let document = Arc::new(version_two(groups, custom.is_empty()));
            let mut cache = self.lock();
            if cache.groups.as_ref().is_some_and(|known| Arc::ptr_eq(known, groups)) {
                cache.version_two = Some(Arc::clone(&document));
            }
            document
        });
        document.respond(call, form)
    }

    /// Returns the documents of custom kinds. They are built again after a definition changed.
    fn custom(&self, groups: &Arc<Groups>) -> Arc<BTreeMap<String, Arc<Document>>> {
        let mut cache = self.lock();
        if !cache.groups.as_ref().is_some_and(|known| Arc::ptr_eq(known, groups)) {
            *cache = Cache { groups: Some(Arc::clone(groups)), ..Cache::default() };
            cache.custom = Arc::new(custom_documents(groups));
        }
        Arc::clone(&cache.custom)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Document {
    fn new(json: String, version: Version) -> Self {
        Self { etag: etag(json.as_bytes()), json: json.into(), version, protobuf: OnceLock::new() }
    }

    fn respond(&self, call: &Call, form: Form) -> Response<ResponseBody> {
        let quoted = format!("\"{}\"", self.etag);
        let known = call.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_known = known.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == quoted);
        let mut response = if is_known {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            let bytes = match form {
                Form::Json => self.json.clone(),
                Form::Protobuf => self.protobuf.get_or_init(|| gnostic::encode(&self.json, self.version)).clone(),
            };
            let mut whole = Response::new(ResponseBody::whole(bytes));
            whole.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type(self.version)));
            whole
        };
        insert(&mut response, ETAG, quoted);
        vary(&mut response, self.version);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(NOT_CACHED));
        response
    }
}

/// Names the request headers that a response depends on. Only version 2 is compressed by the real server.
fn vary(response: &mut Response<ResponseBody>, version: Version) {
    if version == Version::Two {
        response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
}

impl Form {
    /// Returns the form that a client prefers, if it is offered.
    fn of_request(call: &Call, version: Version) -> Option<Self> {
        let accept = call.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut clauses: Vec<(f32, &str)> = accept.split(',').filter_map(clause).collect();
        if clauses.is_empty() {
            clauses.push((1.0, "*/*"));
        }
        // The sort is stable: the first of equal clauses wins.
        clauses.sort_by(|a, b| b.0.total_cmp(&a.0));
        clauses.iter().find_map(|(_, kind)| match *kind {
            "*/*" | "application/*" | "application/json" => Some(Self::Json),
            kind => {
                let short = kind.strip_prefix("application/com.github.proto-openapi.spec.")?;
                let matches = match version {
                    Version::Two => matches!(short, "v2.v1.0+protobuf" | "v2@v1.0+protobuf"),
                    Version::Three => matches!(short, "v3.v1.0+protobuf" | "v3@v1.0+protobuf"),
                };
                matches.then_some(Self::Protobuf)
            }
        })
    }

    fn media_type(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Json, _) => "application/json",
            (Self::Protobuf, Version::Two) => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            (Self::Protobuf, Version::Three) => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        }
    }
}

/// Parses one alternative of an `Accept` header: its quality and media type.
fn clause(text: &str) -> Option<(f32, &str)> {
    let mut parts = text.split(';').map(str::trim);
    let kind = parts.next().filter(|kind| kind.contains('/'))?;
    let quality = parts.find_map(|part| part.strip_prefix("q=")).and_then(|quality| quality.parse().ok());
    Some((quality.unwrap_or(1.0), kind))
}

/// Returns the names of the documents of built-in kinds.
fn built_in_names() -> impl Iterator<Item = &'static str> {
    Folded::recorded().names().filter(|name| *name != "v2" && !name.starts_with("custom/"))
}

/// Returns a document of built-in kinds. All servers of a process share it.
fn built_in(name: &str) -> Option<Arc<Document>> {
    static DOCUMENTS: Mutex<Option<HashMap<&'static str, Arc<Document>>>> = Mutex::new(None);
    let name = built_in_names().find(|known| *known == name)?;
    let mut documents = DOCUMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let documents = documents.get_or_insert_default();
    if let Some(known) = documents.get(name) {
        return Some(Arc::clone(known));
    }
    let folded = Folded::recorded();
    let document = Arc::new(Document {
        json: folded.text(name)?.into(),
        etag: folded.etag(name)?.to_owned(),
        version: Version::Three,
        protobuf: OnceLock::new(),
    });
    documents.insert(name, Arc::clone(&document));
    Some(document)
}

/// Returns a document for each group version with custom kinds.
fn custom_documents(groups: &Groups) -> BTreeMap<String, Arc<Document>> {
    let mut documents = BTreeMap::new();
    for version in &groups.versions {
        let kinds: Vec<&Resource> =
            version.resources.iter().map(|resource| &**resource).filter(|resource| resource.is_custom()).collect();
        if !kinds.is_empty() {
            let name = format!("apis/{}/{}", version.group, version.version);
            documents.insert(name, Arc::new(Document::new(custom::version_three(&kinds).to_string(), Version::Three)));
        }
    }
    documents
}

/// Returns the document of version 2, with custom kinds if there are any.
fn version_two(groups: &Groups, is_built_in: bool) -> Document {
    let text = Folded::recorded().text("v2").unwrap_or_default();
    let parsed = if is_built_in { None } else { serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(&text).ok() };
    let Some(mut document) = parsed else { return Document::new(text, Version::Two) };
    for section in ["paths", "definitions"] {
        let entries = document.get(section).map_or("{}", |entries| entries.get());
        let mut entries: BTreeMap<String, Box<RawValue>> = serde_json::from_str(entries).unwrap_or_default();
        for resource in groups.versions.iter().flat_map(|version| &version.resources).filter(|kind| kind.is_custom()) {
            for (name, value) in custom::version_two(resource, section) {
                // Built-in entries win, as on the real server.
                if let Ok(raw) = serde_json::value::to_raw_value(&value) {
                    entries.entry(name).or_insert(raw);
                }
            }
        }
        if let Ok(raw) = serde_json::value::to_raw_value(&entries) {
            document.insert(section.to_owned(), raw);
        }
    }
    Document::new(serde_json::to_string(&document).unwrap_or_default(), Version::Two)
}

/// Returns the address of a document, which changes with its content.
fn address(name: &str, etag: &str) -> String {
    format!("/openapi/v3/{name}?hash={etag}")
}

/// Returns the SHA-512 hash of a document, as its entity tag has it.
pub(crate) fn etag(document: &[u8]) -> String {
    use std::fmt::Write as _;
    let hash = ring::digest::digest(&ring::digest::SHA512, document);
    hash.as_ref().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn insert(response: &mut Response<ResponseBody>, name: http::HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}

fn empty(code: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(Bytes::new()));
    *response.status_mut() = code;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(NOT_CACHED));
    response
}

fn not_acceptable(version: Version) -> Response<ResponseBody> {
    let mut response = empty(StatusCode::NOT_ACCEPTABLE);
    vary(&mut response, version);
    response
}

const NOT_CACHED: &str = "no-cache, private";
