//! Webhooks as a part of a manager.

use super::ManagerBuilder;
use crate::webhook::WebhookServer;

impl ManagerBuilder {
    /// Adds a server of webhooks. It runs whether this process leads or not, and the process is ready only if every registration trusts its
    /// certificate.
    #[must_use]
    #[doc(alias = "GetWebhookServer")]
    pub fn webhooks(self, server: WebhookServer) -> Self {
        let health = server.health();
        self.ready_if("webhooks", move || health.check())
            .task("webhooks", move |stop| server.run_until(stop.requested()))
    }
}
