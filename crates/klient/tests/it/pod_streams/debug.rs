//! Ephemeral containers: added, awaited, attached to.

use std::time::Duration;

use klient::{ErrorKind, Patch};
use klient_apiserver::pod_streams::{ExecCall, PodStreams};
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, time::sleep};

use super::World;

#[tokio::test]
async fn ephemeral_container_is_added_awaited_and_attached_to() {
    let world = World::new(PodStreams::new().attach(|mut call: ExecCall| async move {
        let text = format!("{} of {}", call.container, call.pod);
        call.stdout.as_mut().unwrap().write_all(text.as_bytes()).await?;
        Ok(0)
    }))
    .await;
    let pods = world.pods();
    // Nothing starts it.
    let error = pods.debug("web", "busybox").timeout(Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("a start of ephemeral container debugger-"), "{error}");

    let kubelet = async {
        loop {
            let pod = pods.get("web").await.unwrap();
            let added = pod.spec.unwrap().ephemeral_containers.unwrap_or_default();
            let Some(added) = added.iter().find(|container| container.name == "tools") else {
                sleep(Duration::from_millis(5)).await;
                continue;
            };
            assert_eq!(added.image.as_deref(), Some("busybox"));
            assert_eq!(added.target_container_name.as_deref(), Some("app"));
            assert_eq!(added.command.as_deref().unwrap_or_default(), ["sh"]);
            let status = json!({"name": "tools", "image": "busybox", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"running": {}}});
            let patch = Patch::merge(json!({"status": {"ephemeralContainerStatuses": [status]}}));
            pods.status().patch("web", patch).await.unwrap();
            return;
        }
    };
    let debug = pods.debug("web", "busybox").name("tools").target("app").command(["sh"]);
    let (debugger, ()) = tokio::join!(debug.into_future(), kubelet);
    let debugger = debugger.unwrap();
    assert_eq!((debugger.name.as_str(), debugger.has_ended), ("tools", false));
    let output = debugger.attach().await.unwrap().output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "tools of web");
    assert!(pods.debug("missing", "busybox").await.unwrap_err().is_not_found());
}
