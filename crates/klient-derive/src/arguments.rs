//! Arguments of attributes: `name`, `name = value` and `name(list)`, separated by commas.
//!
//! A value is whatever stands before the next comma, so that expressions keep their spans and need no parser.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Error, LitBool, LitInt, LitStr, Meta, Result, parse::Parse, parse2};

use crate::suggestion::did_you_mean;

/// One argument.
pub(crate) struct Argument {
    pub(crate) name: String,
    /// The span of the name.
    pub(crate) span: Span,
    value: Value,
}

enum Value {
    Flag,
    Assigned(TokenStream),
    List(TokenStream),
}

impl Argument {
    /// Returns the value of `name = "text"`.
    pub(crate) fn text(&self) -> Result<LitStr> {
        self.assigned("a string", &format!("{} = \"...\"", self.name))
    }

    /// Returns the value of `name` or `name = true`.
    pub(crate) fn flag(&self) -> Result<bool> {
        if matches!(self.value, Value::Flag) {
            return Ok(true);
        }
        let value: LitBool = self.assigned("a boolean", &format!("{} = true", self.name))?;
        Ok(value.value)
    }

    /// Returns the value of `name = 1`.
    pub(crate) fn integer(&self) -> Result<i32> {
        self.assigned::<LitInt>("an integer", &format!("{} = 1", self.name))?.base10_parse()
    }

    /// Returns the value of `name = Path` or `name = "Path"`.
    pub(crate) fn parsed<T: Parse>(&self, what: &str) -> Result<T> {
        let form = format!("{} = \"...\"", self.name);
        match self.assigned::<LitStr>(what, &form) {
            Ok(text) => {
                text.parse().map_err(|_| Error::new_spanned(&text, format!("`{}` needs {what}: `{form}`", self.name)))
            }
            Err(_) => self.assigned(what, &form),
        }
    }

    /// Returns the tokens of `name = expression`.
    pub(crate) fn expression(&self) -> Result<TokenStream> {
        match &self.value {
            Value::Assigned(tokens) => Ok(tokens.clone()),
            _ => Err(self.error(format!("`{0}` needs an expression: `{0} = ...`", self.name))),
        }
    }

    /// Returns the text of `name = "text"`; `None` for `name` alone.
    pub(crate) fn optional_text(&self) -> Result<Option<LitStr>> {
        if matches!(self.value, Value::Flag) { Ok(None) } else { self.text().map(Some) }
    }

    /// Returns the arguments of `name(...)`; `None` if the argument has another form.
    pub(crate) fn nested(&self) -> Option<Result<Vec<Argument>>> {
        match &self.value {
            Value::List(tokens) => Some(parse(tokens.clone())),
            _ => None,
        }
    }

    /// Returns both strings of `name("key", "value")`.
    pub(crate) fn pair(&self) -> Result<(LitStr, LitStr)> {
        let form = || self.error(format!("`{0}` needs a key and a value: `{0}(\"key\", \"value\")`", self.name));
        let Value::List(tokens) = &self.value else { return Err(form()) };
        let mut parts = Vec::new();
        for token in tokens.clone() {
            match &token {
                TokenTree::Punct(punct) if punct.as_char() == ',' => {}
                _ => parts.push(parse2::<LitStr>(token.into()).map_err(|_| form())?),
            }
        }
        match <[LitStr; 2]>::try_from(parts) {
            Ok([key, value]) => Ok((key, value)),
            Err(_) => Err(form()),
        }
    }

    /// Creates an error at the name.
    pub(crate) fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::new(self.span, message)
    }

    /// Creates an error that says that the argument is unknown.
    pub(crate) fn unknown(&self, known: &[&str]) -> Error {
        self.error(format!("unknown attribute `{}`{}", self.name, did_you_mean(&self.name, known)))
    }

    fn assigned<T: Parse>(&self, what: &str, form: &str) -> Result<T> {
        let Value::Assigned(tokens) = &self.value else {
            return Err(self.error(format!("`{}` needs {what}: `{form}`", self.name)));
        };
        let message = || format!("`{}` needs {what}: `{form}`", self.name);
        parse2(without_groups(tokens.clone())).map_err(|_| Error::new_spanned(tokens, message()))
    }
}

