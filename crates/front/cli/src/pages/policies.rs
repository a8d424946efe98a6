//! `docs/policies.md`: the policy families, their entries and parameters.

use super::{GENERATED, head, parameters::kind, row};
use config::catalogue::{Entry, Listed};
use machine::catalogue::families;
use std::fmt::Write as _;

/// The page.
pub(crate) fn page() -> String {
    let mut text = String::from(GENERATED);
    text.push_str(
        "\n# Policies\n\nA family is a list of policies that are interchangeable; a key of a system chooses one: by a \
         bare name (`victim = \"greedy\"`), which means the default parameters, or by a table with the name as its one \
         key (`victim = { d_choices = { d = 10 } }`).\n",
    );
    for listed in families() {
        text.push_str(&section(listed));
    }
    text
}

fn section(Listed { family, keys }: &Listed) -> String {
    let mut text = format!("\n## `{}`\n\n{}\n\n", keys.join("`, `"), family.text());
    text.push_str(&head(["policy", "what it does"]));
    for entry in family.entries {
        text.push_str(&row([&format!("`{}`", entry.name), &entry.text()]));
    }
    for entry in family.entries {
        text.push_str(&parameters(entry));
    }
    text
}

fn parameters(entry: &Entry) -> String {
    let params = entry.params();
    if params.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let _ = write!(
        text,
        "\nParameters of `{}`:\n\n{}",
        entry.name,
        head(["key", "kind and default", "allowed", "meaning"])
    );
    for param in &params {
        text.push_str(&row([&format!("`{}`", param.key), &kind(param), &param.allowed, &param.doc]));
    }
    text
}
