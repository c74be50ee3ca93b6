//! The cost of CEL rules, as the server estimates it before it takes a definition.
//!
//! The server multiplies the highest cost of a rule by the highest number of values that have it. Both follow from
//! `maxItems`, `maxProperties` and `maxLength`; without them, from the size of the largest request. The estimate follows
//! cel-go's `checker/cost.go` and `apiserver/pkg/cel`, where they surprise, too. It has been compared with the server's on the
//! rules and libraries of Kubernetes' own tests.

mod calls;
mod declared;
mod estimate;
mod expression;
mod macros;
mod path;
mod types;

use serde_json::Value;

use self::declared::Declared;

/// The estimate of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimate {
    /// The highest cost of all evaluations for one object.
    pub cost: u64,
    /// Whether the expression reads `oldSelf`.
    pub reads_old: bool,
}

/// The place of a schema: how often it occurs in one object, and whether the server can find its old value.
#[derive(Clone, Copy, Debug)]
pub struct Occurrence {
    /// The highest number of values; `None` if a list or map around it is unbounded.
    count: Option<u64>,
    correlates: bool,
    is_root: bool,
}

impl Occurrence {
    /// The whole object, which occurs once.
    pub const ROOT: Self = Self { count: Some(1), correlates: true, is_root: true };

    /// Returns the place of a field.
    #[must_use]
    pub fn field(self) -> Self {
        Self { is_root: false, ..self }
    }

    /// Returns the place of the items of a list, or of the values of a map.
    #[must_use]
    pub fn within(self, schema: &Value) -> Self {
        let is_list = schema["items"].is_object();
        let bound = schema[if is_list { "maxItems" } else { "maxProperties" }].as_u64();
        let count = self.count.zip(bound).map(|(count, bound)| count.saturating_mul(bound));
        let by_key = !is_list || schema["x-kubernetes-list-type"] == "map";
        Self { count, correlates: self.correlates && by_key, is_root: false }
    }

    /// Returns whether the server can find the old value.
    #[must_use]
    pub fn correlates(self) -> bool {
        self.correlates
    }

    fn highest(self, declared: Option<&Declared>) -> u64 {
        let least = declared.map_or(0, |declared| declared.least_json);
        self.count.unwrap_or(LARGEST_REQUEST / (least + 1))
    }
}

/// Estimates an expression in which `self` and `oldSelf` have a schema.
///
/// # Errors
///
/// Returns a message if the text is not an expression.
pub fn estimate(
    text: &str,
    schema: &Value,
    occurrence: Occurrence,
    has_optional_old: bool,
) -> Result<Estimate, String> {
    let expression = expression::parse(text)?;
    let declared = Declared::of(schema, occurrence.is_root);
    let cost = estimate::estimate(&expression, declared.as_ref(), has_optional_old);
    let cost = cost.saturating_mul(occurrence.highest(declared.as_ref()));
    Ok(Estimate { cost, reads_old: expression.mentions("oldSelf") })
}

/// The words of CEL that cannot be names.
pub const RESERVED_WORDS: &[&str] = &[
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
/// The limit for one expression.
pub const RULE_LIMIT: u64 = 10_000_000;
/// The limit for all expressions of a version.
pub const TOTAL_LIMIT: u64 = 100_000_000;
/// The largest request that the server takes, in bytes.
const LARGEST_REQUEST: u64 = 3 * 1024 * 1024;

#[cfg(test)]
mod tests;