/// Returns the arguments of all attributes with one of these names, in order.
pub(crate) fn of_attributes(attributes: &[Attribute], names: &[&str]) -> Result<Vec<Argument>> {
    let mut arguments = Vec::new();
    for attribute in attributes {
        let Some(name) = names.iter().find(|name| attribute.path().is_ident(name)) else { continue };
        match &attribute.meta {
            Meta::List(list) => arguments.extend(parse(list.tokens.clone())?),
            _ => return Err(Error::new_spanned(attribute, format!("expected arguments: `#[{name}(...)]`"))),
        }
    }
    Ok(arguments)
}

/// Returns the single value of an argument, and adds an error if it occurs twice.
pub(crate) fn set<T>(slot: &mut Option<T>, argument: &Argument, value: Result<T>, errors: &mut Errors) {
    let value = errors.keep(value);
    if slot.is_some() {
        errors.add(argument.error(format!("`{0}` is set twice: remove one `{0}`", argument.name)));
    } else {
        *slot = value;
    }
}

/// Errors of one macro call, so that all are reported at once.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

fn parse(tokens: TokenStream) -> Result<Vec<Argument>> {
    let mut tokens = tokens.into_iter().peekable();
    let mut arguments = Vec::new();
    while let Some(token) = tokens.next() {
        let TokenTree::Ident(name) = &token else {
            return Err(Error::new(token.span(), "expected the name of an attribute"));
        };
        let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
        let mut rest: Vec<TokenTree> = Vec::new();
        while let Some(token) = tokens.next_if(|token| !is_comma(token)) {
            rest.push(token);
        }
        tokens.next();
        let value = match rest.as_slice() {
            [] => Value::Flag,
            [TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => Value::List(group.stream()),
            [TokenTree::Punct(equals), value @ ..] if equals.as_char() == '=' && !value.is_empty() => {
                Value::Assigned(value.iter().cloned().collect())
            }
            [first, ..] => {
                let message = format!("expected `{name}`, `{name} = ...` or `{name}(...)`");
                return Err(Error::new(first.span(), message));
            }
        };
        let text = name.to_string();
        let text = text.strip_prefix("r#").unwrap_or(&text).to_owned();
        arguments.push(Argument { name: text, span: name.span(), value });
    }
    Ok(arguments)
}

/// Removes the invisible groups around values that come through `macro_rules`.
fn without_groups(tokens: TokenStream) -> TokenStream {
    let mut all = tokens.clone().into_iter();
    match (all.next(), all.next()) {
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::None => without_groups(group.stream()),
        _ => tokens.into_token_stream(),
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn arguments_are_flags_values_and_lists() {
        let all = parse(quote!(namespaced, kind = "Foo", validation = Rule::new("a, b").message("c"), scale(a = "b"),))
            .unwrap();
        let names: Vec<&str> = all.iter().map(|argument| &*argument.name).collect();
        assert_eq!(names, ["namespaced", "kind", "validation", "scale"]);
        assert!(all[0].flag().unwrap());
        assert_eq!(all[1].text().unwrap().value(), "Foo");
        assert_eq!(all[2].expression().unwrap().to_string(), quote!(Rule::new("a, b").message("c")).to_string());
        assert_eq!(all[3].nested().unwrap().unwrap()[0].name, "a");
    }

    #[test]
    fn arguments_of_another_form_are_refused() {
        assert!(parse(quote!("text")).is_err());
        assert!(parse(quote!(kind "Foo")).is_err());
        let all = parse(quote!(kind, namespaced = 1, label("a"), label("a", 2))).unwrap();
        let message = |error: Error| error.to_string();
        assert_eq!(message(all[0].text().err().unwrap()), "`kind` needs a string: `kind = \"...\"`");
        assert_eq!(message(all[1].flag().err().unwrap()), "`namespaced` needs a boolean: `namespaced = true`");
        for pair in &all[2..] {
            let expected = "`label` needs a key and a value: `label(\"key\", \"value\")`";
            assert_eq!(message(pair.pair().err().unwrap()), expected);
        }
    }
}
