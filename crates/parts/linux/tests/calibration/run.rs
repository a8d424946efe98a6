//! Job of the measurement: its options and metrics there, the job in the model, and its metrics here.

use super::fio::{Fio, Side, Work};
use config::units::{Bandwidth, Bytes, Duration, Share};
use engine::{EventQueue, Time};
use linux::block::Device;
use linux::block::sched::SchedulerPolicy;
use linux::path::{CostsSpec, DiskSpec, Event, Host, OnDrives, Out, PathSpec};
use proto::file::{Call, Next, Program, Way};
use proto::{BufferState, Command, Completion, IoOp, Port, Status};

const PAGE: u64 = 4096;
const TICK: Time = Time::from_ms(100);

/// Metrics of a job, by the names of the measurement.
pub(crate) type Figures = Vec<(String, f64)>;

/// Guest core's costs of the kernel's steps, from two calls without waits: a write of one page, and of sixteen. The
/// call itself is slow in the guest; all steps of a page are scaled by the same factor from their defaults.
fn costs() -> CostsSpec {
    let p50 = |name| measured_job(name).figure("write.write_p50_ns").expect("a write");
    let (one, sixteen) = (p50("c-raw-random"), p50("c-raw-sequential"));
    let page = (sixteen - one) / 15.0;
    let by_default = CostsSpec::default();
    let copy = Time::transfer(PAGE, by_default.copy.bytes_per_s());
    let steps = [by_default.lookup, by_default.allocate, by_default.insert, by_default.dirty];
    let slower = page / steps.iter().fold(copy, |sum, step| sum + step.time()).as_ns_f64();
    let times = |step: Duration| Duration::new(Time::from_ns((step.time().as_ns_f64() * slower) as u64));
    CostsSpec {
        call: Duration::new(Time::from_ns((one - page) as u64)),
        lookup: times(by_default.lookup),
        allocate: times(by_default.allocate),
        insert: times(by_default.insert),
        copy: Bandwidth::new((by_default.copy.bytes_per_s() as f64 / slower) as u64),
        dirty: times(by_default.dirty),
        write_page: times(by_default.write_page),
        map: times(by_default.map),
        bio: times(by_default.bio),
        request: times(by_default.request),
        interrupt: times(by_default.interrupt),
        complete: times(by_default.complete),
        end_page: times(by_default.end_page),
        handle: times(by_default.handle),
        scan: times(by_default.scan),
    }
}

/// Guest of a job: one core, a tick of 10 ms, and the memory that gives the threshold at the start of the job.
fn guest(job: &Job) -> PathSpec {
    let mut spec = PathSpec { hz: 100, ..PathSpec::default() };
    spec.cores.count = 1;
    if job.is_raw() {
        spec.fs = OnDrives::Raw;
    }
    spec.block.wbt_lat = Duration::new(Time::from_us(job.number("queue.wbt_lat_usec")));
    spec.block.max_sectors = Bytes::from_kib(job.number("queue.max_sectors_kb"));
    // The guest has just booted: its requests have up to 320 pages (job `k`), and at most 126 segments
    // (`queue.max_segments`).
    spec.block.contiguous = Bytes::from_kib(8 << 10);
    let scheduler = job.fact("queue.scheduler");
    if scheduler.contains("[mq-deadline]") {
        spec.block.scheduler = SchedulerPolicy::mq_deadline(Default::default());
    } else if scheduler.contains("[kyber]") {
        spec.block.scheduler = SchedulerPolicy::kyber(Default::default());
    }
    spec.page_cache.read_ahead_kb = Bytes::from_kib(job.number("queue.read_ahead_kb"));
    spec.page_cache.min_free_kbytes = Some(Bytes::from_kib(job.number("vm.min_free_kbytes")));
    let span = |key| Duration::new(Time::from_ms(10 * job.number(key)));
    spec.writeback.dirty_expire = span("vm.dirty_expire_centisecs");
    spec.writeback.dirty_writeback = span("vm.dirty_writeback_centisecs");
    spec.costs = costs();
    spec.memory = Bytes::from_kib(job.figure("available_first_kib").expect("memory") as u64);
    let limit = job.number("vm.dirty_bytes");
    if limit > 0 {
        spec.writeback.dirty_bytes = Some(Bytes::new(limit));
        spec.writeback.dirty_background_bytes = Some(Bytes::new(job.number("vm.dirty_background_bytes")));
        return spec;
    }
    if !job.sets_limits() {
        // A write to `vm.dirty_ratio` restarts the limit.
        let total = job.fact("memory.MemTotal").trim_end_matches(" kB").parse().expect("a size");
        spec.memory_at_boot = Some(Bytes::from_kib(total));
    }
    let ratio = |key| job.number(key) as u8;
    spec.writeback.dirty_ratio = Some(Share::percent(ratio("vm.dirty_ratio")));
    spec.writeback.dirty_background_ratio = Some(Share::percent(ratio("vm.dirty_background_ratio")));
    let threshold = job.figure("threshold_first_pages").expect("a threshold");
    let pages = (threshold * 100.0 / f64::from(ratio("vm.dirty_ratio"))) as u64;
    let reserve = Host::<Fio>::new(&spec, &[]).expect("a host").cache().watermarks().high;
    spec.memory = Bytes::new((pages + reserve) * PAGE);
    spec
}

