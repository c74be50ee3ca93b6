//! Server-side apply: patches that say which fields their sender owns.

use std::sync::Arc;

use http::{Response, StatusCode};
use klient_core::Status;
use serde_json::Value;

use super::{
    Ownership, Target,
    admitted::Admitted,
    empties,
    modify::{Modified, check_names, check_number, unnamed},
};
use crate::{
    Result,
    admission::Origin,
    body::ResponseBody,
    call::{Call, WriteOptions},
    managed::{self, Applied, Configuration, Writer},
    metadata,
    negotiate::ResponseFormat,
    response,
    server::Core,
};

impl Core {
    /// Applies the configuration in a request. Creates the object if there is none.
    pub(super) async fn apply(
        self: &Arc<Self>,
        call: &Call,
        target: &Target,
        options: WriteOptions,
        wanted: ResponseFormat,
    ) -> Result<Response<ResponseBody>> {
        let resource = &target.resource;
        let writer = call.writer(target.subresource.as_deref().unwrap_or_default(), self.clock.now());
        let configuration = Configuration::parse(&call.body)?;
        let applied = Applied { configuration: &configuration.object, force: call.flag("force") };
        let modified = loop {
            let modified = self
                .modify(target, options, Ownership::Applied(&writer), Some(Admitted::Object(call)), |current| {
                    let groups = self.registry.groups();
                    let mut object = managed::apply(&groups, resource, current, applied, &writer)?;
                    // Duplicate keys are reported once the configuration is merged.
                    call.notes.warn_of_fields(configuration.enforce(options.field_validation)?);
                    check_names(target, &mut object)?;
                    Ok(object)
                })
                .await;
            match modified {
                Err(status) if status.is_not_found() && target.subresource.is_none() => {}
                modified => break modified,
            }
            match self.create_applied(call, target, options, &configuration, applied, &writer).await {
                // Another client created it meanwhile.
                Err(status) if status.is_already_exists() => {}
                created => break created.map(|object| Modified { object, created: true }),
            }
        };
        let sent = || Some(configuration.object.clone());
        let modified = modified.map_err(|status| empties::shown(status, sent))?;
        let code = if modified.created { StatusCode::CREATED } else { StatusCode::OK };
        response::object(code, resource, &modified.object, wanted)
    }

    async fn create_applied(
        self: &Arc<Self>,
        call: &Call,
        target: &Target,
        options: WriteOptions,
        configuration: &Configuration,
        applied: Applied<'_>,
        writer: &Writer,
    ) -> Result<Value> {
        let resource = &target.resource;
        let zero = managed::zero_object(resource);
        let mut object = managed::apply(&self.registry.groups(), resource, zero, applied, writer)?;
        call.notes.warn_of_fields(configuration.enforce(options.field_validation)?);
        let uid = metadata::text(&object, "uid");
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Box::new(Status::conflict(&resource.group_resource(), target.name(), why)));
        }
        if metadata::text(&object, "name").is_empty() {
            return Err(unnamed(target));
        }
        check_names(target, &mut object)?;
        // There is no version to compare with, but it must be one.
        check_number(metadata::text(&object, "resourceVersion"))?;
        // A dry run returns the version of the request, because no other is written.
        if !options.dry_run {
            metadata::of(&mut object).remove("resourceVersion");
        }
        self.create_object(target, object, Ownership::Known, Origin::Client(call), options.dry_run).await
    }
}
