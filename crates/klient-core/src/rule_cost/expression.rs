//! A parser of CEL expressions, as far as costs depend on them.

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    /// A literal, with the number of bytes of a string.
    Literal(u64),
    Name(String),
    Field(Box<Expression>, String),
    /// `has(a.b)`.
    Has(Box<Expression>),
    Index(Box<Expression>, Box<Expression>),
    Call {
        target: Option<Box<Expression>>,
        function: String,
        arguments: Vec<Expression>,
    },
    List(Vec<Expression>),
    Map(Vec<(Expression, Expression)>),
}

impl Expression {
    /// Returns whether a variable occurs.
    pub(super) fn mentions(&self, variable: &str) -> bool {
        match self {
            Self::Literal(_) => false,
            Self::Name(name) => name == variable,
            Self::Field(inner, _) | Self::Has(inner) => inner.mentions(variable),
            Self::Index(a, b) => a.mentions(variable) || b.mentions(variable),
            Self::Call { target, arguments, .. } => {
                target.iter().any(|target| target.mentions(variable))
                    || arguments.iter().any(|argument| argument.mentions(variable))
            }
            Self::List(items) => items.iter().any(|item| item.mentions(variable)),
            Self::Map(entries) => entries.iter().any(|(key, value)| key.mentions(variable) || value.mentions(variable)),
        }
    }
}

/// Parses an expression; the error says what is wrong and where.
pub(super) fn parse(text: &str) -> Result<Expression, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let expression = parser.ternary()?;
    match parser.peek() {
        None => Ok(expression),
        Some(token) => Err(format!("unexpected {token}")),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Number,
    Text(u64),
    Symbol(&'static str),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}`"),
            Self::Number => f.write_str("a number"),
            Self::Text(_) => f.write_str("a string"),
            Self::Symbol(symbol) => write!(f, "`{symbol}`"),
        }
    }
}

const SYMBOLS: [&str; 26] = [
    "&&", "||", "==", "!=", "<=", ">=", ".?", "[?", "(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "+", "-", "*",
    "/", "%", "<", ">", "!",
];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some((length, size)) = string(rest)? {
            tokens.push(Token::Text(size));
            rest = &rest[length..];
        } else if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            let length = number(rest);
            tokens.push(Token::Number);
            rest = &rest[length..];
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            tokens.push(Token::Symbol(symbol));
            rest = &rest[symbol.len()..];
        } else {
            return Err(format!("unexpected character `{first}`"));
        }
        rest = rest.trim_start();
    }
    Ok(tokens)
}

fn number(text: &str) -> usize {
    let is_part = |(index, c): (usize, char)| {
        let after_exponent = index > 0 && matches!(text.as_bytes()[index - 1], b'e' | b'E') && !text.starts_with("0x");
        c.is_ascii_alphanumeric() || c == '.' || (after_exponent && (c == '+' || c == '-'))
    };
    text.char_indices().find(|&part| !is_part(part)).map_or(text.len(), |(index, _)| index)
}

/// Returns the length of a string literal and the size of its value; `None` if there is another token.
fn string(text: &str) -> Result<Option<(usize, u64)>, String> {
    let prefix = text.find(|c: char| !matches!(c, 'r' | 'R' | 'b' | 'B')).unwrap_or(text.len());
    let body = &text[prefix..];
    if prefix > 2 || !body.starts_with(['"', '\'']) {
        return Ok(None);
    }
    let raw = text[..prefix].contains(['r', 'R']);
    let triple = body.starts_with("\"\"\"") || body.starts_with("'''");
    let quote = &body[..if triple { 3 } else { 1 }];
    let mut at = quote.len();
    let mut size = 0;
    while let Some(next) = body[at..].chars().next() {
        if body[at..].starts_with(quote) {
            return Ok(Some((prefix + at + quote.len(), size)));
        }
        if next == '\n' && !triple {
            break;
        }
        let escaped = if next == '\\' && !raw { body[at + 1..].chars().next().map_or(0, char::len_utf8) } else { 0 };
        at += next.len_utf8() + escaped;
        size += next.len_utf8() as u64;
    }
    Err("a string has no end".to_owned())
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
}

/// Binary operators, those that bind most loosely first.
const OPERATORS: [&[&str]; 5] =
    [&["||"], &["&&"], &["==", "!=", "<", "<=", ">", ">=", "in"], &["+", "-"], &["*", "/", "%"]];

