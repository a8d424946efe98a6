//! `docs/parameters.md`: every key of a system, every fio option, every format of traces and of recorded programs.

use super::{GENERATED, head, row};
use crate::commands::list::CLASSES;
use config::schema::Param;
use machine::catalogue::{families, params};
use programs::cpu_trace;
use requests::fio::options;
use requests::trace::{formats, written_formats};
use std::fmt::Write as _;

/// The page.
pub(crate) fn page() -> String {
    let mut text = String::from(GENERATED);
    text.push_str("\n# Parameters\n");
    text.push_str(&spec_keys());
    text.push_str(&fio_options());
    text.push_str(&trace_formats());
    text.push_str(&recorded_programs());
    text
}

fn spec_keys() -> String {
    let mut text = String::from(
        "\n## Keys of a system\n\nA system is a TOML file. Every key must be set, there or in a system that it inherits \
         (`inherits = \"NAME\"`), unless it says `none`. The values of a system are printed by \
         `nandscape params --system NAME`. Parameters of policies are in [policies.md](policies.md).\n\n",
    );
    text.push_str(&head(["key", "kind", "allowed", "meaning"]));
    // What belongs to a policy stands with the policy.
    let is_policy = |param: &&Param| param.family.is_none() && families().iter().any(|f| f.has(&param.key));
    for param in params().iter().filter(|param| !is_policy(param)) {
        text.push_str(&row([&format!("`{}`", param.key), &kind(param), &param.allowed, &param.doc]));
    }
    text
}

/// `duration (ps, ns, us), none`.
pub(super) fn kind(param: &Param) -> String {
    let units = if param.units.is_empty() { String::new() } else { format!(" ({})", param.units.join(", ")) };
    let default = param.default.as_ref().map(|default| format!("; {default}")).unwrap_or_default();
    format!("{}{units}{default}", param.kind)
}

fn fio_options() -> String {
    let mut text = String::from(
        "\n## fio options\n\nOf `--workload fio:name=value,…` and of job files. Any other option is an error that names the \
         nearest one.\n",
    );
    for (class, title) in CLASSES {
        let title = title.replacen(':', " here:", 1);
        let _ = write!(text, "\n### {}\n\n{}", capital(&title), head(["option", "also", "meaning"]));
        for option in options().filter(|o| o.class == class) {
            let alias = option.alias.map(|alias| format!("`{alias}`")).unwrap_or_default();
            text.push_str(&row([&format!("`{}`", option.name), &alias, option.doc]));
        }
    }
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn trace_formats() -> String {
    let written: Vec<String> = written_formats().map(|name| format!("`{name}`")).collect();
    let mut text = format!(
        "\n## Trace formats\n\nRecognised by content; content that fits several is read as the most plausible of them, with a \
         warning. Plain, gzip, xz, bzip2 or zstd. `trace convert` writes {}.\n\n{}",
        written.join(", "),
        head(["format", "what", "record", "units"])
    );
    for format in formats() {
        let name = format!("`{}`", format.name);
        text.push_str(&row([&name, format.title, &format!("`{}`", format.record), format.units]));
    }
    text
}

fn recorded_programs() -> String {
    let mut text = String::from(
        "\n## Recorded programs of a server\n\nRecognised by content, plain or compressed. Parameters stand behind the \
         name of the file: `--workload sort.nst:job=50000`.\n\n",
    );
    text.push_str(&head(["parameter", "default", "meaning"]));
    for key in cpu_trace::PARAMETERS {
        text.push_str(&row([&format!("`{}`", key.name), key.default, key.what]));
    }
    let _ = write!(text, "\n{}", head(["format", "what"]));
    for (name, title) in cpu_trace::formats() {
        text.push_str(&row([&format!("`{name}`"), title]));
    }
    text
}
