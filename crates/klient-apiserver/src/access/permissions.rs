//! Recorded permissions: what each user did, and the smallest roles that would have allowed it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::{Attributes, User, user::ANONYMOUS};

/// The actions of users since the start of a server, as roles that would have allowed them.
///
/// Actions that every user may do, such as discovery, are not part of it. Actions that were refused are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedPermissions {
    by_user: BTreeMap<String, Actions>,
}

/// The actions of a user, by namespace. The empty namespace is the cluster.
type Actions = BTreeMap<String, Scope>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Scope {
    /// The verbs on each resource, by group and resource.
    resources: BTreeMap<(String, String), BTreeSet<String>>,
    /// The verbs on each path.
    paths: BTreeMap<String, BTreeSet<String>>,
}

/// Collects the actions of users.
#[derive(Default)]
pub(super) struct Recorder {
    used: Mutex<UsedPermissions>,
}

impl Recorder {
    /// Records an action.
    pub(super) fn add(&self, user: &User, action: &Attributes<'_>) {
        if is_public(action) || user.name == ANONYMOUS {
            return;
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let actions = used.by_user.entry(user.name.clone()).or_default();
        // A namespace object is an object of the cluster.
        let namespace = if action.resource == "namespaces" { "" } else { action.namespace };
        let scope = actions.entry(namespace.to_owned()).or_default();
        let verbs = match (action.is_resource, action.subresource) {
            (false, _) => scope.paths.entry(action.path.to_owned()).or_default(),
            (true, "") => scope.resources.entry((action.group.to_owned(), action.resource.to_owned())).or_default(),
            (true, part) => {
                let resource = format!("{}/{part}", action.resource);
                scope.resources.entry((action.group.to_owned(), resource)).or_default()
            }
        };
        if !verbs.contains(action.verb) {
            verbs.insert(action.verb.to_owned());
        }
    }

    pub(super) fn used(&self) -> UsedPermissions {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl UsedPermissions {
    /// Returns the names of the users who did something.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.by_user.keys().map(String::as_str)
    }

    /// Returns the actions of one user.
    #[must_use]
    pub fn of(&self, user: &str) -> Self {
        let found = self.by_user.get_key_value(user);
        Self { by_user: found.map(|(name, actions)| (name.clone(), actions.clone())).into_iter().collect() }
    }

    /// Returns the roles and cluster roles, each with a binding to its user. Namespaces have one role for each user.
    pub fn objects(&self) -> Vec<Value> {
        let mut objects = Vec::new();
        for (user, actions) in &self.by_user {
            for (namespace, scope) in actions {
                objects.extend(scope.objects(user, namespace));
            }
        }
        objects
    }

    /// Returns the roles and bindings as YAML documents.
    pub fn to_yaml(&self) -> String {
        let documents: Vec<String> =
            self.objects().iter().filter_map(|object| serde_saphyr::to_string(object).ok()).collect();
        documents.join("---\n")
    }
}

impl Scope {
    fn objects(&self, user: &str, namespace: &str) -> [Value; 2] {
        let name = role_name(user);
        let (role, binding) = match namespace {
            "" => ("ClusterRole", "ClusterRoleBinding"),
            _ => ("Role", "RoleBinding"),
        };
        let mut metadata = json!({"name": name});
        if !namespace.is_empty() {
            metadata["namespace"] = json!(namespace);
        }
        let subject = match User::new(user).account() {
            Some((namespace, name)) => json!({"kind": "ServiceAccount", "name": name, "namespace": namespace}),
            None => json!({"kind": "User", "name": user, "apiGroup": GROUP}),
        };
        let version = format!("{GROUP}/v1");
        [
            json!({"apiVersion": version, "kind": role, "metadata": metadata, "rules": self.rules()}),
            json!({"apiVersion": version, "kind": binding, "metadata": metadata, "subjects": [subject],
                "roleRef": {"apiGroup": GROUP, "kind": role, "name": name}}),
        ]
    }

    /// Returns one rule for each group and set of verbs.
    fn rules(&self) -> Vec<Value> {
        let mut joined: BTreeMap<(&str, Vec<&str>), Vec<&str>> = BTreeMap::new();
        for ((group, resource), verbs) in &self.resources {
            joined.entry((group, in_order(verbs))).or_default().push(resource);
        }
        let on_resources = joined
            .iter()
            .map(|((group, verbs), resources)| json!({"apiGroups": [group], "resources": resources, "verbs": verbs}));
        let mut joined: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
        for (path, verbs) in &self.paths {
            joined.entry(in_order(verbs)).or_default().push(path);
        }
        let on_paths = joined.iter().map(|(verbs, paths)| json!({"nonResourceURLs": paths, "verbs": verbs}));
        on_resources.chain(on_paths).collect()
    }
}

/// Returns verbs in the order in which people write them.
fn in_order(verbs: &BTreeSet<String>) -> Vec<&str> {
    let mut verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
    verbs.sort_by_key(|verb| (VERBS.iter().position(|known| known == verb).unwrap_or(VERBS.len()), *verb));
    verbs
}

/// Returns whether the default roles allow an action to every user.
fn is_public(action: &Attributes<'_>) -> bool {
    if action.is_resource {
        let is_review = matches!(
            (action.group, action.resource),
            ("authorization.k8s.io", "selfsubjectaccessreviews" | "selfsubjectrulesreviews")
                | ("authentication.k8s.io", "selfsubjectreviews")
        );
        return is_review && action.verb == "create";
    }
    let first = action.path.trim_start_matches('/').split('/').next().unwrap_or_default();
    matches!(action.verb, "get" | "head")
        && matches!(first, "api" | "apis" | "healthz" | "livez" | "readyz" | "openapi" | "version")
}

/// Returns the name of a user's roles.
fn role_name(user: &str) -> String {
    let last = User::new(user).account().map_or(user, |(_, name)| name).to_owned();
    let name: String =
        last.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "user".to_owned() } else { name.to_owned() }
}

const GROUP: &str = "rbac.authorization.k8s.io";
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
