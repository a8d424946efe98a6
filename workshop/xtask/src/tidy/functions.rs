//! A function fits a screen.

use super::Finding;
use super::tree::{Mask, Tree, line_of, words};

const NOTE_LINES: usize = 70;
const MOST_LINES: usize = 100;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .flat_map(|(path, _, mask)| functions(&mask).filter_map(|f| judge(path, &f)).collect::<Vec<_>>())
        .collect()
}

struct Function {
    name: String,
    first_line: usize,
    lines: usize,
}

fn judge(path: &str, function: &Function) -> Option<Finding> {
    let Function { name, first_line, lines } = function;
    if *lines > MOST_LINES {
        Some(Finding::fail(path, *first_line, format!("fn {name}: {lines} lines; the limit is {MOST_LINES}")))
    } else if *lines > NOTE_LINES {
        Some(Finding::note(path, *first_line, format!("fn {name}: {lines} lines; aim at {NOTE_LINES}")))
    } else {
        None
    }
}

/// Functions with a body; a nested one counts for itself and for its parent.
fn functions(mask: &Mask) -> impl Iterator<Item = Function> {
    let code = mask.code.as_str();
    mask.words().filter(|(_, word)| *word == "fn").filter_map(move |(at, _)| {
        let after = &code[at + "fn".len()..];
        // `fn(u32)` is a type: a function has a name.
        let (gap, name) = words(after).next()?;
        if !after[..gap].trim().is_empty() {
            return None;
        }
        let end = body_end(code.as_bytes(), at)?;
        let first_line = line_of(code, at);
        Some(Function { name: name.into(), first_line, lines: line_of(code, end) - first_line + 1 })
    })
}

/// Offset where the body of the function at `start` closes; `None` without a body.
fn body_end(code: &[u8], start: usize) -> Option<usize> {
    let mut brackets = 0;
    let mut braces = 0;
    for (at, byte) in code.iter().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if braces == 0 && brackets == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Severity;

    fn function(lines: usize) -> String {
        format!("trait T {{ fn bare(x: [u8; 4]); }}\nfn long() {{\n{}}}\n", "    \"}\";\n".repeat(lines - 2))
    }

    #[test]
    fn long_functions_are_noted_then_fail() {
        for (lines, severity) in
            [(70, None), (71, Some(Severity::Note)), (100, Some(Severity::Note)), (101, Some(Severity::Fail))]
        {
            let found = check(&Tree::planted(&[("a.rs", &function(lines))]));
            assert_eq!(found.first().map(|finding| finding.severity), severity, "{lines} lines");
            assert!(found.iter().all(|finding| finding.line == 2 && finding.message.starts_with("fn long")));
        }
    }

    #[test]
    fn function_types_are_no_functions() {
        let mask = Mask::new("type F = fn(u32); fn f() {}\n");
        let names: Vec<_> = functions(&mask).map(|function| function.name).collect();
        assert_eq!(names, ["f"]);
    }
}
