//! Aggregated roles: a cluster role with selectors has the rules of the cluster roles that they select.
//!
//! In a cluster, the controller manager fills in these rules. Here it happens before the response to the write that changes them, and
//! until nothing changes: `admin` selects `edit`, which selects `view`.

use std::sync::Arc;

use serde_json::json;

use super::{Kind, Rbac, Rule};
use crate::{
    managed::{self, Applied, Writer},
    server::Core,
    store::{Expected, Write},
};

/// Updates the index after a change of a role or binding, and the roles that select a changed cluster role.
pub(crate) async fn after_role_change(core: &Arc<Core>, kind: Kind, key: &str) {
    let Some(rbac) = &core.access.rbac else { return };
    rbac.refresh(&core.store, kind, key);
    if kind == Kind::ClusterRole {
        rbac.aggregate(core).await;
    }
}

impl Rbac {
    /// Writes the rules of aggregated roles until nothing changes.
    pub(crate) async fn aggregate(&self, core: &Core) {
        // Each round settles at least one role of a chain. A cycle of roles could go on for ever.
        let rounds = self.read().cluster_roles().len();
        for _ in 0..=rounds {
            let outdated = self.outdated();
            if outdated.is_empty() {
                return;
            }
            for (name, rules) in outdated {
                write(core, &name, &rules).await;
                self.refresh(&core.store, Kind::ClusterRole, &name);
            }
        }
    }

    /// Returns the aggregated roles whose rules have to change.
    fn outdated(&self) -> Vec<(String, Vec<Rule>)> {
        let index = self.read();
        let roles = index.cluster_roles();
        let mut outdated = Vec::new();
        for (name, role) in roles {
            let Some(selectors) = &role.selectors else { continue };
            let mut rules: Vec<Rule> = Vec::new();
            for selector in selectors {
                let selected =
                    roles.iter().filter(|(other, role)| *other != name && selector.matches_map(&role.labels));
                for rule in selected.flat_map(|(_, role)| role.rules.iter()) {
                    if !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
            }
            if *rules != *role.rules {
                outdated.push((name.clone(), rules));
            }
        }
        outdated
    }
}

/// Applies the rules of a cluster role, as the controller does.
async fn write(core: &Core, name: &str, rules: &[Rule]) {
    let Some(resource) = core.registry.find(GROUP, "v1", "clusterroles") else { return };
    let configuration = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
        "rules": rules});
    let writer =
        Writer { manager: "clusterrole-aggregation-controller".to_owned(), ..Writer::server("", core.clock.now()) };
    loop {
        let Some(stored) = core.store.get(&resource.table, name) else { return };
        let applied = Applied { configuration: &configuration, force: true };
        let Ok(object) = managed::apply(&core.registry.groups(), &resource, &stored.value(), applied, &writer) else {
            return;
        };
        let expected = Expected::Revision(stored.revision);
        match core.store.commit(&resource.table, name, expected, Write::Put(object)).await {
            Err(crate::store::CommitError::Changed(_)) => {}
            _ => return,
        }
    }
}

const GROUP: &str = "rbac.authorization.k8s.io";
