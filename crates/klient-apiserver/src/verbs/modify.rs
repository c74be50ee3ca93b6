//! Updates and patches, of objects and of subresources.
//!
//! All of them are one loop: read, change, check, write if the object did not change meanwhile, or else start again.

use std::sync::Arc;

use http::{Response, StatusCode};
use klient_core::{GroupKind, Quoted, Status, StatusCause, StatusReason};
use serde_json::{Value, json};

use super::{
    Ownership, Target,
    admitted::Admitted,
    create::{check_namespace, commit_failed, invalid, validate},
    empties,
    settled::Settled,
};
use crate::{
    Result,
    admission::{Origin, Stage},
    body::ResponseBody,
    builtin::{self, Writing, versions},
    call::{Call, WriteOptions},
    causes::Causes,
    decode::{self, Decoded},
    managed, metadata,
    negotiate::Encoding,
    patch::Patch,
    registry::{Resource, Schema},
    response,
    server::Core,
    store::{CommitError, Expected, Stored, Write},
};

/// A changed object, and whether it was created.
pub(super) struct Modified {
    pub(super) object: Value,
    pub(super) created: bool,
}

impl Core {
    pub(super) async fn update(self: &Arc<Self>, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let resource = &target.resource;
        let wanted = call.response_format(resource)?;
        let encoding = Encoding::of_body(&call.headers)?;
        let options = call.write_options("UpdateOptions")?;
        let (decoded, is_of_other_kind) = self.decode_update(call, target, encoding, options.dry_run)?;
        call.notes.warn_of_fields(decode::enforce(resource, options.field_validation, &decoded.problems)?);
        let mut object = decoded.object;
        call.notes.warn_of_fields(metadata::unite_owners(&mut object));
        if metadata::text(&object, "name").is_empty() {
            return Err(unnamed(target));
        }
        check_names(target, &mut object)?;
        let writer = call.writer(target.subresource.as_deref().unwrap_or_default(), self.clock.now());
        let mut ownership = Ownership::Written(&writer);
        if is_of_other_kind {
            // The real server cannot compare objects of two kinds, and writes the object without its managers.
            metadata::of(&mut object).remove("managedFields");
            ownership = Ownership::Known;
        }
        // The object is needed again only after a write at the same time.
        let mut decoded = Some(object);
        let mut object = || match decoded.take() {
            Some(object) if is_of_other_kind => Ok(decoded.insert(object).clone()),
            Some(object) => Ok(object),
            None => {
                let mut object = decode::object(resource, encoding, &call.body)?.object;
                check_names(target, &mut object)?;
                Ok(object)
            }
        };
        let modified = self.modify(target, options, ownership, Some(Admitted::Object(call)), |_| object()).await;
        let modified = match modified {
            Err(status) if status.is_not_found() && resource.hooks.create_on_update && target.subresource.is_none() => {
                self.create_missing(target, object()?, ownership, Origin::Client(call), options.dry_run).await
            }
            modified => modified,
        };
        let modified = modified.map_err(|status| empties::shown(status, || empties::body(call)))?;
        let code = if modified.created { StatusCode::CREATED } else { StatusCode::OK };
        response::object(code, resource, &modified.object, wanted)
    }

    /// Decodes the object of an update. Returns whether it is of another kind, too.
    fn decode_update(
        &self,
        call: &Call,
        target: &Target,
        encoding: Encoding,
        dry_run: bool,
    ) -> Result<(Decoded, bool)> {
        let resource = &target.resource;
        match decode::object(resource, encoding, &call.body) {
            // A missing object is reported before a wrong kind.
            Err(status) if status.code == 422 => {
                let stored = self.store.get(&resource.table, &target.key()).ok_or_else(|| target.not_found())?;
                let Ok(mut asked) = serde_json::from_slice::<Value>(&call.body) else { return Err(status) };
                // So are a wrong UID and a wrong version.
                check_uid(target, &asked, &stored.value(), dry_run)?;
                check_version(target, &asked, &stored, false)?;
                if !is_status(target) {
                    return Err(status);
                }
                // Only the status of the request is used, and the real server does not look at the kind.
                asked["kind"] = json!(resource.kind);
                let mut decoded = decode::object(resource, Encoding::Json, &asked.to_string().into())?;
                // It does not look for unknown fields by a schema of another kind, either.
                let is_of_schema = |problem: &String| {
                    problem.starts_with("unknown field ") && !problem.starts_with("unknown field \"metadata.")
                };
                decoded.problems.retain(|problem| !is_of_schema(problem));
                Ok((decoded, true))
            }
            decoded => Ok((decoded?, false)),
        }
    }

