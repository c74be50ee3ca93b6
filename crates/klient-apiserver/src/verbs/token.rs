//! The subresource `token` of service accounts, which issues tokens.

use std::sync::{Arc, LazyLock};

use http::{Response, StatusCode};
use klient_core::{GroupKind, GroupResource, Status, StatusCause};
use serde_json::{Value, json};

use super::Target;
use crate::{
    Result,
    access::Bound,
    body::ResponseBody,
    builtin::{self, Hooks},
    call::Call,
    decode, managed, metadata,
    negotiate::Encoding,
    registry::{self, Resource},
    response,
    server::Core,
};

impl Core {
    /// Issues a token for a service account.
    pub(super) fn issue_token(self: &Arc<Self>, call: &Call, target: &Target) -> Result<Response<ResponseBody>> {
        static REQUESTS: LazyLock<Resource> = LazyLock::new(|| {
            let name = "io.k8s.api.authentication.v1.TokenRequest";
            let part = registry::part(name, "authentication.k8s.io", "v1", "TokenRequest", "tokenrequests");
            Resource { hooks: &HOOKS, ..part }
        });
        let wanted = call.response_format(&REQUESTS)?;
        let options = call.write_options("CreateOptions")?;
        let decoded = decode::object(&REQUESTS, Encoding::of_body(&call.headers)?, &call.body)?;
        call.notes.warn_of_fields(decode::enforce(&REQUESTS, options.field_validation, &decoded.problems)?);
        let mut request = decoded.object;
        check_names(target, &mut request)?;
        let stored = self.store.get(&target.resource.table, &target.key()).ok_or_else(|| target.not_found())?;
        let account = stored.value();
        let seconds = &mut request["spec"]["expirationSeconds"];
        if seconds.is_null() {
            *seconds = json!(HOUR);
        }
        builtin::nulls(&REQUESTS, &mut request);
        let writer = call.writer("token", self.clock.now());
        let entries = managed::update(&self.registry.groups(), &REQUESTS, None, &mut request, &writer);
        managed::set_entries(&mut request, entries);
        self.complete(&mut request, &account, target)?;
        self.sign(&mut request, &account, target)?;
        response::object(StatusCode::CREATED, &REQUESTS, &request, wanted)
    }

