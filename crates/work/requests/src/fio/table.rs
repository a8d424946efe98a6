//! The one table of fio's options: what each does here.

use config::Diagnostic;
use serde::Serialize;

use super::files::FILES;
use super::honoured::HONOURED;
use super::inert::INERT;
use super::queue::QUEUE;
use super::spec::JobSpec;
use super::value::Value;

/// What becomes of an option here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It shapes the requests as in fio.
    Honoured,
    /// It cannot change a result here; the result lists it with the reason.
    Inert,
    /// It would change what is measured and is not modelled: an error that says so.
    Unsupported,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FioOption {
    /// fio's name.
    pub name: &'static str,
    /// fio's other name for it.
    pub alias: Option<&'static str>,
    /// What becomes of it.
    pub class: Class,
    /// Honoured: what it does. Inert: why it changes nothing. Unsupported: why not.
    pub doc: &'static str,
    /// Values of an unsupported option that ask for nothing.
    pub(crate) neutral: &'static [&'static str],
    /// Whether its value may hold commas (so that an inline job knows where it ends).
    pub(crate) list: bool,
    /// Reads the value of an honoured option into a job.
    pub(crate) set: fn(&mut JobSpec, Value<'_>) -> Result<(), Diagnostic>,
}

impl FioOption {
    /// Its value may hold commas.
    pub(crate) const fn list(self) -> FioOption {
        FioOption { list: true, ..self }
    }

    /// These values of an unsupported option ask for nothing.
    pub(crate) const fn neutral(self, neutral: &'static [&'static str]) -> FioOption {
        FioOption { neutral, ..self }
    }

    /// It also goes by this name.
    pub(crate) const fn or(self, alias: &'static str) -> FioOption {
        FioOption { alias: Some(alias), ..self }
    }
}

type Set = fn(&mut JobSpec, Value<'_>) -> Result<(), Diagnostic>;

/// A row of the honoured kind.
pub(super) const fn honoured(
    name: &'static str,
    alias: Option<&'static str>,
    set: Set,
    doc: &'static str,
) -> FioOption {
    FioOption { name, alias, class: Class::Honoured, doc, neutral: &[], list: false, set }
}

/// A row of the inert kind.
pub(super) const fn inert(name: &'static str, doc: &'static str) -> FioOption {
    FioOption { name, alias: None, class: Class::Inert, doc, neutral: &[], list: false, set: ignore }
}

/// A row of the unsupported kind.
pub(super) const fn unsupported(name: &'static str, doc: &'static str) -> FioOption {
    FioOption { name, alias: None, class: Class::Unsupported, doc, neutral: &[], list: false, set: ignore }
}

fn ignore(_: &mut JobSpec, _: Value<'_>) -> Result<(), Diagnostic> {
    Ok(())
}

/// Every option of fio up to 3.42, and those of the engines that are honoured: honoured, inert, unsupported.
pub fn options() -> impl Iterator<Item = &'static FioOption> {
    HONOURED.iter().chain(FILES).chain(QUEUE).chain(INERT).chain(UNSUPPORTED)
}

/// The row of a name or alias.
pub fn option(name: &str) -> Option<&'static FioOption> {
    options().find(|row| row.name == name || row.alias == Some(name))
}

/// Every name and alias.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    options().flat_map(|row| std::iter::once(row.name).chain(row.alias))
}

// Options that would change what is measured and are not modelled: an error that says why.

const OFF: &[&str] = &["0"];

const REPLAY: &str = "traces are a workload of their own: give the trace file to --workload";

const STRIPES: &str = "zoned patterns are not modelled; random_distribution=zoned skews over ranges";

const PRIORITY: &str = "requests of a job carry no priority";

const PLACEMENT: &str = "requests of a job carry no placement hint";

const METADATA: &str = "NVMe passthrough fields are not modelled";

const FLOW: &str = "jobs do not regulate one another; use rate or rate_iops";

const SHARED_END: &str = "the end of one job does not end another; use runtime";

const STEADY: &str = "a job does not end when it is judged steady; use runtime";

const PRECONDITION: &str = "preconditioning is a matter of --precondition";

