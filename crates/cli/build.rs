//! Gathers the README of every shipped system that has one, for `explain`.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let systems = Path::new(&manifest).join("../../systems");
    println!("cargo:rerun-if-changed={}", systems.display());
    let mut names: Vec<String> = std::fs::read_dir(&systems)
        .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    names.sort();
    let mut table = String::from("&[\n");
    for name in names {
        let readme = systems.join(&name).join("README.md");
        if readme.is_file() {
            let _ = writeln!(table, "    ({name:?}, include_str!({:?})),", readme.display().to_string());
        }
    }
    table.push(']');
    std::fs::write(Path::new(&out).join("readmes.rs"), table).expect("cargo's output folder can be written");
}
