//! Each system folder is whole, and its calibration page names the source of every key of its spec.

use super::Finding;
use super::tree::Tree;
use std::collections::BTreeSet;

const FILES: [&str; 3] = ["spec.toml", "README.md", "calibration.md"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let names: BTreeSet<&str> = tree
        .files
        .iter()
        .filter_map(|file| file.path.strip_prefix("systems/")?.split_once('/').map(|(name, _)| name))
        .collect();
    names.into_iter().flat_map(|name| check_system(tree, name)).collect()
}

fn check_system(tree: &Tree, name: &str) -> Vec<Finding> {
    let path = |file: &str| format!("systems/{name}/{file}");
    let mut findings: Vec<Finding> = FILES
        .iter()
        .filter(|file| tree.text(&path(file)).is_none())
        .map(|file| Finding::fail(&path(file), 0, "missing"))
        .collect();
    let (Some(spec), Some(calibration)) = (tree.text(&path("spec.toml")), tree.text(&path("calibration.md")))
    else {
        return findings;
    };
    match spec.parse::<toml::Table>() {
        Ok(table) => {
            let mut keys = BTreeSet::new();
            collect("", &toml::Value::Table(table), &mut keys);
            let unsaid = keys.iter().filter(|key| !mentioned(calibration, key));
            findings.extend(unsaid.map(|key| {
                Finding::fail(&path("calibration.md"), 0, format!("no word on `{key}` of spec.toml"))
            }));
        }
        Err(error) => findings.push(Finding::fail(&path("spec.toml"), 0, error.message())),
    }
    findings
}

/// Paths of all leaves; the tables of an array share one path.
fn collect(path: &str, value: &toml::Value, keys: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, inner) in table {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect(&path, inner, keys);
            }
        }
        toml::Value::Array(list) if list.iter().any(toml::Value::is_table) => {
            for inner in list {
                collect(path, inner, keys);
            }
        }
        _ => {
            keys.insert(path.into());
        }
    }
}

/// Returns whether the text has the whole path, or its last component in backticks.
fn mentioned(text: &str, key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or(key);
    let in_path = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let whole = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + key.len()..].chars().next();
        !before.is_some_and(|c| in_path(c) || c == '.') && !after.is_some_and(in_path)
    };
    text.contains(&format!("`{last}`"))
        || key.contains('.') && text.match_indices(key).any(|(at, _)| whole(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "seed = 1\n[flash.timing]\nread = \"50us\"\nprogram = \"600us\"\n[[flow]]\nrate = 1\n[[flow]]\nsize = 2\n";

    fn found(calibration: &str) -> Vec<String> {
        let files = [
            ("systems/x/spec.toml", SPEC),
            ("systems/x/README.md", ""),
            ("systems/x/calibration.md", calibration),
        ];
        check(&Tree::planted(&files)).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn every_leaf_must_be_mentioned() {
        assert_eq!(found("`seed`, flash.timing.read, `program`; flow.rate, `flow.size`."), [""; 0]);
        assert_eq!(
            found("`seed`, flash.timing.reads, program; x.flow.rate, `size`."),
            [
                "no word on `flash.timing.program` of spec.toml",
                "no word on `flash.timing.read` of spec.toml",
                "no word on `flow.rate` of spec.toml"
            ]
        );
        assert_eq!(found("seed, flash.timing.read, `program`; flow.rate, `size`.").len(), 1);
    }

    #[test]
    fn the_three_files_must_be_there() {
        let tree = Tree::planted(&[("systems/x/spec.toml", "")]);
        let found: Vec<_> = check(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["systems/x/README.md", "systems/x/calibration.md"]);
        assert_eq!(check(&Tree::planted(&[("systems/README.md", "")])), []);
    }
}
