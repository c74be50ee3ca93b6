//! Deletes: at once, or in steps if there are finalizers or a grace period.

use std::sync::Arc;

use http::{Response, StatusCode};
use jiff::Timestamp;
use klient_core::{GroupKind, Status, StatusCause, StatusDetails};
use serde_json::{Value, json};

use super::{Target, create::commit_failed};
use crate::{
    Result,
    admission::{Origin, Stage},
    body::ResponseBody,
    builtin::versions,
    call::Call,
    decode, metadata,
    negotiate::Encoding,
    registry::Resource,
    response,
    selection::Selection,
    server::Core,
    store::{CommitError, Expected, Stored, Write},
};

/// The options of a delete.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(super) dry_run: bool,
    grace: Option<i64>,
    uid: Option<String>,
    pub(super) version: Option<String>,
    propagation: Option<Propagation>,
    /// The deprecated form of the propagation policy.
    orphan_dependents: Option<bool>,
}

/// The propagation policy: what happens to dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// The outcome of a delete.
pub(crate) enum Deleted {
    /// The object was deleted. This was its last state.
    Gone(Value),
    /// The object waits for finalizers or its grace period.
    Waiting(Value),
}

impl Core {
    pub(super) async fn delete(self: &Arc<Self>, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let resource = &target.resource;
        let wanted = call.response_format(resource)?;
        let options = DeleteOptions::of_call(call)?;
        options.warn(resource, call);
        let accepted = options.orphan_dependents == Some(false);
        match self.delete_object(target, &options, Origin::Client(call)).await? {
            Deleted::Waiting(object) => {
                let code = if accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
                response::object(code, resource, &versions::convert(resource, object), wanted)
            }
            Deleted::Gone(object) if resource.hooks.delete_returns_object => {
                response::object(StatusCode::OK, resource, &object, wanted)
            }
            Deleted::Gone(object) => {
                let mut status = Status::success();
                status.details = Some(Box::new(StatusDetails {
                    name: target.name().to_owned(),
                    group: resource.group.clone(),
                    kind: resource.plural.clone(),
                    uid: metadata::text(&object, "uid").to_owned(),
                    ..StatusDetails::default()
                }));
                Ok(response::status(StatusCode::OK, &status, wanted))
            }
        }
    }

