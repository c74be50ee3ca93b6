//! The path of a schema in a definition.
//!
//! A path is a chain on the stack. Its text is built for a cause, so that a long name costs valid schemas below it nothing.

use std::fmt;

/// The path of a schema, or of one of its keywords.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    segment: Segment<'p>,
}

#[derive(Clone, Copy)]
enum Segment<'p> {
    Keyword(&'p str),
    Item(&'p str, usize),
    Entry(&'p str, &'p str),
}

impl<'p> Path<'p> {
    /// Returns the path of a schema.
    pub(super) fn of(path: &'p str) -> Self {
        Self { parent: None, segment: Segment::Keyword(path) }
    }

    /// Returns the path of a keyword, such as `.type`.
    pub(super) fn keyword<'a>(&'a self, keyword: &'a str) -> Path<'a> {
        self.below(Segment::Keyword(keyword))
    }

    /// Returns the path of an item of a keyword's list, such as `.allOf[0]`.
    pub(super) fn item<'a>(&'a self, keyword: &'a str, index: usize) -> Path<'a> {
        self.below(Segment::Item(keyword, index))
    }

    /// Returns the path of an entry of a keyword's map, such as `.properties[a]`.
    pub(super) fn entry<'a>(&'a self, keyword: &'a str, name: &'a str) -> Path<'a> {
        self.below(Segment::Entry(keyword, name))
    }

    /// Returns the path of a property.
    pub(super) fn property<'a>(&'a self, name: &'a str) -> Path<'a> {
        self.entry("properties", name)
    }

    fn below<'a>(&'a self, segment: Segment<'a>) -> Path<'a> {
        Path { parent: Some(self), segment }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        match self.segment {
            Segment::Keyword(name) => f.write_str(name),
            Segment::Item(keyword, index) => write!(f, "{keyword}[{index}]"),
            Segment::Entry(keyword, name) => write!(f, "{keyword}[{name}]"),
        }
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}
