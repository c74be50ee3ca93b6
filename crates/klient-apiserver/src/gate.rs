//! The way of a request through access control: the audit log, impersonation, authorization, then the handler.
//!
//! A server with none of these does not come here.

use std::sync::Arc;

use http::Response;

use crate::{ApiServer, Result, access::RequestInfo, audit::Record, body::ResponseBody, call::Call, response};

impl ApiServer {
    /// Responds to a request, if its user may send it.
    pub(crate) async fn respond_checked(&self, mut call: Call) -> Response<ResponseBody> {
        let core = self.core();
        let request = RequestInfo::of(&call);
        let mut record = core.audit.as_ref().and_then(|audit| audit.begin(core, &call, &request));
        let response = match self.check(&mut call, &request, record.as_mut()) {
            Ok(()) => self.respond(&call).await,
            Err(status) => response::failure(&status, call.error_format()),
        };
        match record {
            Some(record) => record.end(core, &call, &request, response),
            None => response,
        }
    }

    /// Replaces the user of a request that impersonates another, and refuses a request that is not allowed.
    fn check(&self, call: &mut Call, request: &RequestInfo, mut record: Option<&mut Record>) -> Result<()> {
        let access = &self.core().access;
        if let Some(impersonated) = access.impersonated(&call.user, &call.headers, request)? {
            if let Some(record) = &mut record {
                record.impersonated(&impersonated);
            }
            call.user = Arc::new(impersonated.user);
        }
        let action = request.attributes();
        access.record(&call.user, &action);
        let is_health = !request.is_resource && matches!(request.path.as_str(), "/healthz" | "/livez" | "/readyz");
        let decision = match is_health {
            true => crate::access::Decision::Allowed(None),
            false => access.decide(&call.user, &action),
        };
        if let Some(record) = record {
            record.decided(decision.is_allowed(), &decision.reason());
        }
        match decision.is_allowed() {
            true => Ok(()),
            false => Err(action.forbidden(&call.user, &decision.reason())),
        }
    }
}