/// Sample of the state.
#[derive(Clone, Copy, Default)]
struct Sample {
    dirty: u64,
    writeback: u64,
    dirtied: u64,
    written: u64,
    read: u64,
}

/// Calls of a job on a block device, one after another: requests of a flow.
fn call(fio: &mut Fio, thread: u32, host: &mut Host<Fio>, outside: &mut Outside) {
    loop {
        let now = outside.queue.now();
        let command = match fio.next(thread, now) {
            Next::Call(Call::Open { .. } | Call::Truncate { .. }) => continue,
            Next::Call(Call::Read { offset, bytes, .. }) => Command::new(thread, IoOp::Read, offset, bytes),
            Next::Call(Call::Write { offset, bytes, .. }) => Command::new(thread, IoOp::Write, offset, bytes),
            Next::Call(Call::Sync { .. }) => Command::new(thread, IoOp::Flush, 0, 0),
            Next::End => return,
            other => unreachable!("one thread without a rate: {other:?}"),
        };
        return host.submit_request(0, Way::Buffered, Command { flow: thread as u16, ..command }, outside);
    }
}

/// Runs a job; returns its metrics.
pub(crate) fn run(job: &Job) -> Figures {
    let spec = guest(job);
    let device = Device {
        max_transfer: spec.block.max_sectors.get(),
        block: 512,
        queues: 1,
        queue_depth: 32,
        write_cache: false,
        fua: false,
    };
    let mut host = Host::new(&spec, &[DiskSpec { bytes: 4 << 30, device, scheduler: None }]).expect("a host");
    let mut outside = Outside::default();
    let mut fio = Fio::new(job);
    let is_raw = job.is_raw();
    if is_raw {
        outside.queue.after(Time::ZERO, World::Next(0));
    } else {
        host.add_program(fio.clone()).expect("files that fit");
        host.begin(&mut outside);
    }
    let (mut samples, mut next) = (Vec::new(), Time::ZERO);
    while let Some(event) = outside.queue.pop() {
        while outside.queue.now() >= next {
            let stats = host.cache().stats();
            samples.push(Sample {
                dirty: host.writeback().dirty(),
                writeback: host.writeback().writeback(),
                dirtied: stats.dirtied,
                written: stats.written,
                read: outside.reads.0,
            });
            next += TICK;
        }
        match event {
            World::Host(event) => host.handle(event, &mut outside),
            World::Next(thread) => call(&mut fio, thread, &mut host, &mut outside),
            World::Done(tag) => {
                let (to, status) = (Port::default(), Status::Success);
                let completion = Completion { tag, to, status, errors: 0, buffer: BufferState::Unknown };
                host.completed(completion, &mut outside);
            }
        }
        if if is_raw { fio.is_over() } else { host.is_done() } {
            break;
        }
    }
    let fio = if is_raw { &fio } else { host.programs().next().expect("fio") };
    let mut figures = of_samples(&samples);
    for (kind, (count, bytes)) in [("read", outside.reads), ("write", outside.writes)] {
        figures.push((format!("disk_{kind}s"), count as f64));
        figures.push((format!("disk_{kind}_mean_bytes"), bytes as f64 / count as f64));
    }
    let stats = host.queue(0).stats();
    let merges = stats.back_merges + stats.front_merges + stats.request_merges;
    figures.push(("disk_write_merges".to_owned(), merges as f64));
    if let Some(cached) = cached(job, &host, &spec) {
        figures.push(("cached_last_kib".to_owned(), cached));
    }
    fio.works.iter().for_each(|work| of_work(work, &mut figures));
    figures
}