    /// Fills in the defaults of a request, and checks its values.
    fn complete(&self, request: &mut Value, account: &Value, target: &Target) -> Result<()> {
        let uid = metadata::text(request, "uid").to_owned();
        let own = metadata::text(account, "uid");
        if !uid.is_empty() && uid != own {
            let why =
                format!("the UID in the token request ({uid}) does not match the UID of the service account ({own})");
            return Err(Box::new(Status::conflict(&requests(), target.name(), why)));
        }
        let fields = metadata::of(request);
        fields.insert("name".to_owned(), json!(target.name()));
        fields.insert("namespace".to_owned(), json!(target.namespace));
        fields.insert("uid".to_owned(), json!(own));
        fields.insert("creationTimestamp".to_owned(), json!(metadata::time(self.clock.now())));
        if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
            request["spec"]["audiences"] = json!([self.access.issuer.url]);
        }
        let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(HOUR);
        let problem = match seconds {
            ..TEN_MINUTES => "may not specify a duration less than 10 minutes",
            TEN_MINUTES..=LONGEST => return Ok(()),
            _ => "may not specify a duration larger than 2^32 seconds",
        };
        let causes = vec![StatusCause::invalid("spec.expirationSeconds", seconds, problem)];
        Err(Box::new(Status::invalid(&kind(), "", causes)))
    }

    /// Sets the status of a request: the token and when it expires.
    fn sign(&self, request: &mut Value, account: &Value, target: &Target) -> Result<()> {
        let reference = &request["spec"]["boundObjectRef"];
        let (pod, secret, mut node) = match reference {
            Value::Null => (None, None, None),
            reference => self.bound(reference, target)?,
        };
        if let Some(name) = pod.as_ref().and_then(|pod| pod["spec"]["nodeName"].as_str()) {
            let found = self.store.get("nodes", name).map(|node| node.value());
            node = Some(found.unwrap_or_else(|| json!({"metadata": {"name": name}})));
        }
        let audiences: Vec<String> = serde_json::from_value(request["spec"]["audiences"].clone()).unwrap_or_default();
        let asked = request["spec"]["expirationSeconds"].as_i64().unwrap_or(HOUR);
        // Tokens of pods live longer than they say, because old clients do not renew them.
        let is_for_server = audiences.iter().all(|audience| *audience == self.access.issuer.url);
        let is_extended = pod.is_some() && asked == OF_PODS && is_for_server;
        let (seconds, warn_after) = if is_extended { (YEAR, Some(asked)) } else { (asked, None) };
        let now = self.clock.now();
        let bound = Bound { account, pod: pod.as_ref(), secret: secret.as_ref(), node: node.as_ref() };
        let times = (now.as_second(), seconds, warn_after);
        let token = self.access.issuer.issue(&self.new_uid(), &bound, &audiences, times);
        let token =
            token.map_err(|why| Box::new(Status::internal_error(format!("failed to generate token: {why}"))))?;
        let until = now.saturating_add(jiff::SignedDuration::from_secs(asked)).unwrap_or(now);
        request["status"] = json!({"token": token, "expirationTimestamp": metadata::time(until)});
        Ok(())
    }

    /// Returns the pod, secret or node that a token is to be bound to.
    fn bound(&self, reference: &Value, target: &Target) -> Result<(Option<Value>, Option<Value>, Option<Value>)> {
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let api_version = text("apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let (name, kind) = (text("name"), text("kind"));
        let get = |plural: &str, key: &str| {
            let missing = || Box::new(Status::not_found(&GroupResource::new("", plural.to_owned()), name));
            self.store.get(plural, key).map(|stored| stored.value()).ok_or_else(missing)
        };
        let key = format!("{}/{name}", target.namespace);
        let found = match (group, kind) {
            ("", "Pod") => get("pods", &key)?,
            ("", "Secret") => get("secrets", &key)?,
            ("", "Node") => get("nodes", name)?,
            _ => {
                let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                return Err(Box::new(Status::bad_request(message)));
            }
        };
        if kind == "Pod" && found["spec"]["serviceAccountName"].as_str() != Some(target.name()) {
            let message = format!(
                "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                target.name()
            );
            return Err(Box::new(Status::bad_request(message)));
        }
        let uid = text("uid");
        if !uid.is_empty() && uid != metadata::text(&found, "uid") {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            return Err(Box::new(Status::conflict(&GroupResource::new("", kind.to_owned()), name, why)));
        }
        Ok(match kind {
            "Pod" => (Some(found), None, None),
            "Secret" => (None, Some(found), None),
            _ => (None, None, Some(found)),
        })
    }
}

/// Checks that name and namespace are those of the service account, if a request has them.
fn check_names(target: &Target, request: &mut Value) -> Result<()> {
    super::create::check_namespace(target, request)?;
    let given = metadata::text(request, "name");
    if given.is_empty() || given == target.name() {
        return Ok(());
    }
    let detail = "must match the service account name if specified";
    let causes = vec![StatusCause::invalid("metadata.name", given, detail)];
    Err(Box::new(Status::invalid(&kind(), target.name(), causes)))
}

/// Go writes the reference of a request without a bound object as null.
static HOOKS: Hooks = Hooks { null_fields: &["/spec/boundObjectRef"], ..Hooks::NONE };

fn kind() -> GroupKind {
    GroupKind::new("authentication.k8s.io", "TokenRequest")
}

fn requests() -> GroupResource {
    GroupResource::new("authentication.k8s.io", "TokenRequest")
}

const TEN_MINUTES: i64 = 600;
const HOUR: i64 = 3600;
/// The lifetime that kubelets ask for.
const OF_PODS: i64 = 3607;
const YEAR: i64 = 365 * 24 * HOUR;
const LONGEST: i64 = 1 << 32;
