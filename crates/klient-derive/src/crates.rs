//! `crates(...)`: the paths of the crates that generated code names.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Path, Result, parse_quote};

use crate::arguments::Argument;

/// The paths of crates.
pub(crate) struct Crates {
    pub(crate) klient: Path,
    pub(crate) k8s_openapi: Path,
    pub(crate) schemars: Path,
    pub(crate) serde: Path,
    pub(crate) std: Path,
}

impl Crates {
    /// Sets the paths that `crates(...)` names.
    pub(crate) fn read(&mut self, argument: &Argument) -> Result<()> {
        let form = || argument.error("`crates` needs a list: `crates(klient = \"path::to::klient\")`");
        for one in argument.nested().ok_or_else(form)?? {
            let path: Path = one.parsed("a path")?;
            match one.name.as_str() {
                "klient" => self.klient = path,
                "k8s_openapi" => self.k8s_openapi = path,
                "schemars" => self.schemars = path,
                "serde" => self.serde = path,
                "std" => self.std = path,
                // Types that move over from kube-derive may name these. The generated code does not use them.
                "kube" | "kube_core" | "serde_json" => {}
                _ => return Err(one.unknown(&["klient", "k8s_openapi", "schemars", "serde", "serde_json", "std"])),
            }
        }
        Ok(())
    }

    /// Returns the attributes that tell serde's and schemars' derives where their crates are.
    pub(crate) fn serde_attribute(&self) -> TokenStream {
        let path = self.serde.to_token_stream().to_string();
        quote!(#[serde(crate = #path)])
    }

    pub(crate) fn schemars_attribute(&self) -> TokenStream {
        let path = self.schemars.to_token_stream().to_string();
        quote!(#[schemars(crate = #path)])
    }

    /// Returns the `crates(...)` that passes these paths on to `KubeSchema`.
    pub(crate) fn for_kube_schema(&self) -> TokenStream {
        let text = |path: &Path| path.to_token_stream().to_string();
        let (klient, schemars, serde, std) =
            (text(&self.klient), text(&self.schemars), text(&self.serde), text(&self.std));
        quote!(crates(klient = #klient, schemars = #schemars, serde = #serde, std = #std))
    }
}

impl Default for Crates {
    fn default() -> Self {
        Self {
            klient: parse_quote!(::klient),
            k8s_openapi: parse_quote!(::k8s_openapi),
            schemars: parse_quote!(::schemars),
            serde: parse_quote!(::serde),
            std: parse_quote!(::std),
        }
    }
}
