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

/// A device of ours that stands for one of MQSim's.
struct Setting {
    /// First parts of the ids.
    name: &'static str,
    overrides: &'static [&'static str],
    /// Its name in the table.
    device: &'static str,
    pairs: &'static [Pair],
}

const SETTINGS: &[Setting] = &[
    Setting { name: "mqsim.tpcc", overrides: &[], device: "shipped-ssdconfig", pairs: PAIRS },
    Setting {
        name: "mqsim.tpcc.single_plane",
        overrides: &["flash.die.multi_plane=off"],
        device: "shipped-ssdconfig-single-plane",
        pairs: SINGLE_PLANE,
    },
];

/// A figure of MQSim's, and ours.
#[derive(Clone, Copy)]
struct Pair {
    /// Last part of the id.
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
        id: "host_reads",
        unit: "pages",
        theirs: &[(1.0, "page_reads_user"), (-1.0, "page_reads_rmw")],
        ours: &[(1.0, "/flash/0/reads/host"), (-1.0, "/flash/0/reads/rmw")],
        rule: Rule::Exact,
        note: "13 of 8,241 pieces are in the write cache",
    },
    Pair {
        id: "mapping_reads",
        unit: "pages",
        theirs: &[(1.0, "page_reads_mapping")],
        ours: &[(1.0, "/flash/0/reads/mapping")],
        rule: Rule::Share(0.005),
        note: "about half of the misses meet a read of their page that is under way: the number hangs on nanoseconds",
    },
    Pair {
        id: "programs",
        unit: "pages",
        theirs: &[(1.0, "page_programs_user")],
        ours: &[(1.0, "/flash/0/host_programs")],
        rule: Rule::Exact,
        note: "145 of 5,152 pieces stay in the write cache",
    },
    Pair {
        id: "mean",
        unit: "ns",
        theirs: &[(4381.0 / 6999.0, "read_response_mean"), (2618.0 / 6999.0, "write_response_mean")],
        ours: &[(1.0, "/io/all/latency_ns/mean")],
        rule: Rule::Share(0.05),
        note: "mean latency of all requests",
    },
    Pair {
        id: "read",
        unit: "ns",
        theirs: &[(1.0, "read_response_mean")],
        ours: &[(1.0, "/io/read/latency_ns/mean")],
        rule: Rule::Share(0.05),
        note: "mean latency of 4,381 reads",
    },
    Pair {
        id: "write",
        unit: "ns",
        theirs: &[(1.0, "write_response_mean")],
        ours: &[(1.0, "/io/write/latency_ns/mean")],
        rule: Rule::Share(0.05),
        note: "mean latency of 2,618 writes",
    },
    Pair {
        id: "merges",
        unit: "pages",
        theirs: &[(1.0, "page_reads_rmw")],
        ours: &[(1.0, "/flash/0/reads/rmw")],
        rule: Rule::Exact,
        note: "pages that a read created, and of which a write covers other sectors",
    },
    Pair {
        id: "pairs",
        unit: "commands",
        theirs: &[(1.0, "read_commands_two_plane"), (1.0, "program_commands_two_plane")],
        ours: &[(1.0, "/flash/0/multi_plane")],
        rule: Rule::Share(0.1),
        note: "commands on two planes; in MQSim pages that reads create and pages that are written share the numbers of \
               a block, here only the reads count the writes, so that writes pair a little more often",
    },
];

/// What is compared without commands on two planes: which reads meet in the cache and in the map hangs on nanoseconds.
const SINGLE_PLANE: &[Pair] = &[
    Pair { rule: Rule::Share(0.001), note: "15 of 8,241 pieces are in MQSim's write cache", ..PAIRS[0] },
    PAIRS[1],
    PAIRS[2],
    Pair { rule: Rule::Share(0.02), ..PAIRS[3] },
    Pair { rule: Rule::Share(0.02), ..PAIRS[4] },
    Pair { rule: Rule::Share(0.02), ..PAIRS[5] },
];

pub(super) fn cases() -> Vec<Case> {
    let case = |of: &'static Setting| {
        Case::new(of.pairs.iter().map(|pair| of.id(pair)), move |context| of.rows(context))
    };
    SETTINGS.iter().map(case).collect()
}

impl Setting {
    fn id(&self, pair: &Pair) -> String {
        format!("{}.{}", self.name, pair.id)
    }

    fn rows(&self, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
        let Some(file) = data(TRACE) else {
            return self.pairs.iter().map(|pair| Ok(self.row(pair, f64::NAN)?.skipped(TRACE))).collect();
        };
        let plan = Plan::new("mqsim-default", &file.to_string_lossy());
        let mut plan = self.overrides.iter().fold(plan, |plan, set| plan.set(set));
        plan.trace =
            TraceOptions { format: Some("mqsim".into()), remap: Remap::Error, ..TraceOptions::default() };
        let mut outside = Outside {
            cpu_s: &|| 0.0,
            wall_s: &|| 0.0,
            peak_rss: &|| 0,
            stop: context.stop,
            watch: &mut |_| {},
        };
        let document = run(&plan, &mut outside)?;
        if !document.ok {
            return Err(Diagnostic::new("a check of the run failed"));
        }
        let document = serde_json::to_value(&document).unwrap_or_default();
        let place = |name: &str| document.pointer(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
        let measured = |pair: &Pair| pair.ours.iter().map(|(factor, name)| factor * place(name)).sum();
        self.pairs.iter().map(|pair| self.row(pair, measured(pair))).collect()
    }

    fn row(&self, pair: &Pair, measured: f64) -> Result<Row, Diagnostic> {
        let of = |(factor, name): &(f64, &str)| Ok(factor * figure(WORKLOAD, self.device, name)?);
        let reference: Result<Vec<f64>, Diagnostic> = pair.theirs.iter().map(of).collect();
        let row = Row::new(self.id(pair), pair.unit, reference?.iter().sum(), measured, pair.rule);
        Ok(row.place(format!("{WORKLOAD} on {}: {PLACE}", self.device)).note(pair.note))
    }
}
