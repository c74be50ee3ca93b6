//! Types of fields, judged by their names: scalars, text, lists, maps, and types that may have configurations.

use syn::{GenericArgument, PathArguments, Type};

/// A type without the wrappers that do not show in JSON.
pub(super) enum Shape {
    /// A number, a boolean or a character, whose argument has exactly this type, so that literals need no suffix.
    Scalar(Type),
    Text(Type),
    /// A value that is always set whole.
    Value(Type),
    List(Type),
    Map(Box<Type>, Box<Type>),
    /// A type that is expected to derive `Apply`.
    Nested(Type),
}

/// Returns the shape of a field's type. `Option`, `Box`, `Arc` and `Rc` do not show in JSON.
pub(super) fn shape(mut ty: Type) -> Shape {
    let mut optional = false;
    loop {
        let (name, arguments) = parts(&ty);
        match (name.as_str(), arguments.as_slice()) {
            // The inner option of two is the difference between null and absent, so that it remains.
            ("Option", [inner]) if !optional => {
                optional = true;
                ty = inner.clone();
            }
            ("Box" | "Arc" | "Rc", [inner]) => ty = inner.clone(),
            ("Vec" | "VecDeque" | "BTreeSet" | "HashSet" | "IndexSet", [item, ..]) => return Shape::List(item.clone()),
            ("BTreeMap" | "HashMap" | "IndexMap" | "Map", [key, value, ..]) => {
                return Shape::Map(Box::new(key.clone()), Box::new(value.clone()));
            }
            ("String", []) => return Shape::Text(ty),
            (name, []) if SCALARS.contains(&name) => return Shape::Scalar(ty),
            (name, _) if VALUES.contains(&name) || name.is_empty() => return Shape::Value(ty),
            _ => return Shape::Nested(ty),
        }
    }
}

/// Returns the last name of a path and its type arguments. The name is empty for types that are not paths, such as tuples.
fn parts(ty: &Type) -> (String, Vec<Type>) {
    match ty {
        Type::Group(group) => parts(&group.elem),
        Type::Paren(paren) => parts(&paren.elem),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return (String::new(), Vec::new()) };
            let arguments = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => arguments
                    .args
                    .iter()
                    .filter_map(|argument| match argument {
                        GenericArgument::Type(ty) => Some(ty.clone()),
                        _ => None,
                    })
                    .collect(),
                _ => Vec::new(),
            };
            (last.ident.to_string(), arguments)
        }
        _ => (String::new(), Vec::new()),
    }
}

const SCALARS: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
    "usize",
];

/// Types that have no parts which managers could own one by one, and types of `k8s-openapi` that are written whole.
const VALUES: &[&str] = &[
    "ByteString",
    "Condition",
    "Cow",
    "Duration",
    "GoDuration",
    "IntOrString",
    "IpAddr",
    "Ipv4Addr",
    "Ipv6Addr",
    "MicroTime",
    "NonZeroI32",
    "NonZeroI64",
    "NonZeroU16",
    "NonZeroU32",
    "NonZeroU64",
    "Option",
    "PathBuf",
    "Quantity",
    "RawExtension",
    "Time",
    "Timestamp",
    "Url",
    "Uuid",
    "Value",
];
