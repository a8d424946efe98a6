//! Quoting what somebody else wrote: short, and harmless to a terminal.

use std::borrow::Cow;

/// Bytes of an input that a diagnostic quotes at most in one place.
pub(crate) const QUOTED: usize = 200;

/// The text's beginning, at most [`QUOTED`] bytes of it, with a mark where it was cut.
pub(crate) fn clip(text: &str) -> Cow<'_, str> {
    if text.len() <= QUOTED {
        return text.into();
    }
    let mark = format!("… ({} B)", text.len());
    format!("{}{mark}", beginning(text, QUOTED - mark.len())).into()
}

/// As many whole characters as fit into so many bytes.
fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// A sentence in which what stands between backquotes or double quotes is clipped, and nothing moves a cursor. A sentence that is
/// still longer than eight quotes is cut.
pub(crate) fn clip_quotes(sentence: &str) -> String {
    let mut text = String::with_capacity(sentence.len().min(8 * QUOTED));
    let mut rest = sentence;
    while let Some(open) = rest.find(['`', '"']) {
        let quote = &rest[open..=open];
        let Some(length) = rest[open + 1..].find(quote) else { break };
        let close = open + 1 + length;
        text.push_str(&rest[..=open]);
        text.push_str(&clip(&rest[open + 1..close]));
        text.push_str(quote);
        rest = &rest[close + 1..];
    }
    text.push_str(rest);
    if text.len() > 8 * QUOTED {
        text.truncate(beginning(&text, QUOTED).len());
        text.push('…');
    }
    let plain = |c: char| if c == '\n' { c } else { harmless(c) };
    text.chars().map(plain).collect()
}

/// The character, or a mark for one that would move the cursor or change colours.
pub(crate) fn harmless(c: char) -> char {
    if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }
}

/// A text as a terminal may show it: line feeds and tabs stay, and no other character moves a cursor or changes colours.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c == '\n' || harmless(c) == c;
    match text.chars().all(is_plain) {
        true => text.into(),
        false => text.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect::<String>().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_names_are_marked_and_lines_stay() {
        assert_eq!(plain("a\tb\né"), "a\tb\né");
        assert_eq!(plain("a\u{1b}[31m\r\u{9b}b\u{7}"), "a\u{fffd}[31m\u{fffd}\u{fffd}b\u{fffd}");
    }

    #[test]
    fn short_texts_are_quoted_whole() {
        assert_eq!(clip("é".repeat(100).as_str()), "é".repeat(100));
        assert_eq!(clip_quotes("`a` is no \"b\" but `"), "`a` is no \"b\" but `");
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_say_how_long_they_are() {
        for text in ["x".repeat(140_000), "é".repeat(70_000), "\u{1f600}".repeat(35_000)] {
            let clipped = clip(&text);
            assert!(clipped.len() <= QUOTED && clipped.ends_with("… (140000 B)"), "{clipped}");
            assert!(text.starts_with(clipped.split('…').next().unwrap()));
            let sentence = clip_quotes(&format!("`{text}` is not a number; \"{text}\" neither"));
            assert!(sentence.len() < 2 * QUOTED + 40 && sentence.ends_with("neither"), "{sentence}");
        }
    }

    #[test]
    fn what_is_not_quoted_is_cut_as_well() {
        let prose = "seven words that a program itself would say ".repeat(20);
        assert_eq!(clip_quotes(&prose), prose);
        assert!(clip_quotes(&"x ".repeat(70_000)).len() < QUOTED + 4);
        assert!(clip_quotes(&"`x".repeat(70_000)).len() < QUOTED + 4);
    }
}