    /// Creates the object of an update that does not exist.
    async fn create_missing(
        self: &Arc<Self>,
        target: &Target,
        mut object: Value,
        ownership: Ownership<'_>,
        origin: Origin<'_>,
        dry_run: bool,
    ) -> Result<Modified> {
        // A new object can have neither a UID nor a resource version.
        let uid = metadata::text(&object, "uid");
        if !uid.is_empty() {
            return Err(uid_conflict(target, uid, "", dry_run));
        }
        check_number(metadata::text(&object, "resourceVersion"))?;
        // A dry run returns the version of the request, because no other is written.
        if !dry_run {
            metadata::of(&mut object).remove("resourceVersion");
        }
        let object = self.create_object(target, object, ownership, origin, dry_run).await?;
        Ok(Modified { object, created: true })
    }

    pub(super) async fn patch(self: &Arc<Self>, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        let resource = &target.resource;
        let wanted = call.response_format(resource)?;
        let options = call.write_options("PatchOptions")?;
        let content_type = call.content_type();
        if Patch::is_apply(content_type) {
            return self.apply(call, target, options, wanted).await;
        }
        let patch = match Patch::parse(resource, content_type, &call.body) {
            // A missing object is reported before an invalid patch.
            Err(status) if status.code == 400 && self.store.get(&resource.table, &target.key()).is_none() => {
                return Err(target.not_found());
            }
            patch => patch?,
        };
        let writer = call.writer(target.subresource.as_deref().unwrap_or_default(), self.clock.now());
        let modified = self
            .modify(target, options, Ownership::Written(&writer), Some(Admitted::Object(call)), |current| {
                let mut patched = patch.apply(resource, current)?;
                let is_strict = options.field_validation == decode::FieldValidation::Strict;
                let shown = is_strict.then(|| patch.shown(&patched));
                let found = shaped(&patch, resource, &mut patched)?;
                managed::text::fold(&mut patched);
                let found = patch.problems(found);
                if let Some(shown) = shown.filter(|_| !found.is_empty()) {
                    return Err(not_strict(shown, &found));
                }
                call.notes.warn_of_fields(decode::enforce(resource, options.field_validation, &found)?);
                check_names(target, &mut patched)?;
                Ok(patched)
            })
            .await;
        let modified = modified.map_err(|status| {
            // The object is patched again for messages that need it, so that other requests need no copy of it.
            let patched = || patch.apply(resource, &self.store.get(&resource.table, &target.key())?.value()).ok();
            empties::shown(status, patched)
        })?;
        response::object(StatusCode::OK, resource, &modified.object, wanted)
    }

