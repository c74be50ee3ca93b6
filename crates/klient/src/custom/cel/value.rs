//! Values of CEL from JSON, with the types that the schema gives them.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Context, Program, Value as Cel,
    objects::{Key, Map},
};
use serde_json::Value;

/// Returns a value with the types of its schema: numbers, times, durations and bytes.
pub(super) fn to_cel(value: &Value, schema: &Value, functions: &Context<'_>) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) if schema["type"] != "number" => Cel::Int(whole),
            (None, Some(large)) if schema["type"] != "number" => Cel::UInt(large),
            _ => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => text_to_cel(text, schema, functions),
        Value::Array(items) => {
            let items: Vec<Cel> = items.iter().map(|item| to_cel(item, &schema["items"], functions)).collect();
            Cel::List(Arc::new(items))
        }
        Value::Object(fields) => {
            // The keys of a map are data. Only the names of fields are escaped.
            let is_map = schema["additionalProperties"].is_object() || schema["additionalProperties"] == true;
            let entries = fields.iter().map(|(name, value)| {
                let below = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                let key = if is_map { name.clone() } else { escape(name) };
                (Key::String(Arc::new(key)), to_cel(value, below, functions))
            });
            Cel::Map(Map { map: Arc::new(entries.collect::<HashMap<_, _>>()) })
        }
    }
}

fn text_to_cel(text: &str, schema: &Value, functions: &Context<'_>) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_owned()));
    // The functions of CEL read these texts as the server does.
    let function = match schema["format"].as_str() {
        Some("date-time") => "timestamp(text)",
        Some("duration") => "duration(text)",
        Some("byte") => "base64.decode(text)",
        _ => return plain(),
    };
    let mut context = functions.new_inner_scope();
    context.add_variable_from_value("text", plain());
    Program::compile(function).ok().and_then(|program| program.execute(&context).ok()).unwrap_or_else(plain)
}

/// Returns the name by which an expression reads a field.
fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

/// The words of CEL that cannot be names.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_on_the_server() {
        for (name, escaped) in [
            ("size", "size"),
            ("with_default", "with_default"),
            ("a__b", "a__underscores__b"),
            ("a.b-c/d", "a__dot__b__dash__c__slash__d"),
            ("namespace", "__namespace__"),
        ] {
            assert_eq!(escape(name), escaped);
        }
    }
}
