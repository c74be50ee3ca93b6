//! Rules by subject: what a decision reads.
//!
//! A decision looks up the user's name and groups, so that its time does not depend on the bindings of others.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use klient_core::{LabelSelector, Quoted};
use serde::Deserialize as _;
use serde_json::Value;

use super::{Decision, Rule};
use crate::{
    access::{Attributes, User},
    metadata,
    store::Stored,
};

/// One of the four kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
}

/// The roles and bindings in a form for decisions.
#[derive(Default)]
pub(super) struct Index {
    cluster: Scope,
    namespaces: HashMap<String, Scope>,
    cluster_roles: BTreeMap<String, ClusterRole>,
    /// The rules of roles, by namespace and name.
    roles: HashMap<String, Arc<[Rule]>>,
}

/// A cluster role.
pub(super) struct ClusterRole {
    pub(super) rules: Arc<[Rule]>,
    pub(super) labels: BTreeMap<String, String>,
    /// The selectors of the roles whose rules this one has.
    pub(super) selectors: Option<Vec<LabelSelector>>,
}

/// The bindings of one namespace, or those of the cluster.
#[derive(Default)]
struct Scope {
    bindings: HashMap<String, Arc<Binding>>,
    by_user: HashMap<String, Vec<Arc<Binding>>>,
    by_group: HashMap<String, Vec<Arc<Binding>>>,
}

/// A binding of a role to subjects.
#[derive(Debug)]
pub(crate) struct Binding {
    /// The namespace, or an empty text.
    namespace: String,
    name: String,
    role: RoleRef,
    subjects: Vec<Subject>,
}

/// The role of a binding.
#[derive(Debug)]
enum RoleRef {
    Cluster(String),
    Local { name: String, key: String },
    Unknown(String),
}

/// A subject of a binding.
#[derive(Debug)]
struct Subject {
    is_group: bool,
    /// The name of the user or group.
    name: String,
    /// The subject in reasons.
    text: String,
}

/// The binding that allowed an action.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    binding: Arc<Binding>,
    subject: usize,
}

/// The rules that a user has.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) rules: Vec<Rule>,
    /// Messages about roles that do not exist.
    pub(crate) missing: Vec<String>,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Role, Self::ClusterRole, Self::RoleBinding, Self::ClusterRoleBinding];

    /// Returns the name of the kind's table.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Role => "roles.rbac.authorization.k8s.io",
            Self::ClusterRole => "clusterroles.rbac.authorization.k8s.io",
            Self::RoleBinding => "rolebindings.rbac.authorization.k8s.io",
            Self::ClusterRoleBinding => "clusterrolebindings.rbac.authorization.k8s.io",
        }
    }

    /// Returns the key of an object in the table.
    pub(super) fn key_of(self, stored: &Stored) -> String {
        let name = stored.raw().name().into_owned();
        match (self, stored.raw().namespace()) {
            (Self::Role | Self::RoleBinding, Some(namespace)) => format!("{namespace}/{name}"),
            _ => name,
        }
    }
}

impl Index {
    pub(super) fn decide(&self, user: &User, action: &Attributes<'_>) -> Decision {
        let mut missing = Vec::new();
        let local = self.namespaces.get(action.namespace).filter(|_| !action.namespace.is_empty());
        for scope in [Some(&self.cluster), local].into_iter().flatten() {
            let mut found: Option<&Arc<Binding>> = None;
            for binding in scope.of(user) {
                match self.rules(&binding.role) {
                    // Of several bindings, the first by name is the reason.
                    Ok(rules) if found.is_none_or(|found| binding.name < found.name) => {
                        if rules.iter().any(|rule| rule.allows(action)) {
                            found = Some(binding);
                        }
                    }
                    Ok(_) => {}
                    Err(error) => missing.push(error),
                }
            }
            if let Some(binding) = found {
                let subject = binding.subject_of(user);
                return Decision::Allowed(Some(Grant { binding: Arc::clone(binding), subject }));
            }
        }
        missing.sort();
        Decision::Denied(missing)
    }

