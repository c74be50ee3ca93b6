//! Error messages of invalid label selectors, as the real server writes them.

use std::iter::Peekable;

use crate::metadata;

/// Returns the error message for an invalid label selector.
pub(super) fn of(text: &str) -> String {
    let mut parser = Parser { tokens: tokens(text).into_iter().peekable() };
    parser.problem().unwrap_or_else(|| format!("unable to parse requirement: {text:?} is no label selector"))
}

struct Parser {
    tokens: Peekable<std::vec::IntoIter<String>>,
}

impl Parser {
    /// Returns the next token, which is empty at the end.
    fn next(&mut self) -> String {
        self.tokens.next().unwrap_or_default()
    }

    fn peek(&mut self) -> &str {
        self.tokens.peek().map(String::as_str).unwrap_or_default()
    }

    fn problem(&mut self) -> Option<String> {
        loop {
            let first = self.peek();
            if first.is_empty() {
                return None;
            }
            if !is_word(first) && first != "!" {
                return Some(format!("found '{first}', expected: !, identifier, or 'end of string'"));
            }
            if let Some(why) = self.requirement() {
                return Some(format!("unable to parse requirement: {why}"));
            }
            match self.next().as_str() {
                "" => return None,
                "," => {
                    let after = self.peek();
                    if !is_word(after) && after != "!" {
                        return Some(format!("found '{after}', expected: identifier after ','"));
                    }
                }
                other => return Some(format!("found '{other}', expected: ',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Option<String> {
        let mut key = self.next();
        let negated = key == "!";
        if negated {
            key = self.next();
        }
        if !is_word(&key) {
            return Some(format!("found '{key}', expected: identifier"));
        }
        let wrong = metadata::qualified_name_problems(&key);
        if !wrong.is_empty() {
            return Some(format!("<nil>: Invalid value: {key:?}: {}", wrong.join("; ")));
        }
        if negated || matches!(self.peek(), "" | ",") {
            return None;
        }
        let operator = self.next();
        let values = match operator.as_str() {
            "in" | "notin" => self.values(),
            "=" | "==" | "!=" | ">" | "<" => self.exact(),
            other => Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let values = match values {
            Ok(values) => values,
            Err(why) => return Some(why),
        };
        let compares = matches!(operator.as_str(), ">" | "<");
        let mut wrong = Vec::new();
        for (index, value) in values.iter().enumerate() {
            if compares && value.parse::<i64>().is_err() {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                wrong.push(format!("values[{index}]: Invalid value: {value:?}: {why}"));
            }
            let bad = metadata::label_value_problems(value);
            if !bad.is_empty() {
                wrong.push(format!("values[{index}][{key}]: Invalid value: {value:?}: {}", bad.join("; ")));
            }
        }
        match wrong.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            many => Some(format!("[{}]", many.join(", "))),
        }
    }

    fn exact(&mut self) -> Result<Vec<String>, String> {
        if matches!(self.peek(), "" | ",") {
            return Ok(vec![String::new()]);
        }
        let value = self.next();
        if is_word(&value) { Ok(vec![value]) } else { Err(format!("found '{value}', expected: identifier")) }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut values = Vec::new();
        match self.peek() {
            ")" => {
                self.next();
                return Ok(vec![String::new()]);
            }
            first if is_word(first) || first == "," => {}
            first => return Err(format!("found '{first}', expected: ',', ')' or identifier")),
        }
        loop {
            let token = self.next();
            if is_word(&token) {
                values.push(token);
                match self.peek() {
                    "," => {}
                    ")" => break,
                    after => return Err(format!("found '{after}', expected: ',' or ')'")),
                }
            } else if token == "," {
                if values.is_empty() {
                    values.push(String::new());
                }
                match self.peek() {
                    ")" => {
                        values.push(String::new());
                        break;
                    }
                    "," => {
                        self.next();
                        values.push(String::new());
                    }
                    _ => {}
                }
            } else {
                return Err(format!("found '{token}', expected: ',', or identifier"));
            }
        }
        self.next();
        values.sort();
        values.dedup();
        Ok(values)
    }
}

/// Splits a selector into tokens, as the real server does.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut joins = false;
    for c in text.chars() {
        let is_sign = "=!(),><".contains(c);
        match tokens.last_mut() {
            _ if c.is_whitespace() => joins = false,
            Some(last) if joins && !is_sign && is_word(last) => last.push(c),
            Some(last) if joins && c == '=' && (last == "=" || last == "!") => last.push(c),
            _ => {
                tokens.push(c.to_string());
                joins = true;
            }
        }
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| !"=!(),><".contains(c))
}
