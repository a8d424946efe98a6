//! Text in HTML.

use std::fmt::{self, Write as _};

/// Text of anybody's as it may stand between tags and in quoted attributes.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// JSON as it may stand in a script: no text in it can end the script, or begin a comment that hides its end.
pub(crate) fn script_json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// Words in which what stands between backticks is a name of the program's.
pub(crate) fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let whole = text.matches('`').count() / 2;
    for (at, piece) in text.split('`').enumerate() {
        let tag = match at {
            0 => "",
            at if at > 2 * whole => "`",
            at if at % 2 == 1 => "<code>",
            _ => "</code>",
        };
        let _ = write!(out, "{tag}{}", Text(piece));
    }
    out
}

/// A paragraph.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>", prose(text))
}

/// A list of points.
pub(crate) fn list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: String = items.into_iter().map(|item| format!("<li>{}</li>", prose(item))).collect();
    format!("<ul>{items}</ul>")
}

/// What is lacking, in the place where it would be.
pub(crate) fn lacking(title: &str, why: &str) -> String {
    format!("<p class=\"lacking\"><b>{}</b>: {}</p>", Text(title), prose(why))
}

#[cfg(test)]
mod tests {
    use super::{Text, prose, script_json};
    use serde_json::{Value, json};

    #[test]
    fn no_text_is_markup() {
        let hostile = "</script><img src=x onerror='a' title=\"b\">&";
        let text = Text(hostile).to_string();
        assert!(!text.contains(['<', '>', '"', '\'']), "{text}");
        assert_eq!(text.matches('&').count(), 9);
    }

    #[test]
    fn names_between_backticks_are_marked_and_a_single_one_is_a_character() {
        assert_eq!(prose("the `a<b` of"), "the <code>a&lt;b</code> of");
        assert_eq!(prose("a ` b"), "a ` b");
        assert_eq!(prose("`a` b ` c"), "<code>a</code> b ` c");
    }

    #[test]
    fn json_in_a_script_cannot_end_it_and_reads_the_same() {
        let value = json!({ "</script><!--": "<script>" });
        let text = script_json(&value);
        assert!(!text.contains('<'), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(value));
    }
}
