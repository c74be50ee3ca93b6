//! What only some built-in kinds can do.

use http::Method;
use k8s_openapi::{
    api::{
        authentication::v1::TokenRequest,
        certificates::v1::CertificateSigningRequest,
        core::v1::{Binding, Namespace, Node, Pod, Service, ServiceAccount},
        policy::v1::Eviction,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use klient_core::{CreateOptions, DeleteOptions, Resource, Status, Target, UpdateOptions, subresource};

use super::{Api, Subresource, name_of};
use crate::{Error, client::rest::RestRequest};

impl Api<Pod> {
    /// Deletes a pod, if its disruption budgets allow; the options are those of the delete.
    ///
    /// # Errors
    ///
    /// [`TooManyRequests`](crate::ErrorKind::TooManyRequests) if a budget does not allow it now: not tried again here,
    /// unless the server says when.
    #[doc(alias = "EvictV1")]
    pub async fn evict(&self, name: &str, options: &CreateOptions, delete: &DeleteOptions) -> Result<Status, Error> {
        let metadata = ObjectMeta { name: Some(name.to_owned()), namespace: self.namespace(), ..ObjectMeta::default() };
        let eviction = Eviction { metadata, delete_options: Some(delete.to_openapi()?) };
        self.subresource::<Eviction>(subresource::EVICTION).post(name, options, &eviction).await
    }

    /// Binds a pod to a node, as a scheduler does. The pod is the one that the binding is named after.
    ///
    /// # Errors
    ///
    /// If the pod is bound already, or for any other reason a server or connection gives.
    pub async fn bind(&self, options: &CreateOptions, binding: &Binding) -> Result<Status, Error> {
        self.subresource::<Binding>(subresource::BINDING).post(name_of(binding)?, options, binding).await
    }

    /// Debugging containers of a pod: reads and writes give whole pods.
    pub fn ephemeral_containers(&self) -> Subresource<'_, Pod, Pod> {
        self.subresource(subresource::EPHEMERAL_CONTAINERS)
    }

    /// Resources of a running pod's containers: reads and writes give whole pods.
    pub fn resize(&self) -> Subresource<'_, Pod, Pod> {
        self.subresource(subresource::RESIZE)
    }

    /// A request to a port of a pod; the name may be `scheme:pod:port`.
    pub fn proxy(&self, method: Method, name: &str, path: &str) -> RestRequest {
        self.proxied(method, name, path)
    }
}

impl Api<Service> {
    /// A request to a port of a service; the name may be `scheme:service:port`.
    pub fn proxy(&self, method: Method, name: &str, path: &str) -> RestRequest {
        self.proxied(method, name, path)
    }
}

impl Api<Node> {
    /// A request to the kubelet of a node; the name may be `scheme:node:port`.
    pub fn proxy(&self, method: Method, name: &str, path: &str) -> RestRequest {
        self.proxied(method, name, path)
    }
}

impl Api<ServiceAccount> {
    /// Makes a token for a service account.
    ///
    /// # Errors
    ///
    /// If there is no such account, or for any other reason a server or connection gives.
    #[doc(alias = "CreateToken")]
    pub async fn create_token(
        &self,
        name: &str,
        options: &CreateOptions,
        request: &TokenRequest,
    ) -> Result<TokenRequest, Error> {
        self.subresource::<TokenRequest>(subresource::TOKEN).create(name, options, request).await
    }
}

impl Api<CertificateSigningRequest> {
    /// Replaces the conditions that say whether a certificate is approved.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[doc(alias = "UpdateApproval")]
    pub async fn update_approval(
        &self,
        options: &UpdateOptions,
        request: &CertificateSigningRequest,
    ) -> Result<CertificateSigningRequest, Error> {
        self.subresource("approval").update(name_of(request)?, options, request).await
    }
}

impl Api<Namespace> {
    /// Replaces the finalizers of a namespace.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[doc(alias = "Finalize")]
    pub async fn finalize(&self, options: &UpdateOptions, namespace: &Namespace) -> Result<Namespace, Error> {
        self.subresource("finalize").update(name_of(namespace)?, options, namespace).await
    }
}

impl<K: Resource> Api<K> {
    pub(super) fn namespace(&self) -> Option<String> {
        match &self.target {
            Target::Namespace(namespace) => Some(namespace.clone()),
            Target::AllNamespaces | Target::Cluster => None,
        }
    }

    fn proxied(&self, method: Method, name: &str, path: &str) -> RestRequest {
        let request = self.client.rest().request(method).resource(&self.resource);
        let request = match &self.target {
            Target::Namespace(namespace) => request.namespace(namespace),
            Target::AllNamespaces | Target::Cluster => request,
        };
        request.name(name).subresource(subresource::PROXY).proxy_path(path)
    }
}
