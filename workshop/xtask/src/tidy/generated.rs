//! The generated pages of `docs/` are what the binary prints.

use super::Finding;
use super::tree::Tree;
use crate::manual;

/// The hidden subcommand that prints the pages, as text or as a variant; while no source of the CLI names it there is
/// nothing to compare.
const SUBCOMMAND: [&str; 2] = ["gen-docs", "GenDocs"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    if !expected(tree) {
        return Vec::new();
    }
    match manual::stale_pages() {
        Ok(stale) => stale.iter().map(|page| Finding::fail("docs", 0, page)).collect(),
        Err(error) => vec![Finding::fail("docs", 0, format!("{error:#}"))],
    }
}

fn expected(tree: &Tree) -> bool {
    let mut cli = tree.texts().filter(|(path, _)| path.starts_with("crates/front/cli/src/"));
    let named = cli.any(|(_, text)| SUBCOMMAND.iter().any(|name| text.contains(name)));
    let committed = manual::PAGES.iter().any(|page| tree.text(&format!("docs/{page}")).is_some());
    named || committed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_expected_from_a_cli_that_has_them_or_once_committed() {
        assert!(!expected(&Tree::planted(&[
            ("crates/front/cli/src/main.rs", "fn main() {}"),
            ("docs/x.md", "")
        ])));
        assert!(expected(&Tree::planted(&[("crates/front/cli/src/main.rs", "name = \"gen-docs\"")])));
        assert!(expected(&Tree::planted(&[("crates/front/cli/src/args.rs", "enum Command { GenDocs }")])));
        assert!(expected(&Tree::planted(&[("docs/metrics.md", "")])));
    }
}
