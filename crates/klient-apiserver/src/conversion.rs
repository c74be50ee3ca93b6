//! Conversion between the versions of custom kinds: by `None`, which changes the version's name alone, or by a webhook.
//!
//! Objects are stored in the storage version, and get its defaults when they are read. Reads in that version never call the webhook. Lists
//! and watches convert each stored object once per version, as the real server's caches do; other requests convert it each time.

mod pending;
mod response;

use std::{borrow::Cow, sync::Arc, time::Duration};

use klient_core::{Status, StatusReason};
use serde_json::{Value, json};

pub(crate) use self::pending::Pending;
use crate::{
    Result,
    builtin::{self, versions},
    managed,
    peers::{CallError, Location},
    registry::{Resource, Schema},
    server::Core,
    store::Stored,
};

/// The conversion webhook of a custom kind.
#[derive(Debug)]
pub(crate) struct Conversion {
    location: Option<Location>,
    /// The version of reviews that the webhook reads.
    review_version: Option<&'static str>,
}

impl Conversion {
    /// Returns the webhook of a definition, if it has one.
    pub(crate) fn of(definition: &Value) -> Option<Arc<Self>> {
        let spec = &definition["spec"];
        let conversion = &spec["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let mut reviews = conversion["webhook"]["conversionReviewVersions"].as_array().into_iter().flatten();
        Some(Arc::new(Self {
            location: Location::parse(&conversion["webhook"]["clientConfig"]),
            review_version: reviews.find_map(|version| match version.as_str() {
                Some("v1") => Some("v1"),
                Some("v1beta1") => Some("v1beta1"),
                _ => None,
            }),
        }))
    }
}

impl Core {
    /// Returns a stored object in the version of a resource.
    pub(crate) async fn present(&self, resource: &Resource, object: Value) -> Result<Value> {
        if webhook_of(resource).is_none() {
            return Ok(versions::present(resource, object));
        }
        let object = self.convert_alone(resource, read(resource, object)).await?;
        Ok(shaped(resource, object))
    }

    /// Returns an object in the version of a resource, with all fields that the conversion gives it.
    pub(crate) async fn convert_alone(&self, resource: &Resource, object: Value) -> Result<Value> {
        let version = resource.api_version();
        let Some(conversion) = webhook_of(resource).filter(|_| object["apiVersion"] != version) else {
            return Ok(versions::convert(resource, object));
        };
        let mut converted = self.convert(conversion, &version, std::slice::from_ref(&object)).await?;
        Ok(converted.pop().unwrap_or_default())
    }

    /// Returns an object as it is stored.
    pub(crate) async fn to_storage(&self, resource: &Resource, mut object: Value) -> Result<Value> {
        let Schema::Custom(schema) = &resource.schema else {
            if resource.hooks.settle.is_some() {
                // An object of another version has no defaults of this one until it is read.
                builtin::complete(resource, &mut object);
            }
            return Ok(object);
        };
        let storage = &schema.storage;
        match &schema.conversion {
            Some(conversion) if object["apiVersion"] != storage.version() => {
                let mut converted = self.convert(conversion, storage.version(), std::slice::from_ref(&object)).await?;
                object = converted.pop().unwrap_or_default();
                storage.prune(&mut object);
            }
            _ => storage.write(&mut object),
        }
        Ok(object)
    }

    /// Returns an object as a dry run shows it, which stores nothing. `stored` is the resource of the version that would be stored.
    pub(crate) async fn rehearse(&self, resource: &Resource, stored: &Resource, object: Value) -> Result<Value> {
        let stored = self.to_storage(stored, object).await?;
        if !resource.is_custom() {
            return Ok(versions::convert(resource, stored));
        }
        self.present(resource, stored).await
    }

    /// Returns a stored object in the version of a resource. The webhook is called each time.
    pub(crate) async fn stored_in(&self, resource: &Resource, stored: Arc<Stored>) -> Result<Arc<Stored>> {
        let version = resource.api_version();
        let Some(conversion) = webhook_of(resource) else { return Ok(stored) };
        if stored.api_version() == version {
            return Ok(stored);
        }
        let mut converted = self.convert(conversion, &version, &[read(resource, stored.value())]).await?;
        let object = shaped(resource, converted.pop().unwrap_or_default());
        Stored::converted(&object, stored.revision).map(Arc::new).ok_or_else(|| lost(&object))
    }

