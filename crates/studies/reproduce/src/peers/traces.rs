//! MQSim's own traces on MQSim's own device.
//!
//! The number of mapping reads of `tpcc-small` depends on which look-ups meet a read of their page that is under way,
//! and so on the smallest times: array reads that are shorter or longer by up to 0.1 % give 6,912 to 6,928.
//!
//! `wsrch-small` differs in one figure, the longest read. Two of its requests ask for 2,222 sectors, 139 pages. MQSim
//! sends the data of a request to the host when the last page has been read, 1,137,664 bytes in 347 us; here, as NVMe
//! allows and controllers do, each page leaves as soon as it is there, and the link has nearly nothing left to do when
//! the last one comes. Requests of a few pages take as long either way: their pages lie on different channels and come
//! together. Without the time on the link the two longest reads agree.

use super::{PLACE, figure};
use crate::drives::data;
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use machine::run::{Outside, Plan, run};
use requests::trace::{Remap, TraceOptions};
use serde_json::Value;

/// Folder of the traces among the data sets.
const FOLDER: &str = "block_io/mqsim";
const TPCC: &str = "tpcc-small.trace";
const WSRCH: &str = "wsrch-small.trace";

/// A device of ours that stands for one of MQSim's.
struct Setting {
    /// First parts of the ids.
    name: &'static str,
    overrides: &'static [&'static str],
    /// The trace's file, which is its name in the table.
    trace: &'static str,
    /// The device's name in the table.
    device: &'static str,
    pairs: &'static [Pair],
}

