//! MQSim's own trace on MQSim's own device.
//!
//! The number of mapping reads depends on which look-ups meet a read of their page that is under way, and so on the
//! smallest times: array reads that are shorter or longer by up to 0.1 % give 6,912 to 6,928.

use super::mqsim::{PLACE, figure};
use crate::reproduce::data::data;
use crate::reproduce::{Case, Context, Row, Rule};
use crate::run::{Outside, Plan, run};
use config::Diagnostic;
use serde_json::Value;
use workload::trace::{Remap, TraceOptions};

const TRACE: &str = "block_io/mqsim/tpcc-small.trace";
const WORKLOAD: &str = "tpcc-small.trace";
const DEVICE: &str = "shipped-ssdconfig";

/// A figure of MQSim's, and ours.
struct Pair {
    id: &'static str,
    unit: &'static str,
    /// Names in the table that add up to it, each with its factor.
    theirs: &'static [(f64, &'static str)],
    /// Places in the result document, likewise.
    ours: &'static [(f64, &'static str)],
    rule: Rule,
    note: &'static str,
}

const PAIRS: &[Pair] = &[
    Pair {
        id: "mqsim.tpcc.host_reads",
        unit: "pages",
        theirs: &[(1.0, "page_reads_user"), (-1.0, "page_reads_rmw")],
        ours: &[(1.0, "/flash/0/reads/host"), (-1.0, "/flash/0/reads/rmw")],
        rule: Rule::Exact,
        note: "13 of 8,241 pieces are in the write cache",
    },
    Pair {
        id: "mqsim.tpcc.mapping_reads",
        unit: "pages",
        theirs: &[(1.0, "page_reads_mapping")],
        ours: &[(1.0, "/flash/0/reads/mapping")],
        rule: Rule::Share(0.005),
        note: "about half of the misses meet a read of their page that is under way: the number hangs on nanoseconds",
    },
    Pair {
        id: "mqsim.tpcc.programs",
        unit: "pages",
        theirs: &[(1.0, "page_programs_user")],
        ours: &[(1.0, "/flash/0/host_programs")],
        rule: Rule::Exact,
        note: "145 of 5,152 pieces stay in the write cache",
    },
    Pair {
        id: "mqsim.tpcc.mean",
        unit: "ns",
        theirs: &[(4381.0 / 6999.0, "read_response_mean"), (2618.0 / 6999.0, "write_response_mean")],
        ours: &[(1.0, "/io/all/latency_ns/mean")],
        rule: Rule::Share(0.05),
        note: "mean latency of all requests",
    },
    Pair {
        id: "mqsim.tpcc.read",
        unit: "ns",
        theirs: &[(1.0, "read_response_mean")],
        ours: &[(1.0, "/io/read/latency_ns/mean")],
        rule: Rule::Share(0.05),
        note: "mean latency of 4,381 reads",
    },
    Pair {
        id: "mqsim.tpcc.write",
        unit: "ns",
        theirs: &[(1.0, "write_response_mean")],
        ours: &[(1.0, "/io/write/latency_ns/mean")],
        rule: Rule::Share(0.05),
        note: "mean latency of 2,618 writes",
    },
    Pair {
        id: "mqsim.tpcc.merges",
        unit: "pages",
        theirs: &[(1.0, "page_reads_rmw")],
        ours: &[(1.0, "/flash/0/reads/rmw")],
        rule: Rule::Exact,
        note: "pages that a read created, and of which a write covers other sectors",
    },
    Pair {
        id: "mqsim.tpcc.pairs",
        unit: "commands",
        theirs: &[(1.0, "read_commands_two_plane"), (1.0, "program_commands_two_plane")],
        ours: &[(1.0, "/flash/0/multi_plane")],
        rule: Rule::Share(0.1),
        note: "commands on two planes; in MQSim pages that reads create and pages that are written share the numbers of \
               a block, here only the reads count the writes, so that writes pair a little more often",
    },
];

pub(super) fn cases() -> Vec<Case> {
    vec![Case::new(PAIRS.iter().map(|pair| pair.id.to_owned()), rows)]
}

fn rows(context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let Some(file) = data(TRACE) else {
        return Ok(PAIRS.iter().map(|pair| Row::skipped(pair.id, pair.unit, TRACE)).collect());
    };
    let mut plan = Plan::new("mqsim-default", &file.to_string_lossy());
    plan.trace =
        TraceOptions { format: Some("mqsim".into()), remap: Remap::Error, ..TraceOptions::default() };
    let mut outside =
        Outside { cpu_s: &|| 0.0, wall_s: &|| 0.0, peak_rss: &|| 0, stop: context.stop, watch: &mut |_| {} };
    let document = run(&plan, &mut outside)?;
    if !document.ok {
        return Err(Diagnostic::new("a check of the run failed"));
    }
    let document = serde_json::to_value(&document).unwrap_or_default();
    PAIRS.iter().map(|pair| row(pair, &document)).collect()
}

fn row(pair: &Pair, document: &Value) -> Result<Row, Diagnostic> {
    let theirs = pair.theirs.iter().map(|(factor, name)| Ok(factor * figure(WORKLOAD, DEVICE, name)?));
    let theirs: Result<Vec<f64>, Diagnostic> = theirs.collect();
    let place = |name: &str| document.pointer(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let ours: f64 = pair.ours.iter().map(|(factor, name)| factor * place(name)).sum();
    let row = Row::new(pair.id, pair.unit, theirs?.iter().sum(), ours, pair.rule);
    Ok(row.place(format!("{WORKLOAD} on {DEVICE}: {PLACE}")).note(pair.note))
}
