//! Any bytes are a spec or a diagnostic, and a resolved spec reads back as itself.
//!
//! Up to the first NUL the bytes are a TOML text; each line after it is an override, as `--set` takes it.
#![no_main]

use config::layer::{Layers, Presets};

struct NoPresets;

impl Presets for NoPresets {
    fn find(&self, _: &str) -> Option<(String, String)> {
        None
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (spec, overrides) = text.split_once('\0').unwrap_or((text, ""));
    let Ok(mut resolved) = Layers::from_text("input", spec, &NoPresets) else { return };
    for assignment in overrides.lines() {
        // A refused override is a diagnostic like any other.
        let _ = resolved.set(assignment);
    }
    let printed = resolved.to_toml_string();
    let again = Layers::from_text("printed", &printed, &NoPresets).expect("a resolved spec is a spec");
    assert_eq!(again.to_toml_string(), printed);
});