/// Pages in the cache at the end of a job. The guest's earlier pages are of fio itself, and are removed when it ends;
/// the series of a writing job ends before that. Those of a block device are removed when it is closed.
fn cached(job: &Job, host: &Host<Fio>, spec: &PathSpec) -> Option<f64> {
    let writes = job.figure("dirtied_pages").is_some_and(|pages| pages > 1.0);
    let others = if writes {
        job.figure("cached_first_kib")?
    } else {
        job.fact("memory.Cached").trim_end_matches(" kB").parse().ok()?
    };
    let most = (spec.memory.get() / PAGE - host.cache().watermarks().high) * 4;
    let found = host.cache().nr_file_pages() * 4;
    (!job.on_device()).then_some((found as f64 + others).min(most as f64))
}

/// Metrics of the samples; steady ones are of the later half, as in the measurement.
fn of_samples(samples: &[Sample]) -> Figures {
    let moved = |sample: &Sample| (sample.dirtied, sample.read);
    let asked = samples.iter().rposition(|sample| moved(sample) != moved(&samples[samples.len() - 1]));
    let samples = &samples[..asked.map_or(samples.len(), |at| at + 2)];
    let half = &samples[(samples.len() - 1) / 2..];
    let (begin, last) = (half[0], half[half.len() - 1]);
    let steady = |of: fn(&Sample) -> u64| quantile(half.iter().map(|sample| of(sample) as f64).collect(), 50);
    let per_s = |pages: u64| (pages * PAGE) as f64 / ((half.len() - 1) as f64 * 0.1);
    let figures = [
        ("dirty_steady_pages", steady(|sample| sample.dirty)),
        ("dirty_max_pages", samples.iter().map(|sample| sample.dirty).max().unwrap_or(0) as f64),
        ("writeback_steady_pages", steady(|sample| sample.writeback)),
        ("dirtied_pages", last.dirtied as f64),
        ("written_pages", last.written as f64),
        ("dirtied_steady_bytes_per_s", per_s(last.dirtied - begin.dirtied)),
        ("written_steady_bytes_per_s", per_s(last.written - begin.written)),
    ];
    figures.map(|(name, value)| (name.to_owned(), value)).into()
}

fn of_work(work: &Work, figures: &mut Figures) {
    let seconds = (work.ended - work.begun.expect("it ran")).as_s_f64();
    let mut note = |what: &str, value: f64| figures.push((format!("{}.{what}", work.name), value));
    for (way, side) in [("read", &work.read), ("write", &work.write), ("sync", &work.sync)] {
        note(&format!("{way}_bytes_per_s"), side.bytes as f64 / seconds);
        note(&format!("{way}_p50_ns"), quantile(ns(side), 50));
        note(&format!("{way}_p99_ns"), quantile(ns(side), 99));
    }
    note("sync_calls", work.sync.times.len() as f64);
    note("sync_mean_ns", ns(&work.sync).iter().sum::<f64>() / work.sync.times.len().max(1) as f64);
    note("sync_p90_ns", quantile(ns(&work.sync), 90));
    let pauses: Vec<f64> = ns(&work.write).into_iter().filter(|ns| *ns >= 5e6).collect();
    note("pauses", pauses.len() as f64);
    note("pause_total_ms", pauses.iter().sum::<f64>() / 1e6);
    note("pause_p50_ns", quantile(pauses, 50));
}

fn ns(side: &Side) -> Vec<f64> {
    side.times.iter().map(|time| time.as_ns_f64()).collect()
}

fn quantile(mut values: Vec<f64>, percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() * percent / 100).copied().unwrap_or(0.0)
}

// Measured device, and its requesters.

engine::events! {
    pub enum World {
        /// Event of the host.
        Host(Event),
        /// Completion of a command by the drive.
        Done(u32),
        /// Next action of a thread that calls the block device itself.
        Next(u32),
    }
}

