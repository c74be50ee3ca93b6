//! Paths from a variable to a value, as the server keeps them.

use std::{cell::RefCell, rc::Rc};

/// A variable, and the fields and elements from there.
///
/// The server appends to Go slices. A slice that has room is shared, so that the next path from the same place replaces the last step of the
/// one before. Estimates depend on it, and so this does the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    steps: Rc<RefCell<Vec<String>>>,
    length: usize,
}

impl Path {
    pub(super) fn of(variable: &str) -> Self {
        Self::default().below(variable)
    }

    pub(super) fn below(&self, step: &str) -> Self {
        let room = self.steps.borrow().len();
        if self.length < room {
            step.clone_into(&mut self.steps.borrow_mut()[self.length]);
            return Self { steps: Rc::clone(&self.steps), length: self.length + 1 };
        }
        let mut steps = self.steps.borrow().clone();
        steps.resize((room * 2).max(1), String::new());
        step.clone_into(&mut steps[self.length]);
        Self { steps: Rc::new(RefCell::new(steps)), length: self.length + 1 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Calls a function with the steps after the variable, if there is one.
    pub(super) fn after_variable<T>(&self, call: impl FnOnce(&[String]) -> Option<T>) -> Option<T> {
        let steps = self.steps.borrow();
        let (_, rest) = steps[..self.length].split_first()?;
        call(rest)
    }
}