    pub(super) async fn delete_collection(
        self: &Arc<Self>,
        call: &Call,
        target: &Target,
    ) -> Result<Response<ResponseBody>> {
        let resource = &target.resource;
        let wanted = call.response_format(resource)?;
        let selection = Selection::of_call(resource, call)?;
        // Preconditions apply to single objects only.
        let options = DeleteOptions { uid: None, version: None, ..DeleteOptions::of_call(call)? };
        options.warn(resource, call);
        let limit = call.number("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
        let mut snapshot = self.store.list(&resource.table, &target.prefix());
        if selection.reads_objects() {
            self.convert_all(resource, &mut snapshot.objects).await?;
        }
        let found = snapshot.objects.iter().filter(|stored| selection.matches(stored));
        let found: Vec<Arc<Stored>> = found.take(limit.unwrap_or(usize::MAX)).cloned().collect();
        for stored in &found {
            let one = Target {
                resource: Arc::clone(resource),
                namespace: stored.raw().namespace().unwrap_or_default().into_owned(),
                name: Some(stored.raw().name().into_owned()),
                subresource: None,
            };
            match self.delete_object(&one, &options, Origin::Collection(call)).await {
                Err(status) if !status.is_not_found() => return Err(status),
                _ => {}
            }
        }
        let head = response::ListHead { revision: snapshot.revision, ..response::ListHead::default() };
        let found = self.all_stored_in(resource, &found).await?;
        response::list(resource, &head, &found, wanted)
    }

    /// Deletes an object, or marks it as being deleted.
    pub(crate) async fn delete_object(
        self: &Arc<Self>,
        target: &Target,
        options: &DeleteOptions,
        origin: Origin<'_>,
    ) -> Result<Deleted> {
        let mut options = options.clone();
        let admitted = origin.call().filter(|_| !self.is_admission_idle(&target.resource));
        let inner = target.stored(self);
        let resource = &inner.as_ref().unwrap_or(target).resource;
        loop {
            let stored = self.store.get(&resource.table, &target.key()).ok_or_else(|| target.not_found())?;
            let current = self.present(resource, stored.value()).await?;
            if !matches!(origin, Origin::Collection(_)) {
                (resource.hooks.before_delete)(resource, &current)?;
            }
            options.check(target, &current)?;
            if let Some(call) = admitted {
                let is_named = matches!(origin, Origin::Client(_));
                self.admit_delete(call, target, &current, is_named, options.dry_run).await?;
            }
            let mut new = current.clone();
            options.propagation_of(resource, &current).mark(&mut new);
            let grace = (resource.hooks.grace_period)(&current, options.grace);
            let waits =
                metadata::finalizers(&new).next().is_some() || grace > 0 || !(resource.hooks.is_removable)(&new);
            // Watchers of pods always see the deletion begin, even if it ends at once.
            let marks = resource.hooks.marks_before_delete && !waits && !is_marked(&current);
            let write = if marks {
                set_deletion(&mut new, self.clock.now(), 0);
                if !metadata::is_deleting(&current) {
                    count_up(&mut new);
                }
                Write::Put(new.clone())
            } else if waits {
                if !mark_deleting(self, resource, &mut new, &current, grace) {
                    return Ok(Deleted::Waiting(current));
                }
                Write::Put(new.clone())
            } else {
                // Watches see the object as it was stored last.
                Write::Delete(stored.value())
            };
            if options.dry_run {
                return Ok(if waits { Deleted::Waiting(new) } else { Deleted::Gone(new) });
            }
            let write = match write {
                Write::Put(object) => Write::Put(self.to_storage(resource, object).await?),
                delete => delete,
            };
            match self.store.commit(&resource.table, &target.key(), Expected::Revision(stored.revision), write).await {
                Ok(committed) => {
                    self.after_change(resource, &committed).await;
                    if marks {
                        // The marked object can now be deleted.
                        options.version = None;
                        continue;
                    }
                    let object = self.present(resource, committed.object).await?;
                    return Ok(if waits { Deleted::Waiting(object) } else { Deleted::Gone(object) });
                }
                Err(CommitError::Changed(_)) => {}
                Err(error) => return Err(commit_failed(&error)),
            }
        }
    }
}

/// Marks an object as being deleted. Returns false if nothing changes.
fn mark_deleting(core: &Core, resource: &Resource, new: &mut Value, current: &Value, grace: i64) -> bool {
    if metadata::is_deleting(current) {
        let before = current["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
        // A grace period can only become shorter.
        if grace >= before && new == current {
            return false;
        }
        if grace < before {
            shorten_deletion(core.clock.now(), new, before, grace);
        }
    } else {
        set_deletion(new, after(core.clock.now(), grace), grace);
        count_up(new);
        (resource.hooks.on_deletion)(new);
    }
    true
}

/// Returns whether the object is being deleted without a grace period.
fn is_marked(object: &Value) -> bool {
    metadata::is_deleting(object) && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
}

fn count_up(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64().filter(|generation| *generation > 0) {
        metadata::of(object).insert("generation".to_owned(), json!(generation + 1));
    }
}

/// Shortens the grace period of a deletion, counted from when the deletion began. It never ends in the past: if it would, a second is left
/// for those that wait for the change.
fn shorten_deletion(now: Timestamp, object: &mut Value, before: i64, grace: i64) {
    let old = metadata::text(object, "deletionTimestamp").parse::<Timestamp>();
    let at = old.map_or(now, |old| after(old, grace - before));
    if at < now {
        set_deletion(object, now, grace.min(1));
    } else {
        set_deletion(object, at, grace);
    }
}

fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time.saturating_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(time)
}

fn set_deletion(object: &mut Value, at: Timestamp, grace: i64) {
    let fields = metadata::of(object);
    fields.insert("deletionTimestamp".to_owned(), json!(metadata::time(at)));
    fields.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
}

impl DeleteOptions {
    /// Returns the options of a background delete, as the server itself uses.
    pub(crate) fn background() -> Self {
        Self { propagation: Some(Propagation::Background), ..Self::default() }
    }

    /// Returns the options of a foreground delete.
    pub(crate) fn foreground() -> Self {
        Self { propagation: Some(Propagation::Foreground), ..Self::default() }
    }

    /// Restricts the delete to the object with a UID.
    pub(crate) fn of_uid(mut self, uid: &str) -> Self {
        self.uid = Some(uid.to_owned());
        self
    }

    fn of_call(call: &Call) -> Result<Self> {
        Self::read(&body_options(call)?, call)
    }

    /// Returns the options of a request as an object, for admission.
    pub(crate) fn shown(call: &Call) -> Value {
        let mut shown = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        let Ok(body) = body_options(call) else { return shown };
        for name in ["gracePeriodSeconds", "preconditions", "orphanDependents", "propagationPolicy", "dryRun"] {
            if let Some(value) = body.get(name).filter(|value| !value.is_null()) {
                shown[name] = value.clone();
            }
        }
        if let Ok(Some(grace)) = call.number("gracePeriodSeconds")
            && body.is_null()
        {
            shown["gracePeriodSeconds"] = json!(grace);
        }
        if let Some(policy) = call.param("propagationPolicy").filter(|_| body.is_null()) {
            shown["propagationPolicy"] = json!(policy);
        }
        let dry_run: Vec<&str> = call.params("dryRun").collect();
        if !dry_run.is_empty() && body.is_null() {
            shown["dryRun"] = json!(dry_run);
        }
        shown
    }

