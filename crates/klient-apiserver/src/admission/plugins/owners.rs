//! Owner references: a user may set those that block a deletion only with permission to finalize the owner.

use serde_json::Value;

use super::BuiltIn;
use crate::{
    Result, access,
    admission::{Attributes, Operation, Stage},
    registry::Resource,
    server::Core,
};

/// Refuses owner references that a user may not set. It is off by default, as on the real server.
pub(crate) struct OwnerReferencesPermissionEnforcement;

impl BuiltIn for OwnerReferencesPermissionEnforcement {
    const NAME: &'static str = "OwnerReferencesPermissionEnforcement";
    const IS_DEFAULT: bool = false;

    fn is_about(&self, _: &Core, _: &Resource) -> bool {
        true
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        let is_status_of_pods = request.resource.plural == "pods" && request.subresource == "status";
        stage == Stage::Validating
            && matches!(request.operation, Operation::Create | Operation::Update)
            && !is_status_of_pods
            && references(request.object.as_ref()) != references(request.old)
    }

    fn validate(&self, core: &Core, request: &Attributes<'_>) -> Result<()> {
        let user = &request.call.user;
        let resource = request.resource;
        if request.operation != Operation::Create {
            let action = access::Attributes {
                namespace: &request.namespace,
                subresource: request.subresource,
                ..access::Attributes::on("delete", &resource.group, &resource.plural, &request.name)
            };
            let decision = core.access.decide(user, &action);
            if !decision.is_allowed() {
                let why =
                    format!("cannot set an ownerRef on a resource you can't delete: {}, <nil>", decision.reason());
                return Err(request.forbidden(why));
            }
        }
        let blocking = newly_blocking(request);
        let anything =
            access::Attributes { subresource: "finalizers", ..access::Attributes::on("update", "*", "*", "*") };
        if blocking.is_empty() || core.access.decide(user, &anything).is_allowed() {
            return Ok(());
        }
        for owner in blocking {
            let text = |name: &str| owner[name].as_str().unwrap_or_default();
            let (api_version, kind) = (text("apiVersion"), text("kind"));
            let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
            let Some(found) = core.registry.groups().of_kind(group, version, kind) else {
                return Err(request.forbidden(format!(
                    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind {kind}: no matches for kind {kind:?} in version {api_version:?}"
                )));
            };
            let action = access::Attributes {
                subresource: "finalizers",
                namespace: if found.namespaced { &request.namespace } else { "" },
                ..access::Attributes::on("update", &found.group, &found.plural, text("name"))
            };
            let decision = core.access.decide(user, &action);
            if !decision.is_allowed() {
                return Err(request.forbidden(format!(
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {}, <nil>",
                    decision.reason()
                )));
            }
        }
        Ok(())
    }
}

fn references(object: Option<&Value>) -> &[Value] {
    object.and_then(|object| object["metadata"]["ownerReferences"].as_array()).map_or(&[], Vec::as_slice)
}

/// Returns the references that block the deletion of their owner, and did not before.
fn newly_blocking<'a>(request: &'a Attributes<'_>) -> Vec<&'a Value> {
    let old = references(request.old);
    let did_block = |reference: &Value| {
        old.iter().any(|other| other["uid"] == reference["uid"] && other["blockOwnerDeletion"] == true)
    };
    let new = references(request.object.as_ref()).iter().filter(|reference| reference["blockOwnerDeletion"] == true);
    new.filter(|reference| !did_block(reference)).collect()
}
