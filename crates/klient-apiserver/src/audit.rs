//! The audit log: one line of JSON for each stage of a request, as the real server writes them.
//!
//! `policy` decides how much of a request is logged, and `event` is one line. A server without an audit log spends nothing on it.

mod event;
mod policy;

use std::sync::Arc;

pub use self::policy::{AuditPolicy, AuditPolicyError};
use self::{
    event::{Event, Stage},
    policy::{Chosen, Level},
};
use crate::{
    access::{Impersonated, RequestInfo},
    body::ResponseBody,
    call::Call,
    server::Core,
};

/// The function that receives the lines of the log.
pub(crate) type Sink = dyn Fn(&str) + Send + Sync;

/// An audit log.
pub(crate) struct Audit {
    policy: AuditPolicy,
    sink: Arc<Sink>,
}

/// The log of one request.
pub(crate) struct Record {
    event: Event,
    chosen: Chosen,
    sink: Arc<Sink>,
    is_long: bool,
}

impl Audit {
    pub(crate) fn new(policy: AuditPolicy, sink: Arc<Sink>) -> Self {
        Self { policy, sink }
    }

    /// Begins the log of a request, if the policy wants one.
    pub(crate) fn begin(&self, core: &Core, call: &Call, request: &RequestInfo) -> Option<Record> {
        let chosen = self.policy.choose(&call.user, &request.attributes());
        if chosen.level == Level::None {
            return None;
        }
        let is_long = request.is_resource
            && (request.verb == "watch"
                || matches!(request.subresource.as_str(), "exec" | "attach" | "portforward" | "proxy" | "log"));
        let event = Event::new(chosen.level, core, call, request);
        let mut record = Record { event, chosen, sink: Arc::clone(&self.sink), is_long };
        record.write(Stage::RequestReceived, None);
        Some(record)
    }
}

impl Record {
    /// Returns the identifier of the request.
    pub(crate) fn id(&self) -> &str {
        &self.event.audit_id
    }

    /// Adds the user who is impersonated.
    pub(crate) fn impersonated(&mut self, impersonated: &Impersonated) {
        self.event.impersonate(impersonated);
    }

    /// Adds the decision about the request.
    pub(crate) fn decided(&mut self, is_allowed: bool, reason: &str) {
        let decision = if is_allowed { "allow" } else { "forbid" };
        self.event.annotate("authorization.k8s.io/decision", decision);
        self.event.annotate("authorization.k8s.io/reason", reason);
    }

    /// Ends the log of a request with its response. The log of a watch ends with its body.
    pub(crate) fn end(
        mut self,
        core: &Arc<Core>,
        call: &Call,
        request: &RequestInfo,
        mut response: http::Response<ResponseBody>,
    ) -> http::Response<ResponseBody> {
        if let Ok(id) = http::HeaderValue::try_from(self.id()) {
            response.headers_mut().insert("audit-id", id);
        }
        for (key, value) in call.notes.annotations(self.chosen.level >= Level::Request) {
            self.event.annotate(key, value);
        }
        self.event.add_request(core, call, request, &self.chosen);
        self.event.add_response(&response, self.chosen.level, self.chosen.omits_managed_fields);
        if !self.is_long || response.body().bytes().is_some() {
            self.write(Stage::ResponseComplete, Some(core));
            return response;
        }
        self.write(Stage::ResponseStarted, Some(core));
        let guard = Guard { record: self, core: Arc::downgrade(core) };
        response.map(|body| body.guarded(Box::new(guard)))
    }

    fn write(&mut self, stage: Stage, core: Option<&Core>) {
        if self.chosen.omits(stage) {
            return;
        }
        let now = core.map(|core| core.clock.now());
        if let Some(line) = self.event.line(stage, now) {
            (self.sink)(&line);
        }
    }
}

/// Writes the last stage of a request when its body is dropped.
struct Guard {
    record: Record,
    core: std::sync::Weak<Core>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let core = self.core.upgrade();
        self.record.write(Stage::ResponseComplete, core.as_deref());
    }
}
