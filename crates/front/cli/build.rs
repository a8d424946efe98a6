//! Collects the texts on every shipped system: its README for `explain`, its calibration page for `init`.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let systems = Path::new(&manifest).join("../../../systems");
    println!("cargo:rerun-if-changed={}", systems.display());
    let mut names: Vec<String> = std::fs::read_dir(&systems)
        .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    names.sort();
    for (page, table_name) in [("README.md", "readmes.rs"), ("calibration.md", "calibrations.rs")] {
        let mut table = String::from("&[\n");
        for name in &names {
            let file = systems.join(name).join(page);
            if file.is_file() {
                let _ = writeln!(table, "    ({name:?}, include_str!({:?})),", file.display().to_string());
            }
        }
        table.push(']');
        std::fs::write(Path::new(&out).join(table_name), table)
            .expect("cargo's output folder can be written");
    }
}
