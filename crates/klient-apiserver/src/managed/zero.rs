//! The object that a new object is compared with: what Go writes for an empty object of the kind.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    builtin, decode,
    registry::{self, Resource, Schema, Shape, TypeDef},
};

/// Returns an empty object of a kind.
///
/// Built-in kinds have the fields that Go always writes. Their parents are not new in a created object, so that its manager does not
/// own them.
pub(crate) fn zero_object(resource: &Resource) -> &Arc<Value> {
    resource.zero.get_or_init(|| Arc::new(build(resource)))
}

fn build(resource: &Resource) -> Value {
    let mut object = json!({"apiVersion": resource.api_version(), "kind": resource.kind});
    if let Schema::BuiltIn(types) = resource.schema {
        object["metadata"] = json!({});
        // An empty object is always of the right shape.
        let _ = decode::shape(resource, &mut object);
        builtin::nulls(resource, &mut object);
        if let Value::Object(fields) = &mut object {
            add_nulls(fields, types);
        }
    }
    object
}

/// Adds the lists, maps and pointers that Go writes as null.
fn add_nulls(object: &mut Map<String, Value>, types: &TypeDef) {
    for name in &types.required {
        let Some(field) = types.fields.get(name) else { continue };
        if matches!(field.shape, Shape::List(_) | Shape::Map(_) | Shape::Ref(_) | Shape::Bytes)
            && !field.always
            && !object.contains_key(name)
            && !OMITTED.contains(&name.as_str())
        {
            object.insert(name.clone(), Value::Null);
        }
    }
    for (name, value) in object.iter_mut() {
        if let (Some(Shape::Ref(inner)), Value::Object(fields)) =
            (types.fields.get(name).map(|field| &field.shape), value)
            && let Some(types) = registry::types().get(inner)
        {
            add_nulls(fields, types);
        }
    }
}

/// Required fields that Go omits if they are empty.
const OMITTED: &[&str] = &["validationActions"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn zero_objects_are_those_of_go() {
        let registry = Registry::built_in();
        let zero = |group: &str, plural: &str| {
            let mut object = Value::clone(zero_object(&registry.find(group, "v1", plural).unwrap()));
            let fields = object.as_object_mut().unwrap();
            fields.remove("apiVersion");
            fields.remove("kind");
            object
        };
        let template = json!({"metadata": {}, "spec": {"containers": null}});
        let deployment =
            json!({"metadata": {}, "spec": {"selector": null, "template": template, "strategy": {}}, "status": {}});
        assert_eq!(zero("apps", "deployments"), deployment);
        assert_eq!(zero("", "services"), json!({"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}));
        assert_eq!(zero("", "configmaps"), json!({"metadata": {}}));
    }
}
