//! `Clientset`: every built-in kind by group and version, without naming its type.

pub(super) mod generated;

use crate::client::Client;

/// The verbs of every built-in kind, by group and version.
///
/// An empty namespace means all namespaces, as in client-go.
///
/// ```no_run
/// use klient::{Client, Clientset};
///
/// # async fn read() -> Result<(), klient::Error> {
/// let clientset = Clientset::new(Client::infer()?);
/// let web = clientset.apps_v1().deployments("default").get("web").await?;
/// let nodes = clientset.core_v1().nodes().list().await?;
/// let all_pods = clientset.core_v1().pods("").list().await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "kubernetes.Interface")]
#[derive(Clone, Debug)]
pub struct Clientset {
    client: Client,
}

impl Clientset {
    /// Creates a clientset for the server of `client`.
    #[doc(alias = "NewForConfig")]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns the client that sends the requests.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

/// Defines one group and version: its accessor, its struct and the accessors of its kinds.
macro_rules! group_versions {
    ($(
        $(#[$version_cfg:meta])?
        $api_version:literal $accessor:ident $name:ident {
            $( $(#[$kind_cfg:meta])? $scope:ident $plural:ident $kind:path; )*
        }
    )*) => {
        impl super::Clientset {$(
            #[doc = concat!("Returns the kinds of `", $api_version, "`.")]
            $(#[$version_cfg])?
            pub fn $accessor(&self) -> $name {
                $name { source: self.client.clone() }
            }
        )*}
        impl crate::informer::InformerFactory {$(
            #[doc = concat!("Returns the informers of `", $api_version, "`.")]
            $(#[$version_cfg])?
            pub fn $accessor(&self) -> $name<Self> {
                $name { source: self.clone() }
            }
        )*}
        $(
            #[doc = concat!("The kinds of `", $api_version, "`.")]
            $(#[$version_cfg])?
            #[derive(Clone, Debug)]
            pub struct $name<S = crate::client::Client> {
                source: S,
            }

            $(#[$version_cfg])?
            impl $name {$(
                $(#[$kind_cfg])?
                group_versions!(@$scope $plural $kind);
            )*}

            $(#[$version_cfg])?
            impl $name<crate::informer::InformerFactory> {$(
                $(#[$kind_cfg])?
                #[doc = concat!("Returns the informer of [`", stringify!($kind), "`].")]
                // Inlined, so that only crates that call it compile an informer of this kind.
                #[inline]
                pub fn $plural(&self) -> crate::informer::SharedInformer<$kind> {
                    self.source.$scope()
                }
            )*}
        )*
    };
    (@namespaced $plural:ident $kind:path) => {
        #[doc = concat!("Returns the verbs of [`", stringify!($kind), "`] in a namespace, or in all namespaces if it is empty.")]
        pub fn $plural(&self, namespace: &str) -> crate::client::Api<$kind> {
            crate::client::Api::in_namespace(self.source.clone(), namespace)
        }
    };
    (@cluster $plural:ident $kind:path) => {
        #[doc = concat!("[`", stringify!($kind), "`].")]
        pub fn $plural(&self) -> crate::client::Api<$kind> {
            crate::client::Api::cluster(self.source.clone())
        }
    };
}
use group_versions;

#[cfg(test)]
mod tests {
    use klient_core::{ApiResource, Target};

    use super::*;
    use crate::client::http::transport::{SendFuture, Transport};

    struct NoTransport;

    impl Transport for NoTransport {
        fn send(&self, _: http::Request<bytes::Bytes>) -> SendFuture<'_> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn accessors_return_the_right_kind_and_namespace() {
        let clientset = Clientset::new(Client::builder(NoTransport).build());
        let deployments = clientset.apps_v1().deployments("shop");
        assert_eq!(deployments.resource(), &ApiResource::of::<k8s_openapi::api::apps::v1::Deployment>());
        assert_eq!(deployments.target(), &Target::Namespace("shop".to_owned()));
        assert_eq!(clientset.core_v1().pods("").target(), &Target::AllNamespaces);
        assert_eq!(clientset.core_v1().nodes().target(), &Target::Cluster);
        assert_eq!(clientset.networking_v1().network_policies("x").resource().plural, "networkpolicies");
        assert_eq!(clientset.core_v1().endpoints("x").resource().plural, "endpoints");
        assert_eq!(clientset.storage_v1().csi_drivers().resource().plural, "csidrivers");
        assert_eq!(clientset.apiregistration_v1().api_services().resource().plural, "apiservices");
        let definitions = clientset.apiextensions_v1().custom_resource_definitions();
        assert_eq!(definitions.resource().plural, "customresourcedefinitions");
    }
}
