//! The paths besides those of the API: health, metrics, and the documents of the token issuer.

use http::{
    HeaderValue, Method, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use klient_core::GroupResource;
use serde_json::{Value, json};

use crate::{
    access::ALGORITHM,
    body::ResponseBody,
    call::Call,
    discovery, metrics,
    registry::{self, Groups},
    response,
    server::Core,
    verbs::method_not_allowed,
};

/// Responds to a path of the server itself.
pub(crate) fn respond(core: &Core, call: &Call, path: &[String]) -> Response<ResponseBody> {
    match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["openid", "v1", "jwks"] | [".well-known", "openid-configuration"] if call.method != Method::GET => {
            response::failure(&method_not_allowed(call, &GroupResource::new("", "")), call.error_format())
        }
        ["metrics"] => metrics_text(metrics::all(core)),
        ["metrics", "slis"] => metrics_text(metrics::health()),
        ["openid", "v1", "jwks"] => issuer(&core.access.issuer.keys(), "application/jwk-set+json"),
        ["statusz"] => response::text(StatusCode::OK, status(core)),
        ["flagz"] => response::text(StatusCode::OK, format!("\napiserver flagz\n{NOT_FOR_MACHINES}")),
        [".well-known", "openid-configuration"] => issuer(&issuer_configuration(core, call), "application/json"),
        _ => discovery::page_not_found(),
    }
}

/// Responds to a health check.
pub(crate) fn health(call: &Call, endpoint: &str, check: Option<&str>) -> Response<ResponseBody> {
    match check {
        None if call.flag("verbose") => {
            let text = format!("[+]ping ok\n[+]log ok\n[+]etcd ok\n{endpoint} check passed\n");
            response::text(StatusCode::OK, text)
        }
        None | Some("ping" | "etcd" | "log") => response::text(StatusCode::OK, "ok"),
        Some(_) => discovery::page_not_found(),
    }
}

/// Responds to `/version`.
pub(crate) fn version() -> Response<ResponseBody> {
    let version = registry::server_version();
    let lines: Vec<String> = VERSION.iter().map(|name| format!("  {name:?}: {}", version[*name])).collect();
    indented(format!("{{\n{}\n}}", lines.join(",\n")))
}

/// Responds to `/` with the list of paths.
pub(crate) fn root(groups: &Groups) -> Response<ResponseBody> {
    let mut paths: Vec<String> = [
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
        "/flagz",
        "/healthz",
        "/healthz/etcd",
        "/healthz/log",
        "/healthz/ping",
        "/livez",
        "/livez/etcd",
        "/livez/log",
        "/livez/ping",
        "/metrics",
        "/metrics/slis",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/openid/v1/jwks",
        "/readyz",
        "/readyz/etcd",
        "/readyz/log",
        "/readyz/ping",
        "/statusz",
        "/version",
    ]
    .map(str::to_owned)
    .to_vec();
    for version in groups.versions.iter().filter(|version| !version.group.is_empty()) {
        paths.push(format!("/apis/{}", version.group));
        paths.push(format!("/apis/{}/{}", version.group, version.version));
    }
    paths.sort();
    paths.dedup();
    indented(serde_json::to_vec_pretty(&json!({"paths": paths})).unwrap_or_default())
}

/// Returns a response with JSON in lines.
fn indented(text: impl Into<bytes::Bytes>) -> Response<ResponseBody> {
    let mut response = response::text(StatusCode::OK, text);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// The fields of the server's version, in the order of Go's struct.
const VERSION: [&str; 13] = [
    "major",
    "minor",
    "emulationMajor",
    "emulationMinor",
    "minCompatibilityMajor",
    "minCompatibilityMinor",
    "gitVersion",
    "gitCommit",
    "gitTreeState",
    "buildDate",
    "goVersion",
    "compiler",
    "platform",
];

/// Returns a page about the process for people.
fn status(core: &Core) -> String {
    let seconds = core.clock.now().duration_since(core.started).as_secs().max(0);
    let version = &registry::server_version()["gitVersion"];
    let version = version.as_str().unwrap_or_default().trim_start_matches('v');
    let minor = version.rsplit_once('.').map_or(version, |(minor, _)| minor);
    format!(
        "\napiserver statusz\n{NOT_FOR_MACHINES}\nStarted:  {}\nUp:  {} hr {:02} min {:02} sec\nBinary version:  {version}\nEmulation version:  {minor}\nPaths:  /flagz /healthz /livez /metrics /readyz /statusz /version\n",
        core.started.strftime("%a %b %e %H:%M:%S UTC %Y"),
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
    )
}

const NOT_FOR_MACHINES: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n";

/// Returns the configuration of the token issuer.
fn issuer_configuration(core: &Core, call: &Call) -> Value {
    let host = call.headers.get(http::header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:6443");
    json!({
        "issuer": core.access.issuer.url,
        "jwks_uri": format!("https://{host}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    })
}

fn issuer(document: &Value, content_type: &'static str) -> Response<ResponseBody> {
    let mut response = response::text(StatusCode::OK, document.to_string());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

fn metrics_text(text: String) -> Response<ResponseBody> {
    let mut response = response::text(StatusCode::OK, text);
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
