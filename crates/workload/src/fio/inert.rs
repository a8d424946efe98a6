//! Options that cannot change a result here. The result lists those that were given, with the reason.

use config::Diagnostic;

use super::spec::JobSpec;
use super::table::{FioOption, inert};
use super::value::Value;

const FILES: &str = "one simulated device stands in for every file";
const CACHE: &str = "the system under test says whether a page cache lies in the path";
const BUFFERED: &str =
    "asks for buffered I/O, but whether a page cache lies in the path is for the system to say";
const LAYOUT: &str = "no file is laid out before the run; the state of the device comes from preconditioning";
const HOST: &str = "the host's processors and memory are not part of this workload";
const CONTENT: &str = "the content of blocks is not simulated";
const REPORT: &str = "the result document has one form";
const LOGS: &str = "no fio log files are written";
const CLOCK: &str = "time is simulated";
const ERRORS: &str = "errors are counted and do not end a job";
const VERIFY: &str = "only matters with `verify`";
const ZONES: &str = "only matters with `zonemode=zbd`";
const CALL: &str = "the cost of a system call does not depend on it here";

/// Rows of the table.
pub(super) const INERT: &[FioOption] = &[
    inert("description", "a remark"),
    inert("filename", FILES).list().checked(one_file),
    inert("filetype", FILES),
    inert("directory", FILES),
    inert("filename_format", FILES),
    inert("unique_filename", FILES),
    inert("openfiles", FILES),
    inert("file_service_type", FILES),
    inert("fallocate", LAYOUT),
    inert("fadvise_hint", "requests go straight to the device"),
    inert("direct", CACHE).checked(a_boolean).warns("0", BUFFERED),
    inert("overwrite", LAYOUT),
    inert("create_serialize", LAYOUT),
    inert("create_fsync", LAYOUT),
    inert("create_on_open", LAYOUT),
    inert("allow_file_create", LAYOUT),
    inert("allow_mounted_write", FILES),
    inert("unlink", FILES),
    inert("unlink_each_loop", FILES),
    inert("invalidate", "every run starts with empty host caches"),
    inert("softrandommap", "the random map always fits into memory"),
    inert(
        "random_generator",
        "there is one generator, PCG 64; coverage and distributions do not depend on it",
    ),
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
    inert("rate_cycle", "only matters with `rate_min`").or("ratecycle"),
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
    inert("hipri", CALL),
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
    inert("flow_watermark", "fio itself ignores it"),
];

fn one_file(_: &mut JobSpec, v: Value) -> Result<(), Diagnostic> {
    let text = v.text.unwrap_or_default();
    let files = 1 + text.replace("\\:", "").matches(':').count();
    if files == 1 {
        return Ok(());
    }
    Err(Diagnostic::new(format!("`{text}` names {files} files; {FILES}")).help("give one file, or none"))
}

fn a_boolean(_: &mut JobSpec, v: Value) -> Result<(), Diagnostic> {
    v.boolean().map(|_| ())
}
