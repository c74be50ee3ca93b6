//! Merge strategies, read from the tokens of `#[x_kube(merge_strategy = ...)]`.

use proc_macro2::{TokenStream, TokenTree};
use syn::{Error, LitStr, Result, parse2};

/// How the server merges a field.
pub(super) enum Merge {
    /// As the type of the field says: lists as a whole, maps and structs field by field.
    Default,
    /// As a whole.
    Atomic,
    /// As a set of values.
    Set,
    /// Item by item, with the values of these fields as keys.
    Keys(Vec<LitStr>),
}

/// Reads the strategies that a derive can see: paths of the three enums, and keys that are string literals.
pub(super) fn read(strategy: &TokenStream) -> Result<Merge> {
    let mut words = Vec::new();
    let mut texts = Vec::new();
    collect(strategy.clone(), &mut words, &mut texts);
    let at = words.iter().position(|word| ["ListMerge", "MapMerge", "StructMerge"].contains(&word.as_str()));
    let variant = at.map(|at| (words[at].as_str(), words.get(at + 1).map_or("", String::as_str)));
    match variant {
        Some(("ListMerge", "Map")) if !texts.is_empty() => Ok(Merge::Keys(texts)),
        Some(("ListMerge", "Set")) => Ok(Merge::Set),
        Some((_, "Atomic")) => Ok(Merge::Atomic),
        Some((_, "Granular")) => Ok(Merge::Default),
        _ => {
            let message = "`#[derive(Apply)]` cannot read this strategy: write it out, such as \
                `ListMerge::Map(vec![\"name\".into()])`, or leave the field out of the configuration with `#[apply(skip)]`";
            Err(Error::new_spanned(strategy, message))
        }
    }
}

fn collect(tokens: TokenStream, words: &mut Vec<String>, texts: &mut Vec<LitStr>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect(group.stream(), words, texts),
            TokenTree::Ident(ident) => words.push(ident.to_string()),
            TokenTree::Literal(literal) => texts.extend(parse2::<LitStr>(TokenTree::from(literal).into()).ok()),
            TokenTree::Punct(_) => {}
        }
    }
}
