//! A parser of CEL expressions, as far as costs depend on them.

use super::macros;

/// An expression. Operators are calls, and macros are expanded.
#[derive(Debug)]
pub(super) enum Expression {
    Literal(Literal),
    Name(String),
    Field(Box<Expression>, String),
    /// `a.?b`.
    OptionalField(Box<Expression>, String),
    /// `has(a.b)`, with `a`.
    Has(Box<Expression>),
    Call {
        target: Option<Box<Expression>>,
        function: String,
        arguments: Vec<Expression>,
    },
    List(Vec<Expression>),
    Map(Vec<(Expression, Expression)>),
    Loop(Box<Loop>),
    /// An expression in which a name stands for a value.
    Bind {
        name: String,
        value: Box<Expression>,
        result: Box<Expression>,
    },
    /// A value, and an expression for it if there is one.
    OptionalMap {
        target: Box<Expression>,
        name: String,
        body: Box<Expression>,
        is_flat: bool,
    },
}

/// A loop over the elements of a list or map.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) range: Expression,
    pub(super) variable: String,
    pub(super) second: Option<String>,
    /// The first value of `RESULT`.
    pub(super) first: Expression,
    pub(super) condition: Expression,
    /// The next value of `RESULT`.
    pub(super) step: Expression,
    pub(super) result: Expression,
}

/// The name of the value that a loop changes.
pub(super) const RESULT: &str = "@result";

/// A literal, with the size of its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Literal {
    Int(i64),
    Uint,
    Double,
    Bool,
    Null,
    Text(u64),
    Bytes(u64),
}

impl Expression {
    /// Returns whether a variable occurs.
    pub(super) fn mentions(&self, variable: &str) -> bool {
        let any = |parts: &[Self]| parts.iter().any(|part| part.mentions(variable));
        match self {
            Self::Literal(_) => false,
            Self::Name(name) => name == variable,
            Self::Field(inner, _) | Self::OptionalField(inner, _) | Self::Has(inner) => inner.mentions(variable),
            Self::Call { target, arguments, .. } => {
                target.iter().any(|target| target.mentions(variable)) || any(arguments)
            }
            Self::List(items) => any(items),
            Self::Map(entries) => entries.iter().any(|(key, value)| key.mentions(variable) || value.mentions(variable)),
            Self::Loop(one) => [&one.range, &one.condition, &one.step].iter().any(|part| part.mentions(variable)),
            Self::Bind { value, result, .. } => value.mentions(variable) || result.mentions(variable),
            Self::OptionalMap { target, body, .. } => target.mentions(variable) || body.mentions(variable),
        }
    }

    pub(super) fn name(name: &str) -> Self {
        Self::Name(name.to_owned())
    }

    pub(super) fn call(function: &str, arguments: Vec<Self>) -> Self {
        Self::Call { target: None, function: function.to_owned(), arguments }
    }

    pub(super) fn method(target: Self, function: &str, arguments: Vec<Self>) -> Self {
        Self::Call { target: Some(Box::new(target)), function: function.to_owned(), arguments }
    }
}

/// Parses an expression; the error says what is wrong and where.
pub(super) fn parse(text: &str) -> Result<Expression, String> {
    if text.chars().nth(LONGEST).is_some() {
        return Err(format!("longer than {LONGEST} characters"));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let expression = parser.ternary()?.expression;
    match parser.peek() {
        None => Ok(expression),
        Some(token) => Err(format!("unexpected {token}")),
    }
}

/// The limit of the server.
const LONGEST: usize = 100_000;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Literal(Literal),
    Symbol(&'static str),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}`"),
            Self::Literal(Literal::Text(_) | Literal::Bytes(_)) => f.write_str("a string"),
            Self::Literal(_) => f.write_str("a number"),
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
        } else if let Some((length, literal)) = string(rest)? {
            tokens.push(Token::Literal(literal));
            rest = &rest[length..];
        } else if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            let length = number(rest);
            tokens.push(Token::Literal(number_literal(&rest[..length])));
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
    let bytes = text.as_bytes();
    let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let is_part = |(index, c): (usize, char)| {
        let after_exponent = index > 0 && matches!(bytes[index - 1], b'e' | b'E') && !text.starts_with("0x");
        // A point without digits is the access to a field.
        c.is_ascii_alphanumeric() || (c == '.' && is_digit(index + 1)) || (after_exponent && (c == '+' || c == '-'))
    };
    text.char_indices().find(|&part| !is_part(part)).map_or(text.len(), |(index, _)| index)
}

