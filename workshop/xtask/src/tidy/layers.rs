//! Layers point one way: a crate depends only on crates of lower floors, and its floor is its folder.

use super::Finding;
use super::tree::Tree;

/// Floors of `crates/`, from below.
const FLOORS: [&str; 6] = ["ground", "work", "parts", "machine", "studies", "front"];

/// Dependencies within a floor: links are resources of net's, first-level caches and TLBs tables of mem's, a kernel of
/// nest's is data.
const WITHIN: &[(&str, &str)] = &[
    ("proto", "engine"),
    ("stats", "engine"),
    ("config", "engine"),
    ("net", "engine"),
    ("net", "stats"),
    ("net", "config"),
    ("outside", "config"),
    ("requests", "text"),
    ("programs", "nest"),
    ("programs", "requests"),
    ("programs", "text"),
    ("compute", "mem"),
    ("nand", "mem"),
    ("ftl", "mem"),
    ("ftl", "nand"),
    ("ssd", "mem"),
    ("ssd", "nand"),
    ("ssd", "ftl"),
    ("machine", "spec"),
    ("reproduce", "fit"),
    ("reproduce", "sampling"),
    ("cli", "report"),
    ("cli", "timeline"),
    ("cli", "foreign"),
    ("py", "report"),
    ("py", "timeline"),
];

/// Crate of closed forms. It shares no code with the crates that it checks, which may use it only in tests.
const THEORY: &str = "theory";
const CHECKED: [&str; 3] = ["ground", "work", "parts"];

const SECTIONS: [&str; 3] = ["dependencies", "build-dependencies", "dev-dependencies"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        let Some((floor, name)) = room(path) else { continue };
        if !FLOORS.contains(&floor) {
            findings.push(Finding::fail(
                path,
                0,
                format!("`{floor}` is not a floor; see FLOORS in layers.rs"),
            ));
            continue;
        }
        match text.parse::<toml::Table>() {
            Ok(manifest) => {
                let broken = dependencies(&manifest).filter_map(|(section, dependency)| {
                    let other = floor_of(tree, &dependency)?;
                    let reason = refusal((floor, name), section, (other, &dependency))?;
                    Some(Finding::fail(path, line(text, &dependency), reason))
                });
                findings.extend(broken);
            }
            Err(error) => findings.push(Finding::fail(path, 0, error.message())),
        }
    }
    findings
}

/// Floor and name of the crate of a manifest.
fn room(path: &str) -> Option<(&str, &str)> {
    let inside = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    Some(inside.split_once('/').unwrap_or((inside, inside)))
}

fn floor_of<'t>(tree: &'t Tree, name: &str) -> Option<&'t str> {
    tree.texts().filter_map(|(path, _)| room(path)).find(|(_, room)| *room == name).map(|(floor, _)| floor)
}

/// Reason why a dependency is forbidden; `None` if it is allowed.
fn refusal((floor, name): (&str, &str), section: &str, (other, dependency): (&str, &str)) -> Option<String> {
    let height = |floor| FLOORS.iter().position(|known| *known == floor);
    if name == THEORY {
        return Some(format!("`{name}` depends on no other crate of ours, yet on `{dependency}`"));
    }
    if dependency == THEORY && section != "dev-dependencies" && CHECKED.contains(&floor) {
        return Some(format!("`{name}` may use `{THEORY}` only in its tests"));
    }
    let may = height(other) < height(floor)
        // A crate depends on itself for features that its tests need.
        || (name == dependency && section == "dev-dependencies")
        || WITHIN.contains(&(name, dependency))
        || (dependency == THEORY && section == "dev-dependencies");
    (!may).then(|| format!("`{name}` ({floor}) depends on `{dependency}` ({other})"))
}

/// Section and folder name of every dependency, including those of one target.
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

/// Folder of one of our crates, under whatever name it is used.
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

    const ROOMS: [&str; 8] = [
        "ground/engine",
        "ground/stats",
        "ground/net",
        "ground/theory",
        "work/requests",
        "parts/mem",
        "parts/nand",
        "machine/machine",
    ];

    fn found(room: &str, manifest: &str) -> Vec<String> {
        let path = |room: &str| format!("crates/{room}/Cargo.toml");
        let mut files: Vec<(String, &str)> =
            ROOMS.iter().filter(|other| **other != room).map(|room| (path(room), "")).collect();
        files.push((path(room), manifest));
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        check(&Tree::planted(&files)).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn lower_floors_and_named_links_are_allowed() {
        for (room, manifest) in [
            ("parts/nand", "[dependencies]\nengine.workspace = true\nmem.workspace = true\nserde = \"1\""),
            ("machine/machine", "[dependencies]\nnand.workspace = true\ntheory.workspace = true"),
            ("parts/nand", "[dev-dependencies]\ntheory.workspace = true"),
            ("ground/stats", "[dependencies]\nengine.workspace = true"),
        ] {
            assert_eq!(found(room, manifest), [] as [String; 0], "{room}");
        }
    }

    #[test]
    fn sideways_and_upwards_fail() {
        for (room, manifest) in [
            ("ground/net", "[dependencies]\nnand.workspace = true"),
            ("work/requests", "[dependencies]\nnand.workspace = true"),
            ("parts/mem", "[dependencies]\nnand.workspace = true"),
            ("parts/nand", "[dependencies]\ntheory.workspace = true"),
            ("ground/engine", "[dev-dependencies]\nstats.workspace = true"),
            ("parts/nand", "[target.'cfg(unix)'.dependencies]\nmachine.workspace = true"),
            (
                "parts/nand",
                "[dependencies]\nhidden = { package = \"nandscape-machine\", path = \"../machine\" }",
            ),
            ("ground/theory", "[dependencies]\nengine.workspace = true"),
        ] {
            assert_eq!(found(room, manifest).len(), 1, "{room}: {manifest}");
        }
    }

    #[test]
    fn a_crate_that_stands_on_no_floor_fails() {
        assert!(found("cellar/gadget", "[package]\nname = \"nandscape-gadget\"")[0].contains("cellar"));
        assert!(found("gadget", "")[0].contains("gadget"));
    }
}
