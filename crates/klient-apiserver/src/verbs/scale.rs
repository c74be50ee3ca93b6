//! The subresource `scale`.

use std::sync::Arc;

use http::{Method, Response, StatusCode, header::CONTENT_TYPE};
use klient_core::{GroupKind, Status, StatusCause};
use serde_json::{Value, json};

use super::Target;
use crate::{
    Result,
    body::ResponseBody,
    builtin::Hooks,
    call::Call,
    custom::ScalePaths,
    decode, metadata,
    negotiate::Encoding,
    patch::Patch,
    registry::{Resource, Schema},
    response,
    server::Core,
};

/// A function from the current to the requested `Scale`.
type ScaleChange = Box<dyn Fn(&Value) -> Result<Value> + Send + Sync>;

impl Core {
    /// Handles requests to the scale of an object.
    pub(super) async fn scale(self: &Arc<Self>, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let paths = paths(&target.resource);
        let kind = scale_resource();
        let wanted = call.response_format(&kind)?;
        if call.method == Method::GET {
            let stored = self.store.get(&target.resource.table, &target.key()).ok_or_else(|| target.not_found())?;
            let object = stored.value();
            let spec = paths.spec.trim_start_matches('.').split('.').try_fold(&object, |value, name| value.get(name));
            if paths.of_custom && spec.is_none() {
                let why = format!("the spec replicas field {:?} does not exist", paths.spec);
                return Err(Box::new(Status::internal_error(why)));
            }
            return response::object(StatusCode::OK, &kind, &scale_of(&paths, &object), wanted);
        }
        let options = call.write_options("UpdateOptions")?;
        let change: ScaleChange = if call.method == Method::PUT {
            let (asked, _) = decode::parse_json("Scale", &body_as_json(call)?)?;
            Box::new(move |_| Ok(asked.clone()))
        } else {
            let content_type = call.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let patch = Patch::parse(&kind, content_type, &call.body)?;
            let kind = scale_resource();
            Box::new(move |current| patch.apply(&kind, current))
        };
        let modified = self
            .modify(&target.whole(), options, true, |current| {
                let asked = change(&scale_of(&paths, current))?;
                let replicas = asked["spec"]["replicas"].as_i64().unwrap_or_default();
                // Custom kinds validate their own field.
                if replicas < 0 && !paths.of_custom {
                    let detail = "must be greater than or equal to 0";
                    let cause = StatusCause::invalid("spec.replicas", replicas, detail);
                    return Err(Box::new(Status::invalid(
                        &GroupKind::new("autoscaling", "Scale"),
                        target.name(),
                        vec![cause],
                    )));
                }
                let mut new = current.clone();
                set_at(&mut new, &paths.spec, json!(replicas));
                let version = metadata::text(&asked, "resourceVersion").to_owned();
                metadata::of(&mut new).insert("resourceVersion".to_owned(), json!(version));
                Ok(new)
            })
            .await?;
        response::object(StatusCode::OK, &kind, &scale_of(&paths, &modified.object), wanted)
    }
}

fn body_as_json(call: &Call) -> Result<bytes::Bytes> {
    match Encoding::of_body(&call.headers)? {
        Encoding::Json => Ok(call.body.clone()),
        Encoding::Yaml => {
            let value = decode::parse_yaml("Scale", &call.body)?;
            Ok(value.to_string().into())
        }
        Encoding::Protobuf => {
            let scale: k8s_openapi::api::autoscaling::v1::Scale = klient_proto::decode_body(&call.body)
                .map_err(|error| Box::new(Status::bad_request(error.to_string())))?;
            Ok(serde_json::to_vec(&scale).unwrap_or_default().into())
        }
    }
}

fn paths(resource: &Resource) -> ScalePaths {
    match &resource.schema {
        Schema::Custom(schema) => schema.scale.clone(),
        Schema::BuiltIn(_) => None,
    }
    .unwrap_or_else(|| ScalePaths {
        spec: ".spec.replicas".to_owned(),
        status: ".status.replicas".to_owned(),
        selector: None,
        of_custom: false,
    })
}

fn scale_of(paths: &ScalePaths, object: &Value) -> Value {
    let at = |path: &str| path.trim_start_matches('.').split('.').try_fold(object, |value, name| value.get(name));
    let replicas = |path: &str| at(path).and_then(Value::as_i64).unwrap_or_default();
    let mut kept = serde_json::Map::new();
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(name) {
            kept.insert(name.to_owned(), value.clone());
        }
    }
    let selector = match &paths.selector {
        Some(path) => at(path).and_then(Value::as_str).unwrap_or_default().to_owned(),
        None if paths.of_custom => String::new(),
        None => {
            let selector = serde_json::from_value(object["spec"]["selector"].clone()).ok();
            klient_core::LabelSelector::from_api(selector.as_ref())
                .map_or(String::new(), |selector| selector.to_string())
        }
    };
    let mut status = json!({"replicas": replicas(&paths.status)});
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    let wanted = replicas(&paths.spec);
    let spec = if wanted == 0 { json!({}) } else { json!({"replicas": wanted}) };
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": spec, "status": status})
}

fn set_at(object: &mut Value, path: &str, value: Value) {
    let mut field = object;
    for name in path.trim_start_matches('.').split('.') {
        if !field.is_object() {
            *field = json!({});
        }
        field = &mut field[name];
    }
    *field = value;
}

/// Returns the resource by which a `Scale` is encoded.
fn scale_resource() -> Resource {
    let types = crate::registry::types().get("io.k8s.api.autoscaling.v1.Scale").expect("the table has every type");
    Resource {
        group: "autoscaling".to_owned(),
        version: "v1".to_owned(),
        kind: "Scale".to_owned(),
        list_kind: String::new(),
        plural: "scales".to_owned(),
        singular: String::new(),
        namespaced: true,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: Vec::new(),
        storage_version_hash: None,
        columns: Vec::new(),
        table: Arc::from(""),
        has_generation: false,
        has_status: false,
        hooks: &Hooks::NONE,
        schema: Schema::BuiltIn(types),
        codec: klient_proto::Codec::find("autoscaling/v1", "Scale"),
    }
}
