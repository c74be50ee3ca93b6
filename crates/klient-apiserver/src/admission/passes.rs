//! The passes of the mutating stage: a second one runs if the first changed the object.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// The passes over one request.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    is_second: bool,
    wants_second: bool,
    plugins: HashMap<&'static str, Invoked>,
}

/// The hooks or policies of one plugin that were invoked for a request.
#[derive(Debug, Default)]
pub(crate) struct Invoked {
    /// The object after the plugin's last pass.
    last_output: Option<Value>,
    /// Those that may run again, once something changes after them.
    earlier: HashSet<String>,
    /// Those that run again in the second pass.
    again: HashSet<String>,
}

impl Passes {
    /// Returns whether this is the second pass.
    pub(crate) fn is_second(&self) -> bool {
        self.is_second
    }

    /// Requests a second pass.
    pub(crate) fn request_second(&mut self) {
        self.wants_second = true;
    }

    /// Returns what a plugin invoked before.
    pub(crate) fn of_plugin(&mut self, name: &'static str) -> &mut Invoked {
        self.plugins.entry(name).or_default()
    }

    /// Begins the second pass, if one was requested and this is the first.
    pub(super) fn begin_second(&mut self) -> bool {
        let begins = self.wants_second && !self.is_second;
        self.is_second = begins || self.is_second;
        begins
    }
}

impl Invoked {
    /// Lets what was invoked run again if another plugin changed the object since. It is called at the start of a second pass.
    pub(crate) fn resume(&mut self, object: Option<&Value>) {
        if self.last_output.as_ref() != object {
            self.changed();
        }
    }

    /// Stores the object after a pass of the plugin.
    pub(crate) fn finish(&mut self, object: Option<&Value>) {
        self.last_output = object.cloned();
    }

    /// Reports a change, after which all that was invoked before may run again.
    pub(crate) fn changed(&mut self) {
        self.again.extend(self.earlier.drain());
    }

    /// Adds a hook or policy that was invoked and may run again.
    pub(crate) fn invoked(&mut self, id: &str) {
        self.earlier.insert(id.to_owned());
    }

    /// Returns whether a hook or policy runs again in the second pass.
    pub(crate) fn runs_again(&self, id: &str) -> bool {
        self.again.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_pass_begins_once_and_only_on_request() {
        let mut passes = Passes::default();
        assert!(!passes.begin_second());
        passes.request_second();
        assert!(passes.begin_second());
        assert!(passes.is_second());
        assert!(!passes.begin_second());
    }

    #[test]
    fn hook_runs_again_only_after_a_later_change() {
        let mut invoked = Invoked::default();
        invoked.invoked("a");
        invoked.changed();
        invoked.invoked("b");
        assert!(invoked.runs_again("a"));
        assert!(!invoked.runs_again("b"));
        invoked.finish(Some(&Value::from(1)));
        invoked.resume(Some(&Value::from(1)));
        assert!(!invoked.runs_again("b"));
        invoked.resume(Some(&Value::from(2)));
        assert!(invoked.runs_again("b"));
    }
}
