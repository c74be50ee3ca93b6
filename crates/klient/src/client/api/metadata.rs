//! The metadata client: objects of which only the metadata travels.

use std::marker::PhantomData;

use klient_core::{PartialObjectMeta, Resource};

use super::{Answer, Api, ObjectForm};

impl<K: Resource> Api<K> {
    /// The same objects, of which only the metadata travels: a fraction of the bytes, for any kind.
    ///
    /// They can be read, watched, patched and deleted.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Secret;
    /// use klient::options::ListOptions;
    /// use klient::{Api, Client};
    ///
    /// # async fn names(client: Client) -> Result<(), klient::Error> {
    /// let secrets = Api::<Secret>::all(client).metadata();
    /// for secret in &secrets.list(&ListOptions::default()).await? {
    ///     println!("{:?}", secret.metadata.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "MetadataClient")]
    pub fn metadata(&self) -> Api<PartialObjectMeta<K>> {
        Api {
            client: self.client.clone(),
            resource: self.resource.clone(),
            target: self.target.clone(),
            form: ObjectForm::Metadata,
            kind: PhantomData,
        }
    }
}

/// The value of `Accept` for metadata. Protobuf serves custom resources as well: metadata is a built-in kind.
pub(super) fn accept(answer: Answer, protobuf: bool) -> &'static str {
    match (answer, protobuf) {
        (Answer::List, true) => concat!(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,",
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        ),
        (Answer::List, false) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        (Answer::Watch, true) => concat!(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;stream=watch,",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        ),
        (Answer::Object, true) => concat!(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        ),
        (Answer::Object | Answer::Watch, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    }
}
