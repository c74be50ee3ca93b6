//! Values that are numbers or names, such as ports.

use serde_json::Value;

/// A number or a name, such as a port: `80` or `"http"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntOrString {
    /// A number.
    Int(i32),
    /// A name, or a percentage.
    String(String),
}

impl From<i32> for IntOrString {
    fn from(number: i32) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for IntOrString {
    fn from(name: &str) -> Self {
        Self::String(name.to_owned())
    }
}

impl From<String> for IntOrString {
    fn from(name: String) -> Self {
        Self::String(name)
    }
}

impl From<k8s_openapi::apimachinery::pkg::util::intstr::IntOrString> for IntOrString {
    fn from(value: k8s_openapi::apimachinery::pkg::util::intstr::IntOrString) -> Self {
        use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString as Other;
        match value {
            Other::Int(number) => Self::Int(number),
            Other::String(name) => Self::String(name),
        }
    }
}

impl From<IntOrString> for Value {
    fn from(value: IntOrString) -> Self {
        match value {
            IntOrString::Int(number) => Self::from(number),
            IntOrString::String(name) => Self::from(name),
        }
    }
}
