//! Admission of updates, of deletes and of connections.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Target,
    scale::{scale_of, set_at},
};
use crate::{
    Result,
    admission::{Attributes, Notes, Operation, Stage},
    builtin::versions,
    call::Call,
    custom::ScalePaths,
    metadata,
    server::Core,
};

/// The part of an update that admission sees.
#[derive(Clone, Copy)]
pub(super) enum Admitted<'a> {
    /// The object.
    Object(&'a Call),
    /// The scale of the object, at a target with the subresource.
    Scale(&'a Call, &'a Target, &'a ScalePaths),
}

impl<'a> Admitted<'a> {
    /// Returns the request, if it is about the object itself.
    pub(super) fn call(self) -> Option<&'a Call> {
        match self {
            Self::Object(call) => Some(call),
            Self::Scale(..) => None,
        }
    }

    /// Returns the warnings and annotations of the request.
    pub(super) fn notes(self) -> &'a Notes {
        match self {
            Self::Object(call) | Self::Scale(call, ..) => &call.notes,
        }
    }

    fn request(self, target: &'a Target, dry_run: bool) -> Attributes<'a> {
        match self {
            Self::Object(call) => Attributes::new(call, Operation::Update, target).dry_run(dry_run),
            Self::Scale(call, target, _) => Attributes::new(call, Operation::Update, target).dry_run(dry_run),
        }
    }

    /// Returns the part of an object that admission sees.
    fn seen(self, target: &Target, object: &Value) -> Value {
        match self {
            Self::Object(_) => versions::convert(&target.resource, object.clone()),
            Self::Scale(_, _, paths) => scale_of(paths, object),
        }
    }
}

impl Core {
    /// Runs the mutating stage for an update, and returns the new object.
    pub(super) async fn admit_update(
        self: &Arc<Self>,
        admitted: Admitted<'_>,
        target: &Target,
        [mut asked, current]: [Value; 2],
        dry_run: bool,
    ) -> Result<[Value; 2]> {
        match admitted {
            Admitted::Object(_) => {
                let mut request = admitted.request(target, dry_run).object(asked).old(&current);
                self.admit(&mut request).await?;
                let asked = request.object.take().unwrap_or_default();
                Ok([asked, current])
            }
            Admitted::Scale(_, _, paths) => {
                let old = admitted.seen(target, &current);
                let mut request = admitted.request(target, dry_run).object(admitted.seen(target, &asked)).old(&old);
                self.admit(&mut request).await?;
                let scale = request.object.take().unwrap_or_default();
                set_at(&mut asked, &paths.spec, json!(scale["spec"]["replicas"].as_i64().unwrap_or_default()));
                Ok([asked, current])
            }
        }
    }

    /// Removes repeated owners from an object that admission has seen, and checks what the user may grant with it.
    pub(super) fn check_owners(
        &self,
        request: Option<Admitted<'_>>,
        target: &Target,
        asked: &mut Value,
        current: &Value,
    ) -> Result<()> {
        // The owners of patches are united here only.
        if let Some(Admitted::Object(call)) = request
            && let Some(warning) = metadata::unite_owners_again(asked)
        {
            call.notes.warn(Stage::Mutating, warning);
        }
        match request.and_then(Admitted::call) {
            Some(call) => self.check_grant(call, target, asked, Some(current)),
            None => Ok(()),
        }
    }

    /// Runs the validating stage for an update, and returns the objects.
    pub(super) async fn check_update(
        self: &Arc<Self>,
        admitted: Admitted<'_>,
        target: &Target,
        [new, current]: [Value; 2],
        dry_run: bool,
    ) -> Result<[Value; 2]> {
        if let Admitted::Object(_) = admitted
            && target.resource.hooks.stored_as.is_none()
        {
            let mut request = admitted.request(target, dry_run).object(new).old(&current);
            self.check_admission(&request).await?;
            let new = request.object.take().unwrap_or_default();
            return Ok([new, current]);
        }
        let old = admitted.seen(target, &current);
        let request = admitted.request(target, dry_run).object(admitted.seen(target, &new)).old(&old);
        self.check_admission(&request).await?;
        Ok([new, current])
    }

    /// Runs admission for the delete of an object.
    pub(super) async fn admit_delete(
        self: &Arc<Self>,
        call: &Call,
        target: &Target,
        current: &Value,
        is_named: bool,
        dry_run: bool,
    ) -> Result<()> {
        let shown = target.resource.hooks.stored_as.map(|_| versions::convert(&target.resource, current.clone()));
        let current = shown.as_ref().unwrap_or(current);
        let mut request = Attributes::new(call, Operation::Delete, target).old(current).dry_run(dry_run);
        if !is_named {
            request.name.clear();
        }
        self.admit_wholly(request).await.map(drop)
    }

    /// Runs admission for a connection to a pod, whose object is the options of the request.
    pub(super) async fn admit_connect(self: &Arc<Self>, call: &Call, target: &Target) -> Result<()> {
        if self.is_admission_idle(&target.resource) {
            return Ok(());
        }
        let request = Attributes::new(call, Operation::Connect, target);
        let kind = request.kind();
        let mut options = json!({"kind": kind.kind, "apiVersion": kind.api_version()});
        for name in ["stdin", "stdout", "stderr", "tty"] {
            if call.flag(name) {
                options[name] = json!(true);
            }
        }
        if let Some(container) = call.param("container") {
            options["container"] = json!(container);
        }
        let command: Vec<&str> = call.params("command").collect();
        if !command.is_empty() {
            options["command"] = json!(command);
        }
        let ports: Vec<i64> = call.params("ports").filter_map(|port| port.parse().ok()).collect();
        if !ports.is_empty() {
            options["ports"] = json!(ports);
        }
        let mut request = request;
        request.object = Some(options);
        self.admit_wholly(request).await.map(drop)
    }
}
