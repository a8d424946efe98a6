//! Grammar of kernels, before names are resolved.
//!
//! ```text
//! item      = "for" name "in" sum ".." upper ["step" sum] ["reversed"] "{" item* "}"
//!           | element ("=" | "+=" | "-=" | "*=" | "/=") value ";"
//! upper     = sum | "min" "(" sum "," sum ")"
//! value     = sum [("<" | "<=" | ">" | ">=" | "==") sum "?" value ":" value]
//! sum       = product (("+" | "-") product)*
//! product   = factor (("*" | "/") factor)*
//! factor    = "-" factor | number | name | element | "(" value ")" | function "(" value ("," value)* ")"
//! element   = name ("[" sum "]")+
//! ```

use config::Diagnostic;

use super::Code;
use crate::kernel::Binary;

/// Functions of values.
pub(super) const FUNCTIONS: [&str; 4] = ["sqrt", "abs", "min", "max"];

/// Keywords.
pub(super) const WORDS: [&str; 4] = ["for", "in", "step", "reversed"];

/// Maximum depth of nested brackets.
const MAX_BRACKETS: usize = 32;

/// Maximum number of operands and operators of one statement.
const MAX_TERMS: usize = 256;

pub(super) enum Item {
    Loop(For),
    Statement { at: usize, target: Expression, operator: Option<Binary>, value: Expression },
}

pub(super) struct For {
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) from: Expression,
    pub(super) below: Expression,
    pub(super) step: Option<Expression>,
    pub(super) is_reversed: bool,
    pub(super) body: Vec<Item>,
}

pub(super) struct Expression {
    /// First byte (for an operation: that of the operator), and the bytes of its text.
    pub(super) at: usize,
    pub(super) span: (usize, usize),
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Whole(i64),
    Real(f64),
    Name(String),
    Element(String, Vec<Expression>),
    Negative(Box<Expression>),
    Operation(Binary, Box<Expression>, Box<Expression>),
    Call(&'static str, Vec<Expression>),
    Choice(Box<[Expression; 3]>),
}

/// Parses the items of a code.
pub(super) fn items(code: &Code<'_>) -> Result<Vec<Item>, Diagnostic> {
    let mut parser = Parser::new(code)?;
    let mut items = Vec::new();
    while parser.token() != Token::End {
        items.push(parser.item()?);
    }
    Ok(items)
}

/// Parses one sum, as a dimension of an array.
pub(super) fn sum(code: &Code<'_>) -> Result<Expression, Diagnostic> {
    let mut parser = Parser::new(code)?;
    let sum = parser.sum()?;
    match parser.token() {
        Token::End => Ok(sum),
        _ => Err(parser.expected("the end")),
    }
}

/// Parses a name and its range of values: `name in sum .. sum`.
pub(super) fn range(code: &Code<'_>) -> Result<(String, Expression, Expression), Diagnostic> {
    let mut parser = Parser::new(code)?;
    let name = parser.name("a name")?;
    if !parser.takes_word("in") {
        return Err(parser.expected("`in`"));
    }
    let from = parser.sum()?;
    parser.take("..")?;
    let below = parser.sum()?;
    match parser.token() {
        Token::End => Ok((name, from, below)),
        _ => Err(parser.expected("the end")),
    }
}

struct Parser<'c, 't> {
    code: &'c Code<'t>,
    tokens: Vec<(Token<'t>, usize)>,
    next: usize,
    brackets: usize,
    /// Number of terms of the statement so far.
    terms: usize,
}

impl<'c, 't> Parser<'c, 't> {
    fn new(code: &'c Code<'t>) -> Result<Parser<'c, 't>, Diagnostic> {
        Ok(Parser { code, tokens: tokens(code)?, next: 0, brackets: 0, terms: 0 })
    }

    fn token(&self) -> Token<'t> {
        self.tokens[self.next].0
    }

    fn at(&self) -> usize {
        self.tokens[self.next].1
    }

