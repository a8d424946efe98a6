//! Modules of the crate `machine` point one way as well: packets and events, wires, parts and what holds them, the router, the loop.

use super::Finding;
use super::tree::Tree;

/// Each such module and its floor. It imports modules of lower floors alone, and none that is not here: what reads specs and makes
/// results stands above.
const FLOORS: &[(&str, u8)] = &[
    ("packet", 0),
    ("event", 1),
    ("wires", 2),
    ("complex", 3),
    ("pager", 3),
    ("memory", 4),
    ("warmup", 4),
    ("parts", 5),
    ("route", 6),
    ("machine", 7),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        let Some((name, own)) = path.strip_prefix("crates/machine/src/").and_then(module) else { continue };
        for (number, line) in text.lines().enumerate() {
            for other in imported(line).filter(|other| *other != name) {
                let reason = match floor(other) {
                    Some(floor) if floor < own => continue,
                    Some(floor) => format!("`{name}` (floor {own}) imports `{other}` (floor {floor})"),
                    None => format!("`{name}` imports `{other}`, which stands above the machine"),
                };
                findings.push(Finding::fail(path, number + 1, reason));
            }
        }
    }
    findings
}

fn floor(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor)
}

/// The module that a file below the crate's sources belongs to, if it is one of these.
fn module(file: &str) -> Option<(&str, u8)> {
    let name = file.split('/').next()?.trim_end_matches(".rs");
    floor(name).map(|floor| (name, floor))
}

/// The modules of the crate that a line names.
fn imported(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or("");
    code.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, line: &str) -> Vec<String> {
        let path = format!("crates/machine/src/{file}");
        check(&Tree::planted(&[(&path, line)])).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn lower_floors_and_a_module_s_own_files_are_allowed() {
        let none: [String; 0] = [];
        assert_eq!(found("route/line.rs", "use crate::complex::Complex;"), none);
        assert_eq!(found("complex/mod.rs", "use crate::complex::lines;\n// crate::route"), none);
        assert_eq!(found("result/mod.rs", "use crate::machine::Machine;"), none);
    }

    #[test]
    fn a_part_that_knows_the_router_or_a_spec_is_told() {
        assert_eq!(
            found("memory.rs", "use crate::route::Sender;"),
            ["`memory` (floor 4) imports `route` (floor 6)"]
        );
        assert_eq!(
            found("complex/ends.rs", "fn f(spec: &crate::spec::Spec) {}"),
            ["`complex` imports `spec`, which stands above the machine"]
        );
    }
}
