//! Service accounts of pods: the default account, its pull secrets, and the volume with its token.

use serde_json::{Value, json};

use super::{BuiltIn, is_core, is_create};
use crate::{
    Result,
    admission::{Attributes, Stage},
    metadata,
    registry::Resource,
    server::Core,
};

/// Gives a pod its service account, and mounts its token.
///
/// On a server that creates no service accounts in namespaces, a pod of an account that does not exist is accepted: no pod could be
/// created otherwise.
pub(crate) struct ServiceAccount;

impl BuiltIn for ServiceAccount {
    const NAME: &'static str = "ServiceAccount";

    fn is_about(&self, _: &Core, resource: &Resource) -> bool {
        is_core(resource, "pods")
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        stage == Stage::Mutating && is_create(request)
    }

    fn admit(&self, core: &Core, request: &mut Attributes<'_>) -> Result<()> {
        let Some(mut pod) = request.object.take() else { return Ok(()) };
        let outcome = set(core, &request.namespace, &mut pod);
        request.object = Some(pod);
        outcome.map_err(|why| request.forbidden(why))
    }
}

fn set(core: &Core, namespace: &str, pod: &mut Value) -> std::result::Result<(), String> {
    if pod["metadata"]["annotations"].get("kubernetes.io/config.mirror").is_some() {
        let names_account = pod["spec"]["serviceAccountName"].as_str().is_some_and(|name| !name.is_empty());
        return if names_account { Err("a mirror pod may not reference service accounts".to_owned()) } else { Ok(()) };
    }
    let Value::Object(spec) = &mut pod["spec"] else { return Ok(()) };
    let given = spec.get("serviceAccountName").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = given.unwrap_or("default").to_owned();
    spec.insert("serviceAccountName".to_owned(), json!(name));
    let Some(account) = core.store.get("serviceaccounts", &format!("{namespace}/{name}")) else {
        if core.namespace_contents.is_none() {
            return Ok(());
        }
        return Err(format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        ));
    };
    let account = account.value();
    let automount = |object: &Value| object["automountServiceAccountToken"].as_bool();
    if automount(&pod["spec"]).or_else(|| automount(&account)).unwrap_or(true) {
        mount(core, &mut pod["spec"]);
    }
    let has_secrets = pod["spec"]["imagePullSecrets"].as_array().is_some_and(|list| !list.is_empty());
    let secrets = account["imagePullSecrets"].as_array().into_iter().flatten();
    let secrets: Vec<Value> = secrets.map(|secret| json!({"name": secret["name"]})).collect();
    if !has_secrets && !secrets.is_empty() {
        pod["spec"]["imagePullSecrets"] = json!(secrets);
    }
    Ok(())
}

/// Mounts the token in each container that has nothing else in its place.
fn mount(core: &Core, spec: &mut Value) {
    let volumes = spec["volumes"].as_array().into_iter().flatten();
    let known = volumes.filter_map(|volume| volume["name"].as_str()).find(|name| name.starts_with(PREFIX));
    let (has_volume, name) = match known {
        Some(name) => (true, name.to_owned()),
        None => (false, metadata::generate(PREFIX, || core.random())),
    };
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let mut mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
            if !mounts.iter().any(|mount| mount["mountPath"] == PATH) {
                mounts.push(json!({"name": name, "readOnly": true, "mountPath": PATH}));
                container["volumeMounts"] = json!(mounts);
                is_needed = true;
            }
        }
    }
    if is_needed && !has_volume {
        let sources = json!([
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace",
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]);
        let volume = json!({"name": name, "projected": {"sources": sources, "defaultMode": 420}});
        let mut volumes = spec["volumes"].as_array().cloned().unwrap_or_default();
        volumes.push(volume);
        spec["volumes"] = json!(volumes);
    }
}

const PREFIX: &str = "kube-api-access-";
const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
