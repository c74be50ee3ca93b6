//! Where a webhook is, as its configuration says.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::trust::certificates;

/// The location of a webhook, and the certificates that it is verified by.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub(crate) place: Place,
    bundle: Arc<[u8]>,
}

/// The place of a webhook.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Url { scheme: String, host: String, port: u16, authority: String, path: String },
    Service { namespace: String, name: String, port: u16, path: String },
}

impl Location {
    /// Reads a `clientConfig`.
    pub(crate) fn parse(config: &Value) -> Option<Self> {
        let place = match config.get("service").filter(|service| service.is_object()) {
            Some(service) => Place::Service {
                namespace: service["namespace"].as_str().unwrap_or_default().to_owned(),
                name: service["name"].as_str().unwrap_or_default().to_owned(),
                port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
                path: cleaned(service["path"].as_str().unwrap_or_default()),
            },
            None => parse_url(config["url"].as_str()?)?,
        };
        let bundle = STANDARD.decode(config["caBundle"].as_str().unwrap_or_default()).unwrap_or_default();
        Some(Self { place, bundle: bundle.into() })
    }

    /// Returns the URL with a query, as errors show it.
    pub(crate) fn url(&self, query: &str) -> String {
        let scheme = match &self.place {
            Place::Url { scheme, .. } => scheme,
            Place::Service { .. } => "https",
        };
        format!("{scheme}://{}{}?{query}", self.authority(), self.path())
    }

    /// Returns host and port as requests name them.
    pub(crate) fn authority(&self) -> String {
        match &self.place {
            Place::Url { authority, .. } => authority.clone(),
            Place::Service { namespace, name, port, .. } => format!("{name}.{namespace}.svc:{port}"),
        }
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &str {
        match &self.place {
            Place::Url { path, .. } | Place::Service { path, .. } => path,
        }
    }

    /// Returns the trusted certificates, or Go's error about a bundle that has none.
    pub(super) fn trust(&self) -> Result<Arc<[u8]>, String> {
        if !self.bundle.is_empty() && certificates(&self.bundle).is_empty() {
            return Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned());
        }
        Ok(Arc::clone(&self.bundle))
    }
}

fn parse_url(url: &str) -> Option<Place> {
    let uri: http::Uri = url.parse().ok()?;
    let authority = uri.authority()?;
    let scheme = uri.scheme_str().unwrap_or("https").to_owned();
    let port = uri.port_u16().unwrap_or(if scheme == "http" { 80 } else { 443 });
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    Some(Place::Url { scheme, host, port, authority: authority.to_string(), path: cleaned(uri.path()) })
}

/// Returns the path that is requested: client-go removes empty and relative segments, and a slash at the end.
fn cleaned(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn location_of_a_service_has_its_name_in_the_cluster() {
        let config = json!({"service": {"namespace": "ns", "name": "s", "path": "/x", "port": 443}});
        let location = Location::parse(&config).unwrap();
        assert_eq!(location.url("timeout=1s"), "https://s.ns.svc:443/x?timeout=1s");
    }

    #[test]
    fn location_of_a_url_has_its_text() {
        let location = Location::parse(&json!({"url": "https://127.0.0.1:8443/a/b"})).unwrap();
        assert_eq!(location.url("timeout=1s"), "https://127.0.0.1:8443/a/b?timeout=1s");
    }

    #[test]
    fn path_is_cleaned_as_by_client_go() {
        // envtest configures such URLs.
        for (url, path) in [("//failing", "/failing"), ("/a/./b/../c/", "/a/c"), ("/../a", "/a"), ("/", "/"), ("", "/")]
        {
            let location = Location::parse(&json!({"url": format!("https://h:1{url}")})).unwrap();
            assert_eq!(location.path(), path, "of {url:?}");
        }
        let service = json!({"service": {"namespace": "ns", "name": "s", "path": "x//y"}});
        assert_eq!(Location::parse(&service).unwrap().path(), "/x/y");
    }

    #[test]
    fn bundle_without_certificates_is_an_error() {
        let config = json!({"url": "https://h/", "caBundle": STANDARD.encode("junk")});
        let problem = Location::parse(&config).unwrap().trust().unwrap_err();
        assert_eq!(problem, "unable to load root certificates: unable to parse bytes as PEM block");
    }
}
