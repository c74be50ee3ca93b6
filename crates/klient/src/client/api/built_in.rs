//! Verbs of single built-in kinds.

use std::sync::Arc;

use http::Method;
use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    certificates::v1::CertificateSigningRequest,
    core::v1::{Binding, Namespace, Node, Pod, Service, ServiceAccount},
    policy::v1::Eviction,
};
use klient_core::{Resource, ResourceExt as _, subresource};

use super::{Api, Subresource};
use crate::client::{RestRequest, logs::SelectedLogs, verbs};

impl Api<Pod> {
    /// Deletes a pod if its disruption budgets allow it.
    ///
    /// If a budget does not allow it now, the error is [`TooManyRequests`](crate::ErrorKind::TooManyRequests). The request is
    /// retried only if the server says when.
    #[doc(alias = "EvictV1")]
    pub fn evict(&self, name: &str) -> verbs::Evict {
        verbs::Evict::new(self.subresource::<Eviction>(subresource::EVICTION).endpoint, name)
    }

    /// Binds a pod to a node, as a scheduler does. The pod is the one that the binding is named after.
    pub fn bind<'a>(&self, binding: &'a Binding) -> verbs::Post<'a, Binding> {
        self.subresource(subresource::BINDING).post(binding.name(), binding)
    }

    /// Returns the subresource `ephemeralcontainers`: debugging containers. Reads and writes carry whole pods.
    #[doc(alias = "UpdateEphemeralContainers")]
    pub fn ephemeral_containers(&self) -> Subresource<Pod> {
        self.subresource(subresource::EPHEMERAL_CONTAINERS)
    }

    /// Returns the subresource `resize`: resources of a running pod's containers. Reads and writes carry whole pods.
    #[doc(alias = "UpdateResize")]
    pub fn resize(&self) -> Subresource<Pod> {
        self.subresource(subresource::RESIZE)
    }

    /// Returns a request to a port of a pod, through the API server. The name may be `scheme:pod:port`.
    pub fn proxy(&self, method: Method, name: &str, path: &str) -> RestRequest {
        self.proxied(method, name, path)
    }

    /// Reads the log of a container: all of it when awaited, or line by line.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn tail(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// let mut log = pods.logs("web-0").follow().tail_lines(10).stream().await?;
    /// while let Some(line) = log.line().await? {
    ///     println!("{line}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "GetLogs")]
    #[doc(alias = "log_stream")]
    pub fn logs(&self, name: &str) -> verbs::Logs {
        verbs::Logs::new(Arc::clone(&self.endpoint), name)
    }

    /// Reads the logs of all containers of the pods with these labels, merged by time: what people use stern for.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn follow(pods: klient::Api<Pod>) -> klient::Result<()> {
    /// let mut logs = pods.logs_of("app=web").follow().tail_lines(10);
    /// while let Some(line) = logs.next().await? {
    ///     println!("{line}"); // pod, container and text
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::needless_pass_by_value, reason = "selectors and texts are both given by value")]
    pub fn logs_of(&self, labels: impl ToString) -> SelectedLogs {
        SelectedLogs::new(self.clone(), labels.to_string())
    }
}

impl Api<Service> {
    /// Returns a request to a port of a service, through the API server. The name may be `scheme:service:port`.
    pub fn proxy(&self, method: Method, name: &str, path: &str) -> RestRequest {
        self.proxied(method, name, path)
    }
}

impl Api<Node> {
    /// Returns a request to the kubelet of a node, through the API server. The name may be `scheme:node:port`.
    pub fn proxy(&self, method: Method, name: &str, path: &str) -> RestRequest {
        self.proxied(method, name, path)
    }
}

impl Api<ServiceAccount> {
    /// Creates a token for a service account.
    #[doc(alias = "CreateToken")]
    pub fn create_token<'a>(&self, name: &str, request: &'a TokenRequest) -> verbs::Create<'a, TokenRequest> {
        self.subresource(subresource::TOKEN).create(name, request)
    }
}

impl Api<CertificateSigningRequest> {
    /// Replaces the conditions of a certificate signing request that approve or deny it.
    #[doc(alias = "UpdateApproval")]
    pub fn update_approval<'a>(
        &self,
        request: &'a CertificateSigningRequest,
    ) -> verbs::Update<'a, CertificateSigningRequest> {
        verbs::Update::new(self.subresource::<CertificateSigningRequest>("approval").endpoint, request)
    }
}

impl Api<Namespace> {
    /// Replaces the finalizers of a namespace.
    pub fn finalize<'a>(&self, namespace: &'a Namespace) -> verbs::Update<'a, Namespace> {
        verbs::Update::new(self.subresource::<Namespace>("finalize").endpoint, namespace)
    }
}

impl<K: Resource> Api<K> {
    fn proxied(&self, method: Method, name: &str, path: &str) -> RestRequest {
        let request = self.endpoint.client.rest().request(method).resource(&self.endpoint.resource);
        let request = match self.endpoint.namespace() {
            Some(namespace) => request.namespace(namespace),
            None => request,
        };
        request.name(name).subresource(subresource::PROXY).proxy_path(path)
    }
}
