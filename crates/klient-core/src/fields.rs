//! Field sets: which fields of an object a field manager owns, and how server-side apply merges objects by schema.
//!
//! This is the algebra behind `metadata.managedFields`, without a server: the embedded API server uses it for every write, and
//! clients use it to find the fields that they own.
//!
//! - [`FieldSet`], [`PathElement`]: sets of field paths, and their text in `fieldsV1`.
//! - [`Schema`]: which lists are maps or sets, and which values are atomic.
//! - [`Typed`]: a value of a type of a schema, which can be merged, compared and reduced to some of its fields.
//! - [`extract()`]: what a manager applied to an object.
//! - [`Updater`]: from an object and a write to the merged object and the new owners of its fields.
//!
//! All of it behaves like Go's `structured-merge-diff`, whose tests it passes.

mod element;
mod ensure;
mod extract;
mod migrate;
mod problem;
mod schema;
mod set;
mod typed;
mod updater;
mod value;
mod wire;

pub use element::{Path, PathElement};
pub use extract::{ExtractError, extract, is_applied};
pub use migrate::migrate_to_apply;
pub use problem::{Problem, Problems};
pub use schema::{Atom, ListType, MapField, MapType, Scalar, Schema, SchemaBuilder, TypeId};
pub use set::FieldSet;
pub use typed::{Comparison, Duplicates, Typed};
pub use updater::{Conflict, ConvertError, Converter, ManagedSet, Managers, UpdateError, Updater};
pub use wire::ParseFieldSetError;
