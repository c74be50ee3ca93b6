//! A request with its query parameters parsed.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use klient_core::{GroupKind, Quoted, Status, StatusCause};

use crate::{
    Result,
    access::User,
    admission::Notes,
    causes::Causes,
    conversion::Pending,
    decode::FieldValidation,
    managed::Writer,
    metadata,
    negotiate::{ALL, Include, Offered, Projection, ResponseFormat},
    patch::Patch,
    registry::Resource,
};

/// A request.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The user who sent the request.
    pub(crate) user: Arc<User>,
    /// The warnings and audit annotations of admission.
    pub(crate) notes: Notes,
    query: Vec<(String, String)>,
}

/// The options of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_validation: FieldValidation,
}

impl Call {
    pub(crate) fn new(parts: http::request::Parts, body: Bytes, user: Arc<User>) -> Self {
        let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        Self {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            user,
            headers: parts.headers,
            notes: Notes::default(),
            body,
            query: query.into_owned().collect(),
        }
    }

    /// Returns the media type of the body, or an empty text.
    pub(crate) fn content_type(&self) -> &str {
        self.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns whether the request is a watch, by parameter or by the deprecated paths.
    pub(crate) fn is_watch(&self) -> bool {
        self.flag("watch") || self.path.contains("/watch/")
    }

    /// Returns the path with its query.
    pub(crate) fn target(&self) -> String {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }

    /// Removes a parameter.
    pub(crate) fn without(&mut self, name: &str) {
        self.query.retain(|(given, _)| given != name);
    }

    /// Returns the value of a parameter. An empty value counts as absent.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns all values of a parameter.
    pub(crate) fn params<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether a parameter is true, as Go parses it.
    pub(crate) fn flag(&self, name: &str) -> bool {
        let found = self.query.iter().find(|(given, _)| given == name);
        found.is_some_and(|(_, value)| !matches!(value.to_ascii_lowercase().as_str(), "0" | "false"))
    }

    /// Returns the value of a parameter as a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>> {
        let Some(text) = self.param(name) else { return Ok(None) };
        let number = text.parse().map_err(|_| {
            Box::new(Status::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", Quoted(text))))
        })?;
        Ok(Some(number))
    }

    /// Negotiates the format of the response.
    pub(crate) fn response_format(&self, resource: &Resource) -> Result<ResponseFormat> {
        self.choose(resource, false)
    }

    /// Negotiates the format of the response of a list or watch.
    pub(crate) fn collection_format(&self, resource: &Resource) -> Result<ResponseFormat> {
        self.choose(resource, true)
    }

    fn choose(&self, resource: &Resource, streams: bool) -> Result<ResponseFormat> {
        let offered = Offered { protobuf: resource.codec.is_some(), projections: true, streams };
        let mut wanted =
            ResponseFormat::of_request(&self.headers, self.param("pretty"), offered).map_err(|status| {
                // The real server has another message for custom kinds.
                if resource.is_custom() && !streams { Box::new(Status::not_acceptable(&ALL)) } else { status }
            })?;
        if let Projection::Table(include) = &mut wanted.projection {
            *include = Include::parse(self.param("includeObject"))?;
        }
        Ok(wanted)
    }

    /// Returns the format of an error response.
    pub(crate) fn error_format(&self) -> ResponseFormat {
        let offered = Offered { protobuf: true, projections: false, streams: true };
        ResponseFormat::of_request(&self.headers, self.param("pretty"), offered).unwrap_or(ResponseFormat::JSON)
    }

    /// Returns the origin of a write: the field manager of the request, or the program that sent it.
    pub(crate) fn writer(&self, subresource: &str, now: jiff::Timestamp) -> Writer {
        let manager = self.param("fieldManager").map_or_else(|| self.program(), str::to_owned);
        let manager = if manager.is_empty() { "unknown".to_owned() } else { manager };
        Writer {
            manager,
            subresource: subresource.to_owned(),
            time: metadata::time(now),
            conversions: Pending::default(),
        }
    }

    /// Returns the name of the program that sent the request.
    fn program(&self) -> String {
        let agent = self.headers.get(http::header::USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        let agent = agent.unwrap_or_default();
        let name = agent.split('/').next().unwrap_or_default();
        let mut out = String::new();
        for c in name.chars().filter(|c| metadata::is_printable(*c)) {
            if out.len() + c.len_utf8() > metadata::MAX_MANAGER {
                break;
            }
            out.push(c);
        }
        out
    }

    /// Parses the options of a write. `kind` names the options in errors.
    pub(crate) fn write_options(&self, kind: &'static str) -> Result<WriteOptions> {
        let mut causes = Causes::new();
        if self.method == Method::PATCH {
            let is_apply = Patch::is_apply(self.content_type());
            if is_apply && self.param("fieldManager").is_none() {
                causes.add(|| StatusCause::required("fieldManager", "is required for apply patch"));
            }
            if !is_apply && self.params("force").next().is_some() {
                causes.add(|| StatusCause::forbidden("force", "may not be specified for non-apply patch"));
            }
        }
        if let Some(manager) = self.param("fieldManager") {
            metadata::manager_problems("fieldManager", manager, &mut causes);
        }
        let dry_run: Vec<&str> = self.params("dryRun").collect();
        if dry_run.iter().any(|value| *value != "All") {
            let given: Vec<_> = dry_run.iter().map(|value| serde_json::Value::from(*value)).collect();
            causes.add(|| StatusCause::not_supported("dryRun", given, &["All"]));
        }
        let field_validation = match self.param("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                causes.add(|| StatusCause::not_supported("fieldValidation", other, &["", "Ignore", "Strict", "Warn"]));
                FieldValidation::Warn
            }
        };
        if !causes.is_empty() {
            return Err(Box::new(Status::invalid(&GroupKind::new("meta.k8s.io", kind), "", causes.into_vec())));
        }
        Ok(WriteOptions { dry_run: !dry_run.is_empty(), field_validation })
    }
}
