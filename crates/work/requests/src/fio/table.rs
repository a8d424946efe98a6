//! Table of fio's options, and its rows without an effect here: the result lists the given ones with the reason.

use config::Diagnostic;
use serde::Serialize;

use super::files::FILES;
use super::honoured::HONOURED;
use super::queue::QUEUE;
use super::spec::JobSpec;
use super::value::Value;

/// Support of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Shapes the requests as in fio.
    Honoured,
    /// Cannot change a result here; the result lists it with the reason.
    Inert,
    /// Would change what is measured and is not modelled: an error that says so.
    Unsupported,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FioOption {
    /// Name in fio.
    pub name: &'static str,
    /// Alternative name in fio.
    pub alias: Option<&'static str>,
    /// Support of the option.
    pub class: Class,
    /// Description. Honoured: effect. Inert: why it has no effect. Unsupported: why not.
    pub doc: &'static str,
    /// Values of an unsupported option that have no effect.
    pub(crate) neutral: &'static [&'static str],
    /// True if the value may hold commas (an inline job needs this to find its end).
    pub(crate) list: bool,
    /// Reads the value of an honoured option into a job.
    pub(crate) set: fn(&mut JobSpec, Value<'_>) -> Result<(), Diagnostic>,
}

impl FioOption {
    /// Allows commas in the value.
    pub(crate) const fn list(self) -> FioOption {
        FioOption { list: true, ..self }
    }

    /// Sets the values of an unsupported option that have no effect.
    pub(crate) const fn neutral(self, neutral: &'static [&'static str]) -> FioOption {
        FioOption { neutral, ..self }
    }

    /// Adds an alternative name.
    pub(crate) const fn or(self, alias: &'static str) -> FioOption {
        FioOption { alias: Some(alias), ..self }
    }
}

type Set = fn(&mut JobSpec, Value<'_>) -> Result<(), Diagnostic>;

/// Creates a row of the honoured kind.
pub(super) const fn honoured(
    name: &'static str,
    alias: Option<&'static str>,
    set: Set,
    doc: &'static str,
) -> FioOption {
    FioOption { name, alias, class: Class::Honoured, doc, neutral: &[], list: false, set }
}

/// Creates a row of the inert kind.
pub(super) const fn inert(name: &'static str, doc: &'static str) -> FioOption {
    FioOption { name, alias: None, class: Class::Inert, doc, neutral: &[], list: false, set: ignore }
}

/// Creates a row of the unsupported kind.
pub(super) const fn unsupported(name: &'static str, doc: &'static str) -> FioOption {
    FioOption { name, alias: None, class: Class::Unsupported, doc, neutral: &[], list: false, set: ignore }
}

fn ignore(_: &mut JobSpec, _: Value<'_>) -> Result<(), Diagnostic> {
    Ok(())
}

/// Returns every option of fio up to 3.42 and those of the honoured engines: honoured, inert, unsupported.
pub fn options() -> impl Iterator<Item = &'static FioOption> {
    HONOURED.iter().chain(FILES).chain(QUEUE).chain(INERT).chain(UNSUPPORTED)
}

/// Returns the row of a name or alias.
pub fn option(name: &str) -> Option<&'static FioOption> {
    options().find(|row| row.name == name || row.alias == Some(name))
}

/// Returns every name and alias.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    options().flat_map(|row| std::iter::once(row.name).chain(row.alias))
}

// Options that would change what is measured and are not modelled: an error that says why.

const OFF: &[&str] = &["0"];

const REPLAY: &str = "a trace is a separate workload: pass the trace file to --workload";

const STRIPES: &str = "zoned patterns are not modelled; random_distribution=zoned skews over ranges";

const PRIORITY: &str = "requests of a job carry no priority";

const PLACEMENT: &str = "requests of a job carry no placement hint";

const METADATA: &str = "NVMe passthrough fields are not modelled";

const FLOW: &str = "jobs do not regulate each other; use rate or rate_iops";

const SHARED_END: &str = "the end of one job does not end others; use runtime";

const STEADY: &str = "a job does not end at a steady state; use runtime";

const PRECONDITION: &str = "use --precondition";

