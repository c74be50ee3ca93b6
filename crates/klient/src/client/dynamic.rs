//! `DynamicClient`: objects of kinds known at run time, as JSON.

use klient_core::{ApiResource, DynamicObject, Target};

use crate::client::{Api, Client};

/// The verbs of any kind, by its [`ApiResource`].
///
/// ```no_run
/// use klient::{Client, client::DynamicClient, resource::{ApiResource, GroupVersionKind, Scope}};
///
/// # async fn read(client: Client) -> Result<(), klient::Error> {
/// let kind = GroupVersionKind::new("shop.example.com", "v1", "Widget");
/// let widgets = ApiResource::new(kind, "widgets", Scope::Namespaced);
/// let widget = DynamicClient::new(client).in_namespace(&widgets, "default").get("big").await?;
/// println!("{}", widget.data["spec"]["size"]);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "dynamic.Interface")]
#[derive(Clone, Debug)]
pub struct DynamicClient {
    client: Client,
}

impl DynamicClient {
    /// Creates a client for the server of `client`.
    #[doc(alias = "dynamic.NewForConfig")]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns the verbs of a resource in a namespace, or in all namespaces if it is empty.
    pub fn in_namespace(&self, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        self.at(resource, Target::in_namespace(namespace))
    }

    /// Returns the verbs of a resource in all namespaces, or of a cluster-scoped resource.
    pub fn all(&self, resource: &ApiResource) -> Api<DynamicObject> {
        self.at(resource, Target::AllNamespaces)
    }

    fn at(&self, resource: &ApiResource, target: Target) -> Api<DynamicObject> {
        Api::dynamic(self.client.clone(), resource.clone(), target)
    }
}
