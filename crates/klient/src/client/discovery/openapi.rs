//! The server's OpenAPI documents: one for each group version, or all in one of the older version.
//!
//! The documents are large and in the server's words: they are given as bytes or as JSON, and not modelled here.
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

/// Reads the server's OpenAPI documents.
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
#[derive(Clone, Debug)]
pub struct OpenApiClient {
    client: Client,
}

/// Where the OpenAPI v3 documents of a server are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenApiIndex {
    /// The address of each document, which changes with its contents; by path, as `apis/apps/v1`.
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
    /// Asks the server of that client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Where the documents are.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked, or its answer not be read.
    pub async fn index(&self) -> Result<OpenApiIndex, Error> {
        // Servers call it plain text.
        let index: Index = Document::fetch(&self.client, ROOT, media_type::JSON).await?.json_of_any_type()?;
        let documents = index.paths.into_iter().map(|(path, entry)| (path, entry.server_relative_url)).collect();
        Ok(OpenApiIndex { documents })
    }

    /// The OpenAPI v3 document of a group version, as JSON text.
    ///
    /// # Errors
    ///
    /// If there is none, if the server cannot be asked, or if what it sends is not JSON.
    pub async fn document(&self, version: &GroupVersion) -> Result<Bytes, Error> {
        Ok(self.fetch(version).await?.body)
    }

    /// The OpenAPI v3 document of a group version.
    ///
    /// # Errors
    ///
    /// As [`document`](Self::document), and if it cannot be read.
    #[doc(alias = "GVSpecAsMap")]
    pub async fn value(&self, version: &GroupVersion) -> Result<Value, Error> {
        self.fetch(version).await?.json()
    }

    /// The OpenAPI v2 document of the whole server, as JSON text: tens of megabytes on some servers.
    ///
    /// # Errors
    ///
    /// If the server cannot be asked, or if what it sends is not JSON.
    #[doc(alias = "OpenAPISchema")]
    pub async fn document_v2(&self) -> Result<Bytes, Error> {
        checked(Document::fetch(&self.client, "/openapi/v2", media_type::JSON).await?).map(|document| document.body)
    }

    async fn fetch(&self, version: &GroupVersion) -> Result<Document, Error> {
        let mut moved = false;
        loop {
            let index = self.index().await?;
            let Some(address) = index.address(version) else {
                let what = format!("the server has no OpenAPI document of {version}");
                return Err(Error::new(ErrorKind::NotFound, what));
            };
            if !address.starts_with('/') {
                // Following it could send credentials elsewhere.
                let what =
                    format!("the OpenAPI document of {version} is said to be at {address:?}, not on this server");
                return Err(Error::new(ErrorKind::Decode, what));
            }
            match Document::fetch(&self.client, address, media_type::JSON).await {
                // The document has changed since the index was read, and its address with it.
                Err(error) if !moved && matches!(code_of(&error), Some(301 | 302 | 404)) => moved = true,
                outcome => return checked(outcome?),
            }
        }
    }
}

impl OpenApiIndex {
    /// The group versions that have a document.
    pub fn group_versions(&self) -> impl Iterator<Item = GroupVersion> {
        self.documents.keys().filter_map(|path| {
            let version = path.strip_prefix("apis/").or_else(|| path.strip_prefix("api/"))?.parse::<GroupVersion>();
            // `apis/apps` is about the group, `api/v1` about a version.
            version.ok().filter(|version| version.group.is_empty() == path.starts_with("api/"))
        })
    }

    /// The address of the document of a group version.
    pub fn address(&self, version: &GroupVersion) -> Option<&str> {
        let root = if version.group.is_empty() { "api" } else { "apis" };
        self.documents.get(&format!("{root}/{version}")).map(String::as_str)
    }
}

/// A document that is JSON, as far as can be told without keeping it in another form.
fn checked(document: Document) -> Result<Document, Error> {
    document.json::<serde::de::IgnoredAny>()?;
    Ok(document)
}

const ROOT: &str = "/openapi/v3";
