//! Words, numbers and signs.

use config::Diagnostic;

use super::code::Code;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'t> {
    Name(&'t str),
    Whole(i64),
    Real(f64),
    Sign(&'static str),
    End,
}

/// Longer ones first.
const SIGNS: [&str; 25] = [
    "+=", "-=", "*=", "/=", "<=", ">=", "==", "..", "+", "-", "*", "/", "=", "<", ">", "?", ":", ";", ",",
    "(", ")", "[", "]", "{", "}",
];

/// All tokens with the byte that each begins at; the last is [`Token::End`].
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
            let whole = digits.parse().ok().filter(crate::affine::is_small).map(Token::Whole);
            let real = || digits.parse().ok().filter(|real: &f64| real.is_finite()).map(Token::Real);
            let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
            let token = if is_whole { whole } else { real() };
            (token.ok_or_else(|| code.fault(at, format!("`{digits}` is too large")))?, length)
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| code.fault(at, format!("`{first}` has no meaning here")))?;
            (Token::Sign(sign), sign.len())
        };
        tokens.push((token, at));
        at += length;
    }
    tokens.push((Token::End, text.trim_end().len()));
    Ok(tokens)
}

/// How long the number is that a text begins with. Two dots after it are a range.
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