    /// Reads, changes and writes an object, and starts again after a conflicting write.
    pub(super) async fn modify(
        self: &Arc<Self>,
        target: &Target,
        options: WriteOptions,
        ownership: Ownership<'_>,
        admitted: Option<Admitted<'_>>,
        mut change: impl FnMut(&Value) -> Result<Value>,
    ) -> Result<Modified> {
        let resource = &target.resource;
        let is_scale = matches!(admitted, Some(Admitted::Scale(..)));
        let request = admitted;
        let notes = request.map(Admitted::notes);
        let admitted = admitted.filter(|_| !self.is_admission_idle(&target.resource));
        let inner = target.stored(self);
        let stored_resource = &inner.as_ref().unwrap_or(target).resource;
        loop {
            let stored = self.store.get(&resource.table, &target.key()).ok_or_else(|| target.not_found())?;
            let mut current = self.present(resource, stored.value()).await?;
            let changed = change(&current);
            if let Some(writer) = ownership.writer()
                && self.convert_pending(&writer.conversions).await?
            {
                continue;
            }
            let mut asked = changed?;
            if let Ownership::Written(_) = ownership {
                check_uid(target, &asked, &current, options.dry_run)?;
            }
            if admitted.is_none() {
                check_version(target, &asked, &stored, is_scale)?;
            }
            builtin::complete(resource, &mut asked);
            let settled = inner.as_ref().map(|inner| {
                let stored = versions::present(&inner.resource, stored.value());
                let is_applied = matches!(ownership, Ownership::Applied(_));
                Settled::of_update(resource, inner, &mut asked, &current, &stored, is_applied)
            });
            let mut entries = match ownership {
                Ownership::Written(writer) => {
                    managed::update(&self.registry.groups(), resource, Some(&mut current), &mut asked, writer)
                }
                Ownership::Known | Ownership::Applied(_) => asked["metadata"].get("managedFields").cloned(),
            };
            if let Ownership::Written(writer) = ownership
                && self.convert_pending(&writer.conversions).await?
            {
                continue;
            }
            if let Some(admitted) = admitted {
                managed::set_entries(&mut asked, entries);
                [asked, current] = self.admit_update(admitted, target, [asked, current], options.dry_run).await?;
                entries = Some(managed::take_entries(&mut asked)).filter(|entries| !entries.is_null());
                // The real server compares versions after the mutating stage.
                check_version(target, &asked, &stored, is_scale)?;
            }
            self.check_owners(request, target, &mut asked, &current)?;
            if let (Some(settled), Some(inner)) = (settled, &inner) {
                asked = settled.after_admission(inner, asked);
                current = versions::present(&inner.resource, stored.value());
            }
            let writing = Writing { core: self, dry_run: options.dry_run };
            let (mut new, warnings) = prepare(writing, inner.as_ref().unwrap_or(target), &current, asked)?;
            if let Some(notes) = notes {
                notes.warn_all(Stage::Mutating, &warnings);
            }
            check_managers(resource, &new, entries.as_ref())?;
            managed::set_entries(&mut new, entries);
            managed::restore_times(&mut new, &current);
            if let Some(admitted) = admitted {
                [new, current] = self.check_update(admitted, target, [new, current], options.dry_run).await?;
            }
            if options.dry_run {
                return Ok(Modified { object: self.rehearse(resource, stored_resource, new).await?, created: false });
            }
            if let Some(object) = self.write(target, stored_resource, &stored, new, current).await? {
                return Ok(Modified { object, created: false });
            }
        }
    }
}

impl Core {
    /// Writes a changed object and returns it, or nothing if the stored object changed meanwhile. Both objects are in the stored version.
    async fn write(
        self: &Arc<Self>,
        target: &Target,
        stored_resource: &Resource,
        stored: &Stored,
        new: Value,
        current: Value,
    ) -> Result<Option<Value>> {
        let resource = &target.resource;
        if new == current && !resource.is_custom() {
            return Ok(Some(versions::convert(resource, new)));
        }
        let is_done = is_done(resource, &new);
        let last = is_done.then(|| new.clone());
        let Some(write) = self.write_of(stored_resource, stored, new, &current, is_done).await? else {
            return Ok(Some(current));
        };
        match self.store.commit(&resource.table, &target.key(), Expected::Revision(stored.revision), write).await {
            Ok(committed) => {
                self.after_change(resource, &committed).await;
                // A deleted object is returned in its last state, with that state's revision.
                Ok(Some(match last {
                    Some(last) => versions::convert(resource, last),
                    None => self.present(resource, committed.object).await?,
                }))
            }
            Err(CommitError::Changed(_)) => Ok(None),
            Err(error) => Err(commit_failed(&error)),
        }
    }

    /// Returns the write of a changed object, unless it changes nothing.
    async fn write_of(
        &self,
        resource: &Resource,
        stored: &Stored,
        new: Value,
        current: &Value,
        is_done: bool,
    ) -> Result<Option<Write>> {
        if is_done {
            // Watches see the object as it was stored last.
            return Ok(Some(Write::Delete(stored.value())));
        }
        let put = self.to_storage(resource, new).await?;
        if !resource.is_custom() {
            return Ok(Some(Write::Put(put)));
        }
        // A custom object that did not change may have been stored in another version, or without its defaults.
        // Only then can an object in one version be stored as it is: the stored object is parsed for no other.
        let is_same = put == *current || put["apiVersion"] != current["apiVersion"];
        let is_stored = is_same && put == stored.value();
        Ok((!is_stored).then_some(Write::Put(put)))
    }
}

/// Returns whether a deletion waits for nothing any more.
fn is_done(resource: &Resource, object: &Value) -> bool {
    metadata::is_deleting(object)
        && metadata::finalizers(object).next().is_none()
        && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && (resource.hooks.is_removable)(object)
}

