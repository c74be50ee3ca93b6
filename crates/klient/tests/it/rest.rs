//! Requests built part by part, and the client's limits, warnings and metrics.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use klient::{
    Api, ErrorKind, WatchEvent,
    client::http::Warning,
    metrics::Registry,
    options::ListOptions,
    request::{media_type, subresource},
    resource::ApiResource,
};
use serde_json::json;
use tokio::time::Instant;

use crate::support::scripted::{Script, Step, json_response, map, map_json, map_response, response, streamed, with};

fn maps() -> ApiResource {
    ApiResource::of::<ConfigMap>()
}

#[tokio::test]
async fn request_is_built_from_its_parts() {
    let script =
        Script::new([map_response("web"), response(200, "text/plain", "ok"), response(200, "text/plain", "log")]);
    let rest = script.client().rest();
    let found: ConfigMap = rest.get().resource(&maps()).namespace("shop").name("web").object().await.unwrap();
    assert_eq!(found, map("web"));
    assert_eq!(rest.get().path("/livez").param("verbose", true).bytes().await.unwrap(), "ok");
    let log = rest.get().resource(&ApiResource::of::<Pod>()).namespace("shop").name("web-0");
    log.subresource(subresource::LOG).param("tailLines", 10).bytes().await.unwrap();
    let seen: Vec<String> = script.played().iter().map(|seen| seen.request.uri().to_string()).collect();
    assert_eq!(
        seen,
        [
            "/api/v1/namespaces/shop/configmaps/web",
            "/livez?verbose=true",
            "/api/v1/namespaces/shop/pods/web-0/log?tailLines=10"
        ]
    );
}

#[tokio::test]
async fn get_without_a_name_is_a_list() {
    let table = || json_response(200, &json!({"kind": "Table"}));
    let script = Script::new([table(), table()]);
    let rest = script.client().rest();
    rest.get().resource(&maps()).value::<serde_json::Value>().await.unwrap();
    rest.get().resource(&maps()).namespace("shop").param("limit", 5).value::<serde_json::Value>().await.unwrap();
    let seen: Vec<String> = script.played().iter().map(|seen| seen.request.uri().to_string()).collect();
    assert_eq!(seen, ["/api/v1/configmaps", "/api/v1/namespaces/shop/configmaps?limit=5"]);
}

#[tokio::test]
async fn body_is_sent_in_the_selected_format() {
    let script = Script::new([map_response("a"), map_response("b"), map_response("c")]);
    let rest = script.client().rest();
    let post = || rest.post().resource(&maps()).namespace("shop");
    post().json(&map("a")).object::<ConfigMap>().await.unwrap();
    post().protobuf(&map("b")).object::<ConfigMap>().await.unwrap();
    post().body(media_type::YAML, "kind: ConfigMap").object::<ConfigMap>().await.unwrap();
    let seen = script.played();
    let types: Vec<_> = seen.iter().map(|seen| seen.request.headers()["content-type"].to_str().unwrap()).collect();
    assert_eq!(types, [media_type::JSON, media_type::PROTOBUF, media_type::YAML]);
    assert_eq!(klient::wire::decode_body::<ConfigMap>(seen[1].request.body()).unwrap(), map("b"));
    assert_eq!(seen[2].request.body(), "kind: ConfigMap");
    assert!(seen.iter().all(|seen| seen.request.headers()["accept"] == media_type::ACCEPT_PROTOBUF_OR_JSON));
}

#[tokio::test]
async fn lists_and_watches_are_read_from_any_path() {
    let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"},
        "items": [map_json("a"), map_json("b")]});
    let event = json!({"type": "ADDED", "object": map_json("c")});
    let script = Script::new([json_response(200, &list), json_response(200, &event)]);
    let rest = script.client().rest();
    let options = ListOptions::default().limit(2);
    let list =
        rest.get().resource(&maps()).options(|query| options.append_query(query)).list::<ConfigMap>().await.unwrap();
    assert_eq!((list.items.len(), list.resource_version().to_string().as_str()), (2, "7"));
    let mut watch = rest.get().path("/api/v1/configmaps").watch::<ConfigMap>().await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(object))) if object == map("c")));
    assert!(watch.next().await.is_none());
    let seen: Vec<String> = script.played().iter().map(|seen| seen.request.uri().to_string()).collect();
    assert_eq!(seen, ["/api/v1/configmaps?limit=2", "/api/v1/configmaps?watch=true"]);
}

