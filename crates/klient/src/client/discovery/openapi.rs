//! The server's OpenAPI documents: one per group version, or all in one document of version 2.
//!
//! The documents are large and are returned as bytes or as JSON, without typed structs.
//! In client-go: `openapi` and `openapi3`.

use std::collections::BTreeMap;

use bytes::Bytes;
use klient_core::{GroupVersion, media_type};
use serde::Deserialize;
use serde_json::Value;

use crate::client::{
    Client,
    discovery::document::{Document, code_of},
};
use crate::{Error, ErrorKind};

/// A client of the server's OpenAPI documents.
///
/// ```no_run
/// use klient::{Client, client::discovery::OpenApiClient, resource::GroupVersion};
///
/// # async fn show() -> Result<(), klient::Error> {
/// let openapi = OpenApiClient::new(Client::infer()?);
/// let apps = openapi.value(&GroupVersion::new("apps", "v1")).await?;
/// println!("{} schemas", apps["components"]["schemas"].as_object().map_or(0, |schemas| schemas.len()));
/// # Ok(())
/// # }
/// ```
#[doc(alias = "openapi.Client")]
#[doc(alias = "OpenAPIV3")]
#[derive(Clone, Debug)]
pub struct OpenApiClient {
    client: Client,
}

/// The addresses of a server's OpenAPI v3 documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenApiIndex {
    /// The address of each document by its path, such as `apis/apps/v1`. The address changes with the content.
    pub documents: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Index {
    paths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "serverRelativeURL")]
    server_relative_url: String,
}

impl OpenApiClient {
    /// Creates a client for the server of `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns the addresses of the documents.
    ///
    /// # Errors
    ///
    /// Returns an error if the request fails or the response cannot be decoded.
    pub async fn index(&self) -> Result<OpenApiIndex, Error> {
        // Servers send it as plain text.
        let index: Index = Document::fetch(&self.client, ROOT, media_type::JSON).await?.json_of_any_type()?;
        let documents = index.paths.into_iter().map(|(path, entry)| (path, entry.server_relative_url)).collect();
        Ok(OpenApiIndex { documents })
    }

    /// Returns the OpenAPI v3 document of a group version, as JSON text.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such document, if the request fails, or if the response is not JSON.
    pub async fn document(&self, version: &GroupVersion) -> Result<Bytes, Error> {
        Ok(self.fetch(version).await?.body)
    }

    /// Returns the OpenAPI v3 document of a group version, decoded.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`document`](Self::document), and an error if it cannot be decoded.
    #[doc(alias = "GVSpecAsMap")]
    pub async fn value(&self, version: &GroupVersion) -> Result<Value, Error> {
        self.fetch(version).await?.json()
    }

    /// Returns the OpenAPI v2 document of the whole server, as JSON text. It has tens of megabytes on some servers.
    ///
    /// # Errors
    ///
    /// Returns an error if the request fails or the response is not JSON.
    #[doc(alias = "OpenAPISchema")]
    pub async fn document_v2(&self) -> Result<Bytes, Error> {
        checked(Document::fetch(&self.client, "/openapi/v2", media_type::JSON).await?).map(|document| document.body)
    }

    async fn fetch(&self, version: &GroupVersion) -> Result<Document, Error> {
        let mut moved = false;
        loop {
            let index = self.index().await?;
            let Some(address) = index.address(version) else {
                let what = format!("the server has no OpenAPI document for {version}");
                return Err(Error::new(ErrorKind::NotFound, what));
            };
            if !address.starts_with('/') {
                // Following an address on another host could send credentials there.
                let what = format!("the OpenAPI document for {version} is at {address:?}, which is not on this server");
                return Err(Error::new(ErrorKind::Decode, what));
            }
            match Document::fetch(&self.client, address, media_type::JSON).await {
                // The document and its address have changed since the index was read.
                Err(error) if !moved && matches!(code_of(&error), Some(301 | 302 | 404)) => moved = true,
                outcome => return checked(outcome?),
            }
        }
    }
}

impl OpenApiIndex {
    /// Iterates over the group versions that have a document.
    pub fn group_versions(&self) -> impl Iterator<Item = GroupVersion> {
        self.documents.keys().filter_map(|path| {
            let version = path.strip_prefix("apis/").or_else(|| path.strip_prefix("api/"))?.parse::<GroupVersion>();
            // `apis/apps` describes the group, `api/v1` a version.
            version.ok().filter(|version| version.group.is_empty() == path.starts_with("api/"))
        })
    }

    /// Returns the address of the document of a group version.
    pub fn address(&self, version: &GroupVersion) -> Option<&str> {
        let root = if version.group.is_empty() { "api" } else { "apis" };
        self.documents.get(&format!("{root}/{version}")).map(String::as_str)
    }
}

/// Checks that a document is JSON, without decoding it into a value.
fn checked(document: Document) -> Result<Document, Error> {
    document.json::<serde::de::IgnoredAny>()?;
    Ok(document)
}

const ROOT: &str = "/openapi/v3";
