//! Conflicts of server-side apply, as values.

use super::{Status, StatusCause};

/// A field that an applied configuration would change and another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldConflict {
    /// The path of the field, such as `.spec.replicas`.
    pub field: String,
    /// The manager that owns the field.
    pub manager: String,
    /// The subresource through which it wrote the field, if any.
    pub subresource: Option<String>,
    /// The version in which it wrote the field by a create, update or patch. Absent if it applied the field.
    pub api_version: Option<String>,
}

impl Status {
    /// Returns the fields for which a server-side apply was refused.
    ///
    /// ```
    /// use klient_core::{Status, StatusCause};
    ///
    /// let cause = StatusCause::new("FieldManagerConflict", ".spec.replicas", "conflict with \"hpa\" using apps/v1");
    /// let conflicts = Status::apply_conflict(vec![cause], "Apply failed with 1 conflict").field_conflicts();
    /// assert_eq!((conflicts[0].field.as_str(), conflicts[0].manager.as_str()), (".spec.replicas", "hpa"));
    /// ```
    #[must_use]
    pub fn field_conflicts(&self) -> Vec<FieldConflict> {
        let causes = self.causes().iter().filter(|cause| cause.reason == StatusCause::FIELD_MANAGER_CONFLICT);
        causes.filter_map(FieldConflict::of).collect()
    }
}

impl FieldConflict {
    fn of(cause: &StatusCause) -> Option<Self> {
        let (manager, rest) = quoted(cause.message.strip_prefix("conflict with ")?)?;
        let (subresource, rest) = match rest.strip_prefix(" with subresource ").and_then(quoted) {
            Some((name, rest)) => (Some(name), rest),
            None => (None, rest),
        };
        let version = rest.strip_prefix(" using ").map(|rest| rest.split(' ').next().unwrap_or_default().to_owned());
        Some(Self { field: cause.field.clone(), manager, subresource, api_version: version })
    }
}

/// Returns the text between quotes at the beginning of another, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.strip_prefix('"')?.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((out, text.get(at + 2..)?)),
            '\\' => out.push(chars.next()?.1),
            c => out.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_name_manager_subresource_and_version() {
        let cause = |message: &str| StatusCause::new(StatusCause::FIELD_MANAGER_CONFLICT, ".a", message);
        let parse =
            |message: &str| FieldConflict::of(&cause(message)).map(|c| (c.manager, c.subresource, c.api_version));
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(parse("conflict with \"one\""), Some(("one".to_owned(), None, None)));
        let scaled = "conflict with \"a \\\"b\\\"\" with subresource \"scale\" using autoscaling/v1";
        assert_eq!(parse(scaled), Some(("a \"b\"".to_owned(), text("scale"), text("autoscaling/v1"))));
        assert_eq!(parse("another message"), None);
    }
}