/// Rows of the table.
pub(super) const UNSUPPORTED: &[FioOption] = &[
    unsupported("atomic", "torn writes are not modelled").neutral(OFF),
    unsupported("opendir", "directories are not searched for files"),
    unsupported("lockfile", "locks between jobs are not modelled").neutral(&["none"]),
    unsupported("file_append", "a device has no end to append to").neutral(OFF),
    unsupported("fill_device", "a device has a known size; use size").neutral(OFF).or("fill_fs"),
    unsupported("pre_read", "nothing is read into host caches before a run").neutral(OFF),
    unsupported("create_only", "a run without requests measures nothing").neutral(OFF),
    unsupported("end_syncfs", "file systems are not modelled here; use end_fsync").neutral(OFF),
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
    unsupported("ramp_size", "results exclude a time, not an amount; use ramp_time"),
    unsupported("thinkcycles", "processor cycles are not simulated here; use thinktime").neutral(OFF),
    unsupported("rate_ignore_thinktime", "pauses do not shift the schedule of a rate").neutral(OFF),
    unsupported("latency_target", "a job does not search for its depth; sweep iodepth").neutral(OFF),
    unsupported("wait_for", "jobs are ordered only by stonewall"),
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
    unsupported("percentage_sequential", "fio has dropped it; use percentage_random"),
    unsupported("rwmixcycle", "fio has dropped it"),
];

// Options that cannot change a result here. The result lists those that were given, with the reason.

const STRETCHES: &str = "files are extents of the simulated drive that exist before and after the run";

const LAYOUT: &str = "files are placed before the run; preconditioning decides what the drive holds there";

const HOST: &str = "the host's processors and memory are not part of this workload";

const CONTENT: &str = "the content of blocks is not simulated";

const REPORT: &str = "the report has a single format";

const LOGS: &str = "no fio log files are written";

const CLOCK: &str = "time is simulated";

const ERRORS: &str = "errors are counted and do not end a job";

const VERIFY: &str = "only matters with `verify`";

const ZONES: &str = "only matters with `zonemode=zbd`";

const DRIVER: &str = "it belongs to the driver of a different ioengine; requests reach the drive in any case";

const CALL: &str = "the cost of a system call does not depend on it here";

