//! `#[derive(CustomResource)]`: the root type of a custom resource, from its specification.

pub(crate) mod checks;
mod columns;
mod generate;
mod json_object;
pub(crate) mod settings;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

use self::settings::Settings;

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let settings = Settings::read(input)?;
    checks::check(&settings, input)?;
    Ok(generate::generate(&settings, input))
}
