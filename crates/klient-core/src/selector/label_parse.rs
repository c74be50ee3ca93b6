//! Parsing of label selectors, in the syntax of `kubectl get -l`.
//!
//! Words are separated by blanks and the symbols `= ! ( ) , > <`. `in` and `notin` are operators only in the position
//! of an operator, so a label may be named `in`.

use std::{collections::BTreeSet, fmt, str::FromStr};

use super::{LabelOperator, LabelRequirement, LabelSelector};
use crate::label_syntax;

impl FromStr for LabelSelector {
    type Err = ParseLabelSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Parser { text, at: 0 }.selector().map_err(|fault| fault.in_text(text))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    End,
    Word(&'a str),
    // One of `= == ! != ( ) , > <`.
    Symbol(&'a str),
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn selector(mut self) -> Result<LabelSelector, Fault> {
        let mut requirements = Vec::new();
        if self.peek().1 == Token::End {
            return Ok(LabelSelector::everything());
        }
        loop {
            requirements.push(self.requirement()?);
            match self.next() {
                (_, Token::End) => return Ok(LabelSelector::from_requirements(requirements)),
                (_, Token::Symbol(",")) => {}
                (at, _) => return Err(Fault::new(at, "expected `,` or the end")),
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelRequirement, Fault> {
        let negated = self.skip("!");
        let (at, key) = match self.next() {
            (at, Token::Word(key)) => (at, key),
            (at, _) => return Err(Fault::new(at, "expected a label key")),
        };
        label_syntax::check_key(key).map_err(|(offset, why)| Fault::new(at + offset, why))?;
        if negated {
            return Ok(LabelRequirement::new(key, LabelOperator::DoesNotExist, NO_VALUES));
        }
        if matches!(self.peek().1, Token::End | Token::Symbol(",")) {
            return Ok(LabelRequirement::new(key, LabelOperator::Exists, NO_VALUES));
        }
        let (at, operator) = self.next();
        let operator = match operator {
            Token::Symbol("=" | "==") => LabelOperator::Equals,
            Token::Symbol("!=") => LabelOperator::NotEquals,
            Token::Symbol(">") => LabelOperator::GreaterThan,
            Token::Symbol("<") => LabelOperator::LessThan,
            Token::Word("in") => return Ok(LabelRequirement::new(key, LabelOperator::In, self.values()?)),
            Token::Word("notin") => return Ok(LabelRequirement::new(key, LabelOperator::NotIn, self.values()?)),
            _ => return Err(Fault::new(at, "expected one of = == != > < in notin")),
        };
        let (at, value) = self.value()?;
        if matches!(operator, LabelOperator::GreaterThan | LabelOperator::LessThan) && value.parse::<i64>().is_err() {
            return Err(Fault::new(at, "expected an integer"));
        }
        Ok(LabelRequirement::new(key, operator, [value]))
    }

    /// Parses the value after `=`, which may be empty.
    fn value(&mut self) -> Result<(usize, &'a str), Fault> {
        if let (at, Token::End | Token::Symbol(",")) = self.peek() {
            return Ok((at, ""));
        }
        match self.next() {
            (at, Token::Word(value)) => checked_value(at, value).map(|value| (at, value)),
            (at, _) => Err(Fault::new(at, "expected a label value")),
        }
    }

    /// Parses the values in parentheses. Nothing between two commas, or a comma and a parenthesis, is the empty value.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, Fault> {
        if !self.skip("(") {
            return Err(Fault::new(self.peek().0, "expected `(`"));
        }
        let mut values = BTreeSet::new();
        loop {
            match self.peek() {
                (at, Token::Word(value)) => {
                    values.insert(checked_value(at, value)?);
                    self.next();
                }
                (_, Token::Symbol("," | ")")) => {
                    values.insert("");
                }
                (at, _) => return Err(Fault::new(at, "expected a label value, `,` or `)`")),
            }
            match self.next() {
                (_, Token::Symbol(",")) => {}
                (_, Token::Symbol(")")) => return Ok(values),
                (at, _) => return Err(Fault::new(at, "expected `,` or `)`")),
            }
        }
    }

    /// Skips this symbol, if it is next.
    fn skip(&mut self, symbol: &str) -> bool {
        let found = self.peek().1 == Token::Symbol(symbol);
        if found {
            self.next();
        }
        found
    }

    fn peek(&self) -> (usize, Token<'a>) {
        Self { text: self.text, at: self.at }.next()
    }

    /// Returns the next token and its position.
    fn next(&mut self) -> (usize, Token<'a>) {
        let rest = self.text[self.at..].trim_start_matches(BLANKS);
        let at = self.text.len() - rest.len();
        let is_symbol = |c: char| SYMBOLS.contains(&c);
        let word = rest.find(|c| is_symbol(c) || BLANKS.contains(&c)).unwrap_or(rest.len());
        let token = if word > 0 {
            Token::Word(&rest[..word])
        } else if rest.is_empty() {
            Token::End
        } else {
            Token::Symbol(&rest[..if rest.starts_with("==") || rest.starts_with("!=") { 2 } else { 1 }])
        };
        let (Token::Word(taken) | Token::Symbol(taken)) = token else { return (at, token) };
        self.at = at + taken.len();
        (at, token)
    }
}

fn checked_value(at: usize, value: &str) -> Result<&str, Fault> {
    label_syntax::check_value(value).map(|()| value).map_err(|(offset, why)| Fault::new(at + offset, why))
}

struct Fault {
    at: usize,
    why: &'static str,
}

impl Fault {
    fn new(at: usize, why: &'static str) -> Self {
        Self { at, why }
    }

    fn in_text(self, text: &str) -> ParseLabelSelectorError {
        ParseLabelSelectorError { text: text.to_owned(), at: self.at, why: self.why }
    }
}

/// An error of parsing a label selector, with position and reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseLabelSelectorError {
    text: String,
    at: usize,
    why: &'static str,
}

impl fmt::Display for ParseLabelSelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "label selector {:?} at byte {}: {}", self.text, self.at, self.why)
    }
}

impl std::error::Error for ParseLabelSelectorError {}

const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
const NO_VALUES: [&str; 0] = [];
