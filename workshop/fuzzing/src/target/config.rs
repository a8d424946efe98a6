//! TOML layers: up to the first NUL the bytes are a spec; each line behind it is an override, as `--set` takes it.

use super::{Target, texts};
use config::layer::{Layers, Presets};

pub(super) const TARGET: Target = Target {
    name: "config",
    about: "specs as layers of TOML, and overrides",
    run,
    examples,
    reads,
    cases: 20_000,
};

struct NoPresets;

impl Presets for NoPresets {
    fn find(&self, _: &str) -> Option<(String, String)> {
        None
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A resolved spec reads back as itself.
fn run(bytes: &[u8]) {
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
}

fn examples() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "flash.geometry.channels = 8\n[flash.ftl.gc]\nvictim = { d_choices = { d = 4 } }\0flash.geometry.channels=4\nflash.ftl.gc.victim=greedy",
        "a = [1, 2.5, \"x\"]\nb.c = true\n[[d]]\ne = 1979-05-27\n",
    ]);
    // Shipped specs that inherit nothing.
    let whole = |text: &&&str| !text.contains("inherits");
    all.extend(
        machine::systems::SYSTEMS
            .iter()
            .map(|(_, text)| text)
            .filter(whole)
            .map(|text| text.as_bytes().to_vec()),
    );
    all
}

fn reads(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let spec = text.split('\0').next().unwrap_or_default();
    Layers::from_text("example", spec, &NoPresets).is_ok()
}