    /// Returns stored objects in the version of a resource, by one call for all that were not converted before.
    pub(crate) async fn all_stored_in<'a>(
        &self,
        resource: &Resource,
        objects: &'a [Arc<Stored>],
    ) -> Result<Cow<'a, [Arc<Stored>]>> {
        let Some(conversion) = webhook_of(resource) else { return Ok(Cow::Borrowed(objects)) };
        let version = resource.api_version();
        let mut out = Vec::with_capacity(objects.len());
        let mut missing = Vec::new();
        for stored in objects {
            if stored.api_version() == version {
                out.push(Arc::clone(stored));
                continue;
            }
            let known = stored.known_in(&version, conversion);
            if known.is_none() {
                missing.push((out.len(), read(resource, stored.value())));
            }
            out.push(known.unwrap_or_else(|| Arc::clone(stored)));
        }
        if missing.is_empty() {
            return Ok(Cow::Owned(out));
        }
        let (places, values): (Vec<usize>, Vec<Value>) = missing.into_iter().unzip();
        let converted = self.convert(conversion, &version, &values).await?;
        for (place, object) in places.into_iter().zip(converted) {
            let object = shaped(resource, object);
            let stored = Arc::new(Stored::converted(&object, objects[place].revision).ok_or_else(|| lost(&object))?);
            objects[place].keep_in(&version, conversion, &stored);
            out[place] = stored;
        }
        Ok(Cow::Owned(out))
    }

    /// Replaces stored objects by those in the version of a resource, if a webhook converts them.
    pub(crate) async fn convert_all(&self, resource: &Resource, objects: &mut Vec<Arc<Stored>>) -> Result<()> {
        if let Cow::Owned(converted) = self.all_stored_in(resource, objects).await? {
            *objects = converted;
        }
        Ok(())
    }

    /// Converts objects by a webhook. All of them are of another version.
    async fn convert(&self, conversion: &Conversion, to: &str, objects: &[Value]) -> Result<Vec<Value>> {
        let failed = |why: String| Box::new(Status::failure(StatusReason::Unknown, 500, why));
        let kind = objects.first().map(kind_text).unwrap_or_default();
        let Some(version) = conversion.review_version else {
            return Err(failed("no supported conversion review versions".to_owned()));
        };
        let uid = self.new_uid();
        let shown: Vec<Value> = objects.iter().map(managed::text::unfolded).collect();
        let review = json!({"kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{version}"),
            "request": {"uid": uid, "desiredAPIVersion": to, "objects": shown}});
        let location = conversion.location.as_ref().ok_or_else(|| {
            failed(format!(
                "conversion webhook for {kind} failed: webhook configuration must have either service or URL"
            ))
        })?;
        let posted = self.post_review(location, AGENT, LIMIT, review.to_string().into()).await;
        let body = posted.map_err(|error| match error {
            CallError::Client(why) | CallError::Call(why) => {
                failed(format!("conversion webhook for {kind} failed: {why}"))
            }
        })?;
        let converted = response::read(&body, version, &uid)
            .map_err(|why| failed(format!("conversion webhook for {kind} failed: {why}")))?;
        if converted.len() != objects.len() {
            let (got, wanted) = (converted.len(), objects.len());
            return Err(failed(format!("conversion webhook for {kind} returned {got} objects, expected {wanted}")));
        }
        let pairs = objects.iter().zip(converted).enumerate();
        let place = |index: usize| if objects.len() > 1 { Some(index) } else { None };
        let checked = pairs.map(|(index, (original, converted))| {
            response::restored(original, converted, to, place(index))
                .map_err(|why| failed(format!("conversion webhook for {kind} returned {why}")))
        });
        checked.collect()
    }
}

/// Returns the conversion webhook of a resource.
pub(crate) fn webhook_of(resource: &Resource) -> Option<&Arc<Conversion>> {
    match &resource.schema {
        Schema::Custom(schema) => schema.conversion.as_ref(),
        Schema::BuiltIn(_) => None,
    }
}

/// Returns a stored object with the current schema of its version.
fn read(resource: &Resource, mut object: Value) -> Value {
    if let Schema::Custom(schema) = &resource.schema {
        schema.storage.read(&mut object);
    }
    object
}

/// Returns a converted object without the fields that its version does not have.
fn shaped(resource: &Resource, mut object: Value) -> Value {
    if let Schema::Custom(schema) = &resource.schema {
        schema.prune(&mut object);
    }
    object
}

fn lost(object: &Value) -> Box<Status> {
    let why = format!("conversion webhook for {} returned an object that cannot be stored", kind_text(object));
    Box::new(Status::failure(StatusReason::Unknown, 500, why))
}

/// Returns the kind of an object as Go prints it.
fn kind_text(object: &Value) -> String {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    format!("{}, Kind={}", text("apiVersion"), text("kind"))
}

/// The user agent of reviews.
const AGENT: &str = "kube-apiserver-conversion";
/// The time limit of a call.
const LIMIT: Duration = Duration::from_secs(30);