#[tokio::test]
async fn invalid_part_is_an_error_before_sending() {
    let script = Script::new(Vec::<Step>::new());
    let rest = script.client().rest();
    let in_maps = || rest.get().resource(&maps());
    let problems = [
        rest.get().bytes().await.unwrap_err(),
        rest.get().name("web").path("/x").bytes().await.unwrap_err(),
        rest.get().path("version").bytes().await.unwrap_err(),
        rest.get().path("/version?x=y").bytes().await.unwrap_err(),
        rest.get().path("/api/../secrets").bytes().await.unwrap_err(),
        in_maps().namespace("a/b").name("web").bytes().await.unwrap_err(),
        in_maps().namespace("shop").name("..").bytes().await.unwrap_err(),
        in_maps().namespace("shop").name("a%2fb").bytes().await.unwrap_err(),
        in_maps().name("web").bytes().await.unwrap_err(),
        in_maps().accept("a\nb").bytes().await.unwrap_err(),
        rest.put().resource(&maps()).body("a\nb", "").bytes().await.unwrap_err(),
        rest.get().resource(&ApiResource::of::<Node>()).namespace("shop").bytes().await.unwrap_err(),
    ];
    for error in problems {
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    script.played();
}

#[tokio::test(start_paused = true)]
async fn request_timeout_covers_retries_and_is_sent_to_the_server() {
    let busy = || with(response(429, "text/plain", "later"), "retry-after", "4");
    let script = Script::new([busy(), busy(), busy()]);
    let start = Instant::now();
    let rest = script.client().rest();
    let error = rest.get().path("/version").timeout(Duration::from_secs(10)).bytes().await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    assert!(script.played().iter().all(|seen| seen.request.uri() == "/version?timeout=10000ms"));
}

#[tokio::test(start_paused = true)]
async fn max_retries_limits_retries() {
    let busy = || with(response(429, "text/plain", "later"), "retry-after", "1");
    let script = Script::new([busy(), busy(), busy()]);
    let rest = script.client().rest();
    assert!(rest.get().path("/version").max_retries(0).bytes().await.unwrap_err().is_too_many_requests());
    assert!(rest.get().path("/version").max_retries(1).bytes().await.unwrap_err().is_too_many_requests());
    script.played();
}

#[tokio::test]
async fn header_of_the_request_replaces_the_clients() {
    let script = Script::new([response(200, "text/plain", ""), response(200, "text/plain", "")]);
    let agent = http::HeaderValue::from_static("usual");
    let client = script.builder().header(http::header::ORIGIN, agent).build();
    let other = http::HeaderValue::from_static("other");
    client.rest().get().path("/a").header(http::header::ORIGIN, other).bytes().await.unwrap();
    client.rest().get().path("/b").bytes().await.unwrap();
    let origins: Vec<_> = script.played().iter().map(|seen| seen.request.headers()["origin"].clone()).collect();
    assert_eq!(origins, ["other", "usual"]);
}

#[tokio::test(start_paused = true)]
async fn rate_limit_delays_requests_but_not_watches() {
    let script = Script::new((0..5).map(|_| json_response(200, &json!({}))));
    let registry = Registry::new();
    let client = script.builder().rate_limit(1.0, 2).unwrap().metrics(&registry).build();
    let start = Instant::now();
    for _ in 0..4 {
        client.rest().get().path("/version").bytes().await.unwrap();
    }
    assert_eq!(start.elapsed().as_secs_f32().round(), 2.0);
    let waited = Instant::now();
    client.rest().get().path("/api/v1/pods").watch::<Pod>().await.unwrap();
    assert_eq!(waited.elapsed(), Duration::ZERO);
    script.played();
    assert!(registry.render().contains("rest_client_rate_limiter_duration_seconds_count{verb=\"GET\",host=\"\"} 4"));
}

#[tokio::test]
async fn warning_handler_receives_each_warning_once() {
    let warned = || with(map_response("web"), "warning", r#"299 - "old kind", 299 - "odd field""#);
    let script = Script::new([warned(), warned()]);
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&warnings);
    let handler = move |warning: &Warning| seen.lock().unwrap().push(warning.text.clone());
    let api: Api<ConfigMap> = Api::namespaced(script.builder().warning_handler(handler).build(), "shop");
    for _ in 0..2 {
        api.get("web").await.unwrap();
    }
    script.played();
    assert_eq!(*warnings.lock().unwrap(), ["old kind", "odd field"]);
}

#[tokio::test(start_paused = true)]
async fn requests_and_retries_are_counted_in_metrics() {
    let busy = with(response(429, "text/plain", "later"), "retry-after", "1");
    let broken = [Step::Broken, Step::Broken, Step::Broken];
    let steps = [busy.into(), map_response("web").into()].into_iter().chain(broken);
    let script = Script::new(steps);
    let registry = Registry::new();
    let client = script.builder().metrics(&registry).host("example.com:6443").build();
    let api: Api<ConfigMap> = Api::namespaced(client, "shop");
    api.get("web").await.unwrap();
    api.get("web").await.unwrap_err();
    script.played();
    let text = registry.render();
    for line in [
        r#"rest_client_requests_total{code="200",method="GET",host="example.com:6443"} 1"#,
        r#"rest_client_requests_total{code="429",method="GET",host="example.com:6443"} 1"#,
        r#"rest_client_requests_total{code="<error>",method="GET",host="example.com:6443"} 3"#,
        r#"rest_client_request_retries_total{code="429",method="GET",host="example.com:6443"} 1"#,
        r#"rest_client_request_retries_total{code="<error>",method="GET",host="example.com:6443"} 2"#,
        r#"rest_client_request_duration_seconds_count{verb="GET",host="example.com:6443"} 2"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn failure_status_with_a_success_code_is_always_an_error() {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
    let script = Script::new((0..5).map(|_| json_response(200, &status)));
    let rest = script.client().rest();
    let get = || rest.get().resource(&maps()).namespace("shop");
    assert!(get().name("web").object::<ConfigMap>().await.unwrap_err().is_not_found());
    assert!(get().list::<ConfigMap>().await.unwrap_err().is_not_found());
    assert!(get().name("web").status().await.unwrap_err().is_not_found());
    let mut stream = get().list_stream::<ConfigMap>(klient::wire::SplitOptions::default()).await.unwrap();
    assert!(stream.next().await.unwrap().unwrap_err().is_not_found());
    assert!(stream.next().await.is_none() && stream.end().is_none());
    assert!(get().name("web").value::<Vec<u8>>().await.unwrap_err().is_not_found());
    script.played();
}

#[tokio::test]
async fn response_can_be_streamed() {
    let (feed, body) = crate::support::scripted::fed();
    let script = Script::new([streamed(200, "application/octet-stream", body)]);
    let mut stream = script.client().rest().get().path("/debug/trace").stream().await.unwrap();
    feed.send(Ok("one".into())).unwrap();
    assert_eq!(stream.chunk().await.unwrap().unwrap(), "one");
    feed.send(Ok("two".into())).unwrap();
    drop(feed);
    assert_eq!(stream.chunk().await.unwrap().unwrap(), "two");
    assert_eq!(stream.chunk().await.unwrap(), None);
    script.played();
}

#[tokio::test]
async fn json_is_decoded_with_any_content_type() {
    let page = response(200, "text/html", "<html>");
    let script = Script::new([response(200, "text/plain; charset=utf-8", r#"{"paths": {}}"#), page]);
    let rest = script.client().rest();
    let index: serde_json::Value = rest.get().path("/openapi/v3").value().await.unwrap();
    assert_eq!(index, json!({"paths": {}}));
    let error = rest.get().path("/openapi/v3").value::<serde_json::Value>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(crate::support::scripted::chain(&error).contains("expected JSON"), "{error:?}");
}
