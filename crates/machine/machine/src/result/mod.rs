//! The result document, `nandscape.result/2`.

mod accelerator;
mod cpu;
mod energy;
mod eviction;
mod flash;
mod gpu;
mod hierarchy;
mod host;
mod io;
mod memory;
pub mod metrics;
pub mod requests;
mod summary;
mod tail;
pub mod told;

pub use self::accelerator::{AcceleratorResult, CoprocessorResult, GroupFlashResult};
pub use self::cpu::CpuResult;
pub use self::energy::{EnergyResult, PartEnergy, TotalEnergy};
pub use self::eviction::PagesByType;
pub use self::flash::{DriveWindow, FlashResult};
pub use self::gpu::GpuResult;
pub use self::hierarchy::StripeResult;
pub use self::host::{HostResult, ProgramResult};
pub use self::io::{Active, FileResult, FlowResult, Io, Kinds, OpResult, RecordedResult};
pub use self::memory::DirectResult;
pub use self::summary::human;
pub use self::tail::{Blocked, BlockingDie, SlowRequest, TailResult, op_name};

use self::energy::Served;
use crate::machine::Machine;
use crate::machine::course::End;
use crate::parts::Hosted;
use engine::Time;
use nand::dies::BackendCounters;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use spec::Spec;
use spec::precondition;
use ssd::Device;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Name and version of the document's layout.
pub const SCHEMA: &str = "nandscape.result/2";

/// Name of the check that fails for a run that is stuck, or was interrupted.
const NO_WORK_LEFT: &str = "no work is left";
/// Name of the check that fails if nothing is left to measure after the warm-up.
const WARM_UP: &str = "the warm-up leaves something to measure";

/// Result of a run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Document {
    /// Name and version of this document's layout: `nandscape.result/2`.
    pub schema: &'static str,
    /// Name of the system.
    pub system: String,
    /// Resolved spec, with the keys of `docs/parameters.md`.
    pub spec: Value,
    /// SHA-256 of the resolved spec in canonical JSON.
    pub spec_sha256: String,
    /// Seed of the run.
    pub seed: u64,
    /// Version of the program.
    pub version: &'static str,
    /// Workloads as given.
    pub workload: Vec<String>,
    /// Whether every check passed and no work was left, apart from what `sim.until` cut off; always false for a
    /// `partial` run.
    pub ok: bool,
    /// Whether the run was ended early, other than by `sim.until`.
    pub partial: bool,
    /// Warnings for the reader: inert options, moved or skipped requests, reads of unwritten data.
    pub warnings: Vec<String>,
    /// Simulated time at the end.
    pub simulated_ns: f64,
    /// Cost of the run; the only part that differs between equal runs.
    pub run: RunFigures,
    /// Results of the host's requests.
    pub io: Io,
    /// Results of GPUs that ran programs, and their memory; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu: Vec<GpuResult>,
    /// Results of servers that ran a program, and their memory; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<CpuResult>,
    /// Results of hosts' paths to their drives; left out if no request and no program used them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<HostResult>,
    /// Results of accelerators that ran kernels; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accelerator: Vec<AcceleratorResult>,
    /// Results of coprocessors that executed kernels for a host's program; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub coprocessor: Vec<CoprocessorResult>,
    /// Results of flash governed by accelerators; left out if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_flash: Vec<GroupFlashResult>,
    /// Results of flash devices.
    pub flash: Vec<FlashResult>,
    /// Results of stripes; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stripe: Vec<StripeResult>,
    /// Energy of components whose specs have energy constants; left out if none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyResult>,
    /// Latency breakdown of reads and writes: the mean time per milestone, and `host` outside the drive. The breakdown
    /// sums to the mean latency of requests. For a stripe, the milestones are those of its drives' commands, and
    /// `stripe` is the time of requests beyond their mean command. For requests through a host's page cache, all time
    /// is `host`: the kernel's commands are not the requests. A kind is left out if requests and other commands of the
    /// same drives cannot be told apart. If the host makes no requests, the drives' commands are broken down. With
    /// `io.fragments`, the breakdown is of commands: each fragment counts from the arrival of its request to its
    /// completion, and the sum is the mean of these. Fragments of one request wait at the same time in different
    /// places, so their sum is not the request's latency.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, f64>>")]
    pub breakdown_ns: BTreeMap<String, Map<String, Value>>,
    /// Checks, each comparing counts of two different parts.
    pub checks: Vec<Check>,
    /// True if the run was ended from outside.
    #[serde(skip)]
    interrupted: bool,
}

