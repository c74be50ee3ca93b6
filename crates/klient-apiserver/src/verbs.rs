//! Request handlers: one file for each verb, all of them generic over kinds.

mod admitted;
mod apply;
mod create;
mod delete;
mod empties;
mod get;
mod list;
mod modify;
mod pods;
mod scale;
mod settled;
mod token;
mod watch;

pub(crate) use self::delete::DeleteOptions;

use std::sync::Arc;

use http::{Method, Response};
use klient_core::{GroupResource, Status, Verb};
use serde_json::Value;

use crate::{
    Result, admission::Origin, body::ResponseBody, call::Call, managed::Writer, patch::Patch, registry::Resource,
    route::ResourceRoute, server::Core,
};

/// How the owners of an object's fields are found.
#[derive(Clone, Copy)]
pub(crate) enum Ownership<'a> {
    /// By comparing the object with the stored one.
    Written(&'a Writer),
    /// They are in the object already.
    Known,
    /// They are in the object already, as the result of an apply.
    Applied(&'a Writer),
}

/// The resource, object or subresource of a request.
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    /// The namespace. Empty for all namespaces and for cluster-scoped kinds.
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl<'a> Ownership<'a> {
    /// Returns the origin of the write, if it is known.
    pub(crate) fn writer(self) -> Option<&'a Writer> {
        match self {
            Self::Written(writer) | Self::Applied(writer) => Some(writer),
            Self::Known => None,
        }
    }
}

impl Target {
    /// Returns the object's name, or an empty text for a collection.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Returns the object's key in the store.
    pub(crate) fn key(&self) -> String {
        self.resource.key(&self.namespace, self.name())
    }

    /// Returns the target without its subresource.
    pub(crate) fn whole(&self) -> Self {
        Self {
            resource: Arc::clone(&self.resource),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            subresource: None,
        }
    }

    /// Returns the prefix of the keys of all objects in the collection.
    pub(crate) fn prefix(&self) -> String {
        if self.resource.namespaced && !self.namespace.is_empty() {
            format!("{}/", self.namespace)
        } else {
            String::new()
        }
    }

    pub(crate) fn not_found(&self) -> Box<Status> {
        Box::new(Status::not_found(&self.resource.group_resource(), self.name()))
    }
}

impl Core {
    /// Handles a request to a resource.
    pub(crate) async fn on_resource(
        self: &Arc<Self>,
        call: &Call,
        route: &ResourceRoute,
    ) -> Result<Response<ResponseBody>> {
        let resource = self.registry.find(&route.group, &route.version, &route.plural).ok_or_else(not_served)?;
        if resource.namespaced != route.namespace.is_some() && (route.name.is_some() || route.namespace.is_some()) {
            return Err(not_served());
        }
        let target = Target {
            resource,
            namespace: route.namespace.clone().unwrap_or_default(),
            name: route.name.clone(),
            subresource: route.subresource.clone(),
        };
        if let Some(name) = &target.subresource {
            return self.on_subresource(call, &target, name).await;
        }
        let not_allowed = || method_not_allowed(call, &target.resource.group_resource());
        if route.watch && call.method != Method::GET {
            return Err(not_allowed());
        }
        let is_named = target.name.is_some();
        // The handler of custom kinds leaves requests in another scope to the next handler, which knows no such path.
        let is_across = target.resource.namespaced && target.namespace.is_empty();
        if target.resource.is_custom() && is_across && call.method != Method::GET && call.method != Method::HEAD {
            return Ok(crate::discovery::page_not_found());
        }
        if target.resource.is_custom() {
            match call.method {
                // Custom objects are created wherever they are posted to, by the name in the body.
                Method::POST if is_named => {
                    let collection = Target { name: None, ..target };
                    return self.create(call, &collection).await;
                }
                // The handler of custom kinds checks the name before the method.
                Method::PUT | Method::PATCH if !is_named => {
                    return Err(Box::new(Status::bad_request("name must be provided")));
                }
                _ => {}
            }
        }
        // The parameter is ignored in requests for one object.
        let is_watch = route.watch || (call.flag("watch") && !is_named);
        // Objects that are not stored have no path.
        if is_named && target.resource.verbs == [Verb::Create] {
            return Err(not_served());
        }
        let verb = verb_of(&call.method, is_named, is_watch).ok_or_else(not_allowed)?;
        let in_all_namespaces = target.resource.namespaced && target.namespace.is_empty();
        if in_all_namespaces && matches!(verb, Verb::Create | Verb::DeleteCollection) {
            return Err(not_allowed());
        }
        if verb == Verb::Watch && target.resource.has_verb(Verb::List) && !target.resource.has_verb(Verb::Watch) {
            return Err(Box::new(Status::method_not_supported(&target.resource.group_resource(), "watch")));
        }
        if !target.resource.has_verb(verb) {
            return Err(not_allowed());
        }
        match verb {
            Verb::Watch => self.watch(call, &target).await,
            Verb::Get => self.get(call, &target).await,
            Verb::List => self.list(call, &target).await,
            Verb::Create => self.create(call, &target).await,
            Verb::Update => self.update(call, &target).await,
            Verb::Patch => self.patch(call, &target).await,
            Verb::Delete => self.delete(call, &target).await,
            Verb::DeleteCollection => self.delete_collection(call, &target).await,
            _ => Err(not_allowed()),
        }
    }

