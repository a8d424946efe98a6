//! A golden case: one run of the shipped binary.

use anyhow::Result;
use serde::Deserialize;

/// The content of `tests/golden/NAME.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// A shipped system or a TOML file, relative to the root of the workspace.
    system: String,
    /// What `--workload` takes.
    workload: String,
    /// Further arguments of `nandscape run`.
    #[serde(default)]
    args: Vec<String>,
}

impl Case {
    pub(super) fn parse(text: &str) -> Result<Case> {
        Ok(toml::from_str(text)?)
    }

    /// The command line, without the binary.
    pub(super) fn arguments(&self) -> Vec<&str> {
        let mut arguments = vec!["run", &self.system, "--workload", &self.workload];
        arguments.extend(self.args.iter().map(String::as_str));
        arguments.push("--json");
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_a_command_line() {
        let case =
            Case::parse("system = \"d16\"\nworkload = \"fio:rw=read\"\nargs = [\"--seed\", \"7\"]").unwrap();
        let expected = ["run", "d16", "--workload", "fio:rw=read", "--seed", "7", "--json"];
        assert_eq!(case.arguments(), expected);
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        assert!(Case::parse("system = \"d16\"\nworkloads = \"x\"").is_err());
        assert!(Case::parse("system = \"d16\"").is_err());
    }
}