/// Rows of the table.
pub(super) const UNSUPPORTED: &[FioOption] = &[
    unsupported("atomic", "torn writes are not modelled").neutral(OFF),
    unsupported("opendir", "there are no files to find"),
    unsupported("lockfile", "locks between jobs are not modelled").neutral(&["none"]),
    unsupported("file_append", "a device has no end to append to").neutral(OFF),
    unsupported("fill_device", "a device has a known size; use size").neutral(OFF).or("fill_fs"),
    unsupported("pre_read", "nothing is read into host caches before a run").neutral(OFF),
    unsupported("create_only", "a run without requests measures nothing").neutral(OFF),
    unsupported("end_syncfs", "there is no file system; use end_fsync").neutral(OFF),
    unsupported("sync_file_range", "it acts on the page cache; use fsync").list(),
    unsupported("write_barrier", "barrier writes are not modelled; use fsync or sync").neutral(OFF),
    unsupported("bs_unaligned", "a device takes whole sectors").neutral(OFF).or("blocksize_unaligned"),
    unsupported("num_range", "a trim names one range").neutral(&["1"]),
    unsupported("random_sequence_stride", "random_distribution=sequence is not modelled").neutral(OFF),
    unsupported("sprandom", PRECONDITION).neutral(OFF),
    unsupported("spr_num_regions", PRECONDITION),
    unsupported("spr_op", PRECONDITION),
    unsupported("spr_cs", PRECONDITION),
    unsupported("serialize_overlap", "overlapping requests are not held back").neutral(OFF),
    unsupported("io_submit_mode", "a rate-capped job already issues on schedule; leave it out")
        .neutral(&["inline"]),
    unsupported("verify", "block contents are checked by the device's own shadow").neutral(&["0", "none"]),
    unsupported("verify_only", "block contents are checked by the device's own shadow").neutral(OFF),
    unsupported("verify_state_load", "block contents are checked by the device's own shadow").neutral(OFF),
    unsupported("trim_percentage", "trims within a write job are not modelled; use rw=trimwrite")
        .neutral(OFF),
    unsupported("trim_backlog", "trims within a write job are not modelled; use rw=trimwrite").neutral(OFF),
    unsupported("read_iolog", REPLAY),
    unsupported("read_iolog_chunked", REPLAY).neutral(OFF),
    unsupported("replay_no_stall", REPLAY).neutral(OFF),
    unsupported("replay_redirect", REPLAY),
    unsupported("replay_scale", REPLAY).neutral(&["1"]),
    unsupported("replay_align", REPLAY).neutral(OFF),
    unsupported("replay_time_scale", REPLAY).neutral(&["100"]),
    unsupported("replay_skip", REPLAY).list(),
    unsupported("merge_blktrace_file", REPLAY),
    unsupported("merge_blktrace_scalars", REPLAY),
    unsupported("merge_blktrace_iters", REPLAY),
    unsupported("zonemode", STRIPES).neutral(&["none"]),
    unsupported("zonesize", STRIPES).neutral(OFF),
    unsupported("zonerange", STRIPES).neutral(OFF),
    unsupported("zoneskip", STRIPES).neutral(OFF),
    unsupported("fdp", PLACEMENT).neutral(OFF),
    unsupported("dataplacement", PLACEMENT).neutral(&["none"]).or("data_placement"),
    unsupported("plid_select", PLACEMENT).or("fdp_pli_select"),
    unsupported("plids", PLACEMENT).or("fdp_pli").list(),
    unsupported("dp_scheme", PLACEMENT),
    unsupported("write_hint", PLACEMENT).neutral(&["none"]),
    unsupported("prio", PRIORITY),
    unsupported("prioclass", PRIORITY).neutral(OFF),
    unsupported("priohint", PRIORITY).neutral(OFF),
    unsupported("cmdprio", PRIORITY).list(),
    unsupported("cmdprio_percentage", PRIORITY).neutral(OFF).list(),
    unsupported("cmdprio_class", PRIORITY).list(),
    unsupported("cmdprio_hint", PRIORITY).list(),
    unsupported("cmdprio_bssplit", PRIORITY).list(),
    unsupported("readfua", METADATA).neutral(OFF),
    unsupported("writefua", "FUA writes are sync=dsync").neutral(OFF),
    unsupported("write_mode", METADATA).neutral(&["write"]),
    unsupported("verify_mode", METADATA).neutral(&["read"]),
    unsupported("read_mode", METADATA).neutral(&["read"]),
    unsupported("cdb_len", METADATA),
    unsupported("verify_bytchk", METADATA),
    unsupported("md_per_io_size", METADATA).neutral(OFF),
    unsupported("pi_act", METADATA),
    unsupported("pi_chk", METADATA).list(),
    unsupported("apptag", METADATA),
    unsupported("apptag_mask", METADATA),
    unsupported("deac", METADATA).neutral(OFF),
    unsupported("ramp_size", "results leave out a time, not an amount; use ramp_time"),
    unsupported("thinkcycles", "processor cycles are not simulated here; use thinktime").neutral(OFF),
    unsupported("rate_ignore_thinktime", "pauses do not shift the schedule of a rate").neutral(OFF),
    unsupported("latency_target", "a job does not search for its depth; sweep iodepth").neutral(OFF),
    unsupported("wait_for", "jobs are ordered by stonewall alone"),
    unsupported("exitall", SHARED_END).neutral(OFF),
    unsupported("exit_what", SHARED_END),
    unsupported("steadystate", STEADY).or("ss"),
    unsupported("steadystate_duration", STEADY).neutral(OFF).or("ss_dur"),
    unsupported("steadystate_ramp_time", STEADY).neutral(OFF).or("ss_ramp"),
    unsupported("steadystate_check_interval", STEADY).or("ss_interval"),
    unsupported("cgroup", "control groups are not modelled"),
    unsupported("cgroup_weight", "control groups are not modelled"),
    unsupported("flow_id", FLOW).neutral(OFF),
    unsupported("flow", FLOW).neutral(OFF),
    unsupported("flow_sleep", FLOW).neutral(OFF),
    unsupported("profile", "built-in profiles are not known; write the options out"),
    unsupported("percentage_sequential", "fio itself has given it up; use percentage_random"),
    unsupported("rwmixcycle", "fio itself has given it up"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_twice() {
        let mut all: Vec<&str> = names().collect();
        all.sort_unstable();
        let twice: Vec<_> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn only_unsupported_options_have_neutral_values() {
        for row in options() {
            assert!(row.neutral.is_empty() || row.class == Class::Unsupported, "{}", row.name);
            assert!(!row.doc.is_empty() && !row.doc.ends_with('.'), "{}", row.name);
        }
    }
}