    /// Returns the end of the last token.
    fn end(&self) -> usize {
        self.code.text[..self.at()].trim_end().len()
    }

    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    fn expected(&self, what: &str) -> Diagnostic {
        let found = match self.token() {
            Token::Name(name) => format!("`{name}`"),
            Token::Whole(number) => format!("`{number}`"),
            Token::Real(number) => format!("`{number}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        };
        self.code.fault(self.at(), format!("expected {what}, found {found}"))
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_there = matches!(self.token(), Token::Sign(own) if own == sign);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn take(&mut self, sign: &str) -> Result<(), Diagnostic> {
        if self.takes(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_there = self.token() == Token::Name(word);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn name(&mut self, what: &str) -> Result<String, Diagnostic> {
        match self.token() {
            Token::Name(name) if !WORDS.contains(&name) && !FUNCTIONS.contains(&name) => {
                self.advance();
                Ok(name.to_owned())
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Descends one bracket, as far as the recursion limit allows.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Diagnostic>) -> Result<T, Diagnostic> {
        if self.brackets == MAX_BRACKETS {
            let what = format!("more than {MAX_BRACKETS} nested brackets, signs or loops");
            return Err(self.code.fault(self.at(), what));
        }
        self.brackets += 1;
        let read = read(self);
        self.brackets -= 1;
        read
    }

    fn item(&mut self) -> Result<Item, Diagnostic> {
        let at = self.at();
        self.terms = 0;
        if self.takes_word("for") {
            return self.deeper(|parser| parser.a_loop(at)).map(Item::Loop);
        }
        let name = self.name("`for`, or an array element to assign")?;
        let target = self.element(at, name)?;
        let operator = match self.token() {
            Token::Sign("=") => None,
            Token::Sign("+=") => Some(Binary::Add),
            Token::Sign("-=") => Some(Binary::Subtract),
            Token::Sign("*=") => Some(Binary::Multiply),
            Token::Sign("/=") => Some(Binary::Divide),
            _ => return Err(self.expected("`=`, `+=`, `-=`, `*=` or `/=`")),
        };
        self.advance();
        let value = self.value()?;
        self.take(";")?;
        Ok(Item::Statement { at, target, operator, value })
    }

    fn a_loop(&mut self, at: usize) -> Result<For, Diagnostic> {
        let name = self.name("the name of a loop variable")?;
        if !self.takes_word("in") {
            return Err(self.expected("`in`"));
        }
        let from = self.sum()?;
        self.take("..")?;
        let below = self.sum()?;
        let step = if self.takes_word("step") { Some(self.sum()?) } else { None };
        let is_reversed = self.takes_word("reversed");
        self.take("{")?;
        let mut body = Vec::new();
        while !self.takes("}") {
            if self.token() == Token::End {
                return Err(self.expected("`}`"));
            }
            body.push(self.item()?);
        }
        Ok(For { at, name, from, below, step, is_reversed, body })
    }

    fn expression(&mut self, at: usize, start: usize, kind: Kind) -> Result<Expression, Diagnostic> {
        self.terms += 1;
        if self.terms > MAX_TERMS {
            let what = format!("more than {MAX_TERMS} operands and operators in one statement");
            return Err(self.code.fault(at, what));
        }
        Ok(Expression { at, span: (start, self.end()), kind })
    }

    fn value(&mut self) -> Result<Expression, Diagnostic> {
        let start = self.at();
        let left = self.sum()?;
        let at = self.at();
        let (operator, is_turned) = match self.token() {
            Token::Sign("<") => (Binary::Less, false),
            Token::Sign("<=") => (Binary::LessOrEqual, false),
            Token::Sign(">") => (Binary::Less, true),
            Token::Sign(">=") => (Binary::LessOrEqual, true),
            Token::Sign("==") => (Binary::Equal, false),
            _ => return Ok(left),
        };
        self.advance();
        let right = self.sum()?;
        let (left, right) = if is_turned { (right, left) } else { (left, right) };
        let kind = Kind::Operation(operator, Box::new(left), Box::new(right));
        let condition = self.expression(at, start, kind)?;
        self.take("?")?;
        let yes = self.deeper(Parser::value)?;
        self.take(":")?;
        let no = self.deeper(Parser::value)?;
        self.expression(at, start, Kind::Choice(Box::new([condition, yes, no])))
    }

    fn sum(&mut self) -> Result<Expression, Diagnostic> {
        let start = self.at();
        let mut sum = self.product()?;
        loop {
            let at = self.at();
            let operator = match self.token() {
                Token::Sign("+") => Binary::Add,
                Token::Sign("-") => Binary::Subtract,
                _ => return Ok(sum),
            };
            self.advance();
            let right = self.product()?;
            let kind = Kind::Operation(operator, Box::new(sum), Box::new(right));
            sum = self.expression(at, start, kind)?;
        }
    }

    fn product(&mut self) -> Result<Expression, Diagnostic> {
        let start = self.at();
        let mut product = self.factor()?;
        loop {
            let at = self.at();
            let operator = match self.token() {
                Token::Sign("*") => Binary::Multiply,
                Token::Sign("/") => Binary::Divide,
                _ => return Ok(product),
            };
            self.advance();
            let right = self.factor()?;
            let kind = Kind::Operation(operator, Box::new(product), Box::new(right));
            product = self.expression(at, start, kind)?;
        }
    }

    fn factor(&mut self) -> Result<Expression, Diagnostic> {
        let at = self.at();
        match self.token() {
            Token::Whole(number) => {
                self.advance();
                self.expression(at, at, Kind::Whole(number))
            }
            Token::Real(number) => {
                self.advance();
                self.expression(at, at, Kind::Real(number))
            }
            Token::Sign("-") => {
                self.advance();
                let inner = self.deeper(Parser::factor)?;
                self.expression(at, at, Kind::Negative(Box::new(inner)))
            }
            Token::Sign("(") => {
                self.advance();
                let inner = self.deeper(Parser::value)?;
                self.take(")")?;
                Ok(inner)
            }
            Token::Name(name) => match FUNCTIONS.iter().find(|function| **function == name) {
                Some(function) => self.call(at, function),
                None => {
                    let name = self.name("a value")?;
                    self.element(at, name)
                }
            },
            Token::Sign(_) | Token::End => Err(self.expected("a value")),
        }
    }

    fn call(&mut self, at: usize, function: &'static str) -> Result<Expression, Diagnostic> {
        self.advance();
        self.take("(")?;
        let mut arguments = vec![self.deeper(Parser::value)?];
        while self.takes(",") {
            arguments.push(self.deeper(Parser::value)?);
        }
        self.take(")")?;
        let wanted = if matches!(function, "min" | "max") { 2 } else { 1 };
        if arguments.len() != wanted {
            let what = format!("`{function}` takes {wanted} arguments, not {}", arguments.len());
            return Err(self.code.fault(at, what));
        }
        self.expression(at, at, Kind::Call(function, arguments))
    }

    /// Parses an element, or a plain name.
    fn element(&mut self, at: usize, name: String) -> Result<Expression, Diagnostic> {
        let mut subscripts = Vec::new();
        while self.takes("[") {
            subscripts.push(self.deeper(Parser::sum)?);
            self.take("]")?;
        }
        let kind = if subscripts.is_empty() { Kind::Name(name) } else { Kind::Element(name, subscripts) };
        self.expression(at, at, kind)
    }
}

// Tokens: words, numbers and signs.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'t> {
    Name(&'t str),
    Whole(i64),
    Real(f64),
    Sign(&'static str),
    End,
}

/// Signs, longer ones first.
const SIGNS: [&str; 25] = [
    "+=", "-=", "*=", "/=", "<=", ">=", "==", "..", "+", "-", "*", "/", "=", "<", ">", "?", ":", ";", ",",
    "(", ")", "[", "]", "{", "}",
];

/// Returns all tokens with the byte at which each begins; the last is [`Token::End`].
pub(super) fn tokens<'t>(code: &Code<'t>) -> Result<Vec<(Token<'t>, usize)>, Diagnostic> {
    let text = code.text;
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if rest.starts_with("//") || first == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            (Token::Name(&rest[..length]), length)
        } else if first.is_ascii_digit() {
            let length = number(rest);
            let digits = &rest[..length];
            let whole = digits.parse().ok().filter(crate::domain::is_small).map(Token::Whole);
            let real = || digits.parse().ok().filter(|real: &f64| real.is_finite()).map(Token::Real);
            let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
            let token = if is_whole { whole } else { real() };
            (token.ok_or_else(|| code.fault(at, format!("`{digits}` is too large")))?, length)
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| code.fault(at, format!("unexpected `{first}`")))?;
            (Token::Sign(sign), sign.len())
        };
        tokens.push((token, at));
        at += length;
    }
    tokens.push((Token::End, text.trim_end().len()));
    Ok(tokens)
}

/// Returns the length of the number at the start of a text. Two dots after it are a range.
fn number(text: &str) -> usize {
    let digits =
        |from: usize| from + text[from..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - from);
    let mut end = digits(0);
    if text[end..].starts_with('.') && text[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let behind = digits(end + 1 + sign);
        if behind > end + 1 + sign {
            end = behind;
        }
    }
    end
}
