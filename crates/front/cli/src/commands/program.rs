//! Programs of a GPU, for `list` and `explain`.

use crate::progress::Said;
use config::Diagnostic;
use programs::program::{self, Census, Entry, Params, Table, census_within, entries};
use std::fmt::Write as _;

/// Name, suite and description of every program.
pub(crate) fn rows() -> Vec<(String, String)> {
    entries().map(|e| (e.name.to_owned(), format!("{}: {}", e.suite, e.what))).collect()
}

/// Syntax of programs as workloads.
pub(crate) const HELP: &str = "`betw-back` runs programs side by side; `betw:scale=17,seed=2` sets parameters (`explain betw`).\n\
     A recorded program is `kernelslist.g` or a kernel of Accel-Sim, or a folder, list or archive of MacSim.";

/// Maximum number of instructions counted, consecutive arithmetic as one: about a minute.
const COUNTED_MOST: u64 = 1 << 30;

/// Describes a program. `text` is written as for `--workload`: a name, a name with parameters, or several names.
///
/// # Errors
/// The parameters are invalid.
pub(crate) fn explain(text: &str) -> Result<Option<String>, Diagnostic> {
    let (names, options) = text.split_once(':').unwrap_or((text, ""));
    let found: Option<Vec<&Entry>> =
        names.split('-').map(|name| entries().find(|entry| entry.name == name)).collect();
    let Some(found) = found else { return Ok(None) };
    let mut parts = Vec::new();
    for entry in found {
        let whole = if options.is_empty() { entry.name } else { text };
        let mut text = described(entry, &Params::read(whole, options, entry.keys)?);
        let said = Said::new(&format!("reading {whole}"));
        match program::open(&[whole]) {
            Ok(programs) => programs.into_iter().for_each(|mut program| {
                let (census, ended) = census_within(program.as_mut(), COUNTED_MOST, |so_far| {
                    said.show(counting(whole, so_far));
                });
                if !ended {
                    text.push_str(&cut(whole, &census));
                }
                text.push_str(&counted(&census, entry.table.as_ref()));
            }),
            // A program that lacks a required parameter is still explained.
            Err(fault) if options.is_empty() => {
                let _ = write!(text, "\nNot counted: {}", fault.one_line());
            }
            Err(fault) => return Err(fault),
        }
        parts.push(text);
    }
    Ok(Some(parts.join("\n\n")))
}

fn described(entry: &Entry, params: &Params) -> String {
    let mut text = format!("{}: a program of a GPU, from {}\n\n{}\n", entry.name, entry.suite, entry.what);
    if !entry.keys.is_empty() {
        text.push_str("\nParameters\n");
    }
    for (key, value) in params.values() {
        let shown = if value.is_empty() { "none" } else { value };
        let _ = writeln!(text, "  {} = {shown}: {}", key.name, key.what);
    }
    text
}

/// Progress of the counting.
fn counting(whole: &str, so_far: &Census) -> String {
    let millions = so_far.warp_instructions / 1_000_000;
    format!("counting {whole}: kernel {}, {millions} million warp instructions", so_far.kernels.len())
}

/// Note that a program was counted only in part.
fn cut(whole: &str, census: &Census) -> String {
    let all = program::launches(whole).map(|all| format!(" of {}", all.size_hint().0)).unwrap_or_default();
    let part = if all.is_empty() { "" } else { "; `launches=A..B` counts a part" };
    format!(
        "\nCounted in part: counting stops after {} million warp instructions, in kernel {}{all}. All values but the footprint cover the counted \
         part only{part}.\n",
        census.warp_instructions / 1_000_000,
        census.kernels.len(),
    )
}

/// Formats counts, each beside that of ZnG's Table II.
fn counted(census: &Census, table: Option<&Table>) -> String {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let requests = census.loads.lines + census.stores.lines + census.atomics.lines;
    let rows = [
        ("kernels", census.kernels.len().to_string(), table.map(|t| t.kernels.to_string())),
        ("read ratio", format!("{:.3}", census.read_ratio()), table.map(|t| t.read_ratio.to_string())),
        ("warp instructions", census.warp_instructions.to_string(), None),
        ("thread instructions", census.thread_instructions.to_string(), None),
        ("requests for 128 B lines", requests.to_string(), None),
        ("footprint", mib(census.footprint), None),
        ("touched", mib(census.touched()), None),
        ("arithmetic intensity", format!("{:.3} operations/B", census.intensity()), None),
    ];
    let mut text = String::from("\nCounted without a machine\n");
    for (name, value, of_table) in rows {
        let beside = of_table.map(|v| format!("  (ZnG, Table II: {v})")).unwrap_or_default();
        let _ = writeln!(text, "  {name:28}{value}{beside}");
    }
    text.truncate(text.trim_end().len());
    text
}