impl Parser {
    fn ternary(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > 100 {
            return Err("nested too deeply".to_owned());
        }
        let condition = self.binary(0)?;
        let whole = if self.takes("?") {
            let then = self.binary(0)?;
            self.expect(":")?;
            let otherwise = self.ternary()?;
            call(None, "?:", vec![condition, then, otherwise])
        } else {
            condition
        };
        self.depth -= 1;
        Ok(whole)
    }

    fn binary(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operators) = OPERATORS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        loop {
            let operator = match self.peek() {
                Some(Token::Symbol(symbol)) => operators.iter().find(|operator| *operator == symbol),
                Some(Token::Name(name)) if name == "in" => operators.iter().find(|operator| **operator == "in"),
                _ => None,
            };
            let Some(operator) = operator else { return Ok(left) };
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = call(None, operator, vec![left, right]);
        }
    }

    fn unary(&mut self) -> Result<Expression, String> {
        for operator in ["!", "-"] {
            if self.takes(operator) {
                self.depth += 1;
                if self.depth > 100 {
                    return Err("nested too deeply".to_owned());
                }
                let inner = self.unary()?;
                self.depth -= 1;
                return Ok(call(None, "!", vec![inner]));
            }
        }
        self.member()
    }

    fn member(&mut self) -> Result<Expression, String> {
        let mut whole = self.primary()?;
        loop {
            if self.takes(".") || self.takes(".?") {
                let Some(Token::Name(name)) = self.peek().cloned() else {
                    return Err("expected a field after `.`".to_owned());
                };
                self.at += 1;
                whole = if self.takes("(") {
                    call(Some(whole), &name, self.arguments(")")?)
                } else {
                    Expression::Field(Box::new(whole), name)
                };
            } else if self.takes("[") || self.takes("[?") {
                let index = self.ternary()?;
                self.expect("]")?;
                whole = Expression::Index(Box::new(whole), Box::new(index));
            } else {
                return Ok(whole);
            }
        }
    }

    fn primary(&mut self) -> Result<Expression, String> {
        let token = self.peek().cloned().ok_or("the expression is incomplete")?;
        self.at += 1;
        match token {
            Token::Number => Ok(Expression::Literal(1)),
            Token::Text(size) => Ok(Expression::Literal(size)),
            Token::Name(name) if ["true", "false", "null"].contains(&&*name) => Ok(Expression::Literal(1)),
            Token::Name(name) if self.takes("(") => {
                let mut arguments = self.arguments(")")?;
                if name == "has" {
                    return match (arguments.pop(), arguments.is_empty()) {
                        (Some(field @ Expression::Field(..)), true) => Ok(Expression::Has(Box::new(field))),
                        _ => Err("`has` needs a field: `has(self.field)`".to_owned()),
                    };
                }
                Ok(call(None, &name, arguments))
            }
            Token::Name(name) => Ok(Expression::Name(name)),
            Token::Symbol("(") => {
                let inner = self.ternary()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Symbol("[" | "[?") => Ok(Expression::List(self.arguments("]")?)),
            Token::Symbol("{") => self.map(),
            Token::Symbol(".") => self.primary(),
            token => Err(format!("unexpected {token}")),
        }
    }

    fn map(&mut self) -> Result<Expression, String> {
        let mut entries = Vec::new();
        while !self.takes("}") {
            self.takes("?");
            let key = self.ternary()?;
            self.expect(":")?;
            entries.push((key, self.ternary()?));
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Expression::Map(entries))
    }

    fn arguments(&mut self, end: &'static str) -> Result<Vec<Expression>, String> {
        let mut arguments = Vec::new();
        while !self.takes(end) {
            self.takes("?");
            arguments.push(self.ternary()?);
            if !self.takes(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(arguments)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn takes(&mut self, symbol: &'static str) -> bool {
        let found = self.peek() == Some(&Token::Symbol(symbol));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), String> {
        if self.takes(symbol) {
            return Ok(());
        }
        let found = self.peek().map_or_else(|| "the end".to_owned(), Token::to_string);
        Err(format!("expected `{symbol}`, found {found}"))
    }
}

fn call(target: Option<Expression>, function: &str, arguments: Vec<Expression>) -> Expression {
    Expression::Call { target: target.map(Box::new), function: function.to_owned(), arguments }
}
