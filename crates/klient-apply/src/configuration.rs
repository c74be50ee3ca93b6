//! The macro that defines configurations.

use serde_json::Value;

/// Defines configurations: one line for each field, with the form of its value.
macro_rules! configurations {
    ($(
        $(#[$doc:meta])*
        $name:ident $(($api_version:literal $kind:literal $scope:ident))? {
            $($form:ident $method:ident $field:literal $(($($key:ident $key_field:literal $key_form:ident),+))? $($of:path)?;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(transparent)]
        #[must_use]
        pub struct $name(crate::Fields);

        impl crate::Configuration for $name {
            fn from_fields(fields: crate::Fields) -> Self {
                Self(fields)
            }

            fn into_fields(self) -> crate::Fields {
                self.0
            }
        }

        #[allow(clippy::should_implement_trait, reason = "methods have the names of fields")]
        impl $name {
            $crate::configuration::constructor!($name $(($api_version $kind $scope))?);

            /// Returns the fields as JSON.
            #[must_use]
            pub fn to_value(&self) -> serde_json::Value {
                crate::Configuration::to_value(self)
            }

            $($crate::configuration::setter!($form $method $field $(($($key $key_field $key_form),+))? $($of)?);)*
        }
    )*};
}

macro_rules! constructor {
    ($name:ident) => {
        /// Returns a configuration without fields.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self(crate::Fields::default())
        }
    };
    ($name:ident ($api_version:literal $kind:literal namespaced)) => {
        /// Returns a configuration of the object with this name and namespace.
        pub fn new(name: impl Into<String>, namespace: impl Into<String>) -> Self {
            Self(klient_core::apply::identity($api_version, $kind, name.into(), Some(namespace.into())))
        }
        $crate::configuration::metadata!();
    };
    ($name:ident ($api_version:literal $kind:literal cluster)) => {
        /// Returns a configuration of the object with this name.
        pub fn new(name: impl Into<String>) -> Self {
            Self(klient_core::apply::identity($api_version, $kind, name.into(), None))
        }
        $crate::configuration::metadata!();
    };
}

macro_rules! metadata {
    () => {
        /// Returns what a manager last applied to an object: the fields that it still owns, and the object's identity.
        ///
        /// # Errors
        ///
        /// Returns an error if the object has no managed fields, or if they are malformed.
        #[doc(alias = "Extract")]
        pub fn extract(live: &impl serde::Serialize, manager: &str) -> Result<Self, crate::ExtractError> {
            klient_core::apply::extract(live, manager, "")
        }

        /// Returns what a manager last applied to the status of an object.
        ///
        /// # Errors
        ///
        /// Returns an error if the object has no managed fields, or if they are malformed.
        #[doc(alias = "ExtractStatus")]
        pub fn extract_status(live: &impl serde::Serialize, manager: &str) -> Result<Self, crate::ExtractError> {
            klient_core::apply::extract(live, manager, "status")
        }

        /// Adds labels.
        pub fn labels(mut self, labels: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
            klient_core::apply::labels(&mut self.0, labels);
            self
        }

        /// Adds annotations.
        pub fn annotations(
            mut self,
            annotations: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
        ) -> Self {
            klient_core::apply::annotations(&mut self.0, annotations);
            self
        }

        /// Adds an owner, such as that of `klient::owner::controller_owner_ref`. One with the same UID is replaced.
        pub fn owner(mut self, owner: &k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference) -> Self {
            klient_core::apply::owner(&mut self.0, owner);
            self
        }
    };
}

macro_rules! setter {
    (object $method:ident $field:literal $of:path) => {
        #[doc = concat!("Changes `", $field, "`.")]
        pub fn $method(mut self, change: impl FnOnce($of) -> $of) -> Self {
            self.0.object($field, change);
            self
        }
    };
    (items $method:ident $field:literal ($($key:ident $key_field:literal $key_form:ident),+) $of:path) => {
        #[doc = concat!("Changes the item of `", $field, "` with this key.")]
        pub fn $method(mut self, $($key: $crate::configuration::argument!($key_form),)+ change: impl FnOnce($of) -> $of) -> Self {
            let key = [$(($key_field, Ok($crate::configuration::value!($key_form $key)))),+];
            self.0.item($field, key, change);
            self
        }
    };
    (list_object $method:ident $field:literal $of:path) => {
        #[doc = concat!("Sets all items of `", $field, "`.")]
        pub fn $method(mut self, items: impl IntoIterator<Item = $of>) -> Self {
            self.0.set_list($field, items);
            self
        }
    };
    (map_object $method:ident $field:literal $of:path) => {
        #[doc = concat!("Adds entries to `", $field, "`.")]
        pub fn $method(mut self, entries: impl IntoIterator<Item = (impl Into<String>, $of)>) -> Self {
            self.0.extend_map($field, entries.into_iter().map(|(name, value)| (Into::<String>::into(name), value)));
            self
        }
    };
    (list_text $method:ident $field:literal) => { $crate::configuration::setter!(@list text $method $field); };
    (list_int32 $method:ident $field:literal) => { $crate::configuration::setter!(@list int32 $method $field); };
    (list_int64 $method:ident $field:literal) => { $crate::configuration::setter!(@list int64 $method $field); };
    (list_any $method:ident $field:literal) => { $crate::configuration::setter!(@list any $method $field); };
    (@list $form:ident $method:ident $field:literal) => {
        #[doc = concat!("Sets all items of `", $field, "`.")]
        pub fn $method(mut self, items: impl IntoIterator<Item = $crate::configuration::argument!($form)>) -> Self {
            let items = items.into_iter().map(|item| $crate::configuration::value!($form item)).collect::<Vec<_>>();
            self.0.set($field, items);
            self
        }
    };
    (set_text $method:ident $field:literal) => {
        #[doc = concat!("Adds items to `", $field, "`.")]
        pub fn $method(mut self, items: impl IntoIterator<Item = impl Into<String>>) -> Self {
            self.0.extend_set($field, items.into_iter().map(|item| serde_json::Value::String(item.into())));
            self
        }
    };
    (map_text $method:ident $field:literal) => { $crate::configuration::setter!(@map text $method $field); };
    (map_quantity $method:ident $field:literal) => { $crate::configuration::setter!(@map quantity $method $field); };
    (map_bytes $method:ident $field:literal) => { $crate::configuration::setter!(@map bytes $method $field); };
    (map_any $method:ident $field:literal) => { $crate::configuration::setter!(@map any $method $field); };
    (@map $form:ident $method:ident $field:literal) => {
        #[doc = concat!("Adds entries to `", $field, "`.")]
        pub fn $method(
            mut self,
            entries: impl IntoIterator<Item = (impl Into<String>, $crate::configuration::argument!($form))>,
        ) -> Self {
            let entries = entries.into_iter();
            self.0.extend_map($field, entries.map(|(name, value)| (Into::<String>::into(name), $crate::configuration::value!($form value))));
            self
        }
    };
    ($form:ident $method:ident $field:literal) => {
        #[doc = concat!("Sets `", $field, "`.")]
        pub fn $method(mut self, value: $crate::configuration::argument!($form)) -> Self {
            self.0.set($field, $crate::configuration::value!($form value));
            self
        }
    };
}

/// The type of an argument.
macro_rules! argument {
    (text) => { impl Into<String> };
    (int32) => { i32 };
    (int64) => { i64 };
    (number) => { f64 };
    (bool) => { bool };
    (bytes) => { impl AsRef<[u8]> };
    (time) => { jiff::Timestamp };
    (micro_time) => { jiff::Timestamp };
    (quantity) => { impl ToString };
    (int_or_string) => { impl Into<crate::IntOrString> };
    (any) => { impl Into<serde_json::Value> };
}

/// An argument as JSON.
macro_rules! value {
    (text $value:ident) => {
        serde_json::Value::String($value.into())
    };
    (bytes $value:ident) => {
        $crate::configuration::base64($value.as_ref())
    };
    (time $value:ident) => {
        $crate::configuration::time($value)
    };
    (micro_time $value:ident) => {
        $crate::configuration::micro_time($value)
    };
    (quantity $value:ident) => {
        serde_json::Value::String($value.to_string())
    };
    (int_or_string $value:ident) => {
        serde_json::Value::from($value.into())
    };
    (any $value:ident) => {
        $value.into()
    };
    ($form:ident $value:ident) => {
        serde_json::Value::from($value)
    };
}

pub(crate) use {argument, configurations, constructor, metadata, setter, value};

pub(crate) fn base64(bytes: &[u8]) -> Value {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    Value::String(STANDARD.encode(bytes))
}

pub(crate) fn time(time: jiff::Timestamp) -> Value {
    Value::String(klient_core::format_time(&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time)))
}

pub(crate) fn micro_time(time: jiff::Timestamp) -> Value {
    Value::String(klient_core::format_micro_time(&k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(time)))
}
