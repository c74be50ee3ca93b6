//! Parsing of request paths.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The target of a request path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`, which lists the other paths.
    Root,
    /// `/api`: versions of the core group.
    Core,
    /// `/apis`: all other groups.
    Groups,
    /// `/apis/apps`
    Group(String),
    /// `/apis/apps/v1` or `/api/v1`
    Version {
        group: String,
        version: String,
    },
    Resource(ResourceRoute),
    /// `/version`
    ServerVersion,
    /// `/healthz`, `/livez`, `/readyz`, and one check of them.
    Health {
        endpoint: String,
        check: Option<String>,
    },
    OpenApi,
    /// Another path of the server itself, such as `/metrics`.
    Endpoint(Vec<String>),
    Unknown,
}

/// The path of a resource, an object or a subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceRoute {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// Whether it is one of the deprecated paths with `/watch/`.
    pub(crate) watch: bool,
}

impl Route {
    /// Parses a path.
    pub(crate) fn parse(path: &str) -> Self {
        let parts = path.trim_matches('/').split('/').map(|part| percent_decode_str(part).decode_utf8());
        let Ok(parts) = parts.collect::<Result<Vec<Cow<'_, str>>, _>>() else { return Self::Unknown };
        let parts: Vec<&str> = parts.iter().map(|part| &**part).filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            [] => Self::Root,
            ["api"] => Self::Core,
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group((*group).to_owned()),
            ["api", version] => Self::Version { group: String::new(), version: (*version).to_owned() },
            ["apis", group, version] => Self::Version { group: (*group).to_owned(), version: (*version).to_owned() },
            ["api", version, rest @ ..] => Self::resource("", version, rest),
            ["apis", group, version, rest @ ..] => Self::resource(group, version, rest),
            ["version"] => Self::ServerVersion,
            [endpoint @ ("healthz" | "livez" | "readyz")] => {
                Self::Health { endpoint: (*endpoint).to_owned(), check: None }
            }
            [endpoint @ ("healthz" | "livez" | "readyz"), check] => {
                Self::Health { endpoint: (*endpoint).to_owned(), check: Some((*check).to_owned()) }
            }
            ["openapi", ..] => Self::OpenApi,
            ["metrics" | "openid" | ".well-known" | "statusz" | "flagz", ..] => {
                Self::Endpoint(parts.iter().map(|part| (*part).to_owned()).collect())
            }
            _ => Self::Unknown,
        }
    }

    fn resource(group: &str, version: &str, rest: &[&str]) -> Self {
        let mut route =
            ResourceRoute { group: group.to_owned(), version: version.to_owned(), ..ResourceRoute::default() };
        let rest = match rest {
            ["watch", rest @ ..] => {
                route.watch = true;
                rest
            }
            rest => rest,
        };
        let rest = match rest {
            // A namespace itself, or a subresource of it.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => rest,
            ["namespaces", namespace, rest @ ..] => {
                route.namespace = Some((*namespace).to_owned());
                rest
            }
            rest => rest,
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(*name), None),
            [plural, name, subresource, ..] => (plural, Some(*name), Some(*subresource)),
            [] => return Self::Unknown,
        };
        route.plural = (*plural).to_owned();
        route.name = name.map(str::to_owned);
        route.subresource = subresource.map(str::to_owned);
        Self::Resource(route)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> (String, Option<String>, String, Option<String>, Option<String>) {
        match Route::parse(path) {
            Route::Resource(route) => (route.group, route.namespace, route.plural, route.name, route.subresource),
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn route_parses_object_paths() {
        let some = |text: &str| Some(text.to_owned());
        let core = String::new;
        assert_eq!(resource("/api/v1/pods"), (core(), None, "pods".into(), None, None));
        assert_eq!(resource("/api/v1/namespaces"), (core(), None, "namespaces".into(), None, None));
        assert_eq!(resource("/api/v1/namespaces/a"), (core(), None, "namespaces".into(), some("a"), None));
        assert_eq!(
            resource("/api/v1/namespaces/a/finalize"),
            (core(), None, "namespaces".into(), some("a"), some("finalize"))
        );
        assert_eq!(resource("/api/v1/namespaces/a/pods"), (core(), some("a"), "pods".into(), None, None));
        assert_eq!(
            resource("/apis/apps/v1/namespaces/a/deployments/web/status"),
            ("apps".into(), some("a"), "deployments".into(), some("web"), some("status"))
        );
        assert_eq!(resource("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode").3, some("system:node"));
        assert!(matches!(Route::parse("/api/v1/watch/namespaces/a/pods"), Route::Resource(route) if route.watch));
    }

    #[test]
    fn route_parses_other_paths() {
        assert_eq!(Route::parse("/"), Route::Root);
        assert_eq!(Route::parse("/apis/apps"), Route::Group("apps".into()));
        assert_eq!(Route::parse("/api/v1/"), Route::Version { group: String::new(), version: "v1".into() });
        assert_eq!(
            Route::parse("/readyz/ping"),
            Route::Health { endpoint: "readyz".into(), check: Some("ping".into()) }
        );
        assert_eq!(Route::parse("/nothing"), Route::Unknown);
        assert_eq!(Route::parse("/api/v1/pods/%ff"), Route::Unknown);
    }
}
