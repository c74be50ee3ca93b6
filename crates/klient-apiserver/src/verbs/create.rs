//! Creates.

use std::sync::Arc;

use http::{Response, StatusCode};
use klient_core::{GroupKind, Status, StatusCause, StatusReason};
use serde_json::Value;

use super::{Ownership, Target, empties, settled::Settled};
use crate::{
    Result,
    admission::{Attributes, Operation, Origin, Stage},
    body::ResponseBody,
    builtin::{self, Posted, Writing, versions},
    call::Call,
    causes::Causes,
    decode, managed, metadata,
    negotiate::Encoding,
    registry::{Resource, Schema},
    response,
    server::Core,
    store::{CommitError, Committed, Expected, Stored, Write},
};

impl Core {
    pub(super) async fn create(self: &Arc<Self>, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let resource = &target.resource;
        if let Posted::Binding = resource.hooks.posted {
            return self.bind_named(call, target).await;
        }
        let wanted = call.response_format(resource)?;
        let encoding = Encoding::of_body(&call.headers)?;
        let options = call.write_options("CreateOptions")?;
        let mut decoded = decode::object(resource, encoding, &call.body)?;
        call.notes.warn_of_fields(decode::enforce(resource, options.field_validation, &decoded.problems)?);
        call.notes.warn_of_fields(metadata::unite_owners(&mut decoded.object));
        let made = if let Posted::Review(review) = resource.hooks.posted {
            let mut object = decoded.object;
            let writer = call.writer("", self.clock.now());
            let entries = managed::update(&self.registry.groups(), resource, None, &mut object, &writer);
            managed::set_entries(&mut object, entries);
            let mut object = self.admit_posted(call, target, object, options.dry_run).await?;
            review(self, call, &mut object)?;
            object
        } else {
            let writer = call.writer("", self.clock.now());
            let owned = Ownership::Written(&writer);
            self.create_object(target, decoded.object, owned, Origin::Client(call), options.dry_run)
                .await
                .map_err(|status| empties::shown(status, || empties::body(call)))?
        };
        response::object(StatusCode::CREATED, resource, &made, wanted)
    }

    /// Creates an object, and returns it as stored.
    pub(super) async fn create_object(
        self: &Arc<Self>,
        target: &Target,
        mut object: Value,
        ownership: Ownership<'_>,
        origin: Origin<'_>,
        dry_run: bool,
    ) -> Result<Value> {
        let resource = &target.resource;
        check_namespace(target, &mut object)?;
        let version = Some(metadata::text(&object, "resourceVersion").to_owned()).filter(|version| !version.is_empty());
        metadata::wipe_system_fields(&mut object);
        builtin::complete(resource, &mut object);
        let inner = target.stored(self);
        let settled = inner.as_ref().map(|inner| Settled::new(resource, inner, &mut object));
        if let Ownership::Written(writer) = ownership {
            let groups = self.registry.groups();
            let entries = managed::update(&groups, resource, None, &mut object, writer);
            managed::set_entries(&mut object, entries);
        }
        self.check_parents(target, &object)?;
        let admitted = origin.call().filter(|_| !self.is_admission_idle(&target.resource));
        if let Some(call) = admitted {
            object = self.admit_new(call, target, object, dry_run).await?;
        }
        origin.call().map_or(Ok(()), |call| self.check_grant(call, target, &object, None))?;
        if let Some(call) = origin.call() {
            (resource.hooks.set_user)(&mut object, &call.user);
        }
        if let (Some(settled), Some(inner)) = (settled, &inner) {
            object = settled.after_admission(inner, object);
        }
        let resource = &inner.as_ref().unwrap_or(target).resource;
        origin.warn(&builtin::before_create(Writing { core: self, dry_run }, resource, &mut object)?);
        self.fill_new(resource, &mut object)?;
        let generated = metadata::text(&object, "generateName").to_owned();
        let generates = metadata::text(&object, "name").is_empty() && !generated.is_empty();
        for _ in 0..GENERATE_ATTEMPTS {
            if generates {
                let name = metadata::generate(&generated, || self.random());
                metadata::of(&mut object).insert("name".to_owned(), Value::from(name));
            }
            origin.warn(&validate(resource, &object, None, None, None)?);
            if let Some(call) = admitted {
                object = self.check_new(call, target, object, dry_run).await?;
            }
            if version.is_some() && !dry_run {
                let message = "resourceVersion should not be set on objects to be created";
                return Err(Box::new(Status::failure(StatusReason::Unknown, 500, message)));
            }
            let name = metadata::text(&object, "name").to_owned();
            let key = resource.key(&target.namespace, &name);
            if dry_run {
                if self.store.get(&resource.table, &key).is_none() {
                    // A dry run returns the version of the request, because no other is written.
                    if let Some(version) = version {
                        metadata::of(&mut object).insert("resourceVersion".to_owned(), Value::from(version));
                    }
                    return self.rehearse(&target.resource, resource, object).await;
                }
            } else {
                // Another name may have to be generated.
                let put = if generates { object.clone() } else { std::mem::take(&mut object) };
                let put = self.to_storage(resource, put).await?;
                match self.store.commit(&resource.table, &key, Expected::Absent, Write::Put(put)).await {
                    Ok(committed) => {
                        self.after_change(resource, &committed).await;
                        return self.present(&target.resource, committed.object).await;
                    }
                    Err(CommitError::Changed(_)) => {}
                    Err(error) => return Err(commit_failed(&error)),
                }
            }
            if !generates {
                return Err(already_exists(resource, &name, &generated, self.store.get(&resource.table, &key)));
            }
        }
        let name = metadata::text(&object, "name");
        Err(Box::new(Status::generate_name_conflict(&resource.group_resource(), name, 1)))
    }

