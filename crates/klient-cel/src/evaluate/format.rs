//! Named formats: `format.dns1123Label().validate(text)`.

use std::sync::Arc;

use klient_core::names::{self, Problems};
use kube_cel::cel::{Value as Cel, objects::Opaque};

use super::{Outcome, function, optional_of, text};

/// A format of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    name: &'static str,
    /// The length of its pattern on the real server, which decides what a validation costs.
    pub(super) pattern: u64,
}

impl Opaque for Format {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.NamedFormat"
    }
}

/// Calls a function of formats. Returns `None` for others.
pub(super) fn apply(name: &str, values: &[Cel]) -> Option<Outcome> {
    match (name, values) {
        ("format.named", [Cel::String(name)]) => Some(Ok(optional_of(named(name)))),
        ("validate", [Cel::Opaque(opaque), Cel::String(text)]) => {
            let problems = opaque.downcast_ref::<Format>()?.problems(text);
            let problems: Vec<Cel> = problems.iter().map(|problem| super::text(problem)).collect();
            let found = (!problems.is_empty()).then(|| Cel::List(Arc::new(problems)));
            Some(Ok(optional_of(found)))
        }
        (_, []) => Some(Ok(named(name.strip_prefix("format.")?)?)),
        _ => None,
    }
}

/// Returns the format of a value.
pub(super) fn of(value: &Cel) -> Option<&Format> {
    match value {
        Cel::Opaque(opaque) => opaque.downcast_ref(),
        _ => None,
    }
}

fn named(name: &str) -> Option<Cel> {
    let (name, pattern) = *FORMATS.iter().find(|(known, _)| *known == name)?;
    Some(Cel::Opaque(Arc::new(Format { name, pattern })))
}

impl Format {
    fn problems(&self, text: &str) -> Problems {
        match self.name {
            "dns1123Label" => names::label_problems(text),
            "dns1123LabelPrefix" => names::label_problems(&names::masked_prefix(text)),
            "dns1123Subdomain" => names::subdomain_problems(text),
            "dns1123SubdomainPrefix" => names::subdomain_problems(&names::masked_prefix(text)),
            "dns1035Label" => names::letter_label_problems(text),
            "dns1035LabelPrefix" => names::letter_label_problems(&names::masked_prefix(text)),
            "qualifiedName" => names::qualified_name_problems(text),
            "labelValue" => names::label_value_problems(text),
            "byte" if is_base64(text) => Problems::new(),
            "byte" => vec!["invalid base64".to_owned()],
            other => of_kube_cel(other, text),
        }
    }
}

/// Returns the problems of a format of `kube-cel`, with the real server's message.
fn of_kube_cel(name: &str, value: &str) -> Problems {
    let found = function(&format!("format.{name}"), false, Vec::new());
    let found = found.and_then(|format| function("validate", true, vec![format, text(value)]));
    let message = match name {
        "uuid" => "does not match the UUID format".to_owned(),
        "uri" => format!("parse {value:?}: invalid URI for request"),
        _ => format!("invalid {name}"),
    };
    match found {
        Ok(found) if found == optional_of(None) => Problems::new(),
        _ => vec![message],
    }
}

/// Returns whether a text has the characters of Base64, in groups of four.
fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

/// The formats, and the lengths of their patterns.
const FORMATS: &[(&str, u64)] = &[
    ("dns1123Label", 30),
    ("dns1123Subdomain", 60),
    ("dns1035Label", 30),
    ("qualifiedName", 60),
    ("dns1123LabelPrefix", 30),
    ("dns1123SubdomainPrefix", 60),
    ("dns1035LabelPrefix", 30),
    ("labelValue", 40),
    ("uri", 1103),
    ("uuid", 70),
    ("byte", 84),
    ("date", 71),
    ("datetime", 71),
];
