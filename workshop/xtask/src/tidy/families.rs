//! Policy families know no path: which keys choose from a family follows from the types of a spec's fields.

use super::Finding;
use super::tree::{Tree, line_of};

/// File that declares the tables at the root of a spec.
const SPEC: &str = "crates/machine/spec/src/lib.rs";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let roots = tree.text(SPEC).map(roots).unwrap_or_default();
    let mut findings = Vec::new();
    for (path, text, mask) in tree.rust().filter(|(path, ..)| path.starts_with("crates/")) {
        for (start, _) in mask.code.match_indices("policies! {") {
            let end = mask.code[start..].find("\n}").map_or(text.len(), |end| start + end);
            for at in paths(&text[start..end], &roots) {
                let message = "a policy family names a path of a spec; use the last component of the key";
                findings.push(Finding::fail(path, line_of(text, start + at), message));
            }
        }
    }
    findings
}

/// Names of the tables of a spec.
fn roots(spec: &str) -> Vec<&str> {
    let from = spec.find("pub struct Spec {").map_or("", |at| &spec[at..]);
    let fields = from.lines().take_while(|line| !line.starts_with('}'));
    fields.filter_map(|line| line.strip_prefix("    pub ")?.split(':').next()).collect()
}

/// Offset of a quoted path of a spec, in code or in comments.
fn paths(text: &str, roots: &[&str]) -> Vec<usize> {
    let is_path = |at: &usize| {
        let rest = &text[at + 1..];
        roots.iter().any(|root| rest.strip_prefix(root).is_some_and(|rest| rest.starts_with('.')))
    };
    text.match_indices(['`', '"']).map(|(at, _)| at).filter(is_path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_family_is_found() {
        let spec = "pub struct Spec {\n    /// The device.\n    pub flash: Option<FlashSpec>,\n}\npub struct Sim {\n    pub fold: bool,\n}\n";
        let list = "/// As `flash.ftl.gc`.\npolicies! {\n    /// A family.\n    pub family Gc = \"flash.ftl.gc\": choice {\n        \
                    /// As `flash.ftl.stripe`, `fold.x` and `flash`.\n        default greedy,\n    }\n}\n//
                    /// `flash.ftl.gc`\n";
        let tree = Tree::planted(&[
            (SPEC, spec),
            ("crates/parts/ssd/src/gc.rs", list),
            ("workshop/xtask/src/gc.rs", list),
        ]);
        let found: Vec<_> = check(&tree).into_iter().map(|finding| (finding.path, finding.line)).collect();
        assert_eq!(found, [4, 5].map(|line| ("crates/parts/ssd/src/gc.rs".to_string(), line)));
    }
}