    /// Parses options from a body, or else from parameters.
    pub(super) fn read(body: &Value, call: &Call) -> Result<Self> {
        let text = |name: &str| body[name].as_str().or_else(|| call.param(name));
        let invalid = |causes| Box::new(Status::invalid(&GroupKind::new("meta.k8s.io", "DeleteOptions"), "", causes));
        let dry_run: Vec<&str> = body["dryRun"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .chain(call.params("dryRun"))
            .collect();
        if dry_run.iter().any(|value| *value != "All") {
            let given: Vec<Value> = dry_run.iter().map(|value| json!(value)).collect();
            return Err(invalid(vec![StatusCause::not_supported("dryRun", given, &["All"])]));
        }
        let grace = match body["gracePeriodSeconds"].as_i64() {
            Some(grace) => Some(grace),
            None => call.number("gracePeriodSeconds")?,
        };
        let orphan_dependents =
            body["orphanDependents"].as_bool().or_else(|| call.param("orphanDependents").map(|value| value == "true"));
        let propagation = match text("propagationPolicy") {
            None => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                return Err(invalid(vec![StatusCause::not_supported("propagationPolicy", other, &supported)]));
            }
        };
        if orphan_dependents.is_some() && propagation.is_some() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            return Err(invalid(vec![StatusCause::invalid(
                "propagationPolicy",
                json!(text("propagationPolicy")),
                detail,
            )]));
        }
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            // A negative grace period counts as one second.
            grace: grace.map(|grace| if grace < 0 { 1 } else { grace }),
            uid: body["preconditions"]["uid"].as_str().map(str::to_owned),
            version: body["preconditions"]["resourceVersion"].as_str().map(str::to_owned),
            propagation,
            orphan_dependents,
        })
    }

    pub(super) fn check(&self, target: &Target, current: &Value) -> Result<()> {
        let resource = &target.resource;
        // The real server names the kind here instead of the resource.
        let kind = klient_core::GroupResource::new(resource.group.clone(), resource.kind.clone());
        let differs = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().filter(|wanted| *wanted != metadata::text(current, name)).map(str::to_owned)
        };
        let why = if let Some(wanted) = differs(&self.uid, "uid") {
            let found = metadata::text(current, "uid");
            format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({found}). The object might have been deleted and then recreated"
            )
        } else if let Some(wanted) = differs(&self.version, "resourceVersion") {
            let found = metadata::text(current, "resourceVersion");
            format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({found}). The object might have been modified"
            )
        } else {
            return Ok(());
        };
        Err(Box::new(Status::conflict(&kind, target.name(), why)))
    }

    /// Returns the requested propagation, or that of the finalizers, or that of the kind.
    fn propagation_of(&self, resource: &Resource, current: &Value) -> Mark {
        let chosen = self.propagation.or(match self.orphan_dependents {
            Some(true) => Some(Propagation::Orphan),
            Some(false) => Some(Propagation::Background),
            None => None,
        });
        match chosen {
            Some(chosen) => Mark::Set(chosen),
            None if metadata::finalizers(current).any(|name| matches!(name, "orphan" | "foregroundDeletion")) => {
                Mark::Keep
            }
            None if resource.hooks.orphans_dependents => Mark::Set(Propagation::Orphan),
            None => Mark::Set(Propagation::Background),
        }
    }

    /// Adds the kind's warning about a request without a propagation policy.
    fn warn(&self, resource: &Resource, call: &Call) {
        let warning = resource.hooks.delete_warning;
        let warning = warning.filter(|_| self.propagation.is_none() && self.orphan_dependents.is_none());
        warning.into_iter().for_each(|text| call.notes.warn(Stage::Mutating, text));
    }
}

/// Sets the garbage collector's finalizers of an object.
enum Mark {
    Keep,
    Set(Propagation),
}

impl Mark {
    fn mark(&self, object: &mut Value) {
        let Self::Set(propagation) = self else { return };
        let mut finalizers: Vec<String> = metadata::finalizers(object).map(str::to_owned).collect();
        finalizers.retain(|name| name != "orphan" && name != "foregroundDeletion");
        match propagation {
            Propagation::Orphan => finalizers.push("orphan".to_owned()),
            Propagation::Foreground => finalizers.push("foregroundDeletion".to_owned()),
            Propagation::Background => {}
        }
        let fields = metadata::of(object);
        if finalizers.is_empty() {
            fields.remove("finalizers");
        } else {
            fields.insert("finalizers".to_owned(), json!(finalizers));
        }
    }
}

/// Decodes the options in a body.
fn body_options(call: &Call) -> Result<Value> {
    if call.body.is_empty() {
        return Ok(Value::Null);
    }
    let value = match Encoding::of_body(&call.headers)? {
        Encoding::Json => decode::parse_json("DeleteOptions", &call.body)?.0,
        Encoding::Yaml => decode::parse_yaml("DeleteOptions", &call.body)?,
        Encoding::Protobuf => {
            let options: k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions =
                klient_proto::meta::decode(&call.body).map_err(|error| {
                    Box::new(Status::bad_request(format!("the options cannot be decoded: {error}")))
                })?;
            serde_json::to_value(options).unwrap_or_default()
        }
    };
    let kind = value["kind"].as_str().unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        let version = value["apiVersion"].as_str().unwrap_or("v1");
        let message = format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        return Err(Box::new(Status::bad_request(message)));
    }
    Ok(value)
}
