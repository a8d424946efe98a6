//! One target of the crate `fuzzing`: the one that this program is named after.
#![no_main]

use fuzzing::Target;
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let program = std::env::args().next().unwrap_or_default();
    let name = std::path::Path::new(&program).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    fuzzing::find(&name).unwrap_or_else(|| panic!("no target `{name}`"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
