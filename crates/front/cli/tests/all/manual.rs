//! The pages that people read name what is there.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// What stands between backquotes on a page and has a slash: a path.
fn paths(text: &str) -> Vec<&str> {
    let is_plain = |t: &&str| t.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    text.split('`').skip(1).step_by(2).filter(|t| t.contains('/') && is_plain(t)).collect()
}

/// Paths of the architecture stand below the root, below a floor of `crates/`.
#[test]
fn every_path_of_a_page_exists() {
    // Names that stand for another, data that lies beside a checkout, and folders of the family just named.
    const NO_PATHS: [&str; 6] =
        ["systems/NAME/", "tests/golden/NAME.toml", "shared/data", "arbiter/", "admit/", "ahead/"];
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = page(name);
        let found = paths(&text);
        for path in found.iter().filter(|path| !NO_PATHS.contains(path)) {
            let places = [
                "",
                "crates/ground",
                "crates/work",
                "crates/parts",
                "crates/machine",
                "crates/studies",
                "crates/front",
            ];
            assert!(
                places.iter().any(|p| root().join(p).join(path).exists()),
                "{name}: `{path}` is not there"
            );
        }
    }
    assert!(paths(&page("ARCHITECTURE.md")).len() > 30);
}

/// The commands of the tour are commands; the first system of the page is one.
#[test]
fn every_command_of_the_readme_is_known() {
    let text = page("README.md");
    let commands: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("nandscape ")?.split_whitespace().next()).collect();
    assert!(commands.len() >= 10);
    for command in commands {
        let known =
            std::process::Command::new(env!("CARGO_BIN_EXE_nandscape")).args([command, "--help"]).output();
        assert!(known.is_ok_and(|output| output.status.success()), "{command}");
    }
    for (system, _) in machine::systems::SYSTEMS {
        assert!(text.contains(&format!("`{system}`")), "README.md does not name {system}");
    }
}
