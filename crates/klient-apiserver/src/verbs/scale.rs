//! The subresource `scale`.

use std::sync::Arc;

use http::{Method, Response, StatusCode, header::CONTENT_TYPE};
use klient_core::{GroupKind, Status, StatusCause, StatusReason};
use serde_json::{Value, json};

use super::{
    Ownership, Target,
    admitted::Admitted,
    modify::{check_names, check_uid, not_strict, shaped, unnamed},
};
use crate::{
    Result,
    body::ResponseBody,
    call::Call,
    custom::ScalePaths,
    decode::{self, FieldValidation},
    managed::{self, Applied, Configuration, Replicas},
    metadata,
    negotiate::Encoding,
    patch::Patch,
    registry::{self, Groups, Resource, Schema},
    response,
    server::Core,
};

/// A function from the current to the requested `Scale`, and warnings about the request.
type ScaleChange<'a> = Box<dyn Fn(&Value) -> Result<(Value, Vec<String>)> + Send + Sync + 'a>;

impl Core {
    /// Handles requests to the scale of an object.
    pub(super) async fn scale(self: &Arc<Self>, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let paths = paths(&target.resource);
        let kind = scale_resource();
        let wanted = call.response_format(&kind)?;
        if call.method == Method::GET {
            let stored = self.store.get(&target.resource.table, &target.key()).ok_or_else(|| target.not_found())?;
            let object = self.present(&target.resource, stored.value()).await?;
            let spec = paths.spec.trim_start_matches('.').split('.').try_fold(&object, |value, name| value.get(name));
            if paths.of_custom && spec.is_none() {
                let why = format!("the spec replicas field {:?} does not exist", paths.spec);
                return Err(Box::new(Status::internal_error(why)));
            }
            return response::object(StatusCode::OK, &kind, &scale_of(&paths, &object), wanted);
        }
        let kind_of_options = if call.method == Method::PATCH { "PatchOptions" } else { "UpdateOptions" };
        let options = call.write_options(kind_of_options)?;
        let groups = self.registry.groups();
        let change = self.scale_change(call, &groups, target, options.field_validation)?;
        let owners = Replicas::of(&groups, &target.resource);
        let modified = self
            .modify(
                &target.whole(),
                options,
                Ownership::Known,
                Some(Admitted::Scale(call, target, &paths)),
                |current| {
                    let mut scale = scale_of(&paths, current);
                    let entries = &current["metadata"]["managedFields"];
                    managed::set_entries(&mut scale, owners.to_scale(entries));
                    let (mut asked, warnings) = change(&scale)?;
                    call.notes.warn_of_fields(warnings);
                    check_names(target, &mut asked)?;
                    check_uid(target, &asked, current, options.dry_run)?;
                    let scale_entries = managed::take_entries(&mut asked);
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
                    managed::set_entries(&mut new, owners.to_parent(entries, &scale_entries));
                    Ok(new)
                },
            )
            .await?;
        response::object(StatusCode::OK, &kind, &scale_of(&paths, &modified.object), wanted)
    }
}

impl Core {
    /// Returns the change that a request describes. The new scale has the entries of its managers.
    fn scale_change<'a>(
        &self,
        call: &Call,
        groups: &'a Groups,
        target: &Target,
        field_validation: FieldValidation,
    ) -> Result<ScaleChange<'a>> {
        let kind = scale_resource();
        let is_custom = target.resource.is_custom();
        let content_type = call.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if call.method == Method::PATCH && Patch::is_apply(content_type) {
            let writer = call.writer("scale", self.clock.now());
            let configuration = Configuration::parse(&call.body)?;
            let force = call.flag("force");
            return Ok(Box::new(move |current| {
                managed::check_kind(&kind, &configuration.object)?;
                if is_custom && current["metadata"].get("managedFields").is_none() {
                    let what = "failed to create manager for existing fields: failed to convert live object";
                    return Err(unconverted(what, &Value::Null));
                }
                let applied = Applied { configuration: &configuration.object, force };
                let scale = managed::apply(groups, &kind, current, applied, &writer)?;
                if is_custom && !managed::is_same_besides_entries(&scale, current) {
                    return Err(unconverted("failed to convert new object", current));
                }
                Ok((scale, configuration.enforce(field_validation)?.to_vec()))
            }));
        }
        let writer = call.writer("scale", self.clock.now());
        let written = move |kind: &Resource, current: &Value, mut asked: Value| {
            // The owners of a scale are those of its object, whatever the request says.
            let entries = managed::update(groups, kind, Some(&mut current.clone()), &mut asked, &writer);
            managed::set_entries(&mut asked, entries);
            asked
        };
        if call.method == Method::PUT {
            let (asked, warnings) = decoded(call, &kind, is_custom, field_validation)?;
            if metadata::text(&asked, "name").is_empty() {
                return Err(unnamed(target));
            }
            return Ok(Box::new(move |current| Ok((written(&kind, current, asked.clone()), warnings.clone()))));
        }
        let patch = Patch::parse(&kind, content_type, &call.body)?;
        Ok(Box::new(move |current| {
            let mut patched = patch.apply(&kind, current)?;
            let shown = patch.shown(&patched);
            let found = shaped(&patch, &kind, &mut patched)?;
            managed::text::fold(&mut patched);
            let problems = patch.problems(found);
            if field_validation == FieldValidation::Strict && !problems.is_empty() {
                return Err(not_strict(shown, &problems));
            }
            let warnings = decode::enforce(&kind, field_validation, &problems)?;
            Ok((written(&kind, current, patched), warnings))
        }))
    }
}

/// The error of the real server for an applied scale of a custom kind that would change something: it cannot convert that scale.
fn unconverted(what: &str, scale: &Value) -> Box<Status> {
    let (namespace, name) = (metadata::text(scale, "namespace"), metadata::text(scale, "name"));
    let message = format!(
        "{what} ({namespace}/{name}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
    );
    Box::new(Status::failure(StatusReason::Unknown, 500, message))
}

/// Decodes the scale of an update. Returns warnings about unknown and duplicate fields, too.
fn decoded(
    call: &Call,
    kind: &Resource,
    is_custom: bool,
    field_validation: FieldValidation,
) -> Result<(Value, Vec<String>)> {
    let decoded = decode::object(kind, Encoding::of_body(&call.headers)?, &call.body).and_then(|decoded| {
        let warnings = decode::enforce(kind, field_validation, &decoded.problems)?;
        Ok((decoded.object, warnings))
    });
    decoded.map_err(|status| match is_custom {
        // The real server cannot name the kind of a custom kind's scale in errors.
        true => Box::new(Status::bad_request(
            "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"",
        )),
        false => status,
    })
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

pub(super) fn scale_of(paths: &ScalePaths, object: &Value) -> Value {
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
            let mut selector = object["spec"]["selector"].clone();
            // That of a replication controller is a map of labels.
            if selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none() {
                selector = json!({"matchLabels": selector});
            }
            let selector = serde_json::from_value(selector).ok();
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

pub(super) fn set_at(object: &mut Value, path: &str, value: Value) {
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
    registry::part("io.k8s.api.autoscaling.v1.Scale", "autoscaling", "v1", "Scale", "scales")
}
