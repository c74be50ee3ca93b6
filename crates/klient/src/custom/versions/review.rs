//! `ConversionReview`: the body of the requests with which the server has objects converted.

use klient_core::Resource;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::Versions;
use crate::custom::CustomResourceExt;

/// A request of the server to convert objects, or the response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionReview {
    /// The version of this message: `apiextensions.k8s.io/v1`.
    pub api_version: String,
    /// The kind of this message: `ConversionReview`.
    pub kind: String,
    /// The request; absent in a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ConversionRequest>,
    /// The response; absent in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ConversionResponse>,
}

/// The objects to convert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversionRequest {
    /// The identifier of this request, which the response repeats.
    pub uid: String,
    /// The version to convert to.
    #[serde(rename = "desiredAPIVersion")]
    pub desired_api_version: String,
    /// The objects, in any versions.
    #[serde(default)]
    pub objects: Vec<Value>,
}

/// The converted objects, or the reason for a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversionResponse {
    /// The identifier of the request.
    pub uid: String,
    /// The objects in the order of the request; empty after a failure.
    // The real server sends an empty response with each request, in which this is null.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub converted_objects: Vec<Value>,
    /// A `Status`: success, or a failure with a message.
    pub result: Value,
}

fn null_as_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl<Hub: Resource + CustomResourceExt> Versions<Hub> {
    /// Responds to a request of the server. A webhook decodes the body, calls this, and encodes the result.
    ///
    /// If one object cannot be converted, the response is a failure with the reason, as the server demands.
    pub fn convert(&self, review: ConversionReview) -> ConversionReview {
        let ConversionReview { api_version, kind, request, .. } = review;
        let (uid, converted) = match request {
            Some(ConversionRequest { uid, desired_api_version, objects }) => {
                let converted: Result<Vec<_>, _> =
                    objects.into_iter().map(|object| self.convert_object(object, &desired_api_version)).collect();
                (uid, converted.map_err(|error| error.to_string()))
            }
            None => (String::new(), Err("the review has no request".to_owned())),
        };
        let (converted_objects, result) = match converted {
            Ok(objects) => (objects, json!({"status": "Success"})),
            Err(message) => {
                (Vec::new(), json!({"status": "Failure", "message": message, "reason": "Invalid", "code": 422}))
            }
        };
        let response = Some(ConversionResponse { uid, converted_objects, result });
        ConversionReview { api_version, kind, request: None, response }
    }
}