    /// Sets what the server decides about a new object: its status, its identity, and the form of empty fields.
    fn fill_new(&self, resource: &Resource, object: &mut Value) -> Result<()> {
        if resource.has_status && !resource.is_custom() {
            builtin::reset_status(resource, object, &metadata::time(self.clock.now()));
        } else if resource.has_status
            && let Value::Object(fields) = object
        {
            fields.remove("status");
        }
        if let Schema::BuiltIn(_) = resource.schema {
            if resource.has_status || resource.hooks.before_create.is_some() {
                // The object is normalised again with its defaults and status. There are no unknown fields left.
                decode::shape(resource, object)?;
            }
            builtin::nulls(resource, object);
            builtin::null_empty_lists(resource, object);
        }
        metadata::fill_new(object, &self.new_uid(), self.clock.now(), resource.has_generation);
        (resource.hooks.with_uid)(object);
        Ok(())
    }

    /// Runs the mutating stage of admission for a new object.
    async fn admit_new(
        self: &Arc<Self>,
        call: &Call,
        target: &Target,
        mut object: Value,
        dry_run: bool,
    ) -> Result<Value> {
        metadata::wipe_identity(&mut object);
        let mut request = Attributes::new(call, Operation::Create, target).object(object).dry_run(dry_run);
        self.admit(&mut request).await?;
        let mut object = request.object.take().unwrap_or_default();
        check_namespace(target, &mut object)?;
        if let Some(warning) = metadata::unite_owners_again(&mut object) {
            call.notes.warn(Stage::Mutating, warning);
        }
        Ok(object)
    }

    /// Runs the validating stage of admission for a new object, and returns the object.
    async fn check_new(self: &Arc<Self>, call: &Call, target: &Target, object: Value, dry_run: bool) -> Result<Value> {
        if target.resource.hooks.stored_as.is_some() {
            let shown = versions::convert(&target.resource, object.clone());
            let request = Attributes::new(call, Operation::Create, target).object(shown).dry_run(dry_run);
            self.check_admission(&request).await?;
            return Ok(object);
        }
        let request = Attributes::new(call, Operation::Create, target).object(object).dry_run(dry_run);
        self.check_admission(&request).await?;
        Ok(request.object.unwrap_or_default())
    }

    /// Runs admission for a posted object that is not stored, and returns the object.
    pub(super) async fn admit_posted(
        self: &Arc<Self>,
        call: &Call,
        target: &Target,
        object: Value,
        dry_run: bool,
    ) -> Result<Value> {
        if self.is_admission_idle(&target.resource) {
            return Ok(object);
        }
        let request = Attributes::new(call, Operation::Create, target).object(object).dry_run(dry_run);
        Ok(self.admit_wholly(request).await?.unwrap_or_default())
    }