    pub(super) fn rules_of(&self, user: &User, namespace: &str) -> Held {
        let mut held = Held::default();
        let local = self.namespaces.get(namespace).filter(|_| !namespace.is_empty());
        for scope in [Some(&self.cluster), local].into_iter().flatten() {
            let mut bindings: Vec<&Arc<Binding>> = scope.of(user).collect();
            bindings.sort_by(|a, b| a.name.cmp(&b.name));
            bindings.dedup_by(|a, b| Arc::ptr_eq(a, b));
            for binding in bindings {
                match self.rules(&binding.role) {
                    Ok(rules) => held.rules.extend(rules.iter().cloned()),
                    Err(error) => held.missing.push(error),
                }
            }
        }
        held
    }

    /// Returns the rules of a role, by the reference of a binding in a namespace.
    pub(super) fn rules_of_role(&self, reference: &Value, namespace: &str) -> Result<Arc<[Rule]>, String> {
        self.rules(&RoleRef::of(reference, namespace)).cloned()
    }

    fn rules(&self, role: &RoleRef) -> Result<&Arc<[Rule]>, String> {
        match role {
            RoleRef::Cluster(name) => {
                let found = self.cluster_roles.get(name).map(|role| &role.rules);
                found.ok_or_else(|| format!("clusterrole.rbac.authorization.k8s.io {} not found", Quoted(name)))
            }
            RoleRef::Local { name, key } => {
                let missing = || format!("role.rbac.authorization.k8s.io {} not found", Quoted(name));
                self.roles.get(key).ok_or_else(missing)
            }
            RoleRef::Unknown(kind) => Err(format!("unsupported role reference kind: {}", Quoted(kind))),
        }
    }

    /// Returns all cluster roles, by name.
    pub(super) fn cluster_roles(&self) -> &BTreeMap<String, ClusterRole> {
        &self.cluster_roles
    }

    pub(super) fn put(&mut self, kind: Kind, key: &str, object: &Value) {
        match kind {
            Kind::Role => drop(self.roles.insert(key.to_owned(), Rule::all_of(object).into())),
            Kind::ClusterRole => drop(self.cluster_roles.insert(key.to_owned(), ClusterRole::of(object))),
            Kind::RoleBinding | Kind::ClusterRoleBinding => {
                self.remove(kind, key);
                self.scope(key).insert(key, Binding::of(object));
            }
        }
    }

    pub(super) fn remove(&mut self, kind: Kind, key: &str) {
        match kind {
            Kind::Role => drop(self.roles.remove(key)),
            Kind::ClusterRole => drop(self.cluster_roles.remove(key)),
            Kind::RoleBinding | Kind::ClusterRoleBinding => self.scope(key).remove(key),
        }
    }

    /// Returns the bindings of the namespace of a key.
    fn scope(&mut self, key: &str) -> &mut Scope {
        match key.split_once('/') {
            Some((namespace, _)) => self.namespaces.entry(namespace.to_owned()).or_default(),
            None => &mut self.cluster,
        }
    }
}

impl Scope {
    /// Returns the bindings of a user and of its groups. A binding of several subjects may come more than once.
    fn of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Arc<Binding>> {
        let of_groups = user.groups.iter().filter_map(|group| self.by_group.get(group));
        self.by_user.get(&user.name).into_iter().chain(of_groups).flatten()
    }

    fn insert(&mut self, key: &str, binding: Binding) {
        let binding = Arc::new(binding);
        for subject in &binding.subjects {
            let list = self.map(subject.is_group).entry(subject.name.clone()).or_default();
            if !list.iter().any(|known| Arc::ptr_eq(known, &binding)) {
                list.push(Arc::clone(&binding));
            }
        }
        self.bindings.insert(key.to_owned(), binding);
    }

