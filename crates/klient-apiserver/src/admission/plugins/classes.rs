//! The default classes of volume claims and ingresses.

use serde_json::{Value, json};

use super::{BuiltIn, is_core, is_create};
use crate::{
    Result,
    admission::{Attributes, Stage},
    metadata,
    registry::Resource,
    server::Core,
};

/// Sets the storage class of a claim that names none.
pub(crate) struct DefaultStorageClass;

impl BuiltIn for DefaultStorageClass {
    const NAME: &'static str = "DefaultStorageClass";

    fn is_about(&self, core: &Core, resource: &Resource) -> bool {
        is_core(resource, "persistentvolumeclaims") && core.store.count(STORAGE) > 0
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        stage == Stage::Mutating && is_create(request)
    }

    fn admit(&self, core: &Core, request: &mut Attributes<'_>) -> Result<()> {
        let Some(claim) = &mut request.object else { return Ok(()) };
        let has_class = claim["spec"].get("storageClassName").is_some_and(|name| !name.is_null())
            || claim["metadata"]["annotations"].get("volume.beta.kubernetes.io/storage-class").is_some();
        let marks = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
        if !has_class && let Some(name) = default(core, STORAGE, &marks) {
            claim["spec"]["storageClassName"] = json!(name);
        }
        Ok(())
    }
}

/// Sets the class of an ingress that names none.
pub(crate) struct DefaultIngressClass;

impl BuiltIn for DefaultIngressClass {
    const NAME: &'static str = "DefaultIngressClass";

    fn is_about(&self, core: &Core, resource: &Resource) -> bool {
        resource.group == "networking.k8s.io" && resource.plural == "ingresses" && core.store.count(INGRESS) > 0
    }

    fn handles(&self, stage: Stage, request: &Attributes<'_>) -> bool {
        stage == Stage::Mutating && is_create(request)
    }

    fn admit(&self, core: &Core, request: &mut Attributes<'_>) -> Result<()> {
        let Some(ingress) = &mut request.object else { return Ok(()) };
        let has_class = ingress["spec"].get("ingressClassName").is_some_and(|name| !name.is_null())
            || ingress["metadata"]["annotations"].get("kubernetes.io/ingress.class").is_some();
        if !has_class && let Some(name) = default(core, INGRESS, &["ingressclass.kubernetes.io/is-default-class"]) {
            ingress["spec"]["ingressClassName"] = json!(name);
        }
        Ok(())
    }
}

/// Returns the newest class with an annotation. Classes of the same second are in the order of their names.
fn default(core: &Core, table: &str, marks: &[&str]) -> Option<String> {
    let is_marked = |class: &Value| marks.iter().any(|mark| class["metadata"]["annotations"][*mark] == "true");
    let classes = core.store.list(table, "").objects;
    let mut found: Vec<Value> = classes.iter().map(|stored| stored.value()).filter(is_marked).collect();
    found.sort_by(|a, b| {
        let time = |class: &Value| metadata::text(class, "creationTimestamp").to_owned();
        time(b).cmp(&time(a)).then_with(|| metadata::text(a, "name").cmp(metadata::text(b, "name")))
    });
    found.first().map(|class| metadata::text(class, "name").to_owned())
}

const STORAGE: &str = "storageclasses.storage.k8s.io";
const INGRESS: &str = "ingressclasses.networking.k8s.io";