    /// Refuses to create objects in a missing or terminating namespace, or of a definition that is being deleted.
    fn check_parents(&self, target: &Target, object: &Value) -> Result<()> {
        check_definition(target, object)?;
        if !target.resource.namespaced || target.namespace.is_empty() || !self.admission.checks_namespaces {
            return Ok(());
        }
        let namespaces = klient_core::GroupResource::new("", "namespaces");
        let Some(namespace) = self.store.get("namespaces", &target.namespace) else {
            return Err(Box::new(Status::not_found(&namespaces, &target.namespace)));
        };
        if namespace.raw().deletion_timestamp().is_some() {
            let why = format!(
                "unable to create new content in namespace {} because it is being terminated",
                target.namespace
            );
            let mut status = Status::forbidden(&target.resource.group_resource(), "", why);
            let cause = StatusCause::new(
                "NamespaceTerminating",
                "metadata.namespace",
                format!("namespace {} is being terminated", target.namespace),
            );
            if let Some(details) = &mut status.details {
                details.causes.push(cause);
            }
            return Err(Box::new(status));
        }
        Ok(())
    }

    /// Runs the server's reactions to a committed change.
    pub(crate) async fn after_change(self: &Arc<Self>, resource: &Resource, committed: &Committed) {
        builtin::after_change(self, resource, committed).await;
    }
}

/// Refuses to create objects of a custom kind whose definition is being deleted.
fn check_definition(target: &Target, object: &Value) -> Result<()> {
    match &target.resource.schema {
        Schema::Custom(schema) if schema.is_terminating => {
            let why = "create not allowed while custom resource definition is terminating";
            let name = metadata::text(object, "name");
            Err(Box::new(Status::forbidden(&target.resource.group_resource(), name, why)))
        }
        _ => Ok(()),
    }
}

/// Sets the namespace of an object to that of the request, or refuses another one.
pub(super) fn check_namespace(target: &Target, object: &mut Value) -> Result<()> {
    let given = metadata::text(object, "namespace").to_owned();
    if !target.resource.namespaced {
        metadata::of(object).remove("namespace");
        return Ok(());
    }
    if !given.is_empty() && given != target.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Box::new(Status::bad_request(message)));
    }
    metadata::of(object).insert("namespace".to_owned(), Value::from(target.namespace.as_str()));
    Ok(())
}

/// Returns an error for an invalid object, or warnings about it. `uid` is another UID that the request
/// has.
pub(super) fn validate(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    part: Option<&str>,
    uid: Option<&str>,
) -> Result<Vec<String>> {
    let mut causes = metadata::check(resource, object, old, uid);
    let mut warnings = Vec::new();
    match &resource.schema {
        Schema::Custom(schema) if part == Some("status") => {
            causes.extend(schema.validate_status(object, old, &mut warnings));
        }
        Schema::Custom(schema) => causes.extend(schema.validate(object, old, &mut warnings)),
        Schema::BuiltIn(_) if old.is_none() && resource.hooks.metadata_last => {
            let of_metadata = std::mem::take(&mut causes);
            builtin::validate(resource, object, old, part, &mut causes);
            if causes.is_empty() {
                causes = of_metadata;
            }
        }
        Schema::BuiltIn(_) => builtin::validate(resource, object, old, part, &mut causes),
    }
    if causes.is_empty() {
        builtin::warn(resource, object, old, part, &mut warnings);
        if resource.is_custom() && part.is_none() {
            warnings.extend(metadata::warnings(object, old));
        }
        return Ok(warnings);
    }
    Err(invalid(resource, object, causes))
}

/// Returns the error for an object with invalid fields.
pub(super) fn invalid(resource: &Resource, object: &Value, causes: Causes) -> Box<Status> {
    let group = resource.hooks.validation_group.unwrap_or(&resource.group);
    let kind = GroupKind::new(group.to_owned(), resource.kind.clone());
    Box::new(Status::invalid(&kind, metadata::text(object, "name"), causes.into_vec()))
}

/// Returns the error for a name that is taken. One with a prefix for generated names gets another message, although its name is given.
fn already_exists(resource: &Resource, name: &str, prefix: &str, found: Option<Arc<Stored>>) -> Box<Status> {
    let mut status = match prefix {
        "" => Status::already_exists(&resource.group_resource(), name),
        _ => Status::generate_name_conflict(&resource.group_resource(), name, 1),
    };
    if found.is_some_and(|found| found.raw().deletion_timestamp().is_some()) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    Box::new(status)
}

pub(super) fn commit_failed(error: &CommitError) -> Box<Status> {
    match error {
        CommitError::Invalid(why) | CommitError::Disk(why) => Box::new(Status::internal_error(why)),
        CommitError::Changed(_) => Box::new(Status::internal_error("the object was modified concurrently")),
    }
}

const GENERATE_ATTEMPTS: usize = 8;
