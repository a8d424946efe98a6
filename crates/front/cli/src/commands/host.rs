//! Programs of a host, for `list` and `explain`.

use programs::host::{Entry, entries};
use std::fmt::Write as _;

/// Name, and source with what it does, of every program.
pub(crate) fn rows() -> Vec<(String, String)> {
    entries().map(|e| (e.name.to_owned(), format!("{}: {}", e.source, e.what))).collect()
}

/// How they are written.
pub(crate) const HELP: &str = "`apache-u:rate=500` sets parameters (`explain apache-u`). Several run side by side on any drive behind a host; those without an end need `--set sim.until=10s`.";

/// What a program is, and its parameters; a name, or a name with parameters.
pub(crate) fn explain(text: &str) -> Option<String> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    entries().find(|entry| entry.name == name).map(described)
}

fn described(entry: &Entry) -> String {
    let mut text = format!(
        "{}: a program of a host, from {}\n\n{}\n\nParameters\n",
        entry.name, entry.source, entry.what
    );
    for parameter in entry.parameters() {
        let (name, default, what) = (parameter.name, parameter.default, parameter.what);
        let _ =
            writeln!(text, "  {name} = {default}: {what} ({}; {})", parameter.allowed(), parameter.source);
    }
    text.trim_end().to_owned()
}
