//! Where the cases of a key name the policies of a family.

use anyhow::Result;
use std::fs;
use std::path::Path;

const FOLDER: &str = "crates/machine/machine/tests/all/keys";
/// What stands before the values of a case.
const VALUES: &str = "values: ";

/// The lines to extend by a new policy, each with its place: for each key the case with most of the policies.
pub(super) fn places(root: &Path, keys: &[String], policies: &[String]) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(FOLDER))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, fs::read_to_string(&path)?));
        }
    }
    files.sort();
    let mut places: Vec<String> = Vec::new();
    for key in keys {
        let place = place(&files, key, policies).unwrap_or_else(|| format!("{FOLDER}: a case of `{key}`"));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Ok(places)
}

fn place(files: &[(String, String)], key: &str, policies: &[String]) -> Option<String> {
    let named = |text: &str| policies.iter().filter(|policy| text.contains(policy.as_str())).count();
    let mut best: Option<((usize, bool), String)> = None;
    for (file, text) in files {
        for (at, _) in text.match_indices(&format!("key: \"{key}\",")) {
            let Some(values) = text[at..].find(VALUES).map(|values| at + values) else { continue };
            let given = &text[values + VALUES.len()..];
            let line = text[..values].matches('\n').count();
            // What several keys share is the line to extend.
            let shared = given.split(',').next().and_then(|name| constant(files, name));
            let own = given.split_inclusive(']').next().unwrap_or_default();
            let rank = (named(shared.map_or(own, |(.., line)| line)), shared.is_some());
            let (file, line, values) = shared.unwrap_or((file, line, own));
            if best.as_ref().is_none_or(|(most, _)| rank > *most) {
                best = Some((rank, format!("{FOLDER}/{file}:{}: {values}", line + 1)));
            }
        }
    }
    best.map(|(_, place)| place)
}

/// The line of the constant that several cases take their values from.
fn constant<'f>(files: &'f [(String, String)], name: &str) -> Option<(&'f String, usize, &'f str)> {
    let begins = |line: &str| {
        let line = line.trim_start_matches("pub(crate) ");
        line.strip_prefix("const ").is_some_and(|rest| rest.split(':').next() == Some(name))
    };
    let lines = files
        .iter()
        .flat_map(|(file, text)| text.lines().enumerate().map(move |(at, line)| (file, at, line)));
    lines.into_iter().find(|(_, _, line)| begins(line))
}