/// Cost of the run.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct RunFigures {
    /// Wall-clock time of the simulated part, seconds.
    pub wall_s: f64,
    /// CPU time of the simulated part, seconds.
    pub cpu_s: f64,
    /// CPU time of preconditioning before it, seconds; zero without preconditioning.
    pub precondition_cpu_s: f64,
    /// Number of events handled.
    pub events: u64,
    /// Requests, or jobs of a server, completed per CPU second of the simulated part.
    pub requests_per_cpu_s: f64,
    /// Peak resident set of the process, bytes.
    pub peak_rss_bytes: u64,
    /// Commit of the program; `unknown` outside a checkout.
    pub commit: &'static str,
    /// Revision of the program's results: a digest of its golden documents and key cases.
    pub results: &'static str,
}

/// Outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// Condition that the check demands.
    pub name: String,
    /// Whether the check holds.
    pub ok: bool,
    /// Details of a check that does not hold: its two sides.
    pub detail: String,
}

impl Check {
    fn of(found: ::ssd::Check) -> Check {
        let detail = if found.ok { String::new() } else { found.detail };
        Check { name: found.name.to_owned(), ok: found.ok, detail }
    }
}

/// Facts known before and around the run.
pub struct Frame {
    /// Name of the system.
    pub system: String,
    /// Resolved spec.
    pub spec: Value,
    /// Seed of the run.
    pub seed: u64,
    /// Workloads as given.
    pub workload: Vec<String>,
    /// Warnings that arose before the run.
    pub warnings: Vec<String>,
    /// Preconditioning report of each drive.
    pub preconditions: Vec<precondition::Report>,
}

impl Document {
    /// Collects the results of a machine that has ended. Once `stop` is set, slow checks are abandoned and fail.
    pub fn collect(
        frame: Frame,
        machine: &mut Machine,
        end: End,
        run: RunFigures,
        stop: &AtomicBool,
    ) -> Document {
        machine.injector.name_flows();
        let io = Io::collect(machine);
        let spenders = machine.spenders();
        let mut checks = checks(machine, end, stop);
        checks.extend(energy::checks(&spenders).into_iter().map(Check::of));
        if spenders.iter().any(|of| of.energy.is_some()) {
            checks.push(Check::of(machine.audit(&frame.spec, &spenders)));
        }
        let mut warnings = frame.warnings;
        warnings.extend(machine.injector.warnings());
        warnings.extend(machine.injector.tripped());
        let several = machine.drives().count() > 1;
        for (name, device) in machine.drives() {
            let of = if several { format!("{name}: ") } else { String::new() };
            warnings.extend(unwritten_reads(device).map(|text| format!("{of}{text}")));
            warnings.extend(uncorrectable(device).map(|text| format!("{of}{text}")));
            warnings.extend(worn_out(device).map(|worn| {
                format!(
                    "{of}the drive is worn out: {worn}; it refuses further writes (see `explain flash.bad_blocks`)"
                )
            }));
        }
        warnings.extend(never_suspended(&frame.spec));
        let held = machine.injector.held_max;
        if held > Time::ZERO {
            warnings
                .push(format!("saturated: requests waited up to {held} for room in their submission queue"));
        }
        warnings.extend(io::overloads(machine));
        if let Some(failure) = &machine.injector.failure {
            warnings.push(failure.to_string());
        }
        let mut cpu = Vec::new();
        for (complex, ooo) in machine.servers() {
            let found = CpuResult::collect(machine, complex, ooo);
            warnings.extend(cpu::caveats(machine, ooo, &found));
            cpu.push(found);
        }
        let mut flash: Vec<FlashResult> =
            machine.drives().map(|(name, device)| FlashResult::collect(name, device, machine)).collect();
        for (number, ((_, device), result)) in machine.drives().zip(&mut flash).enumerate() {
            result.series = flash::collect(machine, number, device);
        }
        for (drive, report) in flash.iter_mut().zip(frame.preconditions) {
            drive.precondition = Some(report);
        }
        let mut document = Document {
            schema: SCHEMA,
            spec_sha256: digest(&frame.spec),
            system: frame.system,
            spec: frame.spec,
            seed: frame.seed,
            version: identity::VERSION,
            workload: frame.workload,
            ok: checks.iter().all(|c| c.ok),
            partial: !matches!(end, End::Done | End::Until),
            warnings,
            simulated_ns: machine.now().as_ns_f64(),
            run,
            breakdown_ns: breakdown(machine),
            gpu: machine.gpus().map(|(complex, simt)| GpuResult::collect(machine, complex, simt)).collect(),
            cpu,
            io,
            accelerator: machine
                .governed()
                .iter()
                .map(|at| AcceleratorResult::collect(machine, at))
                .collect(),
            coprocessor: machine
                .driven()
                .iter()
                .filter_map(|at| CoprocessorResult::collect(machine, at))
                .collect(),
            group_flash: machine.governed().iter().map(|at| GroupFlashResult::collect(machine, at)).collect(),
            host: machine.hosts().iter().map(|at| HostResult::collect(machine, at)).collect(),
            flash,
            stripe: machine.stripes().map(|(name, stripe)| StripeResult::collect(name, stripe)).collect(),
            energy: None,
            checks,
            interrupted: end == End::Interrupted,
        };
        let served = Served::of(&document, machine);
        let measured = machine.now().since(machine.measured_from);
        document.energy = EnergyResult::collect(&spenders, &served, measured);
        document
    }