/// Rows of the table.
pub(super) const INERT: &[FioOption] = &[
    inert("description", "a remark"),
    inert("filetype", STRETCHES),
    inert("unique_filename", STRETCHES),
    inert("fallocate", LAYOUT),
    inert("overwrite", LAYOUT),
    inert("create_serialize", LAYOUT),
    inert("create_fsync", LAYOUT),
    inert("create_on_open", LAYOUT),
    inert("allow_file_create", LAYOUT),
    inert("allow_mounted_write", STRETCHES),
    inert("unlink", STRETCHES),
    inert("unlink_each_loop", STRETCHES),
    inert("invalidate", "every run starts with empty host caches"),
    inert("softrandommap", "the random map always fits into memory"),
    inert("random_generator", "the only generator is PCG 64; coverage and distributions do not depend on it"),
    inert("thinktime_spin", "a pause has the same length whether the processor spins or sleeps"),
    inert("mem", HOST).or("iomem"),
    inert("iomem_align", HOST).or("mem_align"),
    inert("hugepage-size", HOST),
    inert("lockmem", HOST),
    inert("gpu_dev_id", HOST),
    inert("thread", HOST),
    inert("comm", HOST),
    inert("nice", HOST),
    inert("cpumask", HOST),
    inert("cpus_allowed", HOST).list(),
    inert("cpus_allowed_policy", HOST),
    inert("numa_cpu_nodes", HOST).list(),
    inert("numa_mem_policy", HOST).list(),
    inert("uid", HOST),
    inert("gid", HOST),
    inert("cgroup_nodelete", "only matters with `cgroup`"),
    inert("exec_prerun", "no command is run"),
    inert("exec_postrun", "no command is run"),
    inert("exitall_on_error", ERRORS),
    inert("continue_on_error", ERRORS).list(),
    inert("ignore_error", ERRORS).list(),
    inert("error_dump", ERRORS),
    inert("clocksource", CLOCK),
    inert("gtod_reduce", CLOCK),
    inert("gtod_cpu", CLOCK),
    inert("job_start_clock_id", CLOCK),
    inert("latency_window", "only matters with `latency_target`"),
    inert("latency_percentile", "only matters with `latency_target`"),
    inert("latency_run", "only matters with `latency_target`"),
    inert("zero_buffers", CONTENT),
    inert("refill_buffers", CONTENT),
    inert("scramble_buffers", CONTENT),
    inert("buffer_pattern", CONTENT).list(),
    inert("buffer_compress_percentage", CONTENT),
    inert("buffer_compress_chunk", CONTENT),
    inert("dedupe_percentage", CONTENT),
    inert("dedupe_global", CONTENT),
    inert("dedupe_mode", CONTENT),
    inert("dedupe_working_set_percentage", CONTENT),
    inert("do_verify", VERIFY),
    inert("verify_policy", VERIFY).list(),
    inert("verify_interval", VERIFY),
    inert("verify_offset", VERIFY),
    inert("verify_pattern", VERIFY).list(),
    inert("verify_pattern_interval", VERIFY),
    inert("verify_fatal", VERIFY),
    inert("verify_dump", VERIFY),
    inert("verify_async", VERIFY),
    inert("verify_async_cpus", VERIFY).list(),
    inert("verify_backlog", VERIFY),
    inert("verify_backlog_batch", VERIFY),
    inert("verify_state_save", VERIFY),
    inert("verify_write_sequence", VERIFY),
    inert("verify_header_seed", VERIFY),
    inert("verifysort", VERIFY),
    inert("verifysort_nr", VERIFY),
    inert("experimental_verify", VERIFY),
    inert("trim_verify_zero", VERIFY),
    inert("trim_backlog_batch", VERIFY),
    inert("read_beyond_wp", ZONES),
    inert("max_open_zones", ZONES),
    inert("job_max_open_zones", ZONES),
    inert("ignore_zone_limits", ZONES),
    inert("zone_reset_threshold", ZONES),
    inert("zone_reset_frequency", ZONES),
    inert("recover_zbd_write_error", ZONES),
    inert("write_zone_remainder", ZONES),
    inert("zonecapacity", ZONES),
    inert("group_reporting", REPORT),
    inert("new_group", REPORT),
    inert("unified_rw_reporting", REPORT),
    inert("stats", REPORT),
    inert("clat_percentiles", REPORT),
    inert("lat_percentiles", REPORT),
    inert("slat_percentiles", REPORT),
    inert("percentile_list", REPORT),
    inert("significant_figures", REPORT),
    inert("disk_util", REPORT),
    inert("disable_lat", REPORT),
    inert("disable_clat", REPORT),
    inert("disable_slat", REPORT),
    inert("disable_bw_measurement", REPORT).or("disable_bw"),
    inert("unit_base", REPORT),
    inert("block_error_percentiles", REPORT),
    inert("bwavgtime", REPORT),
    inert("iopsavgtime", REPORT),
    inert("per_job_logs", LOGS),
    inert("write_bw_log", LOGS),
    inert("write_lat_log", LOGS),
    inert("write_iops_log", LOGS),
    inert("write_hist_log", LOGS),
    inert("write_iolog", LOGS),
    inert("log_entries", LOGS),
    inert("log_avg_msec", LOGS),
    inert("log_hist_msec", LOGS),
    inert("log_hist_coarseness", LOGS),
    inert("log_window_value", LOGS).or("log_max_value"),
    inert("log_offset", LOGS),
    inert("log_prio", LOGS),
    inert("log_issue_time", LOGS),
    inert("log_compression", LOGS),
    inert("log_compression_cpus", LOGS).list(),
    inert("log_store_compressed", LOGS),
    inert("log_alternate_epoch", LOGS).or("log_unix_epoch"),
    inert("log_alternate_epoch_clock_id", LOGS),
    inert("hipri_percentage", CALL),
    inert("fixedbufs", CALL),
    inert("registerfiles", CALL),
    inert("sqthread_poll", CALL),
    inert("sqthread_poll_cpu", CALL),
    inert("nonvectored", CALL),
    inert("libaio_vectored", CALL),
    inert("uncached", "requests go straight to the device"),
    inert("nowait", CALL),
    inert("force_async", CALL),
    inert("userspace_reap", CALL),
    inert("no_completion_thread", CALL),
    inert("cmd_type", "requests reach the device as NVMe commands in any case"),
    inert("spdk_conf", DRIVER),
    inert("spdk_json_conf", DRIVER),
    inert("spdk_mem", DRIVER),
    inert("spdk_single_seg", DRIVER),
    inert("mem_size_mb", DRIVER),
    inert("shm_id", DRIVER),
    inert("enable_sgl", DRIVER),
    inert("sgl_size", DRIVER),
    inert("disable_pcie_sgl_merge", DRIVER),
    inert("bit_bucket_data_len", DRIVER),
    inert("hostnqn", DRIVER),
    inert("xnvme_async", DRIVER),
    inert("xnvme_sync", DRIVER),
    inert("xnvme_admin", DRIVER),
    inert("xnvme_dev_nsid", DRIVER),
    inert("xnvme_dev_subnqn", DRIVER),
    inert("xnvme_mem", DRIVER),
    inert("xnvme_iovec", DRIVER),
    inert("libblkio_driver", DRIVER),
    inert("libblkio_path", DRIVER),
    inert("libblkio_pre_connect_props", DRIVER).list(),
    inert("libblkio_pre_start_props", DRIVER).list(),
    inert("libblkio_num_entries", DRIVER),
    inert("libblkio_queue_size", DRIVER),
    inert("libblkio_vectored", DRIVER),
    inert("libblkio_wait_mode", DRIVER),
    inert("libblkio_force_enable_completion_eventfd", DRIVER),
    inert("flow_watermark", "fio itself ignores it"),
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