    /// Refuses a write that would grant permissions that the user does not have. `old` is the stored object.
    fn check_grant(&self, call: &Call, target: &Target, object: &Value, old: Option<&Value>) -> Result<()> {
        match &self.access.rbac {
            Some(rbac) => rbac.check_write(&call.user, target, object, old),
            None => Ok(()),
        }
    }

    async fn on_subresource(
        self: &Arc<Self>,
        call: &Call,
        target: &Target,
        name: &str,
    ) -> Result<Response<ResponseBody>> {
        let unknown = || if target.resource.is_custom() { target.not_found() } else { not_served() };
        let subresource = target.resource.subresource(name).ok_or_else(unknown)?;
        let not_allowed = || match target.resource.is_custom() {
            true => {
                let verb = if call.method == Method::POST { "create" } else { "delete" };
                Box::new(Status::method_not_supported(&target.resource.group_resource(), verb))
            }
            false => method_not_allowed(call, &target.resource.group_resource()),
        };
        let verb = verb_of_subresource(&call.method).ok_or_else(not_allowed)?;
        if !subresource.verbs.contains(&verb) {
            return Err(not_allowed());
        }
        match (name, verb) {
            ("scale", Verb::Patch) if target.resource.is_custom() && Patch::is_strategic(call) => {
                Err(Patch::unsupported_for(&target.resource))
            }
            ("scale", _) => self.scale(call, target).await,
            ("status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", Verb::Get) => {
                self.get(call, target).await
            }
            ("status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", Verb::Update) => {
                self.update(call, target).await
            }
            ("status" | "finalize" | "approval" | "ephemeralcontainers" | "resize", Verb::Patch) => {
                self.patch(call, target).await
            }
            ("binding", Verb::Create) => self.bind(call, target).await,
            ("eviction", Verb::Create) => self.evict(call, target).await,
            ("token", Verb::Create) => self.issue_token(call, target),
            ("exec" | "attach" | "portforward" | "log", _) if self.pod_streams.is_some() => {
                let streams = self.pod_streams.as_ref().ok_or_else(not_served)?;
                let pod = self.store.get(&target.resource.table, &target.key()).ok_or_else(|| target.not_found())?;
                if name != "log" {
                    self.admit_connect(call, target).await?;
                }
                streams.respond(call, target, &pod.value())
            }
            ("exec" | "attach" | "portforward" | "log" | "proxy", _)
                if self.store.get(&target.resource.table, &target.key()).is_none() =>
            {
                Err(target.not_found())
            }
            _ => {
                let message =
                    format!("{} of {} is not supported by the embedded API server", name, target.resource.plural);
                Err(Box::new(Status::failure(klient_core::StatusReason::Unknown, 501, message)))
            }
        }
    }
}

/// Returns the verb of a request to an object, or to a collection if `is_named` is false.
fn verb_of(method: &Method, is_named: bool, is_watch: bool) -> Option<Verb> {
    Some(match (method, is_named) {
        (&Method::GET, _) if is_watch => Verb::Watch,
        (&Method::GET, true) => Verb::Get,
        (&Method::GET, false) => Verb::List,
        (&Method::POST, false) => Verb::Create,
        (&Method::PUT, true) => Verb::Update,
        (&Method::PATCH, true) => Verb::Patch,
        (&Method::DELETE, true) => Verb::Delete,
        (&Method::DELETE, false) => Verb::DeleteCollection,
        _ => return None,
    })
}

/// Returns the verb of a request to a subresource.
fn verb_of_subresource(method: &Method) -> Option<Verb> {
    if *method == Method::POST { Some(Verb::Create) } else { verb_of(method, true, false) }
}

/// Returns the error for an unsupported method.
pub(crate) fn method_not_allowed(call: &Call, resource: &GroupResource) -> Box<Status> {
    let mut status = Status::method_not_supported(resource, call.method.as_str());
    status.message = "the server does not allow this method on the requested resource".to_owned();
    status.details = Some(Box::default());
    Box::new(status)
}

/// Returns the error for an unknown resource.
pub(crate) fn not_served() -> Box<Status> {
    let mut status =
        Status::failure(klient_core::StatusReason::NotFound, 404, "the server could not find the requested resource");
    status.details = Some(Box::default());
    Box::new(status)
}

/// Creates an object on behalf of the server or of a controller.
pub(crate) async fn create_object(core: &Arc<Core>, target: &Target, object: Value, writer: &Writer) -> Result<()> {
    core.create_object(target, object, Ownership::Written(writer), Origin::Server, false).await.map(drop)
}
