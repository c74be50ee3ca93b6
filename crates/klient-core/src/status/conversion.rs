//! Serialization of a [`Status`], and its conversions from and to `k8s-openapi`'s types.
//!
//! Reading treats absent and `null` fields as empty, and rejects objects of another kind: the response to a delete is
//! either a status or the object, and this distinguishes them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error, ser::SerializeStruct};

use super::{Status, StatusCause, StatusDetails, StatusOutcome, StatusReason};

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[derive(Default)]
        struct Raw {
            api_version: Option<String>,
            kind: Option<String>,
            metadata: Option<meta::ListMeta>,
            status: Option<String>,
            message: Option<String>,
            reason: Option<String>,
            details: Option<meta::StatusDetails>,
            code: Option<i32>,
        }
        let raw = Raw::deserialize(deserializer)?;
        let (api_version, kind) = (raw.api_version.unwrap_or_default(), raw.kind.unwrap_or_default());
        if !matches!(api_version.as_str(), "" | "v1" | "meta.k8s.io/v1") || !matches!(kind.as_str(), "" | "Status") {
            return Err(D::Error::custom(format_args!("expected v1 Status, found {api_version} {kind}")));
        }
        Ok(Self::from(meta::Status {
            code: raw.code,
            details: raw.details,
            message: raw.message,
            metadata: raw.metadata.unwrap_or_default(),
            reason: raw.reason,
            status: raw.status,
        }))
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut status = serializer.serialize_struct("Status", 8)?;
        status.serialize_field("kind", "Status")?;
        status.serialize_field("apiVersion", "v1")?;
        match &self.metadata {
            Some(metadata) => status.serialize_field("metadata", metadata)?,
            None => status.serialize_field("metadata", &meta::ListMeta::default())?,
        }
        status.serialize_field("status", self.outcome.as_str())?;
        for (name, text) in [("message", self.message.as_str()), ("reason", self.reason.as_str())] {
            if !text.is_empty() {
                status.serialize_field(name, text)?;
            }
        }
        if let Some(details) = &self.details {
            status.serialize_field("details", details)?;
        }
        if self.code != 0 {
            status.serialize_field("code", &self.code)?;
        }
        status.end()
    }
}

impl StatusOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Failure => "Failure",
        }
    }
}

impl From<meta::Status> for Status {
    fn from(status: meta::Status) -> Self {
        Self {
            outcome: if status.status.as_deref() == Some("Success") {
                StatusOutcome::Success
            } else {
                StatusOutcome::Failure
            },
            code: status.code.unwrap_or_default(),
            reason: status.reason.as_deref().unwrap_or_default().into(),
            message: status.message.unwrap_or_default(),
            details: status.details.map(|details| Box::new(details.into())),
            metadata: (status.metadata != meta::ListMeta::default()).then(|| Box::new(status.metadata)),
        }
    }
}

impl From<meta::StatusDetails> for StatusDetails {
    fn from(details: meta::StatusDetails) -> Self {
        Self {
            name: details.name.unwrap_or_default(),
            group: details.group.unwrap_or_default(),
            kind: details.kind.unwrap_or_default(),
            uid: details.uid.unwrap_or_default(),
            causes: details.causes.unwrap_or_default().into_iter().map(StatusCause::from).collect(),
            retry_after_seconds: details.retry_after_seconds.unwrap_or_default(),
        }
    }
}

impl From<meta::StatusCause> for StatusCause {
    fn from(cause: meta::StatusCause) -> Self {
        Self {
            reason: cause.reason.unwrap_or_default(),
            message: cause.message.unwrap_or_default(),
            field: cause.field.unwrap_or_default(),
        }
    }
}

impl From<Status> for meta::Status {
    fn from(status: Status) -> Self {
        Self {
            code: (status.code != 0).then_some(status.code),
            details: status.details.map(|details| (*details).into()),
            message: present(status.message),
            metadata: status.metadata.map(|metadata| *metadata).unwrap_or_default(),
            reason: match status.reason {
                StatusReason::Other(text) => Some(text),
                reason => present(reason.as_str().to_owned()),
            },
            status: Some(status.outcome.as_str().to_owned()),
        }
    }
}

impl From<StatusDetails> for meta::StatusDetails {
    fn from(details: StatusDetails) -> Self {
        let causes: Vec<_> = details.causes.into_iter().map(meta::StatusCause::from).collect();
        Self {
            causes: (!causes.is_empty()).then_some(causes),
            group: present(details.group),
            kind: present(details.kind),
            name: present(details.name),
            retry_after_seconds: (details.retry_after_seconds != 0).then_some(details.retry_after_seconds),
            uid: present(details.uid),
        }
    }
}

impl From<StatusCause> for meta::StatusCause {
    fn from(cause: StatusCause) -> Self {
        Self { field: present(cause.field), message: present(cause.message), reason: present(cause.reason) }
    }
}

fn present(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
