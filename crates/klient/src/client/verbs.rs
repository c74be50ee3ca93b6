//! Requests as values: what the methods of [`Api`](crate::Api) and [`Subresource`](super::Subresource) return.
//!
//! Each has chain methods for its options, takes a whole options struct with `options`, and is sent when it is awaited.

mod apply;
mod create;
mod delete;
mod delete_collection;
mod evict;
mod get;
mod list;
mod logs;
mod patch;
mod update;
mod watch;

use std::pin::Pin;

pub use self::{
    apply::{Apply, ApplyIfChanged},
    create::{Create, Post},
    delete::Delete,
    delete_collection::DeleteCollection,
    evict::Evict,
    get::{Get, GetOptional},
    list::List,
    logs::Logs,
    patch::Patch,
    update::Update,
    watch::Watch,
};
use crate::Error;

/// The future of a request that was awaited.
pub type ResponseFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Writes the chain methods that every write has.
macro_rules! write_methods {
    ($options:ident) => {
        /// Sets the field manager: the name under which the server records who owns the written fields.
        #[doc(alias = "fieldManager")]
        pub fn manager(mut self, manager: impl Into<String>) -> Self {
            self.options = self.options.manager(manager);
            self
        }

        /// Has the server do everything but store the result.
        #[doc(alias = "dryRun")]
        pub fn dry_run(mut self) -> Self {
            self.options = self.options.dry_run();
            self
        }

        /// Sets what the server does with unknown and duplicate fields.
        #[doc(alias = "fieldValidation")]
        pub fn field_validation(mut self, validation: klient_core::FieldValidation) -> Self {
            self.options = self.options.field_validation(validation);
            self
        }

        #[doc = concat!("Sets all options at once, as [`", stringify!($options), "`](klient_core::", stringify!($options), ").")]
        pub fn options(mut self, options: klient_core::$options) -> Self {
            self.options = options;
            self
        }
    };
}
use write_methods;

/// Writes the chain methods that select objects. The options are in the field that is named.
macro_rules! select_methods {
    ($options:ident) => {
        /// Selects objects by labels: a [`LabelSelector`](klient_core::LabelSelector), or text such as `app=web,tier!=db`.
        #[doc(alias = "labelSelector")]
        pub fn labels(mut self, selector: impl ToString) -> Self {
            self.$options = self.$options.labels(selector);
            self
        }

        /// Selects objects by fields: a [`FieldSelector`](klient_core::FieldSelector), or text such as `spec.nodeName=n1`.
        #[doc(alias = "fieldSelector")]
        pub fn fields(mut self, selector: impl ToString) -> Self {
            self.$options = self.$options.fields(selector);
            self
        }
    };
}
use select_methods;