    /// Returns whether the run ended without having done its work; the warnings then say which part waits for which.
    pub fn is_stuck(&self) -> bool {
        !self.interrupted && self.checks.iter().any(|check| check.name == NO_WORK_LEFT && !check.ok)
    }

    /// Returns whether every check holds. A run that was interrupted or came to the end of the clock may fail the check
    /// that reports this, and the check of an unfinished warm-up.
    pub fn is_sound(&self) -> bool {
        let ends = [End::Horizon, End::Interrupted].map(ended_by);
        let was_ended =
            self.checks.iter().any(|check| check.name == NO_WORK_LEFT && ends.contains(&check.detail));
        let follows = |check: &Check| [NO_WORK_LEFT, WARM_UP].contains(&check.name.as_str());
        self.checks.iter().all(|check| check.ok || was_ended && follows(check))
    }

    /// The document as pretty JSON.
    pub fn to_json(&self) -> String {
        // Every value is a number, a string or a list of them: serialising cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// Describes how a run ended, as its check reports it.
fn ended_by(end: End) -> String {
    format!("ended by {end:?}")
}

fn checks(machine: &Machine, end: End, stop: &AtomicBool) -> Vec<Check> {
    let injector = &machine.injector;
    let mut checks = Vec::new();
    let mut check = |name: &str, ok: bool, detail: String| {
        checks.push(Check { name: name.into(), ok, detail: if ok { String::new() } else { detail } });
    };
    let outstanding = injector.outstanding() as u64;
    check(
        "issued = completed + in flight",
        injector.issued == injector.completed + outstanding,
        format!("{} issued, {} completed, {outstanding} in flight", injector.issued, injector.completed),
    );
    let [read, issued, early] = injector.replayed();
    check(
        "every request of a trace is issued once, in its order",
        read == issued && early == 0,
        format!("{read} read, {issued} issued, {early} issued after a later one"),
    );
    let wrong = io::wrong_percentile(machine);
    check("percentiles lie where the samples do", wrong.is_none(), wrong.unwrap_or_default());
    for (number, (_, device)) in machine.drives().enumerate() {
        // Negative if more was answered than asked.
        let waited_for = injector.in_device_of(number as u16) as i64 + machine.claimed(number);
        check(
            "the device holds what the host waits for",
            device.in_flight() as i64 == waited_for,
            format!("{} in the device, {waited_for} commands of the host unanswered", device.in_flight()),
        );
    }
    let (ended, recorded) = injector.measured();
    check(
        "every request that has ended is measured once",
        ended == recorded,
        format!("{ended} ended, {recorded} latencies recorded"),
    );
    for (name, stripe) in machine.stripes() {
        hierarchy::paging_checks(name, stripe)
            .into_iter()
            .for_each(|(name, ok, detail)| check(&name, ok, detail));
    }
    let by_itself =
        machine.complexes().is_empty() && machine.stripes().next().is_none() && machine.hosts().is_empty();
    for (number, (_, device)) in machine.drives().enumerate().filter(|_| by_itself) {
        let (answered, recorded) = (injector.answered_in_window_of(number as u16), device.stats.recorded());
        check(
            "the device records what the host is answered",
            answered == recorded,
            format!("{answered} answers, {recorded} recorded by the device"),
        );
    }
    check(NO_WORK_LEFT, matches!(end, End::Done | End::Until), ended_by(end));
    if let Some((measured, detail)) = measured(machine) {
        check(WARM_UP, measured, detail);
    }
    check(
        "no request failed",
        injector.errors == 0,
        match machine.drives().find_map(|(_, device)| worn_out(device)) {
            Some(worn) => format!("{worn}; {} completions with an error", injector.errors),
            None => format!("{} completions with an error", injector.errors),
        },
    );
    of_hosts(machine, &mut check);
    let still = end == End::Deadlock;
    for (complex, simt) in machine.gpus() {
        let (stages, latency) = gpu::tiling(machine, complex, simt);
        check(
            "the stages of loads and stores tile their latency",
            // Requests under way at the start of the window have left stages behind.
            machine.outstanding(complex) > 0 || machine.measured_from > Time::ZERO || stages == latency,
            format!("{stages} ps in stages, {latency} ps of latency"),
        );
        for c in machine.checks_of(complex, still) {
            check(c.name, c.ok, c.detail);
        }
    }
    for (complex, ooo) in machine.servers() {
        for c in cpu::checks(machine, complex, ooo, still) {
            check(c.name, c.ok, c.detail);
        }
    }
    for at in machine.governed() {
        at.checks(machine.now()).into_iter().for_each(|c| check(c.name, c.ok, c.detail));
    }
    for at in machine.driven() {
        at.checks(machine.hosts()).into_iter().for_each(|c| check(c.name, c.ok, c.detail));
    }
    for (_, device) in machine.drives() {
        let stop = || stop.load(Ordering::Relaxed);
        device.checks_unless(machine.now(), &stop).into_iter().for_each(|c| check(c.name, c.ok, c.detail));
    }
    checks
}

/// Checks of hosts.
fn of_hosts(machine: &Machine, check: &mut impl FnMut(&str, bool, String)) {
    for at in machine.hosts() {
        let stuck = at.host.stuck();
        check(
            "a thread that waits waits for something under way",
            stuck.is_none(),
            stuck.unwrap_or_default(),
        );
        let early = at.host.stats.early_syncs;
        check(
            "a sync returns after the commit that holds it is on the drive",
            early == 0,
            format!("{early} returned before"),
        );
        let (errors, lost) = (at.host.stats.errors, at.host.stats.lost);
        check(
            "no data of the page cache is lost",
            errors + lost == 0,
            format!(
                "{errors} answers of drives with an error, {lost} dirty pages without room on their drive"
            ),
        );
    }
}

/// Returns whether something was measured after the warm-up, and the length of the run; `None` without a warm-up.
fn measured(machine: &Machine) -> Option<(bool, String)> {
    let (by, measured, figures) = match (machine.warmup, machine.cut) {
        (Some(by), _) => (by, false, "its metrics include the warm-up"),
        (None, Some(cut)) => {
            // A GPU has no requests to count, and a host's programs count from here.
            let runs = machine.gpu().is_some() && machine.now() > machine.measured_from;
            let calls = |at: &Hosted| at.host.programs().any(|program| program.measured().asked().calls > 0);
            let works = runs || machine.hosts().iter().any(calls);
            (cut.by, works || machine.completed() > cut.jobs, "nothing was measured")
        }
        (None, None) => return None,
    };
    let (completed, now) = (machine.completed(), machine.now());
    let jobs = if machine.server().is_some() { "requests and jobs" } else { "requests" };
    Some((
        measured,
        format!("a warm-up of {by}, and the run had {completed} {jobs} and lasted {now}: {figures}"),
    ))
}

/// Returns the mean time per milestone: of the host's requests, of GPUs' accesses, and of servers' accesses.
fn breakdown(machine: &Machine) -> BTreeMap<String, Map<String, Value>> {
    let mut all = tail::of_requests(machine);
    let gpus = machine.gpus().map(|(complex, simt)| (complex, gpu::breakdown(machine, complex, simt)));
    let cpus = machine.servers().map(|(complex, ooo)| (complex, cpu::breakdown(machine, complex, ooo)));
    // With several GPUs or servers, each has its own entry under its name.
    let (many_gpus, many_cpus) = (machine.gpus().count() > 1, machine.servers().count() > 1);
    let named = gpus.map(|one| (many_gpus, one)).chain(cpus.map(|one| (many_cpus, one)));
    for (many, (complex, parts)) in named {
        let of = if many { format!("{}.", complex.name) } else { String::new() };
        let there = parts.into_iter().filter(|(_, parts)| !parts.is_empty());
        all.extend(there.map(|(name, parts)| (format!("{of}{name}"), parts)));
    }
    all
}

/// Describes why a drive refuses writes.
fn worn_out(device: &Device) -> Option<String> {
    let worn = device.ftl.worn_out()?;
    let bytes = worn.host_units as f64 * f64::from(device.ftl.geo.shape.unit_bytes);
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| bytes >= *scale).unwrap_or((1e3, "kB"));
    let amount = bytes / scale;
    Some(format!("no good blocks are left in group {} after {amount:.1} {unit} written", worn.group))
}

/// Warns about drives with suspend enabled whose limit forbids it.
fn never_suspended(spec: &Value) -> Vec<String> {
    let suspend = |part: &Value| part.pointer("/die/suspend").cloned();
    let parts = spec.as_object().into_iter().flatten();
    let never = parts.filter_map(|(name, part)| Some((name, suspend(part)?))).filter(|(_, suspend)| {
        let says = |key: &str| suspend[key] == true;
        (says("program") || says("erase")) && suspend["limit"] == 0
    });
    never
        .map(|(name, _)| format!("{name}.die.suspend has no effect: {name}.die.suspend.limit is 0, so no operation is ever suspended"))
        .collect()
}

fn unwritten_reads(device: &Device) -> Option<String> {
    let unwritten = device.stats.unwritten_reads;
    let cost = if device.reads_unwritten() { "as much as other reads" } else { "no flash time" };
    (unwritten > 0).then(|| format!("{unwritten} reads of unwritten map units: they cost {cost}"))
}

/// Warns about reads that no step could correct, if they cannot be rebuilt.
fn uncorrectable(device: &Device) -> Option<String> {
    let BackendCounters { uncorrectable_reads, retried_reads, .. } = device.window_counters().0;
    (uncorrectable_reads > 0 && device.parity().is_none()).then(|| {
        format!(
            "{uncorrectable_reads} of {retried_reads} retried reads stayed uncorrectable: their data count as recovered, \
             in no time (see `explain flash.ftl.parity`)"
        )
    })
}

/// Returns the SHA-256 of a resolved spec in canonical JSON, as documents have it.
pub fn spec_digest(spec: &Spec) -> String {
    digest(&spec.to_json())
}

fn digest(spec: &Value) -> String {
    use sha2::Digest;
    let hash = sha2::Sha256::digest(spec.to_string().as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
