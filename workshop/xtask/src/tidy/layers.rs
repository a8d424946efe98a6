//! Layers point one way: kernel, then proto, stats and config, then the parts, then machine, then the front ends.

use super::Finding;
use super::tree::Tree;

/// Each crate of `crates/` and the floor it stands on. A crate depends only on crates of lower floors.
const FLOORS: &[(&str, u8)] = &[
    ("kernel", 0),
    ("proto", 1),
    ("stats", 1),
    ("config", 1),
    ("net", 2),
    ("flash", 2),
    ("workload", 2),
    ("mem", 2),
    ("compute", 2),
    ("host", 2),
    ("theory", 2),
    ("sampling", 2),
    ("outside", 2),
    ("nest", 2),
    ("report", 2),
    ("foreign", 2),
    ("machine", 3),
    ("timeline", 4),
    ("cli", 5),
    ("py", 5),
    ("fuzzing", 5),
];

/// Dependencies within a floor: links are resources of net's, first-level caches and TLBs tables of mem's, a kernel of nest's is data.
const WITHIN: &[(&str, &str)] = &[
    ("flash", "net"),
    ("host", "net"),
    ("compute", "mem"),
    ("flash", "mem"),
    ("compute", "nest"),
    ("workload", "nest"),
];

/// Crates that stand apart: closed forms share no code with what they check.
const ALONE: &[&str] = &["theory"];

/// Crates that the tests of any crate may use.
const FOR_TESTS: &[&str] = &["theory"];

const SECTIONS: [&str; 3] = ["dependencies", "build-dependencies", "dev-dependencies"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        let Some(name) = path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let Some(floor) = floor(name) else {
            findings.push(Finding::fail(
                path,
                0,
                format!("crate `{name}` has no floor; see FLOORS in layers.rs"),
            ));
            continue;
        };
        match text.parse::<toml::Table>() {
            Ok(manifest) => {
                let broken = dependencies(&manifest).filter_map(|(section, dependency)| {
                    let reason = refusal(name, floor, section, &dependency)?;
                    Some(Finding::fail(path, line(text, &dependency), reason))
                });
                findings.extend(broken);
            }
            Err(error) => findings.push(Finding::fail(path, 0, error.message())),
        }
    }
    findings
}

fn floor(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor)
}

/// Why this dependency may not be; `None` where it may.
fn refusal(name: &str, own: u8, section: &str, dependency: &str) -> Option<String> {
    let other = floor(dependency)?;
    let for_tests = section == "dev-dependencies" && FOR_TESTS.contains(&dependency);
    if for_tests || WITHIN.contains(&(name, dependency)) {
        None
    } else if ALONE.contains(&name) {
        Some(format!("`{name}` depends on no other crate of ours, yet on `{dependency}`"))
    } else if other >= own {
        Some(format!("`{name}` (floor {own}) depends on `{dependency}` (floor {other})"))
    } else {
        None
    }
}

/// Section and folder name of every dependency, those of one target included.
fn dependencies(manifest: &toml::Table) -> impl Iterator<Item = (&'static str, String)> {
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let tables = targets.filter_map(|(_, table)| table.as_table()).chain([manifest]);
    tables.flat_map(|table| {
        SECTIONS.into_iter().flat_map(move |section| {
            let entries = table.get(section).and_then(toml::Value::as_table).into_iter().flatten();
            entries.map(move |(key, value)| (section, folder(key, value)))
        })
    })
}

/// The folder of one of our crates under whatever name it is used.
fn folder(key: &str, value: &toml::Value) -> String {
    let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(key);
    package.strip_prefix("nandscape-").unwrap_or(package).into()
}

fn line(text: &str, dependency: &str) -> usize {
    text.lines()
        .position(|line| line.contains(dependency) && !line.starts_with("name"))
        .map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, manifest: &str) -> Vec<String> {
        let path = format!("crates/{name}/Cargo.toml");
        check(&Tree::planted(&[(&path, manifest)])).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn lower_floors_and_the_one_link_are_allowed() {
        let none: [String; 0] = [];
        assert_eq!(
            found("flash", "[dependencies]\nkernel.workspace = true\nnet.workspace = true\nserde = \"1\""),
            none
        );
        assert_eq!(found("machine", "[dependencies]\nflash.workspace = true\ntheory.workspace = true"), none);
        assert_eq!(found("flash", "[dev-dependencies]\ntheory.workspace = true"), none);
    }

    #[test]
    fn sideways_and_upwards_fail() {
        for (name, manifest) in [
            ("net", "[dependencies]\nflash.workspace = true"),
            ("workload", "[dependencies]\nflash.workspace = true"),
            ("flash", "[dependencies]\ntheory.workspace = true"),
            ("kernel", "[dev-dependencies]\nstats.workspace = true"),
            ("config", "[build-dependencies]\nproto.workspace = true"),
            ("flash", "[target.'cfg(unix)'.dependencies]\nmachine.workspace = true"),
            ("flash", "[dependencies]\nhidden = { package = \"nandscape-machine\", path = \"../machine\" }"),
            ("theory", "[dependencies]\nkernel.workspace = true"),
        ] {
            assert_eq!(found(name, manifest).len(), 1, "{name}: {manifest}");
        }
    }

    #[test]
    fn a_crate_without_a_floor_fails() {
        assert!(found("gadget", "[package]\nname = \"nandscape-gadget\"")[0].contains("gadget"));
    }
}
