//! Volumes and claims: finalizers that keep them while they are in use, and claims that grow.

use klient_core::Quantity;
use serde_json::Value;

use super::{BuiltIn, is_core, is_create};
use crate::{
    Result,
    admission::{Attributes, Operation, Stage},
    builtin,
    registry::Resource,
    server::Core,
};

/// Adds the finalizer of volumes and claims.
pub(crate) struct StorageObjectInUseProtection;

impl BuiltIn for StorageObjectInUseProtection {
    const NAME: &'static str = "StorageObjectInUseProtection";

    fn is_about(&self, _: &Core, resource: &Resource) -> bool {
        is_core(resource, "persistentvolumes") || is_core(resource, "persistentvolumeclaims")
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        stage == Stage::Mutating && is_create(request)
    }

    fn admit(&self, _: &Core, request: &mut Attributes<'_>) -> Result<()> {
        let finalizer = match request.resource.plural.as_str() {
            "persistentvolumes" => "kubernetes.io/pv-protection",
            _ => "kubernetes.io/pvc-protection",
        };
        if let Some(object) = &mut request.object {
            builtin::protect(object, finalizer);
        }
        Ok(())
    }
}

/// Refuses to expand a claim whose storage class does not allow it.
pub(crate) struct PersistentVolumeClaimResize;

impl BuiltIn for PersistentVolumeClaimResize {
    const NAME: &'static str = "PersistentVolumeClaimResize";

    fn is_about(&self, _: &Core, resource: &Resource) -> bool {
        is_core(resource, "persistentvolumeclaims")
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        stage == Stage::Validating && request.subresource.is_empty() && request.operation == Operation::Update
    }

    fn validate(&self, core: &Core, request: &Attributes<'_>) -> Result<()> {
        let (Some(claim), Some(old)) = (&request.object, request.old) else { return Ok(()) };
        if size(claim) <= size(old) {
            return Ok(());
        }
        if old["status"]["phase"] != "Bound" {
            return Err(request.forbidden("Only bound persistent volume claims can be expanded"));
        }
        let (class, old_class) = (class_of(claim), class_of(old));
        let found = core.store.get("storageclasses.storage.k8s.io", class).filter(|_| class == old_class);
        let is_allowed = found.is_some_and(|class| class.value()["allowVolumeExpansion"] == true);
        if is_allowed {
            return Ok(());
        }
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
        Err(request.forbidden(why))
    }
}

fn size(claim: &Value) -> Quantity {
    let text = claim["spec"]["resources"]["requests"]["storage"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Returns the storage class of a claim.
pub(super) fn class_of(claim: &Value) -> &str {
    let beta = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str();
    beta.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}
