//! Report of a stuck run: which part waits for which, and since when.

use crate::machine::Machine;
use crate::machine::course::End;
use crate::parts::complex::{Complex, Processor};
use crate::parts::governed::Governed;
use engine::Time;
use proto::IoOp;
use requests::inject::Waiting;
use ssd::Device;

/// Most lines of one kind in a report.
const SHOWN: usize = 8;

/// Explains why a machine is stuck, a sentence each; empty for a machine that is not.
pub fn report(machine: &Machine, end: End) -> Vec<String> {
    let what = match end {
        End::Deadlock => "no event is pending, but work is left".to_owned(),
        End::Stall => "simulated time no longer advances".to_owned(),
        End::Standstill => {
            format!("simulated time advances, but work has not since {}", machine.advance.since())
        }
        End::Horizon => {
            let now = machine.now();
            return vec![format!(
                "the run ended at {now}, a day before the limit of the simulated clock: the workload lasts longer"
            )];
        }
        End::Until => {
            return vec![format!("`sim.until` ended the run at {} with work left", machine.now())];
        }
        End::Done | End::Interrupted | End::Failed => return Vec::new(),
    };
    let now = machine.now();
    let outstanding = machine.injector.outstanding();
    let mut lines =
        vec![format!("the run is stuck at {now}: {what}; {} in flight", count(outstanding, "request"))];
    lines.extend(requests(machine, now));
    lines.extend(sources(machine));
    lines.extend(machine.complexes().iter().map(|complex| parts(machine, complex)));
    lines.extend(machine.governed().iter().map(Governed::waiting));
    lines.extend(machine.driven().iter().map(|at| at.waiting(machine.hosts())));
    for (_, device) in machine.drives() {
        lines.extend(groups(device));
        lines.extend(dies(device, now));
    }
    lines
}

/// Describes the contents of each part around a processor.
fn parts(machine: &Machine, complex: &Complex) -> String {
    let inside: Vec<String> =
        machine.inside(complex).map(|(part, inside)| format!("{inside} in {part}")).into();
    let waiting = match &complex.processor {
        Processor::Ooo(ooo) => format!("{} of the cores", count(ooo.cores.jobs_running() as usize, "job")),
        Processor::Simt(_) => format!("the kernels of `{}`", complex.name),
    };
    format!("waiting: {waiting}; requests under way: {}", inside.join(", "))
}

fn requests(machine: &Machine, now: Time) -> Vec<String> {
    let oldest = machine.injector.oldest(SHOWN);
    let rest = machine.injector.outstanding() - oldest.len();
    let mut lines: Vec<String> = oldest.iter().map(|w| request(w, now)).collect();
    if rest > 0 {
        lines.push(format!("and {} more", count(rest, "younger request")));
    }
    lines
}

fn request(waiting: &Waiting, now: Time) -> String {
    let request = &waiting.request;
    let op = match request.op {
        IoOp::Read => "read",
        IoOp::Write => "write",
        IoOp::Trim => "trim",
        IoOp::WriteZeroes => "write of zeroes",
        IoOp::Flush => "flush",
    };
    let place = match (waiting.submitted, waiting.answered) {
        (_, Some(at)) => format!("answered {} ago, at the host's software", now.since(at)),
        (Some(at), None) => format!("in the device for {}", now.since(at)),
        (None, None) => "not yet submitted by the host's software".to_owned(),
    };
    let Waiting { source, issued, .. } = waiting;
    let (bytes, offset) = (request.bytes, request.offset);
    let age = now.since(*issued);
    format!("waiting: {op} of {bytes} B at byte {offset} (source {source}), issued {age} ago, {place}")
}

fn sources(machine: &Machine) -> Vec<String> {
    let line = |(source, outstanding, asked): (u16, u32, Option<Time>)| {
        let waits = match asked {
            Some(time) => format!("is due again at {time}"),
            None if outstanding > 0 => format!("waits for one of its {outstanding} requests"),
            None => "waits for a completion, with no request in flight".to_owned(),
        };
        format!("waiting: source {source} {waits}")
    };
    shorten(machine.injector.unfinished().into_iter().map(line).collect(), "source")
}

/// Describes groups in which host writes wait for garbage collection.
fn groups(device: &Device) -> Vec<String> {
    let ftl = &device.ftl;
    let hard = ftl.thresholds.hard;
    let short = (0..ftl.geo.groups).filter(|group| ftl.free(*group) <= hard);
    let line = |group| {
        let free = ftl.free(group);
        format!(
            "short of space: group {group} has {free} free reclaim units; host writes wait when {hard} or fewer are free"
        )
    };
    shorten(short.map(line).collect(), "group")
}

fn dies(device: &Device, now: Time) -> Vec<String> {
    let backend = &device.backend;
    let busy = (0..device.ftl.geo.die_count).filter(|die| !backend.is_idle(*die));
    let line =
        |die| format!("die {die} has {} queued or under way", count(backend.load(die) as usize, "operation"));
    let mut lines = shorten(busy.map(line).collect(), "die");
    if let Some(oldest) = backend.waiting_since().into_iter().min() {
        lines.push(format!("the oldest operation at a die has waited for {}", now.since(oldest)));
    }
    lines
}

fn shorten(mut lines: Vec<String>, what: &str) -> Vec<String> {
    let rest = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    if rest > 0 {
        lines.push(format!("and {}", count(rest, &format!("more {what}"))));
    }
    lines
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

// Progress of a machine's work.

impl Machine {
    /// Checks progress; returns whether the work is stuck.
    pub(crate) fn is_stuck(&mut self) -> bool {
        let (done, is_under_way, now) = (self.done(), self.is_under_way(), self.now());
        self.advance.is_stuck(done, is_under_way, now)
    }

    /// Counter that changes whenever work advances: requests that came and ended, commands that drives answered,
    /// instructions of processors, kernels that ended.
    fn done(&self) -> u64 {
        let injector = &self.injector;
        let drives = self.drives().map(|(_, device)| device.stats.recorded());
        let processors = self.complexes().iter().map(|complex| match &complex.processor {
            Processor::Simt(simt) => simt.issued().iter().sum(),
            Processor::Ooo(ooo) => ooo.cores.stats().instructions,
        });
        let kernels = self.governed().iter().map(|at| at.accelerator.open() as u64);
        let sums = drives.chain(processors).chain(kernels);
        sums.fold(injector.issued.wrapping_add(injector.completed), u64::wrapping_add)
    }

    /// Returns whether a request, a command or an access has begun and not ended.
    fn is_under_way(&self) -> bool {
        self.injector.outstanding() > 0
            || self.drives().any(|(_, device)| device.in_flight() > 0)
            || self.complexes().iter().any(|complex| self.outstanding(complex) > 0)
    }

    /// Share of the work that is done, zero to one, if the total is known: of requests, of a server's jobs, of an
    /// accelerator's or coprocessor's kernels, or of the time limit.
    pub fn progress(&self) -> Option<f64> {
        let requests = self.injector.progress().into_iter();
        let jobs = self.server().map(|(_, ooo)| ooo.cores.progress());
        let kernels = self.governed().iter().map(Governed::progress);
        let offloaded = self.driven().iter().filter_map(|at| at.progress(self.hosts()));
        let time = self.until().map(|until| self.now().ps() as f64 / until.ps().max(1) as f64);
        let all = requests.chain(jobs).chain(kernels).chain(offloaded).chain(time);
        all.reduce(f64::max).map(|share| share.min(1.0))
    }
}
