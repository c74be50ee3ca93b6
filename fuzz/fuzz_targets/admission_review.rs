//! Reviews to klient's webhooks: there is a response to any body, and a successful one repeats the uid and has a patch that is JSON.

#![no_main]

use bytes::Bytes;
use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use klient::webhook::{Webhooks, mutate};
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let hook = mutate::<ConfigMap>(async |request: klient::webhook::Request<ConfigMap>| {
        let mut map = request.object.unwrap_or_default();
        map.metadata.labels.get_or_insert_default().insert("seen".to_owned(), "yes".to_owned());
        Ok::<_, klient::Error>(map)
    });
    let webhooks = Webhooks::new("fuzz").hook(hook.path("/mutate"));
    let request = Request::post("/mutate").header("content-type", "application/json");
    let request = request.body(Bytes::copy_from_slice(data)).expect("a request");
    let response = runtime.block_on(webhooks.handle(request));
    if response.status() != 200 {
        assert!(!response.body().is_empty(), "an error says what is wrong");
        return;
    }
    // Parts that no handler reads may be malformed, such as an escape that stands for no character.
    let Ok(sent) = serde_json::from_slice::<Value>(data) else { return };
    let review: Value = serde_json::from_slice(response.body()).expect("a response is JSON");
    assert_eq!(review["response"]["uid"], sent["request"]["uid"]);
    assert_eq!(review["apiVersion"], sent["apiVersion"]);
    assert_eq!(review["response"]["patch"].is_string(), review["response"]["patchType"] == "JSONPatch");
});