/// Validates the entries that an object gets. Requests can bring some of their own.
fn check_managers(resource: &Resource, object: &Value, entries: Option<&Value>) -> Result<()> {
    let mut causes = Causes::new();
    if let Some(entries) = entries {
        metadata::managers(entries, &mut causes);
    }
    if causes.is_empty() { Ok(()) } else { Err(invalid(resource, object, causes)) }
}

/// Returns whether a request is about a status, which changes no metadata of custom kinds.
pub(super) fn is_status(target: &Target) -> bool {
    target.subresource.as_deref() == Some("status")
}

/// Returns the error for an object without a name.
pub(super) fn unnamed(target: &Target) -> Box<Status> {
    let name = target.name();
    let message = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
    Box::new(Status::bad_request(message))
}

/// Returns the error for a patch with unknown or duplicate fields, which the request forbids.
pub(super) fn not_strict(shown: String, problems: &[String]) -> Box<Status> {
    let cause = StatusCause::invalid("patch", shown, &decode::strict_error(problems));
    Box::new(Status::invalid(&GroupKind::new("", ""), "", vec![cause]))
}

/// Checks that name and namespace are those of the path. The name must be given.
pub(super) fn check_names(target: &Target, object: &mut Value) -> Result<()> {
    let given = metadata::text(object, "name");
    if given.is_empty() {
        return Err(unnamed(target));
    }
    if given != target.name() {
        let message =
            format!("the name of the object ({given}) does not match the name on the URL ({})", target.name());
        return Err(Box::new(Status::bad_request(message)));
    }
    check_namespace(target, object)
}

/// Normalises a patched object. Returns a warning for each unknown field.
///
/// # Errors
///
/// Returns the error for a patch whose result is not an object of the kind.
pub(super) fn shaped(patch: &Patch, resource: &Resource, patched: &mut Value) -> Result<Vec<String>> {
    patch.shape(resource, patched).map_err(|why| {
        let cause = StatusCause::invalid("patch", patch.shown(patched), &why);
        Box::new(Status::invalid(&GroupKind::new("", ""), "", vec![cause]))
    })
}

fn uid_conflict(target: &Target, asked: &str, found: &str, dry_run: bool) -> Box<Status> {
    let resource = &target.resource;
    let storage_path = match &resource.schema {
        Schema::Custom(_) => format!("{}/{}", resource.group, resource.plural),
        Schema::BuiltIn(_) => resource.hooks.storage_path.unwrap_or(&resource.plural).to_owned(),
    };
    let root = if dry_run { "" } else { "/registry" };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {root}/{storage_path}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {found}",
        target.key()
    );
    Box::new(Status::conflict(&resource.group_resource(), target.name(), why))
}

/// Checks that a resource version is empty or a number.
pub(super) fn check_number(version: &str) -> Result<()> {
    if version.is_empty() || version.parse::<u64>().is_ok() {
        return Ok(());
    }
    let message = format!("strconv.ParseUint: parsing {}: invalid syntax", Quoted(version));
    Err(Box::new(Status::failure(StatusReason::Unknown, 500, message)))
}

/// Checks that a request with a UID is about the stored object.
pub(super) fn check_uid(target: &Target, asked: &Value, current: &Value, dry_run: bool) -> Result<()> {
    let (uid, current_uid) = (metadata::text(asked, "uid"), metadata::text(current, "uid"));
    if uid.is_empty() || uid == current_uid { Ok(()) } else { Err(uid_conflict(target, uid, current_uid, dry_run)) }
}

/// Checks the resource version of a request.
fn check_version(target: &Target, asked: &Value, stored: &Stored, is_patch: bool) -> Result<()> {
    let (resource, name) = (&target.resource, target.name());
    let version = metadata::text(asked, "resourceVersion");
    if version.is_empty() || version == "0" {
        let is_other_part = target.subresource.as_deref().is_some_and(|part| part != "status") && !resource.is_custom();
        if is_patch || resource.hooks.unconditional_update || is_other_part {
            return Ok(());
        }
        let cause = StatusCause::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        // The real server names the resource here instead of the kind.
        let kind = GroupKind::new(resource.group.clone(), resource.plural.clone());
        return Err(Box::new(Status::invalid(&kind, name, vec![cause])));
    }
    check_number(version)?;
    if version != stored.revision.to_string() {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Box::new(Status::conflict(&resource.group_resource(), name, why)));
    }
    Ok(())
}

