//! What an older build of the program calls otherwise, so that it can be compared with.

use std::path::Path;
use std::process::{Command, Stdio};

/// Keys of a server that have kept their place.
const KEPT: [&str; 2] = ["cpu.fill_jobs", "cpu.warmup"];

/// How a build names keys and figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    /// As today.
    Today,
    /// Of builds that wrote `nandscape.result/1`: the cores of a server are `cpu.0`, and there is one GPU and one server.
    First,
}

impl Dialect {
    /// That of a binary.
    pub(super) fn of(binary: &Path) -> Dialect {
        let mut command = Command::new(binary);
        command.args(["params", "cpu.0.cores"]).stdout(Stdio::null()).stderr(Stdio::null());
        if command.status().is_ok_and(|status| status.success()) { Dialect::First } else { Dialect::Today }
    }

    /// An assignment of a key, or any other argument.
    pub(super) fn argument(self, text: &str) -> String {
        match text.strip_prefix("cpu.") {
            Some(rest) if self == Dialect::First && !KEPT.iter().any(|key| text.starts_with(key)) => {
                format!("cpu.0.{rest}")
            }
            _ => text.to_owned(),
        }
    }
}

/// The place of a figure in a document of that layout.
pub(super) fn pointer(schema: &str, pointer: &str) -> String {
    if schema == "nandscape.result/1" {
        return pointer.replacen("/gpu/0/", "/gpu/", 1).replacen("/cpu/0/", "/cpu/", 1);
    }
    pointer.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_builds_have_other_names() {
        assert_eq!(Dialect::First.argument("cpu.load.jobs=5"), "cpu.0.load.jobs=5");
        assert_eq!(Dialect::First.argument("cpu.fill_jobs=5"), "cpu.fill_jobs=5");
        assert_eq!(Dialect::First.argument("l2.banks=4"), "l2.banks=4");
        assert_eq!(Dialect::Today.argument("cpu.load.jobs=5"), "cpu.load.jobs=5");
        assert_eq!(pointer("nandscape.result/1", "/gpu/0/ipc"), "/gpu/ipc");
        assert_eq!(pointer("nandscape.result/2", "/gpu/0/ipc"), "/gpu/0/ipc");
    }
}
