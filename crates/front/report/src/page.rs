//! Pages: one file each, which loads nothing; and text in HTML.

use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};

/// Chart library; see `vendor/echarts/README.md` for its origin.
const ECHARTS: &[u8] = include_bytes!("../vendor/echarts/echarts.min.js");
const STYLE: &str = include_str!("../assets/style.css");
/// Scripts of the page, in order.
const SCRIPT: &str = concat!(
    include_str!("../assets/units.js"),
    include_str!("../assets/theme.js"),
    include_str!("../assets/charts.js"),
    include_str!("../assets/sweep.js"),
    include_str!("../assets/page.js"),
);
/// Licences of the components of a page.
const LICENCES: [(&str, &str); 5] = [
    ("Apache ECharts 6.1.0", include_str!("../vendor/echarts/NOTICE")),
    ("Apache ECharts 6.1.0: Apache License 2.0", include_str!("../vendor/echarts/LICENSE")),
    ("zrender 6.1.0", include_str!("../vendor/echarts/LICENSE-zrender")),
    ("d3, of which ECharts has a part", include_str!("../vendor/echarts/LICENSE-d3")),
    ("tslib 2.3.0", include_str!("../vendor/echarts/LICENSE-tslib")),
];

/// Page under construction.
pub(crate) struct Page {
    title: String,
    /// Introduction below the title, as HTML.
    lead: String,
    sections: Vec<Section>,
}

struct Section {
    id: String,
    title: String,
    /// Body, as HTML.
    body: String,
}

impl Page {
    /// Creates a page with a title and an introduction, as HTML.
    pub(crate) fn new(title: impl Into<String>, lead: String) -> Page {
        Page { title: title.into(), lead, sections: Vec::new() }
    }

    /// Adds a section, unless its body is empty.
    pub(crate) fn section(&mut self, title: &str, body: String) {
        if !body.is_empty() {
            let id = format!("s{}", self.sections.len() + 1);
            self.sections.push(Section { id, title: title.to_owned(), body });
        }
    }

    /// Renders the file.
    pub(crate) fn html(&self) -> String {
        let echarts = std::str::from_utf8(ECHARTS).expect("a test has read it as UTF-8");
        let title = Text(&self.title);
        let mut out = String::with_capacity(ECHARTS.len() + (1 << 20));
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {} {}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>{STYLE}</style></head>\n<body>\n\
             <a class=\"skip\" href=\"#main\">To the content</a>\n\
             <header><div><h1>{title}</h1>{}</div><button type=\"button\" id=\"scheme\" hidden>Dark</button></header>\n",
            source_hash(echarts),
            source_hash(SCRIPT),
            self.lead,
        );
        out.push_str("<noscript><p class=\"lacking\">Charts need JavaScript; the tables below have the same data.</p></noscript>\n");
        if self.sections.len() > 1 {
            out.push_str("<nav aria-label=\"Sections\"><ul>");
            for section in &self.sections {
                let _ = write!(out, "<li><a href=\"#{}\">{}</a></li>", section.id, Text(&section.title));
            }
            out.push_str("</ul></nav>\n");
        }
        out.push_str("<main id=\"main\">\n");
        for Section { id, title, body } in &self.sections {
            let title = Text(title);
            let _ = write!(
                out,
                "<section id=\"{id}\" aria-labelledby=\"{id}h\"><h2 id=\"{id}h\">{title}</h2>\n{body}</section>\n"
            );
        }
        out.push_str("</main>\n<footer><p>Made by nandscape ");
        out.push_str(env!("CARGO_PKG_VERSION"));
        out.push_str(". This file loads nothing.</p><details class=\"licences\"><summary>Licences of software in this file</summary>");
        for (of, text) in LICENCES {
            let _ = write!(out, "<h3>{}</h3><pre>{}</pre>", Text(of), Text(text));
        }
        let _ = write!(
            out,
            "</details></footer>\n<script>{echarts}</script>\n<script>{SCRIPT}</script>\n</body></html>\n"
        );
        out
    }
}

/// Hash of a script for the content security policy: other scripts do not run in the page, whatever its names contain.
fn source_hash(script: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(script.as_bytes())))
}

/// Base64 of RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// Untrusted text, escaped for use between tags and in quoted attributes.
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

/// JSON for use in a script: no text in it can end the script, or begin a comment that hides its end.
pub(crate) fn script_json(value: &serde_json::Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// Renders text in which backticks mark names of the program.
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

/// Renders a paragraph.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>", prose(text))
}

/// Renders a bullet list.
pub(crate) fn list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: String = items.into_iter().map(|item| format!("<li>{}</li>", prose(item))).collect();
    format!("<ul>{items}</ul>")
}

/// Renders a note on missing data, in the place where the data would be.
pub(crate) fn lacking(title: &str, why: &str) -> String {
    format!("<p class=\"lacking\"><b>{}</b>: {}</p>", Text(title), prose(why))
}

#[cfg(test)]
mod tests {
    use super::{ECHARTS, SCRIPT, Text, base64, prose, script_json};
    use serde_json::{Value, json};
    use sha2::{Digest, Sha256};

    #[test]
    fn what_is_embedded_is_what_its_readme_says() {
        let digest: String = Sha256::digest(ECHARTS).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(include_str!("../vendor/echarts/README.md").contains(&digest), "{digest}");
    }

    #[test]
    fn scripts_stand_in_a_page_as_they_are() {
        let echarts = std::str::from_utf8(ECHARTS).unwrap();
        for script in [echarts, SCRIPT] {
            // What would end the script, hide its end, or be read as another line end than it is.
            for broken in ["</script", "<!--", "\r"] {
                assert!(!script.to_lowercase().contains(broken), "{broken:?}");
            }
        }
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (text, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }

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
