//! Digests the golden documents and key cases, and reads in the changelog whether results differ from the last release.

use std::path::{Path, PathBuf};

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&manifest).join("../../..");
    let (golden, changelog) = (root.join("tests/golden"), root.join("CHANGELOG.md"));
    for path in [&golden, &changelog] {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    println!("cargo:rustc-env=NANDSCAPE_RESULTS={}", digest(&golden));
    println!(
        "cargo:rustc-env=NANDSCAPE_CHANGE={}",
        change(&std::fs::read_to_string(changelog).unwrap_or_default())
    );
}

/// FNV-1a (64 bits) over the golden documents and the digests of key cases, in the order of their paths, without carriage
/// returns; the version where there are none.
fn digest(folder: &Path) -> String {
    let list =
        |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_result = |path: &PathBuf| path.extension().is_some_and(|end| end == "json" || end == "txt");
    let mut files: Vec<PathBuf> = list(folder).chain(list(&folder.join("keys"))).filter(is_result).collect();
    files.sort();
    if files.is_empty() {
        return std::env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    }
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let bytes = files.iter().flat_map(|path| std::fs::read(path).unwrap_or_default());
    for byte in bytes.filter(|byte| *byte != b'\r') {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{:08x}", hash >> 32)
}

/// Returns whether results differ from the last release, by the section `Unreleased`.
fn change(changelog: &str) -> String {
    let mut sections = changelog.split("\n## ").skip(1);
    let open = sections.next().unwrap_or_default();
    let released = sections.next().and_then(|section| section.split_whitespace().next());
    let Some(released) = released else { return "no earlier release".to_owned() };
    let released = released.trim_matches(['[', ']']);
    match open.lines().find_map(|line| line.trim_start_matches("- ").strip_prefix("Results change: ")) {
        Some(answer) if answer.starts_with("no") => format!("the same as those of {released}"),
        Some(_) => format!("different from those of {released}: see CHANGELOG.md"),
        None => format!("not compared with those of {released}"),
    }
}
