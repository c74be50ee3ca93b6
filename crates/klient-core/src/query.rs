//! The query of a request.
//!
//! Every value becomes exactly one parameter. Only this module escapes values.

use std::fmt;

/// Query parameters, in the order in which they were added.
///
/// ```
/// use klient_core::Query;
///
/// let mut query = Query::default();
/// query.append("labelSelector", "app in (a, b)").append("limit", 500);
/// assert_eq!(query.as_str(), "labelSelector=app+in+%28a%2C+b%29&limit=500");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Query {
    text: String,
}

impl Query {
    /// Adds one parameter. A parameter may be added several times.
    #[expect(clippy::needless_pass_by_value, reason = "callers pass numbers and strings inline")]
    pub fn append(&mut self, name: &str, value: impl ToString) -> &mut Self {
        let text = std::mem::take(&mut self.text);
        self.text = form_urlencoded::Serializer::new(text).append_pair(name, &value.to_string()).finish();
        self
    }

    /// Adds one parameter if it has a value.
    pub(crate) fn append_option(&mut self, name: &str, value: Option<impl ToString>) -> &mut Self {
        match value {
            Some(value) => self.append(name, value),
            None => self,
        }
    }

    /// Adds one parameter if it is `true`.
    pub(crate) fn append_flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.append_option(name, value.then_some(true))
    }

    /// Adds all parameters of another query.
    pub fn extend(&mut self, other: &Self) -> &mut Self {
        if !self.text.is_empty() && !other.text.is_empty() {
            self.text.push('&');
        }
        self.text.push_str(&other.text);
        self
    }

    /// Returns the escaped text without a `?`. It is empty if there are no parameters.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_value_is_one_parameter(pairs in prop::collection::vec((".{0,6}", ".{0,12}"), 0..4)) {
            let mut query = Query::default();
            for (name, value) in &pairs {
                query.append(name, value);
            }
            let back: Vec<(String, String)> = form_urlencoded::parse(query.as_str().as_bytes()).into_owned().collect();
            prop_assert_eq!(back, pairs);
            prop_assert!(query.as_str().is_ascii() && !query.as_str().contains([' ', '#', '?']));
        }
    }
}