    fn remove(&mut self, key: &str) {
        let Some(binding) = self.bindings.remove(key) else { return };
        for subject in &binding.subjects {
            let map = self.map(subject.is_group);
            if let Some(list) = map.get_mut(&subject.name) {
                list.retain(|known| !Arc::ptr_eq(known, &binding));
                if list.is_empty() {
                    map.remove(&subject.name);
                }
            }
        }
    }

    fn map(&mut self, is_group: bool) -> &mut HashMap<String, Vec<Arc<Binding>>> {
        if is_group { &mut self.by_group } else { &mut self.by_user }
    }
}

impl ClusterRole {
    fn of(object: &Value) -> Self {
        let labels = &object["metadata"]["labels"];
        let selectors = object["aggregationRule"]["clusterRoleSelectors"].as_array();
        let selector = |value: &Value| {
            let api = k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector::deserialize(value).ok()?;
            LabelSelector::from_api(Some(&api)).ok()
        };
        Self {
            rules: Rule::all_of(object).into(),
            labels: BTreeMap::deserialize(labels).unwrap_or_default(),
            selectors: selectors.map(|selectors| selectors.iter().filter_map(selector).collect()),
        }
    }
}

impl Binding {
    fn of(object: &Value) -> Self {
        let namespace = metadata::text(object, "namespace").to_owned();
        let subjects = object["subjects"].as_array().into_iter().flatten();
        Self {
            name: metadata::text(object, "name").to_owned(),
            role: RoleRef::of(&object["roleRef"], &namespace),
            subjects: subjects.filter_map(|subject| Subject::of(subject, &namespace)).collect(),
            namespace,
        }
    }

    /// Returns the index of the first subject that a user is.
    fn subject_of(&self, user: &User) -> usize {
        let applies = |subject: &Subject| match subject.is_group {
            true => user.is_in(&subject.name),
            false => user.name == subject.name,
        };
        self.subjects.iter().position(applies).unwrap_or_default()
    }
}

impl RoleRef {
    fn of(reference: &Value, namespace: &str) -> Self {
        let name = reference["name"].as_str().unwrap_or_default().to_owned();
        match reference["kind"].as_str() {
            Some("ClusterRole") => Self::Cluster(name),
            Some("Role") => Self::Local { key: format!("{namespace}/{name}"), name },
            kind => Self::Unknown(kind.unwrap_or_default().to_owned()),
        }
    }

    fn kind_and_name(&self) -> (&str, &str) {
        match self {
            Self::Cluster(name) => ("ClusterRole", name),
            Self::Local { name, .. } => ("Role", name),
            Self::Unknown(kind) => (kind, ""),
        }
    }
}

impl Subject {
    fn of(subject: &Value, namespace: &str) -> Option<Self> {
        let name = subject["name"].as_str()?;
        let kind = subject["kind"].as_str()?;
        let plain = |is_group| Self { is_group, name: name.to_owned(), text: format!("{kind} {}", Quoted(name)) };
        match kind {
            "User" => Some(plain(false)),
            "Group" => Some(plain(true)),
            "ServiceAccount" => {
                let given = subject["namespace"].as_str().filter(|namespace| !namespace.is_empty());
                let namespace = given.unwrap_or(namespace);
                if namespace.is_empty() {
                    return None;
                }
                let text = format!("{kind} {}", Quoted(&format!("{name}/{namespace}")));
                Some(Self { is_group: false, name: User::service_account(namespace, name).name, text })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding { namespace, name, role, subjects } = &*self.binding;
        let (kind, role) = role.kind_and_name();
        let subject = subjects.get(self.subject).map_or("", |subject| subject.text.as_str());
        let (sort, name) = match namespace.as_str() {
            "" => ("ClusterRoleBinding", name.clone()),
            namespace => ("RoleBinding", format!("{name}/{namespace}")),
        };
        write!(f, "{sort} {} of {kind} {} to {subject}", Quoted(&name), Quoted(role))
    }
}
