//! Running the binary, and what every test of it needs.

#![allow(dead_code, reason = "each test uses a part of it")]

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A device of 16 MiB that is ready at once.
pub(crate) const TINY: [&str; 14] = [
    "--precondition",
    "none",
    "--set",
    "flash.geometry.blocks=32",
    "--set",
    "flash.geometry.pages=16",
    "--set",
    "flash.ftl.gc.start=3",
    "--set",
    "flash.ftl.gc.stop=4",
    "--set",
    "flash.ftl.gc.hard=1",
    "--set",
    "flash.ftl.over_provisioning=25%",
];

/// Outcome of a run of the binary.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// The one JSON document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| {
            panic!("stdout is not one JSON document: {e}\n{}\n{}", self.stdout, self.stderr)
        })
    }

    /// Panics unless the binary said that all is well.
    pub(crate) fn well(self) -> Done {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stdout, self.stderr);
        self
    }
}

/// The binary with arguments.
pub(crate) fn command<S: AsRef<str>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(arguments.iter().map(AsRef::as_ref));
    command
}

/// Runs the binary to its end.
pub(crate) fn nandscape<S: AsRef<str>>(arguments: &[S]) -> Done {
    let output = command(arguments).output().expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// `run d16` on the tiny device.
pub(crate) fn run_tiny(more: &[&str]) -> Done {
    let mut arguments = vec!["run", "d16"];
    arguments.extend(TINY);
    arguments.extend(more);
    nandscape(&arguments)
}

/// Panics unless the arguments are refused in exactly one diagnostic that says all of `said`, and what to do about it.
pub(crate) fn refused(arguments: &[&str], said: &[&str]) {
    let stderr = refused_in_all(arguments, said);
    let faults = stderr.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(faults, 1, "{arguments:?}\n{stderr}");
}

/// As [`refused`], where a diagnostic may tell several faults; what it said.
pub(crate) fn refused_in_all(arguments: &[&str], said: &[&str]) -> String {
    let done = nandscape(arguments);
    assert_eq!(done.code, Some(2), "{arguments:?}\n{}\n{}", done.stdout, done.stderr);
    assert_eq!(done.stdout, "", "{arguments:?}");
    assert!(done.stderr.starts_with("error: "), "{arguments:?}\n{}", done.stderr);
    assert!(!done.stderr.contains("panicked"), "{arguments:?}\n{}", done.stderr);
    for text in said {
        assert!(done.stderr.contains(text), "{arguments:?}\nno `{text}` in\n{}", done.stderr);
    }
    let remedy = [
        "help: ",
        "allowed",
        "did you mean",
        "such as",
        "takes",
        "expected",
        "at least",
        "write `",
        " is read",
        " is supported",
        "ends before the",
        "truncated",
        "promises",
        "twice",
    ];
    assert!(
        remedy.iter().any(|word| done.stderr.contains(word)),
        "{arguments:?}: no remedy in\n{}",
        done.stderr
    );
    done.stderr
}

/// Writes a file into a folder; its path.
pub(crate) fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("a file can be written");
    path.display().to_string()
}

/// The paths of all leaves of a document, with their values.
pub(crate) fn leaves(document: &Value) -> Vec<(String, Value)> {
    fn walk(path: String, value: &Value, found: &mut Vec<(String, Value)>) {
        let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match value {
            Value::Object(table) => table.iter().for_each(|(name, inner)| walk(join(name), inner, found)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, inner)| walk(join(&at.to_string()), inner, found));
            }
            leaf => found.push((path, leaf.clone())),
        }
    }
    let mut found = Vec::new();
    walk(String::new(), document, &mut found);
    found
}