const SETTINGS: &[Setting] = &[
    Setting { name: "mqsim.tpcc", overrides: &[], trace: TPCC, device: "shipped-ssdconfig", pairs: PAIRS },
    Setting {
        name: "mqsim.tpcc.single_plane",
        overrides: &["flash.die.multi_plane=off"],
        trace: TPCC,
        device: "shipped-ssdconfig-single-plane",
        pairs: SINGLE_PLANE,
    },
    Setting { name: "mqsim.wsrch", overrides: &[], trace: WSRCH, device: "shipped-ssdconfig", pairs: SEARCH },
    Setting {
        name: "gap.mqsim.wsrch",
        overrides: &[],
        trace: WSRCH,
        device: "shipped-ssdconfig",
        pairs: WHOLE,
    },
    Setting {
        name: "mqsim.wsrch.at_once",
        overrides: &["flash.host.link.plain.bandwidth=1000GB/s"],
        trace: WSRCH,
        device: "shipped-ssdconfig",
        pairs: AT_ONCE,
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
    /// Part of MQSim's value that ours lacks, in the row's unit.
    without: f64,
    rule: Rule,
    note: &'static str,
}

const PAIRS: &[Pair] = &[
    Pair {
        id: "host_reads",
        unit: "pages",
        theirs: &[(1.0, "page_reads_user"), (-1.0, "page_reads_rmw")],
        ours: &[(1.0, "/flash/0/reads/host"), (-1.0, "/flash/0/reads/rmw")],
        without: 0.0,
        rule: Rule::Exact,
        note: "13 of 8,241 pieces are in the write cache",
    },
    Pair {
        id: "mapping_reads",
        unit: "pages",
        theirs: &[(1.0, "page_reads_mapping")],
        ours: &[(1.0, "/flash/0/reads/mapping")],
        without: 0.0,
        rule: Rule::Share(0.005),
        note: "about half of the misses meet a read of their page that is under way: the number depends on nanoseconds",
    },
    Pair {
        id: "programs",
        unit: "pages",
        theirs: &[(1.0, "page_programs_user")],
        ours: &[(1.0, "/flash/0/host_programs")],
        without: 0.0,
        rule: Rule::Exact,
        note: "145 of 5,152 pieces stay in the write cache",
    },
    Pair {
        id: "mean",
        unit: "ns",
        theirs: &[(4381.0 / 6999.0, "read_response_mean"), (2618.0 / 6999.0, "write_response_mean")],
        ours: &[(1.0, "/io/all/latency_ns/mean")],
        without: 0.0,
        rule: Rule::Share(0.05),
        note: "mean latency of all requests",
    },
    Pair {
        id: "read",
        unit: "ns",
        theirs: &[(1.0, "read_response_mean")],
        ours: &[(1.0, "/io/read/latency_ns/mean")],
        without: 0.0,
        rule: Rule::Share(0.05),
        note: "mean latency of 4,381 reads",
    },
    Pair {
        id: "write",
        unit: "ns",
        theirs: &[(1.0, "write_response_mean")],
        ours: &[(1.0, "/io/write/latency_ns/mean")],
        without: 0.0,
        rule: Rule::Share(0.05),
        note: "mean latency of 2,618 writes",
    },
    Pair {
        id: "merges",
        unit: "pages",
        theirs: &[(1.0, "page_reads_rmw")],
        ours: &[(1.0, "/flash/0/reads/rmw")],
        without: 0.0,
        rule: Rule::Exact,
        note: "pages that a read created, and of which a write covers other sectors",
    },
    Pair {
        id: "pairs",
        unit: "commands",
        theirs: &[(1.0, "read_commands_two_plane"), (1.0, "program_commands_two_plane")],
        ours: &[(1.0, "/flash/0/multi_plane")],
        without: 0.0,
        rule: Rule::Share(0.1),
        note: "commands on two planes; in MQSim pages that reads create and pages that are written share the numbers of \
               a block, here only the reads count the writes, so that writes pair a little more often",
    },
];

/// Metrics compared without commands on two planes: which reads meet in the cache and in the mapping depends on
/// nanoseconds.
const SINGLE_PLANE: &[Pair] = &[
    Pair { rule: Rule::Share(0.001), note: "15 of 8,241 pieces are in MQSim's write cache", ..PAIRS[0] },
    PAIRS[1],
    PAIRS[2],
    Pair { rule: Rule::Share(0.02), ..PAIRS[3] },
    Pair { rule: Rule::Share(0.02), ..PAIRS[4] },
    Pair { rule: Rule::Share(0.02), ..PAIRS[5] },
];

const LONGEST: Pair = Pair {
    id: "max",
    unit: "ns",
    theirs: &[(1.0, "read_response_max")],
    ours: &[(1.0, "/io/read/latency_ns/max")],
    without: 0.0,
    rule: Rule::Apart(0.2),
    note: "a read of 139 pages: MQSim sends them to the host together, when the last one is there; here each one goes at once",
};

const SEARCH: &[Pair] = &[
    Pair { note: "every page that is asked for, none twice at a time", ..PAIRS[0] },
    Pair { rule: Rule::Exact, note: "21,539 misses meet a read of their page that is under way", ..PAIRS[1] },
    Pair { note: "four writes of a page", ..PAIRS[2] },
    Pair { rule: Rule::Share(0.001), note: "mean latency of 24,779 reads", ..PAIRS[4] },
];

/// The known gap.
const WHOLE: &[Pair] = &[LONGEST];

/// The longest read up to its last page: 1,137,664 bytes take 346,632 ns at 4 GB/s with 28 bytes of headers for each
/// 128.
const AT_ONCE: &[Pair] = &[Pair {
    without: 1_137_664.0 / (4.0 * 128.0 / 156.0),
    rule: Rule::Share(0.005),
    note: "without the time on the link: MQSim's less 347 us, ours with a link that takes none",
    ..LONGEST
}];

impl Pair {
    /// Our value, from the places that it names.
    ///
    /// # Errors
    /// A place without a number.
    fn measured(&self, document: &Value) -> Result<f64, Diagnostic> {
        let place = |name: &str| {
            let value = document.pointer(name).and_then(Value::as_f64);
            value.ok_or_else(|| Diagnostic::new(format!("the result has no number at `{name}`")))
        };
        self.ours.iter().map(|(factor, name)| Ok(factor * place(name)?)).sum()
    }
}

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
        let name = format!("{FOLDER}/{}", self.trace);
        let Some(file) = data(&name) else {
            return self.pairs.iter().map(|pair| Ok(self.row(pair, f64::NAN)?.skipped(&name))).collect();
        };
        let plan = Plan::new("mqsim-default", &file.to_string_lossy());
        let mut plan = self.overrides.iter().fold(plan, |plan, set| plan.set(set));
        plan.trace = TraceOptions { format: Some("mqsim".into()), remap: Remap::Error, ..plan.trace };
        let mut outside = Outside {
            cpu_s: &|| 0.0,
            wall_s: &|| 0.0,
            peak_rss: &|| 0,
            stop: context.stop,
            watch: &mut |_| {},
            states: None,
        };
        let document = run(&plan, &mut outside)?;
        if !document.ok {
            return Err(Diagnostic::new("a check of the run failed"));
        }
        // Text and numbers: serialising cannot fail.
        let document = serde_json::to_value(&document).expect("a document is JSON");
        self.pairs.iter().map(|pair| self.row(pair, pair.measured(&document)?)).collect()
    }

    fn row(&self, pair: &Pair, measured: f64) -> Result<Row, Diagnostic> {
        let of = |(factor, name): &(f64, &str)| Ok(factor * figure(self.trace, self.device, name)?);
        let reference: Result<Vec<f64>, Diagnostic> = pair.theirs.iter().map(of).collect();
        let reference = reference?.iter().sum::<f64>() - pair.without;
        let row = Row::new(self.id(pair), pair.unit, reference, measured, pair.rule);
        Ok(row.place(format!("{} on {}: {PLACE}", self.trace, self.device)).note(pair.note))
    }
}