/// Returns the object to store, which is the requested object with its immutable fields as stored, and warnings about it.
fn prepare(writing: Writing<'_>, target: &Target, current: &Value, asked: Value) -> Result<(Value, Vec<String>)> {
    let resource = &target.resource;
    // Only an applied configuration can have another UID here.
    let uid = metadata::text(&asked, "uid").to_owned();
    let mut new = match target.subresource.as_deref() {
        Some("status") => with_status(resource, current, &asked, &metadata::time(writing.core.clock.now())),
        Some("finalize") => {
            let mut new = current.clone();
            new["spec"]["finalizers"] = asked["spec"]["finalizers"].clone();
            if new["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
                && let Value::Object(spec) = &mut new["spec"]
            {
                spec.remove("finalizers");
            }
            new
        }
        Some("ephemeralcontainers") => {
            let mut new = current.clone();
            if let Some(containers) = asked["spec"].get("ephemeralContainers") {
                new["spec"]["ephemeralContainers"] = containers.clone();
                builtin::fill(resource, &mut new);
            }
            new
        }
        Some("resize") => {
            let mut new = builtin::resized(current, asked);
            (resource.hooks.drop_disabled)(&mut new);
            new
        }
        Some("approval") => {
            let mut new = current.clone();
            new["status"]["conditions"] = asked["status"]["conditions"].clone();
            (resource.hooks.on_approval)(&mut new, current, &metadata::time(writing.core.clock.now()));
            new
        }
        _ => {
            let mut new = asked;
            if resource.has_status
                && let Value::Object(fields) = &mut new
            {
                match current.get("status") {
                    Some(status) => drop(fields.insert("status".to_owned(), status.clone())),
                    None => drop(fields.remove("status")),
                }
            }
            (resource.hooks.before_update)(writing, &mut new, current)?;
            (resource.hooks.drop_disabled)(&mut new);
            builtin::null_empty_lists(resource, &mut new);
            new
        }
    };
    metadata::keep(&mut new, current);
    let keeps = resource.hooks.keeps_generation || target.subresource.as_deref() == Some("status");
    let counts = resource.has_generation && !keeps;
    if counts && !has_same_wish(resource, &new, current) {
        let generation = current["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
        metadata::of(&mut new).insert("generation".to_owned(), json!(generation));
    }
    let part = target.subresource.as_deref();
    // The status of a custom kind changes no metadata.
    let is_ignored = resource.is_custom() && part == Some("status");
    let uid = (!uid.is_empty() && uid != metadata::text(current, "uid") && !is_ignored).then_some(uid.as_str());
    let warnings = validate(resource, &new, Some(current), part, uid)?;
    Ok((new, warnings))
}

/// Returns the stored object with another status. A status update of a built-in kind can change metadata, too.
fn with_status(resource: &Resource, current: &Value, asked: &Value, now: &str) -> Value {
    let mut new = current.clone();
    if let Value::Object(fields) = &mut new {
        match asked.get("status") {
            Some(status) => drop(fields.insert("status".to_owned(), status.clone())),
            None => drop(fields.remove("status")),
        }
    }
    if matches!(resource.schema, Schema::BuiltIn(_)) {
        let is_reset = |name: &str| {
            let reset = resource.hooks.status_reset_fields.iter();
            reset.map(|field| field.strip_prefix("metadata")).any(|rest| match rest {
                Some("") => name != "generateName",
                Some(rest) => rest.strip_prefix('.') == Some(name),
                None => false,
            })
        };
        let fields = ["labels", "annotations", "finalizers", "ownerReferences", "generateName"];
        for name in fields.into_iter().filter(|name| !is_reset(name)) {
            let metadata = metadata::of(&mut new);
            match asked["metadata"].get(name) {
                Some(value) => drop(metadata.insert(name.to_owned(), value.clone())),
                None => drop(metadata.remove(name)),
            }
        }
    }
    (resource.hooks.on_status)(&mut new, current, now);
    new
}

/// Returns whether two objects have the same desired state.
fn has_same_wish(resource: &Resource, new: &Value, old: &Value) -> bool {
    let is_wish = |(name, _): &(&String, &Value)| match name.as_str() {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !resource.has_status,
        _ => true,
    };
    let of_metadata = resource.hooks.generation_counts;
    if of_metadata.iter().any(|name| new["metadata"].get(name) != old["metadata"].get(name)) {
        return false;
    }
    let (new, old) = (new.as_object().into_iter().flatten(), old.as_object().into_iter().flatten());
    new.filter(is_wish).eq(old.filter(is_wish))
}
