//! A request as admission sees it.

use klient_core::Status;
use serde_json::{Value, json};

use super::{Notes, Stage};
use crate::{access::User, call::Call, metadata, registry::Resource, verbs::Target};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// The origin of a request.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// A request of a client.
    Client(&'a Call),
    /// A request of a client for a whole collection, which names no object.
    Collection(&'a Call),
    /// The server itself, whose writes pass no admission.
    Server,
}

/// The name of a kind in a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KindName {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// A request as admission sees it.
///
/// Objects are in the version of the request. The values of `fieldsV1` in them are texts, as everywhere in the server.
pub(crate) struct Attributes<'a> {
    pub(crate) operation: Operation,
    pub(crate) resource: &'a Resource,
    pub(crate) subresource: &'a str,
    /// The namespace. A namespace object is in the namespace of its name, and other cluster-scoped objects are in none.
    pub(crate) namespace: String,
    /// The name, which is empty before it is generated.
    pub(crate) name: String,
    pub(crate) call: &'a Call,
    /// The new object, the options of a connection, or nothing for a delete.
    pub(crate) object: Option<Value>,
    /// The stored object, for updates and deletes.
    pub(crate) old: Option<&'a Value>,
    pub(crate) dry_run: bool,
}

impl Operation {
    /// Returns the name in rules and reviews.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl<'a> Origin<'a> {
    /// Returns the client's request, if admission applies to it.
    pub(crate) fn call(self) -> Option<&'a Call> {
        match self {
            Self::Client(call) | Self::Collection(call) => Some(call),
            Self::Server => None,
        }
    }

    /// Adds warnings about an object that was found valid.
    pub(crate) fn warn(self, warnings: &[String]) {
        if let Some(call) = self.call() {
            call.notes.warn_all(Stage::Mutating, warnings);
        }
    }
}

impl KindName {
    /// Returns the kind of a resource's objects.
    pub(crate) fn of(resource: &Resource) -> Self {
        Self { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() }
    }

    /// Returns the kind of the objects of a subresource.
    pub(crate) fn of_part(resource: &Resource, subresource: &str) -> Self {
        let Some(part) = resource.subresource(subresource) else { return Self::of(resource) };
        // A subresource of the resource's own group and version names neither.
        let (group, version) = match part.version.as_str() {
            "" => (resource.group.clone(), resource.version.clone()),
            version => (part.group.clone(), version.to_owned()),
        };
        Self { group, version, kind: part.kind.clone() }
    }

    /// Returns the version as objects name it.
    pub(crate) fn api_version(&self) -> String {
        crate::registry::api_version(&self.group, &self.version)
    }
}

impl<'a> Attributes<'a> {
    /// Returns the attributes of a request to a target, without objects.
    pub(crate) fn new(call: &'a Call, operation: Operation, target: &'a Target) -> Self {
        let resource = &*target.resource;
        let subresource = target.subresource.as_deref().unwrap_or_default();
        let name = target.name().to_owned();
        Self {
            operation,
            resource,
            subresource,
            namespace: namespace_of(resource, &target.namespace, &name),
            name,
            call,
            object: None,
            old: None,
            dry_run: false,
        }
    }

    /// Sets the new object.
    pub(crate) fn object(mut self, object: Value) -> Self {
        if self.name.is_empty() {
            metadata::text(&object, "name").clone_into(&mut self.name);
            self.namespace = namespace_of(self.resource, &self.namespace, &self.name);
        }
        self.object = Some(object);
        self
    }

    /// Sets the stored object.
    pub(crate) fn old(mut self, old: &'a Value) -> Self {
        self.old = Some(old);
        self
    }

    /// Sets whether nothing will be stored.
    pub(crate) fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Returns the kind of the objects, which is not the resource's for subresources such as `scale`.
    pub(crate) fn kind(&self) -> KindName {
        KindName::of_part(self.resource, self.subresource)
    }

    /// Returns the warnings and annotations of the request.
    pub(crate) fn notes(&self) -> &'a Notes {
        &self.call.notes
    }

    /// Returns the options of the request as reviews and policies show them.
    pub(crate) fn options(&self) -> Value {
        let kind = match self.operation {
            Operation::Connect => return Value::Null,
            Operation::Delete => return crate::verbs::DeleteOptions::shown(self.call),
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
        };
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        for name in ["fieldManager", "fieldValidation"] {
            if let Some(value) = self.call.param(name) {
                options[name] = json!(value);
            }
        }
        options
    }

    /// Returns the user who sent the request.
    pub(crate) fn user(&self) -> &'a User {
        &self.call.user
    }

    /// Returns the refusal of a plugin.
    pub(crate) fn forbidden(&self, why: impl Into<String>) -> Box<Status> {
        let resource = self.resource.group_resource();
        Box::new(Status::forbidden(&resource, &self.shown_name(), why.into()))
    }

    /// Returns the name that messages show: that of the request, the prefix of a name that is generated later, or `Unknown`.
    pub(crate) fn shown_name(&self) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let object = self.object.as_ref().unwrap_or(&Value::Null);
        let found = ["name", "generateName"].map(|field| metadata::text(object, field));
        found.into_iter().find(|text| !text.is_empty()).unwrap_or("Unknown").to_owned()
    }
}

fn namespace_of(resource: &Resource, namespace: &str, name: &str) -> String {
    let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
    if is_namespace { name.to_owned() } else { namespace.to_owned() }
}