fn number_literal(text: &str) -> Literal {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match hexadecimal {
        _ if text.ends_with(['u', 'U']) => Literal::Uint,
        Some(digits) => Literal::Int(i64::from_str_radix(digits, 16).unwrap_or(0)),
        None if text.contains(['.', 'e', 'E']) => Literal::Double,
        None => Literal::Int(text.parse().unwrap_or(0)),
    }
}

/// Returns the length and the value of a string literal; `None` if there is another token.
fn string(text: &str) -> Result<Option<(usize, Literal)>, String> {
    let prefix = text.find(|c: char| !matches!(c, 'r' | 'R' | 'b' | 'B')).unwrap_or(text.len());
    let body = &text[prefix..];
    if prefix > 2 || !body.starts_with(['"', '\'']) {
        return Ok(None);
    }
    let is_raw = text[..prefix].contains(['r', 'R']);
    let is_bytes = text[..prefix].contains(['b', 'B']);
    let triple = body.starts_with("\"\"\"") || body.starts_with("'''");
    let quote = &body[..if triple { 3 } else { 1 }];
    let mut at = quote.len();
    let mut size = 0;
    while let Some(next) = body[at..].chars().next() {
        if body[at..].starts_with(quote) {
            let literal = if is_bytes { Literal::Bytes(size) } else { Literal::Text(size) };
            return Ok(Some((prefix + at + quote.len(), literal)));
        }
        if next == '\n' && !triple {
            break;
        }
        let is_escape = next == '\\' && !is_raw;
        at += if is_escape { escape(&body[at..]) } else { next.len_utf8() };
        size += if is_bytes && !is_escape { next.len_utf8() as u64 } else { 1 };
    }
    Err("a string has no end".to_owned())
}

/// Returns the length of the escape sequence that begins a text.
fn escape(text: &str) -> usize {
    let Some(kind) = text[1..].chars().next() else { return 1 };
    let digits = match kind {
        'x' | 'X' => 2,
        'u' => 4,
        'U' => 8,
        '0'..='3' => 2,
        _ => 0,
    };
    let start = 1 + kind.len_utf8();
    start + text[start..].bytes().take(digits).take_while(u8::is_ascii_hexdigit).count()
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
}

/// Binary operators, those that bind most loosely first.
const OPERATORS: [&[&str]; 5] =
    [&["||"], &["&&"], &["==", "!=", "<", "<=", ">", ">=", "in"], &["+", "-"], &["*", "/", "%"]];

/// An expression, and the number of expressions within each other.
struct Parsed {
    expression: Expression,
    depth: u32,
}

impl Parsed {
    /// Returns an expression made of others.
    fn of(expression: Expression, parts: u32) -> Result<Self, String> {
        if parts >= DEEPEST { Err(TOO_DEEP.to_owned()) } else { Ok(Self { expression, depth: parts + 1 }) }
    }
}

/// The limit of the server, for operators one after the other.
const DEEPEST: u32 = 255;
const TOO_DEEP: &str = "nested too deeply";

impl Parser {
    fn ternary(&mut self) -> Result<Parsed, String> {
        self.enter()?;
        let condition = self.binary(0)?;
        let whole = if self.takes("?") {
            let then = self.binary(0)?;
            self.expect(":")?;
            let otherwise = self.ternary()?;
            let depth = condition.depth.max(then.depth).max(otherwise.depth);
            let arguments = vec![condition.expression, then.expression, otherwise.expression];
            Parsed::of(Expression::call("?:", arguments), depth)?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(whole)
    }

    fn enter(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > 100 { Err(TOO_DEEP.to_owned()) } else { Ok(()) }
    }

    fn binary(&mut self, level: usize) -> Result<Parsed, String> {
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
            let is_logical = matches!(*operator, "&&" | "||");
            left = match left.expression {
                // The cost is the sum, in whatever way they are nested.
                Expression::Call { target: None, function, mut arguments } if is_logical && function == *operator => {
                    arguments.push(right.expression);
                    let expression = Expression::Call { target: None, function, arguments };
                    Parsed { expression, depth: left.depth.max(right.depth + 1) }
                }
                one => {
                    let arguments = vec![one, right.expression];
                    Parsed::of(Expression::call(operator, arguments), left.depth.max(right.depth))?
                }
            };
        }
    }