/// Device that completes a request at `max(t, completion of the previous one) + L + n / B`; the guest has the answer
/// `P` later.
#[derive(Default)]
pub(crate) struct Outside {
    pub(crate) queue: EventQueue<World>,
    free: Time,
    /// Number of requests, and their bytes.
    pub(crate) reads: (u64, u64),
    pub(crate) writes: (u64, u64),
}

const B: u64 = 40_000_000;

const L: Time = Time::from_us(200);

/// Time from the guest to the server and back, which overlaps with other requests: measured for 4 KiB and 256 KiB,
/// linear in between.
fn path(bytes: u64) -> Time {
    Time::from_us(52) + Time::from_ns(108_000 * bytes.saturating_sub(4 << 10) / (252 << 10))
}

impl Outside {
    fn take(&mut self, out: Out) {
        let command = match out {
            Out::Submit { command, .. } => command,
            Out::Complete(done) => {
                self.queue.after(Time::ZERO, World::Next(done.tag));
                return;
            }
            Out::Order { order, .. } => panic!("the host has no coprocessor: {order:?}"),
        };
        let now = self.queue.now();
        self.free = self.free.max(now) + L + Time::transfer(command.bytes, B);
        self.queue.after(self.free + path(command.bytes) - now, World::Done(command.tag));
        let side = match command.op {
            IoOp::Read => &mut self.reads,
            IoOp::Write => &mut self.writes,
            _ => return,
        };
        side.0 += 1;
        side.1 += command.bytes;
    }
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |at| at.queue,
    event: |_at, event| World::Host(event),
    out: |at, out| at.take(out),
}

// Measurement, as far as it is compared: fio options, facts of the guest, and metrics.

const MEASURED: &str = include_str!("../../../../../tests/calibration/pagecache/uml-6.1.toml");

/// Job of the measurement.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) name: &'static str,
    text: &'static str,
}

/// All jobs, in order of the document.
pub(crate) fn measured_jobs() -> impl Iterator<Item = Job> {
    MEASURED.split("[[job]]").skip(1).map(|text| Job { name: word(text, "name").expect("a name"), text })
}

/// Job of a name.
pub(crate) fn measured_job(name: &str) -> Job {
    measured_jobs().find(|job| job.name == name).expect("a job of this name")
}

fn word(text: &'static str, key: &str) -> Option<&'static str> {
    value(text, key)?.split('"').nth(1)
}

/// Value of a key.
fn value(text: &'static str, key: &str) -> Option<&'static str> {
    text.lines().find_map(|line| {
        let line = line.trim_start_matches('"').strip_prefix(key)?;
        line.strip_prefix('"').unwrap_or(line).strip_prefix(" = ")
    })
}

impl Job {
    /// Returns whether the guest used the block device without a file system.
    pub(crate) fn on_device(&self) -> bool {
        word(self.text, "target") == Some("raw")
    }

    /// Returns whether the job uses the page cache of the block device. Direct requests bypass it: in the model they
    /// are of a file.
    pub(crate) fn is_raw(&self) -> bool {
        self.on_device() && !self.fio().any(|option| option == "direct=1")
    }

    /// Options of fio.
    pub(crate) fn fio(&self) -> impl Iterator<Item = &'static str> {
        value(self.text, "fio").expect("options").split('"').skip(1).step_by(2)
    }

    /// Returns whether the limits of dirty pages were changed after boot.
    pub(crate) fn sets_limits(&self) -> bool {
        let settings = &self.text[..self.text.find("[job.facts]").expect("facts")];
        settings.contains("\"vm.dirty_ratio\"") || settings.contains("\"vm.dirty_bytes\"")
    }

    fn facts(&self) -> &'static str {
        let at = self.text.find("[job.facts]").expect("facts");
        &self.text[at..]
    }

    /// Fact of the guest, as a word.
    pub(crate) fn fact(&self, key: &str) -> &'static str {
        word(self.facts(), key).expect("a fact")
    }

    /// Fact of the guest, as a number.
    pub(crate) fn number(&self, key: &str) -> u64 {
        self.fact(key).parse().expect("a number")
    }

    /// Metric: the median of the runs.
    pub(crate) fn figure(&self, key: &str) -> Option<f64> {
        value(self.text, key)?.trim_start_matches('[').split(',').next()?.trim().parse().ok()
    }
}
