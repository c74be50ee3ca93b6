//! Guards of writes to roles and bindings: a user can grant only permissions of their own.

use klient_core::{GroupResource, Quoted, Status, StatusReason};
use serde_json::Value;

use super::{
    Rbac, Rule,
    rule::{compacted, not_covered},
};
use crate::{
    Result,
    access::{Attributes, User, attributes::quoted_list, user::MASTERS},
    metadata,
    verbs::Target,
};

impl Rbac {
    /// Refuses a write of a role or binding that would grant more than the user has. `old` is the stored object.
    pub(crate) fn check_write(&self, user: &User, target: &Target, object: &Value, old: Option<&Value>) -> Result<()> {
        let resource = &target.resource;
        if resource.group != GROUP || target.subresource.is_some() || user.is_in(MASTERS) {
            return Ok(());
        }
        if old.is_some_and(|old| changes_only_ownership(object, old)) {
            return Ok(());
        }
        let refused =
            |why: String| Box::new(Status::forbidden(&resource.group_resource(), metadata::text(object, "name"), why));
        match resource.plural.as_str() {
            "roles" | "clusterroles" => {
                let verb = Attributes {
                    namespace: &target.namespace,
                    ..Attributes::on("escalate", GROUP, &resource.plural, target.name())
                };
                if self.decide(user, &verb).is_allowed() {
                    return Ok(());
                }
                self.check_rules(user, &target.namespace, &Rule::all_of(object)).map_err(refused)?;
                let is_aggregated = |role: &Value| {
                    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|list| !list.is_empty())
                };
                let aggregates = is_aggregated(object) || old.is_some_and(is_aggregated);
                if aggregates && self.check_rules(user, &target.namespace, &Rule::everything()).is_err() {
                    return Err(refused("must have cluster-admin privileges to use the aggregationRule".to_owned()));
                }
                Ok(())
            }
            "rolebindings" | "clusterrolebindings" => {
                let reference = &object["roleRef"];
                if self.may_bind(user, reference, &target.namespace) {
                    return Ok(());
                }
                let rules = self.read().rules_of_role(reference, &target.namespace);
                let rules = rules.map_err(|why| missing_role(&resource.group_resource(), reference, why))?;
                self.check_rules(user, &target.namespace, &rules).map_err(refused)
            }
            _ => Ok(()),
        }
    }

    fn may_bind(&self, user: &User, reference: &Value, namespace: &str) -> bool {
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let resource = match text("kind") {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            _ => return false,
        };
        let action = Attributes { namespace, ..Attributes::on("bind", text("apiGroup"), resource, text("name")) };
        self.decide(user, &action).is_allowed()
    }

    /// Returns the message about rules that the user does not have.
    fn check_rules(&self, user: &User, namespace: &str, wanted: &[Rule]) -> std::result::Result<(), String> {
        let held = self.rules_of(user, namespace);
        let missing = not_covered(&held.rules, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let mut missing: Vec<String> = compacted(missing).iter().map(ToString::to_string).collect();
        missing.sort();
        missing.dedup();
        let mut message = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            Quoted(&user.name),
            quoted_list(&user.groups),
            missing.join("\n")
        );
        if !held.missing.is_empty() {
            message.push_str(&format!("; resolution errors: [{}]", super::aggregate(&held.missing)));
        }
        Err(message)
    }
}

/// Returns the error for a binding of a role that does not exist.
fn missing_role(bindings: &GroupResource, reference: &Value, why: String) -> Box<Status> {
    if !matches!(reference["kind"].as_str(), Some("Role" | "ClusterRole")) {
        return Box::new(Status::failure(StatusReason::Unknown, 500, why));
    }
    // The real server names the resource of the request here, and not that of the role.
    Box::new(Status::not_found(bindings, reference["name"].as_str().unwrap_or_default()))
}

/// Returns whether two objects differ only in the fields that the garbage collector writes.
fn changes_only_ownership(object: &Value, old: &Value) -> bool {
    let (mut object, mut old) = (object.clone(), old.clone());
    for value in [&mut object, &mut old] {
        let fields = metadata::of(value);
        for name in ["ownerReferences", "finalizers", "managedFields"] {
            fields.remove(name);
        }
        // Absent and null lists are equal.
        if let Value::Object(fields) = value {
            fields.retain(|_, value| !value.is_null());
        }
    }
    object == old
}

const GROUP: &str = "rbac.authorization.k8s.io";