    fn unary(&mut self) -> Result<Parsed, String> {
        for (operator, function) in [("!", "!"), ("-", "negated")] {
            let mut count = 0;
            while self.takes(operator) {
                count += 1;
                if let (true, Some(Token::Literal(literal))) = (operator == "-", self.tokens.get_mut(self.at)) {
                    // The sign belongs to the literal.
                    if let Literal::Int(number) = literal {
                        *number = number.checked_neg().unwrap_or(0);
                    }
                    count -= 1;
                }
            }
            // Two of them cancel each other out.
            if count % 2 == 1 {
                self.enter()?;
                let inner = self.unary()?;
                self.depth -= 1;
                return Parsed::of(Expression::call(function, vec![inner.expression]), inner.depth);
            }
        }
        self.member()
    }

    fn member(&mut self) -> Result<Parsed, String> {
        let mut whole = self.primary()?;
        loop {
            let is_optional = self.peek() == Some(&Token::Symbol(".?"));
            if self.takes(".") || self.takes(".?") {
                let Some(Token::Name(name)) = self.peek().cloned() else {
                    return Err("expected a field after `.`".to_owned());
                };
                self.at += 1;
                whole = if !is_optional && self.takes("(") {
                    let (arguments, depth) = self.arguments(")")?;
                    Parsed::of(macros::method(whole.expression, &name, arguments), whole.depth.max(depth))?
                } else if is_optional {
                    Parsed::of(Expression::OptionalField(Box::new(whole.expression), name), whole.depth)?
                } else {
                    Parsed::of(Expression::Field(Box::new(whole.expression), name), whole.depth)?
                };
                continue;
            }
            let function = if self.takes("[") {
                "[]"
            } else if self.takes("[?") {
                "[?]"
            } else {
                return Ok(whole);
            };
            let index = self.ternary()?;
            self.expect("]")?;
            let arguments = vec![whole.expression, index.expression];
            whole = Parsed::of(Expression::call(function, arguments), whole.depth.max(index.depth))?;
        }
    }

    fn primary(&mut self) -> Result<Parsed, String> {
        let token = self.peek().cloned().ok_or("the expression is incomplete")?;
        self.at += 1;
        let expression = match token {
            Token::Literal(literal) => Expression::Literal(literal),
            Token::Name(name) if name == "null" => Expression::Literal(Literal::Null),
            Token::Name(name) if name == "true" || name == "false" => Expression::Literal(Literal::Bool),
            Token::Name(name) if self.takes("(") => {
                let (mut arguments, depth) = self.arguments(")")?;
                if name != "has" {
                    return Parsed::of(Expression::call(&name, arguments), depth);
                }
                return match (arguments.pop(), arguments.is_empty()) {
                    (Some(Expression::Field(inner, _)), true) => Parsed::of(Expression::Has(inner), depth),
                    _ => Err("`has` needs a field: `has(self.field)`".to_owned()),
                };
            }
            Token::Name(name) => Expression::Name(name),
            Token::Symbol("(") => {
                let inner = self.ternary()?;
                self.expect(")")?;
                return Ok(inner);
            }
            // The mark of an optional item may be next.
            Token::Symbol("[" | "[?") => {
                let (items, depth) = self.arguments("]")?;
                return Parsed::of(Expression::List(items), depth);
            }
            Token::Symbol("{") => return self.map(),
            Token::Symbol(".") => {
                self.enter()?;
                let inner = self.primary()?;
                self.depth -= 1;
                return Ok(inner);
            }
            token => return Err(format!("unexpected {token}")),
        };
        Parsed::of(expression, 0)
    }

    fn map(&mut self) -> Result<Parsed, String> {
        let mut entries = Vec::new();
        let mut depth = 0;
        while !self.takes("}") {
            self.takes("?");
            let key = self.ternary()?;
            self.expect(":")?;
            let value = self.ternary()?;
            depth = depth.max(key.depth).max(value.depth);
            entries.push((key.expression, value.expression));
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        Parsed::of(Expression::Map(entries), depth)
    }

    /// Returns expressions up to a symbol, and the depth of the deepest.
    fn arguments(&mut self, end: &'static str) -> Result<(Vec<Expression>, u32), String> {
        let mut arguments = Vec::new();
        let mut depth = 0;
        while !self.takes(end) {
            self.takes("?");
            let argument = self.ternary()?;
            depth = depth.max(argument.depth);
            arguments.push(argument.expression);
            if !self.takes(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok((arguments, depth))
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
